#include "cli/measure.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// The first of the variables that is set, by the schedulers and launchers that set them.
static const char *first_set(const char *const *names)
{
	for (; *names != NULL; names++) {
		const char *value = getenv(*names);
		if (value != NULL && value[0] != '\0')
			return value;
	}
	return NULL;
}

static int default_path(pid_t pid, char *ret_path, size_t size)
{
	time_t now = time(NULL);
	struct tm local;
	localtime_r(&now, &local);
	char stamp[32];
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
	snprintf(ret_path, size, "wattle-%s-%d.sqlite", stamp, pid);
	return 0;
}

// A job id or rank becomes part of a file name: no folder may come of it.
static void add_part(struct buf *path, const char *text)
{
	for (; *text != '\0'; text++)
		buf_char(path, *text == '/' ? '_' : *text);
}

static int add_field(struct buf *path, char field, pid_t pid, struct wattle_error *reterr)
{
	static const char *const job_ids[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", NULL};
	static const char *const ranks[] = {"SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK",
		NULL};
	char host[256] = "";
	const char *value;
	switch (field) {
	case '%':
		buf_char(path, '%');
		return 0;
	case 'p':
		buf_i64(path, pid);
		return 0;
	case 'h':
		gethostname(host, sizeof(host) - 1);
		add_part(path, host);
		return 0;
	case 'r':
		value = first_set(ranks);
		add_part(path, value != NULL ? value : "0"); // a program that was not launched in ranks is the only one
		return 0;
	case 'j':
		value = first_set(job_ids);
		if (value == NULL)
			return error_set(reterr, -EINVAL,
				"--output: %%j needs a job id, and none of SLURM_JOB_ID, PBS_JOBID, "
				"LSB_JOBID and JOB_ID is set");
		add_part(path, value);
		return 0;
	default:
		return error_set(reterr, -EINVAL,
			"--output: %%%c is not known; %%j is the job id, %%r the rank, %%h the host, %%p the pid, %%%% a %%",
			field);
	}
}

int output_path(const char *pattern, pid_t pid, char *ret_path, size_t size, struct wattle_error *reterr)
{
	if (pattern == NULL)
		return default_path(pid, ret_path, size);
	struct buf path;
	buf_init(&path, size - 1);
	int r = 0;
	for (const char *at = pattern; *at != '\0' && r == 0; at++) {
		if (*at != '%')
			buf_char(&path, *at);
		else
			r = add_field(&path, at[1] != '\0' ? *++at : '%', pid, reterr);
	}
	if (r == 0 && path.failed != 0)
		r = error_set(reterr, -ENAMETOOLONG, "--output: longer than %zu bytes", size - 1);
	if (r == 0)
		text_copy(ret_path, size, path.data);
	buf_finish(&path);
	return r;
}
