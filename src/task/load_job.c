#include "task/task.h"

#include "store/postgres/pq.h"

#include <string.h>
#include <sys/stat.h>

bool load_is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int from_store(const char *url, const struct job_choice *choice, struct job_runs *ret_runs,
	struct wattle_error *reterr)
{
	struct pg *pg;
	int r = pg_open(url, &pg, reterr);
	if (r < 0)
		return r;
	r = job_runs_from_store(pg, choice, ret_runs, reterr);
	pg_close(pg);
	return r;
}

int load_job(const char *folder, const char *url, const struct job_choice *choice, const struct job_options *options,
	struct loaded_job *ret_job, struct wattle_error *reterr)
{
	int r = folder != NULL ? job_runs_from_folder(folder, choice, &ret_job->runs, reterr)
			       : from_store(url, choice, &ret_job->runs, reterr);
	if (r < 0)
		return r;
	r = job_make(&ret_job->runs, options, &ret_job->job);
	if (r < 0) {
		job_runs_finish(&ret_job->runs);
		return error_set(reterr, r, "%s", strerror(-r));
	}
	return 0;
}

void load_job_finish(struct loaded_job *job)
{
	job_finish(&job->job);
	job_runs_finish(&job->runs);
}
