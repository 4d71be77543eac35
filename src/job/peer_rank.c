#include "job/job.h"

#include "base/cleanup.h"
#include "base/proc.h"
#include "base/util.h"

#include <unistd.h>

enum { ANCESTORS_MAX = 256 };

int64_t job_owner_rank(pid_t owner)
{
	struct job_environ environment;
	wattle_cleanup_free char *text = proc_environ(owner, &environment.size);
	if (text == NULL)
		return VALUE_MISSING;
	environment.text = text;
	struct job_env env;
	job_env_find(job_from_environ, &environment, &env);
	return env.rank;
}

bool job_owner_is_related(pid_t owner, pid_t target)
{
	if (proc_parent(owner) == target)
		return true;
	pid_t pid = getppid();
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (pid == owner)
			return true;
		pid = proc_parent(pid);
	}
	return false;
}
