#include "serve/http.h"

#include "base/util.h"

#include "rows.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

// A connection whose other end shows whether ours was hung up.
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
	bool is_answered; // after 20 s
	int64_t silent_s; // then
	bool is_hung_up;
} rows[] = {
	{"who has just come may stay", false, 0, false},
	{"who has said nothing for too long goes", false, 11, true},
	{"whoever asked has as long again for the answer", true, 29, false},
	{"whoever does not read the answer goes", true, 31, true},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct visits visits;
	int other, fd = connection(&other);
	visits_init(&visits);
	struct visit *visit = visits_begin(&visits, fd, 0, 0);
	int64_t t_ns = 20 * NS_PER_S;
	if (row->is_answered)
		visit_is_asked(visit, t_ns);
	visits_sweep(&visits, t_ns + row->silent_s * NS_PER_S);
	assert_int_equal(is_hung_up(other), row->is_hung_up);
	visits_end(&visits, visit);
	assert_int_equal(visits.n, 0);
	close(fd);
	close(other);
}

// A crowd: `n` connections of one origin, begun 1 ms apart from `begun_ms` on, answered at once or not.
struct party {
	int n;
	uint64_t origin;
	int64_t begun_ms;
	bool is_answered;
	bool is_unread; // the library has not read from them
};

static const struct crowd_row {
	const char *teaches;
	struct party parties[3];
	int64_t now_ms; // when one more comes, of origin 9
	int goes;       // the number of the connection that is closed for it; -1: none
} crowd_rows[] = {
	{"as long as there is room nobody goes", {{VISITS_ROOMY - 1, 1, 0, true}}, 60000, -1},
	{"of clients that send nothing, who has done so for longest", {{VISITS_ROOMY, 1, 0, false}}, 9000, 0},
	{"who was answered and reads nothing goes like who asks nothing", {{VISITS_ROOMY, 1, 0, true}}, 9000, 0},
	{"an old answer that nobody reads before a request that is a little late",
		{{20, 1, 8000, false}, {1, 1, 0, true}, {40, 1, 7000, false}}, 9000, 20},
	{"of two origins, the one with more connections, however old the others are",
		{{20, 1, 0, false}, {40, 2, 8000, false}}, 9000, 20},
	{"of two origins, the one with more connections, even if none of them is late",
		{{20, 1, 0, true}, {40, 2, 8900, false}}, 9000, 20},
	{"while nobody is late, who waits for no answer goes before those that are answered, however new it is",
		{{30, 1, 8400, true}, {30, 1, 8500, false}}, 9000, 30},
	{"who was accepted just now is not closed before it was read, though its origin has most connections",
		{{20, 1, 0, true}, {20, 2, 8000, false, true}, {19, 2, 8900, true}}, 9000, 40},
	{"who was accepted just now goes when all others are as new",
		{{30, 1, 8500, false, true}, {30, 1, 8400, false, true}}, 9000, 0},
	{"while nobody is late, who came first", {{30, 1, 8500, true}, {30, 1, 8400, true}}, 9000, 0},
};

static void check_crowd(void **state)
{
	const struct crowd_row *row = *state;
	struct visits visits;
	int others[VISITS_MAX], fds[VISITS_MAX], n = 0, n_gone = 0;
	visits_init(&visits);
	visits.run = 6;
	for (const struct party *party = row->parties; party < row->parties + 3; party++) {
		for (int i = 0; i < party->n; i++, n++) {
			int64_t t_ns = (party->begun_ms + i) * NS_PER_MS;
			// The crowd is there; only the one that comes at last may close one of it.
			fds[n] = connection(&others[n]);
			struct visit *visit = &visits.items[n];
			*visit = (struct visit){.fd = fds[n],
				.line = ++visits.last_line,
				.origin = party->origin,
				.run = party->is_unread ? 5 : 4,
				.since_ns = t_ns};
			visits.n++;
			if (party->is_answered)
				visit_is_asked(visit, t_ns);
		}
	}
	int newcomer_other, newcomer = connection(&newcomer_other);
	assert_non_null(visits_begin(&visits, newcomer, 9, row->now_ms * NS_PER_MS));
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
	struct visits visits;
	int others[VISITS_MAX], fds[VISITS_MAX], n_gone = 0;
	visits_init(&visits);
	for (int i = 0; i < VISITS_MAX; i++) {
		fds[i] = connection(&others[i]);
		assert_non_null(visits_begin(&visits, fds[i], 1, i * NS_PER_S / 10));
	}
	assert_null(visits_begin(&visits, fds[0], 1, 10 * NS_PER_S));
	for (int i = 0; i < VISITS_MAX; i++) {
		n_gone += is_hung_up(others[i]);
		close(fds[i]);
		close(others[i]);
	}
	// One goes for each that came when it was no longer roomy, and one for who found no place.
	assert_int_equal(n_gone, VISITS_MAX - VISITS_ROOMY + 1);
}

static void closed_after_its_answer(void **state)
{
	struct visits visits;
	int others[VISITS_ROOMY], fds[VISITS_ROOMY];
	visits_init(&visits);
	for (int i = 0; i < VISITS_ROOMY; i++) {
		fds[i] = connection(&others[i]);
		struct visit *visit = visits_begin(&visits, fds[i], 1, 0);
		visit_is_asked(visit, 0);
		if (i != VISITS_ROOMY - 2 && i != VISITS_ROOMY - 1)
			continue;
		visits_answered(&visits, visit, 1);
		assert_int_equal(is_hung_up(others[i]), i == VISITS_ROOMY - 1);
	}
	for (int i = 0; i < VISITS_ROOMY; i++) {
		close(fds[i]);
		close(others[i]);
	}
}

static void closed_ones_make_room(void **state)
{
	struct visits visits;
	int others[VISITS_ROOMY], fds[VISITS_ROOMY];
	visits_init(&visits);
	for (int i = 0; i < VISITS_ROOMY; i++) {
		fds[i] = connection(&others[i]);
		struct visit *visit = visits_begin(&visits, fds[i], 1, 0);
		if (i < VISITS_ROOMY - 1)
			continue;
		visit_is_asked(visit, 0);
		visits_answered(&visits, visit, 1); // closed, and not yet reaped
	}
	int newcomer_other, newcomer = connection(&newcomer_other);
	assert_non_null(visits_begin(&visits, newcomer, 1, 2));
	for (int i = 0; i < VISITS_ROOMY; i++) {
		assert_int_equal(is_hung_up(others[i]), i == VISITS_ROOMY - 1);
		close(fds[i]);
		close(others[i]);
	}
	close(newcomer);
	close(newcomer_other);
}

// A TCP connection over the loopback with as much on its way to the client as it takes.
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
	struct visits visits;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), clients[VISITS_ROOMY], fds[VISITS_ROOMY];
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	visits_init(&visits);
	for (int i = 0; i < VISITS_ROOMY; i++) {
		fds[i] = connection(&clients[i]);
		struct visit *visit = visits_begin(&visits, fds[i], 1, 8500 * NS_PER_MS);
		if (i < 2) { // their answers have gone out for 8.5 s: the first client reads its own, the second does not
			close(fds[i]);
			close(clients[i]);
			fds[i] = visit->fd = tcp_connection(listener, &clients[i]);
			visit_is_asked(visit, 500 * NS_PER_MS);
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
	assert_non_null(visits_begin(&visits, newcomer, 1, 9000 * NS_PER_MS));
	for (int i = 0; i < VISITS_ROOMY; i++) {
		assert_int_equal(visits.items[i].is_over, i == 1);
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
	ROWS_ADD_ONE(&tests, "who comes when it is full has no place, and has made room for the next", full);
	ROWS_ADD_ONE(&tests,
		"after its answer a connection stays while there is room, and is closed when places are short",
		closed_after_its_answer);
	ROWS_ADD_ONE(&tests, "who comes closes nobody while connections that are closed already free their places",
		closed_ones_make_room);
	ROWS_ADD_ONE(&tests, "who reads its answer slowly stays, who reads nothing goes", slow_reader);
	return rows_run(&tests, "visits");
}
