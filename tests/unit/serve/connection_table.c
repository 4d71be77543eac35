#include "serve/http.h"

#include "base/util.h"

#include "rows.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

// A connection whose other end detects whether the server closed it.
static int connection(int *ret_other)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	*ret_other = fds[1];
	return fds[0];
}

static bool is_hung_up(int other)
{
	char c;
	return read(other, &c, 1) == 0;
}

static const struct row {
	const char *teaches;
	bool is_responding; // after 20 s
	int64_t silent_s;   // then
	bool is_hung_up;
} rows[] = {
	{"new connection: stays", false, 0, false},
	{"no request for too long: closed", false, 11, true},
	{"after a request: the same time again for the response", true, 29, false},
	{"response not read: closed", true, 31, true},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct connection_table table;
	int other, fd = connection(&other);
	connection_table_init(&table);
	struct connection *entry = connection_table_add(&table, fd, 0, 0);
	int64_t t_ns = 20 * NS_PER_S;
	if (row->is_responding)
		connection_start_response(entry, t_ns);
	connection_table_expire(&table, t_ns + row->silent_s * NS_PER_S);
	assert_int_equal(is_hung_up(other), row->is_hung_up);
	connection_table_remove(&table, entry);
	assert_int_equal(table.n, 0);
	close(fd);
	close(other);
}

// A crowd: `n` connections of one origin, opened 1 ms apart from `begun_ms` on, answered at once or not.
struct party {
	int n;
	uint64_t origin;
	int64_t begun_ms;
	bool is_responding;
	bool is_unread; // the library has not read from them
};

static const struct crowd_row {
	const char *teaches;
	struct party parties[3];
	int64_t now_ms; // when one more connection arrives, from origin 9
	int goes;       // the number of the connection that is closed for it; -1: none
} crowd_rows[] = {
	{"free slots: no connection is closed", {{CONNECTION_TABLE_CROWDED - 1, 1, 0, true}}, 60000, -1},
	{"silent clients: the one silent for longest is closed", {{CONNECTION_TABLE_CROWDED, 1, 0, false}}, 9000, 0},
	{"answered client that reads nothing: closed like one that sends nothing",
		{{CONNECTION_TABLE_CROWDED, 1, 0, true}}, 9000, 0},
	{"old response that nobody reads: closed before a request that is slightly late",
		{{20, 1, 8000, false}, {1, 1, 0, true}, {40, 1, 7000, false}}, 9000, 20},
	{"two origins: one with more connections loses one, however old the others are",
		{{20, 1, 0, false}, {40, 2, 8000, false}}, 9000, 20},
	{"two origins, none late: one with more connections loses one", {{20, 1, 0, true}, {40, 2, 8900, false}}, 9000,
		20},
	{"none late: a connection without a pending response is closed before answered ones, however new it is",
		{{30, 1, 8400, true}, {30, 1, 8500, false}}, 9000, 30},
	{"connection accepted just now: not closed before it was read, though its origin has most connections",
		{{20, 1, 0, true}, {20, 2, 8000, false, true}, {19, 2, 8900, true}}, 9000, 40},
	{"connection accepted just now: closed if all others are as new",
		{{30, 1, 8500, false, true}, {30, 1, 8400, false, true}}, 9000, 0},
	{"none late: the oldest connection is closed", {{30, 1, 8500, true}, {30, 1, 8400, true}}, 9000, 0},
};

static void check_crowd(void **state)
{
	const struct crowd_row *row = *state;
	struct connection_table table;
	int others[CONNECTION_TABLE_MAX], fds[CONNECTION_TABLE_MAX], n = 0, n_gone = 0;
	connection_table_init(&table);
	table.run = 6;
	for (const struct party *party = row->parties; party < row->parties + 3; party++) {
		for (int i = 0; i < party->n; i++, n++) {
			int64_t t_ns = (party->begun_ms + i) * NS_PER_MS;
			// The crowd exists; only the connection that arrives last may close one of it.
			fds[n] = connection(&others[n]);
			struct connection *entry = &table.items[n];
			*entry = (struct connection){.fd = fds[n],
				.line = ++table.last_line,
				.origin = party->origin,
				.run = party->is_unread ? 5 : 4,
				.since_ns = t_ns};
			table.n++;
			if (party->is_responding)
				connection_start_response(entry, t_ns);
		}
	}
	int newcomer_other, newcomer = connection(&newcomer_other);
	assert_non_null(connection_table_add(&table, newcomer, 9, row->now_ms * NS_PER_MS));
	assert_false(is_hung_up(newcomer_other));
	for (int i = 0; i < n; i++) {
		bool is_gone = is_hung_up(others[i]);
		assert_true(!is_gone || i == row->goes);
		n_gone += is_gone;
		close(fds[i]);
		close(others[i]);
	}
	assert_int_equal(n_gone, row->goes >= 0);
	close(newcomer);
	close(newcomer_other);
}

static void full(void **state)
{
	struct connection_table table;
	int others[CONNECTION_TABLE_MAX], fds[CONNECTION_TABLE_MAX], n_gone = 0;
	connection_table_init(&table);
	for (int i = 0; i < CONNECTION_TABLE_MAX; i++) {
		fds[i] = connection(&others[i]);
		assert_non_null(connection_table_add(&table, fds[i], 1, i * NS_PER_S / 10));
	}
	assert_null(connection_table_add(&table, fds[0], 1, 10 * NS_PER_S));
	for (int i = 0; i < CONNECTION_TABLE_MAX; i++) {
		n_gone += is_hung_up(others[i]);
		close(fds[i]);
		close(others[i]);
	}
	// One is closed for each that arrived above the threshold, and one for the connection that found no slot.
	assert_int_equal(n_gone, CONNECTION_TABLE_MAX - CONNECTION_TABLE_CROWDED + 1);
}

static void closed_after_its_answer(void **state)
{
	struct connection_table table;
	int others[CONNECTION_TABLE_CROWDED], fds[CONNECTION_TABLE_CROWDED];
	connection_table_init(&table);
	for (int i = 0; i < CONNECTION_TABLE_CROWDED; i++) {
		fds[i] = connection(&others[i]);
		struct connection *entry = connection_table_add(&table, fds[i], 1, 0);
		connection_start_response(entry, 0);
		if (i != CONNECTION_TABLE_CROWDED - 2 && i != CONNECTION_TABLE_CROWDED - 1)
			continue;
		connection_table_response_sent(&table, entry, 1);
		assert_int_equal(is_hung_up(others[i]), i == CONNECTION_TABLE_CROWDED - 1);
	}
	for (int i = 0; i < CONNECTION_TABLE_CROWDED; i++) {
		close(fds[i]);
		close(others[i]);
	}
}

static void closed_ones_make_room(void **state)
{
	struct connection_table table;
	int others[CONNECTION_TABLE_CROWDED], fds[CONNECTION_TABLE_CROWDED];
	connection_table_init(&table);
	for (int i = 0; i < CONNECTION_TABLE_CROWDED; i++) {
		fds[i] = connection(&others[i]);
		struct connection *entry = connection_table_add(&table, fds[i], 1, 0);
		if (i < CONNECTION_TABLE_CROWDED - 1)
			continue;
		connection_start_response(entry, 0);
		connection_table_response_sent(&table, entry, 1); // closed, not yet freed
	}
	int newcomer_other, newcomer = connection(&newcomer_other);
	assert_non_null(connection_table_add(&table, newcomer, 1, 2));
	for (int i = 0; i < CONNECTION_TABLE_CROWDED; i++) {
		assert_int_equal(is_hung_up(others[i]), i == CONNECTION_TABLE_CROWDED - 1);
		close(fds[i]);
		close(others[i]);
	}
	close(newcomer);
	close(newcomer_other);
}

// A TCP connection over the loopback with as much data under way to the client as it accepts.
static int tcp_connection(int listener, int *ret_client)
{
	static const char data[200000];
	struct sockaddr_in address;
	socklen_t size = sizeof(address);
	const int small = 2304;
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(client, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&address, size), 0);
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fd >= 0);
	while (write(fd, data, sizeof(data)) > 0)
		;
	*ret_client = client;
	return fd;
}

static void slow_reader(void **state)
{
	struct connection_table table;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), clients[CONNECTION_TABLE_CROWDED],
	    fds[CONNECTION_TABLE_CROWDED];
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	connection_table_init(&table);
	for (int i = 0; i < CONNECTION_TABLE_CROWDED; i++) {
		fds[i] = connection(&clients[i]);
		struct connection *entry = connection_table_add(&table, fds[i], 1, 8500 * NS_PER_MS);
		if (i < 2) { // their responses were sent 8.5 s ago: the first client reads its own, the second does not
			close(fds[i]);
			close(clients[i]);
			fds[i] = entry->fd = tcp_connection(listener, &clients[i]);
			connection_start_response(entry, 500 * NS_PER_MS);
		}
	}
	char data[1000];
	for (ssize_t got = 0, n; got < 150000; got += n) {
		n = recv(clients[0], data, sizeof(data), 0);
		assert_true(n > 0);
		while (write(fds[0], data, sizeof(data)) > 0)
			;
	}
	int newcomer_other, newcomer = connection(&newcomer_other);
	assert_non_null(connection_table_add(&table, newcomer, 1, 9000 * NS_PER_MS));
	for (int i = 0; i < CONNECTION_TABLE_CROWDED; i++) {
		assert_int_equal(table.items[i].is_over, i == 1);
		close(clients[i]);
		close(fds[i]);
	}
	close(newcomer);
	close(newcomer_other);
	close(listener);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, crowd_rows, check_crowd);
	ROWS_ADD_ONE(&tests, "connection that finds all slots used: refused, and a slot is freed for the next", full);
	ROWS_ADD_ONE(&tests,
		"after its response a connection stays while slots are free, and is closed when they are short",
		closed_after_its_answer);
	ROWS_ADD_ONE(&tests, "new connection: closes none while closed ones already free their slots",
		closed_ones_make_room);
	ROWS_ADD_ONE(&tests, "client that reads its response slowly stays, one that reads nothing is closed",
		slow_reader);
	return rows_run(&tests, "visits");
}
