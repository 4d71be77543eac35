#include "cli/measure.h"

#include "analysis/metadata_keys.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/redact.h"
#include "base/util.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

void measure_job_env(struct measure_job *job, const char *id)
{
	*job = (struct measure_job){0};
	job_env_find(job_from_environment, NULL, &job->job_env);
	if (id == NULL)
		return;
	text_copy(job->job_env.id, sizeof(job->job_env.id), id);
	job->job_env.in_job = true;
}

/* ---- user and host ---- */

static void find_user(struct measure_job *job)
{
	char text[16384]; // directory services of large sites have long entries
	struct passwd entry, *found = NULL;
	if (getpwuid_r(geteuid(), &entry, text, sizeof(text), &found) == 0 && found != NULL)
		text_copy(job->user, sizeof(job->user), found->pw_name);
	else
		snprintf(job->user, sizeof(job->user), "%u", (unsigned)geteuid());
}

// In some schedulers (LSF) the default name of a job is its command line.
static void find_name(struct measure_job *job, bool hide_command)
{
	const char *name = job->job_env.name;
	size_t length = strlen(name);
	struct redactor redactor = {.is_cut = length >= sizeof(job->job_env.name) - 1};
	struct buf shown;
	buf_init(&shown, 16 * sizeof(job->job_env.name));
	if (hide_command)
		redact_to_name(name, length, &shown);
	else
		redact_word(&redactor, name, length, &shown);
	buf_char(&shown, '\0');
	text_copy(job->name, sizeof(job->name), shown.failed == 0 ? shown.data : "");
	buf_finish(&shown);
}

/* Finds a folder used instead of the kernel's: WATTLE_SYSFS, or counters mounted over those of /sys, as on virtual nodes.
 * False: none. */
static bool find_tree(const struct wattle_env *env, struct stat *ret_tree)
{
	static const char *const paths[] = {".", "class/powercap"};
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct statfs system;
		wattle_cleanup_close int fd = openat(env->sysfs_fd, paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && fstatfs(fd, &system) == 0 && system.f_type != SYSFS_MAGIC && fstat(fd, ret_tree) == 0)
			return true;
	}
	return false;
}

/* The machine is identified by the kernel's boot id, not by its name: two hosts may have the same name, and a reboot resets the
 * counters. A folder that replaces /sys counts as a separate machine. */
static void find_machine(struct measure_job *job, const struct wattle_env *env, const char *host)
{
	char boot_id[64], *machine = job->machine;
	if (file_read_line_in(env->procfs_fd, "sys/kernel/random/boot_id", boot_id, sizeof(boot_id)) < 0)
		text_copy(boot_id, sizeof(boot_id), host);
	struct stat tree;
	if (find_tree(env, &tree))
		snprintf(machine, sizeof(job->machine), "%s:%llx:%llx", boot_id, (unsigned long long)tree.st_dev,
			(unsigned long long)tree.st_ino);
	else
		text_copy(machine, sizeof(job->machine), boot_id);
}

/* Two steps of a job, and two launches without an id from two terminals, each read the sensors themselves, because each has its
 * own report. Ranks started by a launcher do not share with a recorder around the launcher, nor with recorders that run beside
 * the ranks (srun --wattle of a whole site): their run files are in other places, and both need the energy. */
static void find_group(struct measure_job *job, bool alone)
{
	const struct job_env *job_env = &job->job_env;
	if (alone || !job_env_is_shared(job_env))
		return;
	char session[JOB_NUMBER_SIZE] = "";
	bool has_name = job_env->id[0] != '\0' || job_env->group[0] != '\0';
	if (!has_name)
		snprintf(session, sizeof(session), "%d", getsid(0));
	snprintf(job->group, sizeof(job->group), "%s|%s|%s|%s|%s|%s|%s", job->attached ? "beside" : "",
		job_env->launcher, job_env->id, job_env->step, job_env->group, session, job->machine);
}

/* ---- facts ---- */

static void add_text(struct measure_job *job, const char *key, const char *value)
{
	if (value[0] != '\0')
		job->facts[job->n_metadata++] = (struct store_metadata){key, value};
}

static void add_number(struct measure_job *job, const char *key, int64_t value)
{
	if (!value_ok(value))
		return;
	char *text = job->numbers[job->n_metadata];
	snprintf(text, JOB_NUMBER_SIZE, "%lld", (long long)value);
	add_text(job, key, text);
}

static void add_job_env(struct measure_job *job)
{
	const struct job_env *job_env = &job->job_env;
	add_text(job, META_KEY_JOB_ID, job_env->id);
	add_text(job, META_KEY_JOB_STEP, job_env->step);
	if (job_env->id[0] == '\0')
		add_text(job, META_KEY_JOB_GROUP, job_env->group);
	add_text(job, META_KEY_JOB_NAME, job->name);
	add_text(job, META_KEY_JOB_USER, job_env->user);
	add_text(job, META_KEY_JOB_CLUSTER, job_env->cluster);
	add_text(job, META_KEY_JOB_LAUNCHER, job_env->launcher);
	add_text(job, META_KEY_NODE, job->node);
	add_number(job, META_KEY_RANK, job_env->rank);
	add_number(job, META_KEY_LOCAL_RANK, job_env->local_rank);
	add_number(job, META_KEY_WORLD_SIZE, job_env->world_size);
	add_number(job, META_KEY_LOCAL_SIZE, job_env->local_size);
	add_number(job, META_KEY_N_NODES, job_env->n_nodes);
	add_number(job, META_KEY_RESTART, job_env->restart);
}

void measure_job_metadata(struct measure_job *job, const struct wattle_env *env, const char *host, bool alone,
	bool hide_command)
{
	find_user(job);
	find_name(job, hide_command);
	find_machine(job, env, host);
	text_copy(job->node, sizeof(job->node), job->job_env.node[0] != '\0' ? job->job_env.node : host);
	find_group(job, alone);
	add_text(job, META_KEY_USER, job->user);
	add_text(job, META_KEY_MACHINE, job->machine);
	if (job->job_env.in_job)
		add_job_env(job);
}
