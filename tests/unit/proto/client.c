/* The client: the result of a request, whatever the helper does. */
#include "proto/client.h"

#include "fake_helper.h"
#include "rows.h"

#include <stdlib.h>

enum { SHORT_MS = 60, LONG_MS = 5000 };

static struct wattle_env env_of(const char *socket)
{
	return (struct wattle_env){.helper = socket, .sysfs_fd = -1, .procfs_fd = -1};
}

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

static int read_two(struct proto_client *client, int timeout_ms, struct proto_reply *ret_reply,
	struct wattle_error *reterr)
{
	struct proto_request request = {.type = PROTO_READ, .count = 2};
	return proto_client_request(client, &request, timeout_ms, ret_reply, reterr);
}

static void make_two(struct fake_helper *helper)
{
	fake_make(helper);
	helper->table->n_counters = 2;
	helper->table->readings[0] = (struct proto_reading){111, 1000};
	helper->table->readings[1] = (struct proto_reading){VALUE_MISSING, 0};
	fake_start(helper);
}

/* ---- replies ---- */

static const struct row {
	const char *teaches;
	enum fake_manner manner;
	int timeout_ms, code;
	const char *text; // in the message; NULL: no error
} rows[] = {
	{"valid reply: returned", FAKE_HONEST, LONG_MS, 0, NULL},
	{"reply in pieces: assembled", FAKE_PIECES, LONG_MS, 0, NULL},
	{"no reply: times out after the given time", FAKE_SILENT, SHORT_MS, -ETIMEDOUT,
		"the helper does not respond at /tmp/"},
	{"half a reply: times out", FAKE_HALF, SHORT_MS, -ETIMEDOUT, "the helper does not respond at /tmp/"},
	{"half a reply, then the helper dies: error", FAKE_HALF_GONE, LONG_MS, -EPIPE, "closed the connection"},
	{"connection closed: reported at once", FAKE_HANGS_UP, LONG_MS, -EPIPE, "closed the connection"},
	{"wrong magic: another program", FAKE_MAGIC, LONG_MS, -EPROTO, "another version"},
	{"reply to another request: error", FAKE_TYPE, LONG_MS, -EPROTO, "another version"},
	{"reserved bytes that are not 0: error", FAKE_RESERVED, LONG_MS, -EPROTO, "another version"},
	{"code above 0: error", FAKE_POSITIVE, LONG_MS, -EPROTO, "another version"},
	{"more readings than fit: error", FAKE_MANY, LONG_MS, -EPROTO, "another version"},
	{"refusal: the helper's code and text; the text ends at its maximum length", FAKE_REFUSES, LONG_MS, -EPERM,
		"nnnn"},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct fake_helper helper;
	struct proto_client client;
	struct proto_hello hello;
	struct proto_reply reply;
	struct wattle_error error = {0};
	make_two(&helper);
	helper.table->other = row->manner;
	struct wattle_env env = env_of(helper.socket);
	assert_int_equal(proto_client_open(&client, &env, &hello, &error), 0);
	assert_int_equal(hello.n_counters, 2);
	assert_int_equal(hello.pid, helper.pid);

	int64_t start_ms = now_ms();
	int code = read_two(&client, row->timeout_ms, &reply, &error);
	assert_int_equal(code, row->code);
	assert_int_equal(error.code, row->code);
	if (row->text != NULL)
		assert_non_null(strstr(error.text, row->text));
	if (row->code == 0) {
		assert_int_equal(reply.readings.readings[0].energy_uj, 111);
		assert_false(value_ok(reply.readings.readings[1].energy_uj));
	}
	if (row->code == -ETIMEDOUT)
		assert_true(now_ms() - start_ms >= row->timeout_ms);
	bool lost = row->code != 0 && row->code != -EPERM;
	assert_int_equal(proto_client_is_open(&client), !lost);

	// Unread bytes of a connection don't reach the next one.
	helper.table->other = FAKE_HONEST;
	if (lost) {
		assert_int_equal(read_two(&client, LONG_MS, &reply, &error), -ENOTCONN);
		proto_client_close(&client);
		assert_int_equal(proto_client_open(&client, &env, &hello, &error), 0);
	}
	assert_int_equal(read_two(&client, LONG_MS, &reply, &error), 0);
	assert_int_equal(reply.readings.readings[0].energy_uj, 111);
	proto_client_close(&client);
	fake_finish(&helper);
}

/* ---- opening ---- */

static const struct door {
	const char *teaches;
	const char *socket; // NULL: the path of a helper
	enum fake_manner hello;
	bool is_dead;
	int code;
	const char *text;
} doors[] = {
	{"WATTLE_HELPER=off: no connection", "off", FAKE_HONEST, false, -ENODEV, "WATTLE_HELPER=off"},
	{"no socket: the message explains how to start a helper", "/nonexistent/wattled.sock", FAKE_HONEST, false,
		-ENOENT, "no helper is running at /nonexistent/wattled.sock; sudo "},
	{"file in place of the folder: treated as no socket", "/dev/null/wattled.sock", FAKE_HONEST, false, -ENOENT,
		"no helper is running at /dev/null/wattled.sock; sudo "},
	{"socket of a dead helper: error", NULL, FAKE_HONEST, true, -ECONNREFUSED, "no helper is running at"},
	{"helper without a hello: error", NULL, FAKE_SILENT, false, -ETIMEDOUT, "does not respond"},
	{"helper of another protocol version: error", NULL, FAKE_MAGIC, false, -EPROTO, "another version"},
	{"helper closes the connection: the user is not served", NULL, FAKE_HANGS_UP, false, -EPIPE,
		"closed the connection"},
	{"path too long for a socket: error",
		"/tmp/a-folder-with-a-very-long-name/and-another-one-in-it-with-a-long-name/and-one-more-of-them/and-the-end/"
		"wattled.sock",
		FAKE_HONEST, false, -ENAMETOOLONG, "File name too long"},
};

static void check_door(void **state)
{
	const struct door *door = *state;
	struct fake_helper helper;
	struct proto_client client;
	struct proto_hello hello;
	struct wattle_error error = {0};
	make_two(&helper);
	helper.table->hello = door->hello;
	if (door->is_dead)
		fake_kill(&helper);
	struct wattle_env env = env_of(door->socket != NULL ? door->socket : helper.socket);
	assert_int_equal(proto_client_open_within(&client, &env, SHORT_MS, &hello, &error), door->code);
	assert_non_null(strstr(error.text, door->text));
	assert_false(proto_client_is_open(&client));
	proto_client_close(&client);
	fake_finish(&helper);
}

static void check_forbidden_socket(void **state)
{
	struct fake_helper helper;
	make_two(&helper);
	if (geteuid() != 0) {
		fake_finish(&helper);
		SKIP_BECAUSE("needs root, to become another user");
	}
	assert_int_equal(chmod(helper.socket, 0600), 0);
	assert_int_equal(chmod(helper.folder, 0755), 0);
	pid_t child = fork();
	if (child == 0) { // where an assertion could not report
		struct proto_client client;
		struct proto_hello hello;
		struct wattle_error error = {0};
		struct wattle_env env = env_of(helper.socket);
		if (setuid(65534) < 0)
			_exit(3);
		int r = proto_client_open(&client, &env, &hello, &error);
		_exit(r == -EACCES && strstr(error.text, "usermod -aG wattle") != NULL ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	fake_finish(&helper);
}

/* ---- restarts and forks ---- */

static void check_restart(void **state)
{
	struct fake_helper helper;
	struct proto_client client;
	struct proto_hello hello;
	struct proto_reply reply;
	struct wattle_error error;
	make_two(&helper);
	struct wattle_env env = env_of(helper.socket);
	assert_int_equal(proto_client_open(&client, &env, &hello, &error), 0);
	fake_kill(&helper);
	assert_int_equal(read_two(&client, LONG_MS, &reply, &error), -EPIPE);
	proto_client_close(&client);
	assert_int_equal(proto_client_open(&client, &env, &hello, &error), -ECONNREFUSED);
	fake_start(&helper);
	proto_client_close(&client);
	assert_int_equal(proto_client_open(&client, &env, &hello, &error), 0);
	assert_int_equal(hello.pid, helper.pid);
	assert_int_equal(read_two(&client, LONG_MS, &reply, &error), 0);
	proto_client_close(&client);
	fake_finish(&helper);
}

static void check_fork(void **state)
{
	struct fake_helper helper;
	struct proto_client client;
	struct proto_hello hello;
	struct proto_reply reply;
	struct wattle_error error;
	make_two(&helper);
	struct wattle_env env = env_of(helper.socket);
	assert_int_equal(proto_client_open(&client, &env, &hello, &error), 0);
	pid_t child = fork();
	if (child == 0) {
		bool good = !proto_client_is_open(&client) && read_two(&client, LONG_MS, &reply, &error) == -ENOTCONN &&
			proto_client_open(&client, &env, &hello, &error) == 0 &&
			read_two(&client, LONG_MS, &reply, &error) == 0;
		_exit(good ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	// The parent's connection is unchanged.
	assert_int_equal(read_two(&client, LONG_MS, &reply, &error), 0);
	assert_int_equal(helper.table->n_connections, 2);
	proto_client_close(&client);
	fake_finish(&helper);
}

static void ignore_signal(int number)
{
}

static void check_signals(void **state)
{
	struct fake_helper helper;
	struct proto_client client;
	struct proto_hello hello;
	struct proto_reply reply;
	struct wattle_error error;
	make_two(&helper);
	helper.table->other = FAKE_PIECES;
	struct wattle_env env = env_of(helper.socket);
	assert_int_equal(proto_client_open(&client, &env, &hello, &error), 0);
	struct sigaction action = {.sa_handler = ignore_signal}, old;
	sigaction(SIGALRM, &action, &old);
	pid_t self = getpid(), child = fork();
	if (child == 0) {
		const struct timespec pause = {.tv_nsec = NS_PER_MS};
		for (;;) {
			if (kill(self, SIGALRM) < 0)
				_exit(0);
			nanosleep(&pause, NULL);
		}
	}
	for (int i = 0; i < 10; i++)
		assert_int_equal(read_two(&client, LONG_MS, &reply, &error), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	sigaction(SIGALRM, &old, NULL);
	proto_client_close(&client);
	fake_finish(&helper);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, doors, check_door);
	ROWS_ADD_ONE(&tests, "socket without permission: the message names the group", check_forbidden_socket);
	ROWS_ADD_ONE(&tests, "restarted helper: a new connection works", check_restart);
	ROWS_ADD_ONE(&tests, "forked child does not take its parent's replies", check_fork);
	ROWS_ADD_ONE(&tests, "signals do not interrupt a request", check_signals);
	return rows_run(&tests, "client");
}
