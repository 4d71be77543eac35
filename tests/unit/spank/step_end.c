#include "spank/spank.h"

#include "base/util.h"
#include "rows.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_FD = 57 }; // as slurmstepd may have some, and not close-on-exec

static char told[4096];

static void keep(const char *text)
{
	size_t length = strlen(told);
	snprintf(told + length, sizeof(told) - length, "%s\n", text);
}

static void write_program(const char *path, const char *script)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(script, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static void run(const char *script, const struct task_owner *owner)
{
	char folder[] = "/tmp/wattle-step-XXXXXX", program[64];
	assert_non_null(mkdtemp(folder));
	snprintf(program, sizeof(program), "%s/program", folder);
	write_program(program, script);
	struct settings settings;
	settings_init(&settings, program);
	settings.comment = false;
	told[0] = '\0';
	const struct step_end end = {.settings = &settings, .owner = owner, .job_id = "7", .step = "0", .n_nodes = 1};
	step_end(&end, keep);
	unlink(program);
	rmdir(folder);
}

static const struct row {
	const char *teaches, *script, *told;
	bool is_nobody;
} rows[] = {
	{"end of a step: the report's line and the folder of the run files are printed",
		"#!/bin/sh\necho $1 $2 $4 $6\n", "report wattle-7 7 line, wattle-7\n", false},
	{"failing report: its own message is printed", "#!/bin/sh\necho no runs >&2\nexit 1\n",
		"no total for wattle-7: no runs\n", false},
	{"user's programs: no descriptor of slurmstepd is open in them",
		"#!/bin/sh\ntest -e /proc/self/fd/57 && echo seen || echo unseen\n", "unseen, wattle-7\n", false},
	{"unknown user: a message, and nothing is run", "#!/bin/sh\necho ran\n",
		"no total: can't switch to the job's user: Invalid argument\n", true},
};

static void check(void **state)
{
	const struct row *row = *state;
	const struct task_owner owner = {.uid = row->is_nobody ? (uid_t)-1 : geteuid(),
		.gid = getegid(),
		.folder_fd = -1};
	assert_int_equal(dup2(STDERR_FILENO, OPEN_FD), OPEN_FD);
	run(row->script, &owner);
	close(OPEN_FD);
	assert_string_equal(told, row->told);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "step_end");
}
