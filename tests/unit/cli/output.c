#include "cli/measure.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct row {
	const char *teaches, *pattern;
	const char *environment; // "NAME=VALUE NAME=VALUE"
	bool append;
	const char *path, *error;
} rows[] = {
	{"name without fields: unchanged", "run.sqlite", "", false, "run.sqlite", NULL},
	{"%p is the pid of the command", "r-%p.sqlite", "", false, "r-4711.sqlite", NULL},
	{"%j (job ID)", "%j.sqlite", "SLURM_JOB_ID=123", false, "123.sqlite", NULL},
	{"%j: job variables of other schedulers", "%j.sqlite", "PBS_JOBID=9.host", false, "9.host.sqlite", NULL},
	{"%r is the rank", "r%r", "OMPI_COMM_WORLD_RANK=3", false, "r3", NULL},
	{"%r: the innermost launcher counts, because mpirun's daemons are Slurm tasks", "r%r",
		"SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=1 OMPI_COMM_WORLD_RANK=3", false, "r3", NULL},
	{"%r without ranks is 0", "r%r", "", false, "r0", NULL},
	{"%% is a %", "100%%", "", false, "100%", NULL},
	{"slash in a variable: replaced", "%j", "SLURM_JOB_ID=../x", false, ".._x", NULL},
	{"terminal control characters in a variable: replaced", "%j", "SLURM_JOB_ID=7\033[31m", false, "7_[31m", NULL},
	{"%j outside a job: refused", "%j", "", false, NULL, "needs a job ID"},
	{"unknown field: refused", "%q", "", false, NULL, "unknown %q"},
	{"% at the end: kept", "x%", "", false, "x%", NULL},
	{"restarted workers get file names of their own", "out.d/r%r.sqlite",
		"TORCHELASTIC_RUN_ID=none RANK=1 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=2", false,
		"out.d/r1-restart2.sqlite", NULL},
	{"requeued job gets a file name of its own, whatever the suffix", "out.d/%j",
		"SLURM_JOB_ID=7 SLURM_RESTART_COUNT=1", false, "out.d/7-restart1", NULL},
	{"file that is to be continued: same name after a restart", "r%r.sqlite",
		"TORCHELASTIC_RUN_ID=none RANK=1 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=2", true, "r1.sqlite", NULL},
	{"name without rank and job: unchanged after a restart", "a.sqlite", "SLURM_JOB_ID=7 SLURM_RESTART_COUNT=1",
		false, "a.sqlite", NULL},
};

// Variables that a launcher may have set for the tests themselves.
static void set_environment(const char *text)
{
	char copy[256], *rest = copy, format[32] = "";
	const char *cmocka = getenv("CMOCKA_MESSAGE_OUTPUT");
	if (cmocka != NULL)
		text_copy(format, sizeof(format), cmocka);
	clearenv();
	setenv("CMOCKA_MESSAGE_OUTPUT", format, 1);
	text_copy(copy, sizeof(copy), text);
	for (char *word; (word = strsep(&rest, " ")) != NULL;) {
		char *equals = strchr(word, '=');
		if (equals != NULL) {
			*equals = '\0';
			setenv(word, equals + 1, 1);
		}
	}
}

static int make(const char *pattern, bool append, char *path, size_t size, struct wattle_error *reterr)
{
	struct job_env job_env;
	job_env_find(job_from_environment, NULL, &job_env);
	const struct output_naming naming = {.pattern = pattern, .pid = 4711, .job_env = &job_env, .append = append};
	return output_path(&naming, path, size, reterr);
}

static void check(void **state)
{
	const struct row *row = *state;
	set_environment(row->environment);
	char path[256];
	struct wattle_error error = {0};
	int r = make(row->pattern, row->append, path, sizeof(path), &error);
	assert_int_equal(r, row->error != NULL ? -EINVAL : 0);
	if (row->error != NULL)
		assert_non_null(strstr(error.text, row->error));
	else
		assert_string_equal(path, row->path);
}

static void too_long(void **state)
{
	char path[8];
	set_environment("");
	assert_int_equal(make("0123456789", false, path, sizeof(path), NULL), -ENAMETOOLONG);
	assert_int_equal(make("0123456", false, path, sizeof(path), NULL), 0);
	assert_string_equal(path, "0123456");
}

static void default_names(void **state)
{
	char path[256], expected[300], host[256] = "";
	gethostname(host, sizeof(host) - 1);
	set_environment("");
	assert_int_equal(make(NULL, false, path, sizeof(path), NULL), 0);
	assert_string_equal(path + strlen("wattle-YYYYmmdd-HHMMSS"), "-4711.sqlite");
	set_environment("SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_NTASKS=8");
	assert_int_equal(make(NULL, false, path, sizeof(path), NULL), 0);
	snprintf(expected, sizeof(expected), "-4711-42-r5-%s.sqlite", host);
	assert_string_equal(path + strlen("wattle-YYYYmmdd-HHMMSS"), expected);
}

static const struct collision_row {
	const char *teaches, *pattern, *environment;
	bool may;
} collision_rows[] = {
	{"one name for four ranks: collision", "a.sqlite", "RANK=1 WORLD_SIZE=4", true},
	{"name with the rank: no collision", "a-%r.sqlite", "RANK=1 WORLD_SIZE=4", false},
	{"name with the host, four ranks on it: collision", "a-%h.sqlite", "RANK=1 WORLD_SIZE=4 LOCAL_WORLD_SIZE=4",
		true},
	{"%%r is no rank: collision", "a-%%r.sqlite", "RANK=1 WORLD_SIZE=4", true},
	{"name with the host, one rank on each: no collision", "a-%h",
		"TORCHELASTIC_RUN_ID=x RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1", false},
	{"single program: no collision", "a.sqlite", "", false},
};

static void collide(void **state)
{
	const struct collision_row *row = *state;
	struct job_env job_env;
	set_environment(row->environment);
	job_env_find(job_from_environment, NULL, &job_env);
	assert_int_equal(output_may_collide(row->pattern, &job_env), row->may);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "path that is too long: refused, not truncated", too_long);
	ROWS_ADD_ONE(&tests, "default name in a job contains job, rank and host, because pids repeat across nodes",
		default_names);
	ROWS_ADD(&tests, collision_rows, collide);
	return rows_run(&tests, "output");
}
