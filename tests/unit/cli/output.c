#include "cli/measure.h"

#include "rows.h"

#include <errno.h>
#include <string.h>

static const struct row {
	const char *teaches, *pattern, *variable, *value;
	const char *path, *error;
} rows[] = {
	{"a plain name stays", "run.sqlite", NULL, NULL, "run.sqlite", NULL},
	{"%p is the pid of the command", "r-%p.sqlite", NULL, NULL, "r-4711.sqlite", NULL},
	{"%j is the job", "%j.sqlite", "SLURM_JOB_ID", "123", "123.sqlite", NULL},
	{"other schedulers name it otherwise", "%j.sqlite", "PBS_JOBID", "9.host", "9.host.sqlite", NULL},
	{"%r is the rank", "r%r", "OMPI_COMM_WORLD_RANK", "3", "r3", NULL},
	{"without ranks there is one, number 0", "r%r", NULL, NULL, "r0", NULL},
	{"%% is a %", "100%%", NULL, NULL, "100%", NULL},
	{"no slash comes in through a variable", "%j", "SLURM_JOB_ID", "../x", ".._x", NULL},
	{"%j outside a job is refused", "%j", NULL, NULL, NULL, "needs a job id"},
	{"an unknown field is refused", "%q", NULL, NULL, NULL, "%q is not known"},
	{"a % at the end stands for itself", "x%", NULL, NULL, "x%", NULL},
};

static void check(void **state)
{
	const struct row *row = *state;
	static const char *const variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "SLURM_PROCID",
		"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK"};
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	if (row->variable != NULL)
		setenv(row->variable, row->value, 1);
	char path[256];
	struct wattle_error error = {0};
	int r = output_path(row->pattern, 4711, path, sizeof(path), &error);
	assert_int_equal(r, row->error != NULL ? -EINVAL : 0);
	if (row->error != NULL)
		assert_non_null(strstr(error.text, row->error));
	else
		assert_string_equal(path, row->path);
}

static void too_long(void **state)
{
	char path[8];
	assert_int_equal(output_path("0123456789", 1, path, sizeof(path), NULL), -ENAMETOOLONG);
	assert_int_equal(output_path("0123456", 1, path, sizeof(path), NULL), 0);
	assert_string_equal(path, "0123456");
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "a path that does not fit is refused, not cut", too_long);
	return rows_run(&tests, "output");
}
