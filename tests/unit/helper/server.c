/* The server over socketpairs, turn by turn, with a simulated clock. */
#include "helper/server.h"

#include "tree.h"

#include "base/util.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

struct place {
	struct tree tree;
	struct wattle_env env;
	int64_t now_ns;
	struct policy policy;
	struct counters counters;
	struct limits *limits;
	struct server *server;
	int stop_fd;
};

static int64_t told_ns(void *data)
{
	return *(int64_t *)data;
}

static struct place *set_up(void)
{
	struct place *place = calloc(1, sizeof(*place));
	assert_non_null(place);
	tree_make(&place->tree);
	tree_write(&place->tree, "sys/class/powercap/intel-rapl:0/name", "package-0\n");
	tree_write(&place->tree, "sys/class/powercap/intel-rapl:0/energy_uj", "1000\n");
	tree_write(&place->tree, "sys/class/powercap/intel-rapl:0:0/name", "dram\n");
	tree_write(&place->tree, "sys/class/powercap/intel-rapl:0:0/energy_uj", "2000\n");
	tree_write(&place->tree, "sys/class/powercap/dtpm:0/name", "package-0\n");
	tree_write(&place->tree, "sys/class/hwmon/hwmon3/name", "amd_energy\n");
	tree_write(&place->tree, "sys/class/hwmon/hwmon3/energy1_label", "Ecore000\n");
	tree_write(&place->tree, "sys/class/hwmon/hwmon3/energy1_input", "3000\n");
	tree_write(&place->tree, "sys/class/hwmon/hwmon3/energy2_label", "Esocket0\n");
	tree_write(&place->tree, "sys/class/hwmon/hwmon3/energy2_input", "4000\n");
	char sysfs[512], state[512];
	tree_path(&place->tree, sysfs, "sys");
	tree_path(&place->tree, state, "state");
	const struct env_options options = {.sysfs = sysfs, .nvml = "/nonexistent", .state_dir = state};
	assert_int_equal(env_open_with(&place->env, &options, NULL), 0);
	place->now_ns = 1000 * NS_PER_S;
	place->env.clock = (struct env_clock){told_ns, told_ns, told_ns, &place->now_ns};
	assert_int_equal(policy_parse("others read", 11, "policy", &place->policy, NULL), 0);
	assert_int_equal(counters_open(&place->counters, &place->env), 0);
	assert_int_equal(limits_open(&place->env, &place->limits, NULL), 0);
	place->stop_fd = eventfd(0, EFD_CLOEXEC);
	const struct server_parts parts = {&place->env, &place->policy, &place->counters, place->limits};
	assert_int_equal(server_open(&parts, &(struct server_sockets){-1, place->stop_fd, -1, -1}, &place->server,
				 NULL),
		0);
	return place;
}

static void tear_down(struct place *place)
{
	server_close(place->server);
	limits_close(place->limits);
	counters_close(&place->counters);
	close(place->stop_fd);
	env_close(&place->env);
	tree_finish(&place->tree);
	free(place);
}

static int join(struct place *place)
{
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	server_adopt(place->server, pair[1]);
	return pair[0];
}

static struct proto_request request_of(enum proto_type type, uint32_t number, uint32_t count)
{
	return (struct proto_request){.magic = PROTO_MAGIC, .type = (uint16_t)type, .number = number, .count = count};
}

static bool hears(int fd, struct proto_reply *ret_reply)
{
	return recv(fd, ret_reply, sizeof(*ret_reply), MSG_DONTWAIT) == sizeof(*ret_reply);
}

static struct proto_reply ask(struct place *place, int fd, enum proto_type type, uint32_t number, uint32_t count)
{
	struct proto_request request = request_of(type, number, count);
	struct proto_reply reply;
	assert_int_equal(send(fd, &request, sizeof(request), 0), sizeof(request));
	assert_int_equal(server_turn(place->server, 0), 0);
	assert_true(hears(fd, &reply));
	assert_int_equal(reply.type, type);
	return reply;
}

static void answers(void **state)
{
	struct place *place = set_up();
	int fd = join(place);
	struct proto_reply reply = ask(place, fd, PROTO_HELLO, 0, 0);
	assert_int_equal(reply.code, 0);
	assert_int_equal(reply.hello.n_counters, 3);
	assert_int_equal(reply.hello.pid, getpid());
	static const char *const names[] = {"intel-rapl:0", "intel-rapl:0:0", "amd_energy/energy2_input"};
	for (uint32_t i = 0; i < 3; i++)
		assert_string_equal(ask(place, fd, PROTO_COUNTER, i, 0).counter.name, names[i]);
	reply = ask(place, fd, PROTO_READ, 0, 16);
	assert_int_equal(reply.readings.count, 3);
	assert_int_equal(reply.readings.readings[2].energy_uj, 4000);
	assert_int_equal(reply.readings.readings[2].t_ns, place->now_ns);
	assert_int_equal(ask(place, fd, PROTO_READ, UINT32_MAX, 1).code, -ENOENT);
	assert_int_equal(ask(place, fd, PROTO_READ, 2, UINT32_MAX).code, -EINVAL);
	assert_int_equal(ask(place, fd, PROTO_DEVICE, 0, 0).code, -ENOENT);
	close(fd);
	tear_down(place);
}

static void cached(void **state)
{
	struct place *place = set_up();
	struct counter_class slow, fast;
	assert_int_equal(counter_class_init(&slow, 100 * NS_PER_MS, &place->counters), 0);
	assert_int_equal(counter_class_init(&fast, NS_PER_MS, &place->counters), 0);
	int64_t t_ns = place->now_ns;
	assert_int_equal(counters_read(&place->counters, &slow, 0, t_ns).energy_uj, 1000);
	tree_write(&place->tree, "sys/class/powercap/intel-rapl:0/energy_uj", "1500\n");
	assert_int_equal(counters_read(&place->counters, &fast, 0, t_ns + NS_PER_MS).energy_uj, 1500);
	struct proto_reading late = counters_read(&place->counters, &slow, 0, t_ns + 100 * NS_PER_MS - 1);
	assert_int_equal(late.energy_uj, 1000); // readings of fast clients are not given to slow ones
	assert_int_equal(late.t_ns, t_ns);
	assert_int_equal(counters_read(&place->counters, &slow, 0, t_ns + 100 * NS_PER_MS).energy_uj, 1500);
	counter_class_finish(&slow);
	counter_class_finish(&fast);
	tear_down(place);
}

static void fair(void **state)
{
	struct place *place = set_up();
	int busy = join(place), calm = join(place);
	struct proto_request requests[50], one = request_of(PROTO_HELLO, 0, 0);
	struct proto_reply reply;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		requests[i] = one;
	assert_int_equal(send(busy, requests, sizeof(requests), 0), sizeof(requests));
	assert_int_equal(send(calm, &one, sizeof(one), 0), sizeof(one));
	server_turn(place->server, 0);
	assert_true(hears(calm, &reply));
	assert_true(hears(busy, &reply));
	assert_false(hears(busy, &reply)); // the second request waits for the next turn
	close(busy);
	close(calm);
	tear_down(place);
}

static const struct drop {
	const char *teaches;
	size_t n_bytes;  // bytes of a request that are sent at first
	int64_t after_s; // seconds that pass then
	bool stays;
} drops[] = {
	{"client silent for a minute: disconnected", 0, 61, false},
	{"client silent for less: stays", 0, 59, true},
	{"client stops within a request: disconnected after seconds", 63, 6, false},
	{"client within a request for less: stays", 63, 4, true},
};

static void check_drop(void **state)
{
	const struct drop *row = *state;
	struct place *place = set_up();
	struct proto_request request = request_of(PROTO_HELLO, 0, 0);
	int fd = join(place);
	assert_int_equal(send(fd, &request, row->n_bytes, 0), row->n_bytes);
	server_turn(place->server, 0);
	place->now_ns += row->after_s * NS_PER_S;
	server_turn(place->server, 0);
	assert_int_equal(server_clients(place->server), row->stays);
	close(fd);
	tear_down(place);
}

static void dribbling(void **state)
{
	struct place *place = set_up();
	struct proto_request request = request_of(PROTO_HELLO, 0, 0);
	int fd = join(place);
	for (size_t i = 0; i < sizeof(request) && server_clients(place->server) > 0; i++) {
		assert_int_equal(send(fd, (const char *)&request + i, 1, MSG_NOSIGNAL), 1);
		server_turn(place->server, 0);
		place->now_ns += NS_PER_S;
	}
	assert_int_equal(server_clients(place->server), 0);
	close(fd);
	tear_down(place);
}

// Replies that are not read fill the socket. Then this client's requests wait, and other clients are served.
static void deaf(void **state)
{
	struct place *place = set_up();
	struct proto_request request = request_of(PROTO_READ, 0, 3);
	int fd = join(place), friend = join(place);
	int sent = 0;
	for (int i = 0; i < 100000; i++) {
		sent += send(fd, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
		server_turn(place->server, 0);
	}
	assert_true(sent < 20000);
	ask(place, friend, PROTO_READ, 0, 1);
	place->now_ns += 6 * NS_PER_S;
	server_turn(place->server, 0);
	assert_int_equal(server_clients(place->server), 1);
	close(fd);
	close(friend);
	tear_down(place);
}

static void share(void **state)
{
	struct place *place = set_up();
	int fds[SERVER_CLIENTS_MAX];
	for (size_t i = 0; i < SERVER_CLIENTS_MAX; i++)
		fds[i] = join(place);
	size_t n = server_clients(place->server);
	assert_true(n > SERVER_CLIENTS_MAX / 4 && n < SERVER_CLIENTS_MAX / 2);
	struct proto_reply reply;
	assert_true(hears(fds[SERVER_CLIENTS_MAX - 1], &reply));
	assert_int_equal(reply.code, -EAGAIN);
	assert_int_equal(recv(fds[SERVER_CLIENTS_MAX - 1], &reply, 1, MSG_DONTWAIT), 0);
	for (size_t i = 0; i < SERVER_CLIENTS_MAX; i++)
		close(fds[i]);
	while (server_clients(place->server) > 0)
		server_turn(place->server, 0);
	close(join(place));
	assert_int_equal(server_clients(place->server), 1);
	tear_down(place);
}

static void stops(void **state)
{
	struct place *place = set_up();
	assert_int_equal(server_turn(place->server, 0), 0);
	assert_int_equal(eventfd_write(place->stop_fd, 1), 0);
	assert_int_equal(server_turn(place->server, -1), 1);
	tear_down(place);
}

static void breaks(void **state)
{
	struct place *place = set_up();
	int ends[2];
	struct server *server;
	assert_int_equal(pipe(ends), 0);
	const struct server_parts parts = {&place->env, &place->policy, &place->counters, place->limits};
	assert_int_equal(server_open(&parts, &(struct server_sockets){-1, -1, ends[1], -1}, &server, NULL), 0);
	assert_int_equal(server_turn(server, 0), 0);
	close(ends[0]);
	assert_int_equal(server_turn(server, -1), 1);
	server_close(server);
	close(ends[1]);
	tear_down(place);
}

struct reload {
	struct server *server;
	int policy_fd;
	int reader_fd; // the test answers in place of the process that reads the policy
};

static struct reload set_up_reload(struct place *place)
{
	int ends[2];
	struct reload reload = {0};
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
	const struct server_parts parts = {&place->env, &place->policy, &place->counters, place->limits};
	assert_int_equal(server_open(&parts, &(struct server_sockets){-1, -1, -1, ends[0]}, &reload.server, NULL), 0);
	server_close(place->server);
	place->server = reload.server;
	reload.policy_fd = ends[0];
	reload.reader_fd = ends[1];
	return reload;
}

static void reload(const struct reload *reload, const char *text)
{
	char request;
	struct policy_answer answer = {0};
	server_reload(reload->server);
	assert_int_equal(recv(reload->reader_fd, &request, 1, 0), 1);
	answer.code = policy_parse(text, strlen(text), "policy", &answer.policy, &answer.error);
	assert_int_equal(send(reload->reader_fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(server_turn(reload->server, 0), 0);
}

// The tests' user runs the server, and may read every millisecond by any policy. tests/e2e/helper_server.py sends requests as
// other users.
static void reloads(void **state)
{
	static const char *const policies[] = {"group 61001 read", "others raed", "others read\nothers read every 2ms",
		""};
	struct place *place = set_up();
	struct reload test = set_up_reload(place);
	int fd = join(place);
	assert_int_equal(ask(place, fd, PROTO_READ, 0, 1).readings.readings[0].energy_uj, 1000);
	tree_write(&place->tree, "sys/class/powercap/intel-rapl:0/energy_uj", "1500\n");
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		reload(&test, policies[i]);
		assert_int_equal(ask(place, fd, PROTO_HELLO, 0, 0).hello.read_period_us, 1000);
		assert_int_equal(ask(place, fd, PROTO_READ, 0, 1).readings.readings[0].energy_uj, 1000);
	}
	place->now_ns += NS_PER_MS;
	assert_int_equal(ask(place, fd, PROTO_READ, 0, 1).readings.readings[0].energy_uj, 1500);
	close(test.reader_fd);
	server_reload(test.server); // a line in the log
	assert_int_equal(server_turn(test.server, 0), 0);
	assert_int_equal(ask(place, fd, PROTO_READ, 0, 1).code, 0);
	close(fd);
	close(test.policy_fd);
	tear_down(place);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "hello, names, readings, and indexes beyond the tables", answers);
	ROWS_ADD_ONE(&tests, "each class of clients has its own readings", cached);
	ROWS_ADD_ONE(&tests, "one request of each client is served in a turn", fair);
	ROWS_ADD(&tests, drops, check_drop);
	ROWS_ADD_ONE(&tests, "one byte a second: disconnected", dribbling);
	ROWS_ADD_ONE(&tests, "client does not read its replies: its requests wait, then it is disconnected", deaf);
	ROWS_ADD_ONE(&tests, "one user cannot occupy all slots; freed slots can be used again", share);
	ROWS_ADD_ONE(&tests, "stop request: the server stops", stops);
	ROWS_ADD_ONE(&tests, "policy reload, valid or not: no client gets a reading earlier than its period", reloads);
	ROWS_ADD_ONE(&tests, "guard's end of the pipe closed: the server stops", breaks);
	return rows_run(&tests, "server");
}
