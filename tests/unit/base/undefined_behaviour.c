/* Only in builds with UBSan: an error that it finds must end the program, or a test that does not read stderr would
 * pass. */
#include "rows.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void overflow(void)
{
	volatile int largest = INT_MAX;
	largest = largest + 1;
}

static void shift_too_far(void)
{
	volatile int bits = 32;
	volatile int shifted = 1 << bits;
	(void)shifted;
}

static void index_past_end(void)
{
	volatile int numbers[2] = {0}, index = 2;
	numbers[1] = numbers[index];
}

static const struct fault_row {
	const char *teaches;
	void (*fault)(void);
} fault_rows[] = {
	{"signed overflow: the program ends", overflow},
	{"shift by the width of the type: the program ends", shift_too_far},
	{"index past the end of an array: the program ends", index_past_end},
};

static void check_fault(void **state)
{
	const struct fault_row *row = *state;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(STDERR_FILENO); // the sanitizer's message
		signal(SIGILL, SIG_DFL); // cmocka's handler would continue with the next test
		row->fault();
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, fault_rows, check_fault);
	return rows_run(&tests, "undefined behaviour");
}
