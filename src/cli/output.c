#include "cli/measure.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct naming {
	struct buf path;
	pid_t pid;
	const struct job_env *job_env;
};

// A job id or host name becomes part of a file name: it must not create folders or contain control characters.
static void add_part(struct buf *path, const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		buf_char(path, c == '/' || c < ' ' || c == 0x7f ? '_' : *text);
	}
}

static void add_host(struct buf *path)
{
	char host[256] = "";
	gethostname(host, sizeof(host) - 1);
	add_part(path, host);
}

/* Pids may be equal on different nodes of a cluster, and ranks start in the same second, so file names of a job contain more
 * parts. */
static void add_default(struct naming *naming)
{
	const struct job_env *job_env = naming->job_env;
	time_t now = time(NULL);
	struct tm local;
	localtime_r(&now, &local);
	char stamp[32];
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
	buf_printf(&naming->path, "wattle-%s-%d", stamp, naming->pid);
	if (job_env->in_job) {
		if (job_env->id[0] != '\0') {
			buf_char(&naming->path, '-');
			add_part(&naming->path, job_env->id);
		}
		if (value_ok(job_env->rank))
			buf_printf(&naming->path, "-r%lld", (long long)job_env->rank);
		buf_char(&naming->path, '-');
		add_host(&naming->path);
	}
	buf_str(&naming->path, ".sqlite");
}

static int add_field(struct naming *naming, char field, struct wattle_error *reterr)
{
	const struct job_env *job_env = naming->job_env;
	switch (field) {
	case '%':
		buf_char(&naming->path, '%');
		return 0;
	case 'p':
		buf_i64(&naming->path, naming->pid);
		return 0;
	case 'h':
		add_host(&naming->path);
		return 0;
	case 'r': // a program that was not launched as ranks is alone
		buf_i64(&naming->path, value_ok(job_env->rank) ? job_env->rank : 0);
		return 0;
	case 's': // a job without steps has one launch
		add_part(&naming->path, job_env->step[0] != '\0' ? job_env->step : "0");
		return 0;
	case 'j':
		if (job_env->id[0] == '\0')
			return error_set(reterr, -EINVAL,
				"--output: %%j needs a job ID, but no scheduler (SLURM_JOB_ID, PBS_JOBID, "
				"LSB_JOBID, JOB_ID), mpirun or torchrun --rdzv_id sets one; give --job ID");
		add_part(&naming->path, job_env->id);
		return 0;
	default:
		return error_set(reterr, -EINVAL,
			"--output: unknown %%%c; valid are %%j (job ID), %%s (step), %%r (rank), %%h (host), "
			"%%p (process ID) and %%%% (a %%)",
			field);
	}
}

static bool has_field(const char *pattern, char field)
{
	for (const char *at = strchr(pattern, '%'); at != NULL && at[1] != '\0'; at = strchr(at + 2, '%'))
		if (at[1] == field)
			return true;
	return false;
}

static int add_pattern(struct naming *naming, const char *pattern, struct wattle_error *reterr)
{
	int r = 0;
	for (const char *at = pattern; *at != '\0' && r == 0; at++) {
		if (*at != '%')
			buf_char(&naming->path, *at);
		else
			r = add_field(naming, at[1] != '\0' ? *++at : '%', reterr);
	}
	return r;
}

// Restarted workers have the job and rank of their predecessors: "r3.sqlite" is followed by "r3-restart1.sqlite".
static void put_with_restart(struct buf *out, const char *path, const char *restart)
{
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	size_t length = dot != NULL && dot != name ? (size_t)(dot - path) : strlen(path);
	buf_add(out, path, length);
	buf_printf(out, "-restart%s%s", restart, path + length);
}

static int make_path(struct naming *naming, const char *pattern, bool may_meet, struct buf *out,
	struct wattle_error *reterr)
{
	if (pattern == NULL)
		add_default(naming);
	int r = pattern != NULL ? add_pattern(naming, pattern, reterr) : 0;
	if (r < 0)
		return r;
	bool is_again = naming->job_env->restart_text[0] != '\0' && !may_meet && pattern != NULL &&
		(has_field(pattern, 'r') || has_field(pattern, 'j'));
	if (naming->path.failed == 0 && is_again)
		put_with_restart(out, naming->path.data, naming->job_env->restart_text);
	else if (naming->path.failed == 0)
		buf_str(out, naming->path.data);
	return naming->path.failed != 0 ? naming->path.failed : out->failed;
}

int output_path(const struct output_naming *how, char *ret_path, size_t size, struct wattle_error *reterr)
{
	struct naming naming = {.pid = how->pid, .job_env = how->job_env};
	struct buf out;
	buf_init(&naming.path, size - 1);
	buf_init(&out, size - 1);
	buf_str(&naming.path, "");
	int r = make_path(&naming, how->pattern, how->append, &out, reterr);
	if (r == -EFBIG)
		r = error_set(reterr, -ENAMETOOLONG, "--output: longer than %zu bytes", size - 1);
	else if (r == -ENOMEM)
		error_set(reterr, r, "out of memory");
	if (r == 0)
		text_copy(ret_path, size, out.data);
	buf_finish(&naming.path);
	buf_finish(&out);
	return r;
}

bool output_may_collide(const char *pattern, const struct job_env *job_env)
{
	bool is_one_of_many = value_ok(job_env->world_size) && job_env->world_size > 1;
	if (pattern == NULL || !is_one_of_many || has_field(pattern, 'r') || has_field(pattern, 'p'))
		return false;
	bool alone_here = job_env->local_size == 1;
	return !alone_here || !has_field(pattern, 'h');
}

bool output_may_meet_step(const char *pattern, const struct job_env *job_env)
{
	return pattern != NULL && job_env->step[0] != '\0' && !has_field(pattern, 's') && !has_field(pattern, 'p');
}
