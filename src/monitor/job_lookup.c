#include "monitor/internal.h"

#include "base/file.h"
#include "base/num.h"
#include "base/proc.h"
#include "base/util.h"
#include "job/job.h"

#include <stdio.h>

/* ---- jobs in cgroup paths ---- */

// Takes the leading digits as the job id; false: there are none.
static bool take_digits(const char *text, size_t length, struct job_lookup_result *ret)
{
	size_t digits = strspn(text, "0123456789");
	digits = digits < length ? digits : length;
	if (digits == 0 || digits >= MONITOR_GROUP_SIZE)
		return false;
	memcpy(ret->names[MONITOR_JOBS], text, digits);
	ret->names[MONITOR_JOBS][digits] = '\0';
	return true;
}

// "none" and "other" are reserved for metric rows that belong to no single job.
static bool is_taken(const char *text, size_t length)
{
	static const char *const names[] = {"none", "other"};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == length && memcmp(names[i], text, length) == 0)
			return true;
	return false;
}

static bool take_all(const char *text, size_t length, struct job_lookup_result *ret)
{
	if (length == 0 || length >= MONITOR_GROUP_SIZE || is_taken(text, length))
		return false;
	memcpy(ret->names[MONITOR_JOBS], text, length);
	ret->names[MONITOR_JOBS][length] = '\0';
	return true;
}

/* Cgroup layouts of schedulers: a path component that begins with `prefix`, anywhere below one that begins with `above`. */
static const struct {
	const char *above, *prefix;
	bool (*take)(const char *text, size_t length,
		struct job_lookup_result *ret); // parses the text after the prefix
} schedulers[] = {
	{"slurm", "job_", take_digits},           // v1 /slurm[_HOST]/uid_U/job_J, v2 …/slurmstepd.scope/job_J
	{"pbs_jobs.service", "jobid/", take_all}, // /pbs_jobs.service/jobid/J
	{"pbspro.service", "jobid/", take_all},   //
	{"lsf", "job.", take_digits},             // /lsf/CLUSTER/job.J.PID.TIME
};

static const char *next_part(const char *part)
{
	const char *slash = strchr(part, '/');
	return slash != NULL ? slash + 1 : NULL;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static void find_uid(const char *path, struct job_lookup_result *ret)
{
	const char *found = strstr(path, "/uid_");
	uint64_t uid;
	if (found == NULL)
		return;
	found += strlen("/uid_");
	if (num_parse_sysfs_u64(found, strspn(found, "0123456789"), &uid) == 0 && uid < UINT32_MAX)
		ret->job_uid = (uid_t)uid;
}

static void find_job_in(const char *path, size_t s, struct job_lookup_result *ret)
{
	bool is_below = false;
	for (const char *part = path; part != NULL && ret->names[MONITOR_JOBS][0] == '\0'; part = next_part(part)) {
		if (is_below && begins(part, schedulers[s].prefix)) {
			const char *text = part + strlen(schedulers[s].prefix);
			schedulers[s].take(text, strcspn(text, "/"), ret);
		}
		is_below = is_below || begins(part, schedulers[s].above);
	}
	if (ret->names[MONITOR_JOBS][0] != '\0')
		find_uid(path, ret);
}

/* ---- lines of /proc/PID/cgroup ---- */

// Keeps the end of a long path, which is its distinctive part.
static void take_path(const char *path, struct job_lookup_result *ret)
{
	static const char mark[] = "…";
	char *name = ret->names[MONITOR_CGROUPS];
	size_t length = strlen(path), capacity = MONITOR_GROUP_SIZE - sizeof(mark);
	if (length < MONITOR_GROUP_SIZE)
		memcpy(name, path, length + 1);
	else
		snprintf(name, MONITOR_GROUP_SIZE, "%s%s", mark, path + length - capacity);
}

/* With several hierarchies (cgroup v1, or both), takes the v2 path, which comes last, or else the first path that is not
 * the root. */
static void read_line(char *line, struct job_lookup_result *ret)
{
	char *controllers = strchr(line, ':'), *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
	if (path == NULL || *++path != '/')
		return;
	bool is_unified = begins(controllers, "::");
	if (ret->names[MONITOR_CGROUPS][0] == '\0' || strcmp(ret->names[MONITOR_CGROUPS], "/") == 0 ||
		(is_unified && path[1] != '\0'))
		take_path(path, ret);
	for (size_t s = 0; s < ARRAY_SIZE(schedulers) && ret->names[MONITOR_JOBS][0] == '\0'; s++)
		find_job_in(path + 1, s, ret);
}

void job_lookup_read_cgroups(char *text, struct job_lookup_result *ret)
{
	char *rest = NULL;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		read_line(line, ret);
}

/* ---- jobs in environment variables ---- */

// For schedulers that don't use cgroups here. The first variable that is set counts.
void job_lookup_read_environment(const char *text, size_t size, struct job_lookup_result *ret)
{
	uint64_t uid;
	const char *name;
	for (size_t at = 0; ret->names[MONITOR_JOBS][0] == '\0' && (name = job_id_variable(&at)) != NULL;) {
		const char *id = proc_environ_find(text, size, name);
		if (id != NULL)
			take_all(id, strlen(id), ret);
	}
	const char *user_text = ret->names[MONITOR_JOBS][0] != '\0' ? proc_environ_find(text, size, "SLURM_JOB_UID")
								    : NULL;
	if (user_text != NULL && num_parse_u64(user_text, &uid) == 0 && uid < UINT32_MAX)
		ret->job_uid = (uid_t)uid;
}

/* ---- lookup of a process ---- */

bool job_lookup_find(const struct wattle_env *env, pid_t pid, bool wants_job, char *scratch,
	struct job_lookup_result *ret)
{
	char path[32];
	*ret = (struct job_lookup_result){.job_uid = (uid_t)-1};
	snprintf(path, sizeof(path), "%d/cgroup", (int)pid);
	bool is_read = file_read_in(env->procfs_fd, path, scratch, JOB_LOOKUP_SCRATCH) > 0;
	if (is_read)
		job_lookup_read_cgroups(scratch, ret);
	if (!wants_job || ret->names[MONITOR_JOBS][0] != '\0')
		return is_read;
	snprintf(path, sizeof(path), "%d/environ", (int)pid);
	ssize_t length = file_read_in(env->procfs_fd, path, scratch, JOB_LOOKUP_SCRATCH);
	if (length > 0)
		job_lookup_read_environment(scratch, (size_t)length, ret);
	return is_read || length > 0;
}
