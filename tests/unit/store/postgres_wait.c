/* A connection to PostgreSQL that fails: refused permanently or for a while, and a server that falls silent. The
 * server is simulated; each row has its answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "store/postgres/pq.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the server ---- */

static void say(int client, char type, const char *bytes, size_t size)
{
	const unsigned char head[] = {(unsigned char)type, 0, 0, (unsigned char)((size + 4) >> 8),
		(unsigned char)(size + 4)};
	assert_int_equal(write(client, head, sizeof(head)), sizeof(head));
	assert_int_equal(write(client, bytes, size), size);
}

static void refuse(int client, const char *label, const char *state)
{
	char message[256];
	int n = snprintf(message, sizeof(message), "S%s%cVFATAL%cC%s%cMwords of the server%c", label, 0, 0, state, 0,
		0);
	say(client, 'E', message, (size_t)n + 1);
}

enum { COPIES_OUT = 100 }; // and no further answers

// Accepts the connection, answers the first statement, then as many as the row states.
static void serve(int client, int answers)
{
	bool copies_out = answers > COPIES_OUT;
	char ignored[4096];
	answers -= copies_out ? COPIES_OUT : 0;
	say(client, 'R', "\0\0\0\0", 4);
	say(client, 'Z', "I", 1);
	for (; answers > 0 && read(client, ignored, sizeof(ignored)) > 0; answers--) {
		say(client, 'C', "SET", 4);
		say(client, 'Z', "I", 1);
	}
	if (answers == 0 && read(client, ignored, sizeof(ignored)) > 0 && strstr(ignored + 5, "COPY") != NULL)
		say(client, copies_out ? 'H' : 'G', "\1\0\0", 3);
	if (copies_out)
		say(client, 'd', "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0\0\0", 21);
	pause();
}

struct server {
	char folder[64], url[160];
	pid_t pid;
};

static int listen_in(struct server *server)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	text_copy(server->folder, sizeof(server->folder), "/tmp/wattle-fake-pg-XXXXXX");
	assert_non_null(mkdtemp(server->folder));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/.s.PGSQL.5432", server->folder);
	snprintf(server->url, sizeof(server->url), "postgresql://ada@/energy?host=%s&port=5432", server->folder);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

// answers < 0: refused
static struct server start(int answers, const char *label, const char *state)
{
	struct server server = {0};
	int fd = listen_in(&server);
	server.pid = fork();
	for (int client; server.pid == 0 && (client = accept(fd, NULL, NULL)) >= 0; close(client)) {
		char ignored[4096];
		if (read(client, ignored, sizeof(ignored)) <= 0)
			_exit(1);
		if (answers < 0)
			refuse(client, label, state);
		else
			serve(client, answers);
	}
	close(fd);
	return server;
}

static void stop(const struct server *server)
{
	char path[128];
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
	snprintf(path, sizeof(path), "%s/.s.PGSQL.5432", server->folder);
	unlink(path);
	rmdir(server->folder);
}

/* ---- refused ---- */

static const struct {
	const char *teaches, *label, *state;
	bool may_pass;
} refusals[] = {
	{"wrong password: permanent", "FATAL", "28P01", false},
	{"wrong password, message in another language: permanent", "\320\222\320\220\320\226\320\235\320\236", "28P01",
		false},
	{"role missing in pg_hba.conf: permanent", "FATAL", "28000", false},
	{"database does not exist: permanent", "FATAL", "3D000", false},
	{"no right to connect: permanent", "FATAL", "42501", false},
	{"server starts or stops: temporary", "FATAL", "57P03", true},
	{"no free connection: temporary", "FATAL", "53300", true},
};

static void refused(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		struct server server = start(-1, refusals[i].label, refusals[i].state);
		struct wattle_error error = {0};
		struct pg *pg = NULL;
		int r = pg_open(server.url, &pg, &error);
		stop(&server);
		if (r == -ENOSYS)
			skip(); // libpq is missing here
		if (r >= 0 || pg_may_pass(r) != refusals[i].may_pass ||
			strstr(error.text, "words of the server") == NULL)
			fail_msg("%s: %d, %s", refusals[i].teaches, r, error.text);
	}
}

static void refused_by_ourselves(void **state)
{
	static const char *const urls[] = {"postgresql:///db?sslmode=secure", "postgresql://?service=of-nobody",
		"postgresql:///db?port=many"};
	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		struct wattle_error error = {0};
		struct pg *pg = NULL;
		int r = pg_open(urls[i], &pg, &error);
		if (r == -ENOSYS)
			skip();
		if (r != -EINVAL)
			fail_msg("%s: %d, %s", urls[i], r, error.text);
	}
}

/* ---- silent ---- */

static struct pg *open_impatiently(const struct server *server)
{
	struct wattle_error error = {0};
	struct pg *pg = NULL;
	if (pg_open(server->url, &pg, &error) < 0)
		fail_msg("%s", error.text);
	pg_set_timeout(pg, 1, false);
	return pg;
}

static void check_silent(struct pg *pg, int r, const struct wattle_error *error)
{
	assert_int_equal(r, -ENOTCONN);
	assert_true(pg_may_pass(r));
	assert_non_null(strstr(error->text, "no response for 1 s"));
	// On such a connection nothing else is waited for: ROLLBACK fails at once.
	assert_int_equal(pg_exec(pg, "ROLLBACK", NULL), -ENOTCONN);
	pg_close(pg);
}

static void silent_to_a_statement(void **state)
{
	struct wattle_error error = {0};
	struct server server = start(2, NULL, NULL);
	struct pg *pg = open_impatiently(&server);
	assert_int_equal(pg_exec(pg, "SELECT", &error), 0);
	check_silent(pg, pg_query(pg, "SELECT", NULL, 0, NULL, &error), &error);
	stop(&server);
}

static void silent_in_a_copy(void **state)
{
	static char bytes[1 << 20];
	struct wattle_error error = {0};
	struct server server = start(1, NULL, NULL);
	struct pg *pg = open_impatiently(&server);
	assert_int_equal(pg_copy_begin(pg, "COPY t FROM STDIN", &error), 0);
	int r = 0;
	for (int i = 0; r == 0 && i < 64; i++) // more than any socket buffer holds
		r = pg_copy_data(pg, bytes, sizeof(bytes), &error);
	check_silent(pg, r, &error);
	stop(&server);
}

static void silent_at_the_end_of_a_copy(void **state)
{
	struct wattle_error error = {0};
	struct server server = start(1, NULL, NULL);
	struct pg *pg = open_impatiently(&server);
	assert_int_equal(pg_copy_begin(pg, "COPY t FROM STDIN", &error), 0);
	assert_int_equal(pg_copy_data(pg, "bytes", 5, &error), 0);
	check_silent(pg, pg_copy_end(pg, &error), &error);
	stop(&server);
}

static int ignore_row(void *data, const struct pg_field *fields, size_t n_fields)
{
	return 0;
}

static void silent_in_what_is_read(void **state)
{
	struct wattle_error error = {0};
	struct server server = start(COPIES_OUT + 1, NULL, NULL);
	struct pg *pg = open_impatiently(&server);
	check_silent(pg, pg_copy_out(pg, "COPY t TO STDOUT", ignore_row, NULL, &error), &error);
	stop(&server);
}

/* ---- busy ---- */

// Silent for three times the limit, and then done.
static void work(int fd)
{
	char ignored[4096];
	int client = accept(fd, NULL, NULL);
	assert_true(read(client, ignored, sizeof(ignored)) > 0);
	say(client, 'R', "\0\0\0\0", 4);
	say(client, 'Z', "I", 1);
	for (int i = 0; i < 2; i++) {
		assert_true(read(client, ignored, sizeof(ignored)) > 0);
		for (int knocks = 0, other; i == 1 && knocks < 3; knocks++, close(other)) {
			other = accept(fd, NULL, NULL);
			assert_true(read(other, ignored, sizeof(ignored)) > 0);
			refuse(other, "FATAL", "28P01");
		}
		say(client, 'C', "SET", 4);
		say(client, 'Z', "I", 1);
	}
	pause();
}

// A busy server still answers new connections, if only with a refusal: it is waited for; a stopped one is not.
static void works_for_long(void **state)
{
	struct wattle_error error = {0};
	struct server server = {0};
	int fd = listen_in(&server);
	server.pid = fork();
	if (server.pid == 0)
		work(fd);
	close(fd);
	struct pg *pg = open_impatiently(&server);
	pg_set_timeout(pg, 1, true);
	if (pg_exec(pg, "SELECT", &error) < 0)
		fail_msg("%s", error.text);
	kill(server.pid, SIGSTOP);
	setenv("PGCONNECT_TIMEOUT", "2", 1);
	check_silent(pg, pg_exec(pg, "SELECT", &error), &error);
	stop(&server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(refused_by_ourselves),
		cmocka_unit_test(silent_to_a_statement),
		cmocka_unit_test(silent_in_a_copy),
		cmocka_unit_test(silent_at_the_end_of_a_copy),
		cmocka_unit_test(silent_in_what_is_read),
		cmocka_unit_test(works_for_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
