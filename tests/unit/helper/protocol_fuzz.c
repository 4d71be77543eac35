/* Untrusted bytes sent to the server: valid requests of every type, damaged ones and noise, in pieces of any size.
 *
 * Nothing crashes. Each valid request has one reply whose code is 0 or a negative errno. Invalid requests end the
 * connection, and its slot is free again. The machine is simulated, and any limit may be set on it. */
#include "helper/server.h"

#include "tree.h"

#include "base/util.h"

#include <sys/socket.h>

struct target {
	struct tree tree;
	struct wattle_env env;
	struct policy policy;
	struct counters counters;
	struct limits *limits;
	struct server *server;
	uint64_t rng; // of splitmix64: the same bytes each time
};

static uint64_t roll(struct target *target)
{
	uint64_t z = target->rng += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void set_up(struct target *target)
{
	static const char rules[] = "others read every 1s\nothers cap any\nothers cap any clocks\n";
	static const char *const files[][2] = {
		{"name", "package-0\n"},
		{"enabled", "1\n"},
		{"energy_uj", "1000\n"},
		{"constraint_0_name", "long_term\n"},
		{"constraint_0_power_limit_uw", "200000000\n"},
		{"constraint_0_max_power_uw", "200000000\n"},
	};
	char path[128], sysfs[512], state[512];
	*target = (struct target){.rng = 6};
	tree_make(&target->tree);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "sys/class/powercap/intel-rapl:0/%s", files[i][0]);
		tree_write(&target->tree, path, files[i][1]);
	}
	tree_path(&target->tree, sysfs, "sys");
	tree_path(&target->tree, state, "state");
	const struct env_options options = {.sysfs = sysfs, .nvml = "/nonexistent", .state_dir = state};
	assert_int_equal(env_open_with(&target->env, &options, NULL), 0);
	assert_int_equal(policy_parse(rules, sizeof(rules) - 1, "rules", &target->policy, NULL), 0);
	assert_int_equal(counters_open(&target->counters, &target->env), 0);
	assert_int_equal(limits_open(&target->env, &target->limits, NULL), 0);
	assert_int_equal(limits_count(target->limits), 1);
	const struct server_parts parts = {&target->env, &target->policy, &target->counters, target->limits};
	assert_int_equal(server_open(&parts, &(struct server_sockets){-1, -1, -1, -1}, &target->server, NULL), 0);
}

static void tear_down(struct target *target)
{
	server_close(target->server);
	limits_close(target->limits);
	counters_close(&target->counters);
	env_close(&target->env);
	tree_finish(&target->tree);
}

static uint32_t odd_number(struct target *target)
{
	static const uint32_t numbers[] = {0, 0, 0, 1, 2, 15, 16, 17, 255, 256, 65536, INT32_MAX, UINT32_MAX};
	return numbers[roll(target) % ARRAY_SIZE(numbers)];
}

// Mostly plausible values, which pass the first check.
static struct proto_request sound_request(struct target *target)
{
	static const int64_t values[] = {0, 1, -1, 100000, 150000, 200000, 200001, INT64_MAX, INT64_MIN};
	struct proto_request request = {
		.magic = PROTO_MAGIC,
		.type = (uint16_t)(PROTO_HELLO + roll(target) % PROTO_RESET),
		.mode = (uint16_t)(roll(target) % 4),
		.number = odd_number(target),
		.count = odd_number(target),
		.value = values[roll(target) % ARRAY_SIZE(values)],
		.for_s = roll(target) % 4 == 0 ? odd_number(target) : 0,
	};
	for (size_t i = 0, n = roll(target) % (sizeof(request.name) - 1); i < n; i++)
		request.name[i] = (char)(' ' + roll(target) % 95);
	return request;
}

static int join(struct target *target)
{
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(server_adopt(target->server, pair[1]), 0);
	return pair[0];
}

static void send_in_pieces(struct target *target, int fd, const void *bytes, size_t size)
{
	for (size_t at = 0; at < size;) {
		size_t n = 1 + roll(target) % (size - at);
		if (send(fd, (const char *)bytes + at, n, MSG_NOSIGNAL) < 0)
			return; // disconnected
		at += n;
		server_turn(target->server, 0);
	}
}

static void leave(struct target *target, int fd)
{
	close(fd);
	for (int i = 0; i < 10 && server_clients(target->server) > 0; i++)
		server_turn(target->server, 0);
	assert_int_equal(server_clients(target->server), 0);
}

static void sound(void **state)
{
	struct target target;
	set_up(&target);
	int fd = join(&target);
	for (int i = 0; i < 3000; i++) {
		struct proto_request request = sound_request(&target);
		struct proto_reply reply;
		assert_true(request_is_sound(&request));
		send_in_pieces(&target, fd, &request, sizeof(request));
		assert_int_equal(recv(fd, &reply, sizeof(reply), MSG_DONTWAIT), sizeof(reply));
		assert_int_equal(reply.magic, PROTO_MAGIC);
		assert_int_equal(reply.type, request.type);
		assert_true(reply.code <= 0 && reply.code > -4096 && reply.reserved == 0 && reply.reserved2 == 0);
		if (reply.code < 0) {
			assert_true(reply.outcome.text[0] != '\0');
			assert_non_null(memchr(reply.outcome.text, '\0', sizeof(reply.outcome.text)));
		}
		assert_int_equal(recv(fd, &reply, 1, MSG_DONTWAIT), -1);
	}
	leave(&target, fd);
	tear_down(&target);
}

static void damaged(void **state)
{
	struct target target;
	set_up(&target);
	for (int i = 0; i < 2000; i++) {
		struct proto_request request = sound_request(&target);
		struct proto_reply reply;
		char bytes[sizeof(request)];
		memcpy(bytes, &request, sizeof(bytes));
		for (uint64_t k = 0, n = 1 + roll(&target) % 3; k < n; k++)
			bytes[roll(&target) % sizeof(bytes)] ^= (char)(1 << roll(&target) % 8);
		memcpy(&request, bytes, sizeof(bytes));
		int fd = join(&target);
		send_in_pieces(&target, fd, bytes, sizeof(bytes));
		ssize_t n = recv(fd, &reply, sizeof(reply), MSG_DONTWAIT);
		assert_int_equal(n, request_is_sound(&request) ? (ssize_t)sizeof(reply) : 0);
		leave(&target, fd);
	}
	tear_down(&target);
}

static void noise(void **state)
{
	struct target target;
	set_up(&target);
	for (int i = 0; i < 500; i++) {
		uint64_t bytes[32];
		for (size_t k = 0; k < ARRAY_SIZE(bytes); k++)
			bytes[k] = roll(&target);
		if (i % 2 == 0)
			memcpy(bytes, &(uint32_t){PROTO_MAGIC}, sizeof(uint32_t));
		int fd = join(&target);
		send_in_pieces(&target, fd, bytes, sizeof(bytes));
		leave(&target, fd);
	}
	tear_down(&target);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "valid requests: each gets one reply, whatever its numbers", sound);
	ROWS_ADD_ONE(&tests, "changed bit: answered if the request is still valid, else disconnected", damaged);
	ROWS_ADD_ONE(&tests, "noise: disconnected", noise);
	return rows_run(&tests, "protocol");
}
