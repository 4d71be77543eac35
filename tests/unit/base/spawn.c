#include "base/spawn.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 25, ENOUGH = 1 << 20 };

// A control pipe whose other end is closed when the program ends.
static pid_t start(const char *program, const char *const *argv, int *ret_line)
{
	int line[2];
	char *const environment[] = {NULL};
	assert_int_equal(pipe2(line, O_CLOEXEC), 0);
	int high = fcntl(line[1], F_DUPFD_CLOEXEC, 10);
	close(line[1]);
	pid_t pid = spawn_detached(&(struct spawn){
		.program = program,
		.argv = (char *const *)(uintptr_t)argv,
		.environment = environment,
		.control_fd = high,
	});
	close(high);
	*ret_line = line[0];
	return pid;
}

static void the_program_runs_with_its_line(void **state)
{
	int line;
	char text[8] = "";
	const char *const argv[] = {"sh", "-c", "echo told >&3", NULL};
	assert_true(start("/bin/sh", argv, &line) > 0);
	assert_int_equal(read(line, text, sizeof(text)), 5);
	assert_string_equal(text, "told\n");
	assert_int_equal(read(line, text, sizeof(text)), 0);
	close(line);
}

static void what_is_no_program_is_refused(void **state)
{
	int line;
	const char *const argv[] = {"none", NULL};
	assert_int_equal(start("/nonexistent/program", argv, &line), -ENOENT);
	close(line);
}

static void no_child_is_left(void **state)
{
	int line;
	const char *const argv[] = {"true", NULL};
	assert_true(start("/bin/true", argv, &line) > 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	close(line);
}

// Memory that is mapped where the stacks were must be ordinary memory for the sanitizers too.
static void its_stacks_leave_nothing_behind(void **state)
{
	int line;
	const char *const argv[] = {"true", NULL};
	assert_true(start("/bin/true", argv, &line) > 0);
	close(line);
	char *maps[16];
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		maps[i] = mmap(NULL, ENOUGH / ARRAY_SIZE(maps), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);
		assert_ptr_not_equal(maps[i], MAP_FAILED);
		memset(maps[i], (int)i, ENOUGH / ARRAY_SIZE(maps));
	}
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		munmap(maps[i], ENOUGH / ARRAY_SIZE(maps));
}

static void *start_many(void *failures)
{
	const char *const argv[] = {"true", NULL};
	char *const environment[] = {NULL};
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC), high = fcntl(nowhere, F_DUPFD_CLOEXEC, 10);
	const struct spawn spawn = {
		.program = "/bin/true",
		.argv = (char *const *)(uintptr_t)argv,
		.environment = environment,
		.control_fd = high,
	};
	for (int i = 0; i < ROUNDS; i++) {
		char *bytes = spawn_detached(&spawn) > 0 ? malloc(ENOUGH / 4) : NULL;
		if (bytes != NULL)
			memset(bytes, i, ENOUGH / 4);
		else
			__atomic_fetch_add((int *)failures, 1, __ATOMIC_RELAXED);
		free(bytes);
	}
	close(high);
	close(nowhere);
	return NULL;
}

static void threads_start_some_at_once(void **state)
{
	pthread_t threads[THREADS];
	int failures = 0;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, start_many, &failures), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_program_runs_with_its_line),
		cmocka_unit_test(what_is_no_program_is_refused),
		cmocka_unit_test(no_child_is_left),
		cmocka_unit_test(its_stacks_leave_nothing_behind),
		cmocka_unit_test(threads_start_some_at_once),
	};
	return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
