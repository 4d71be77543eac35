/* srun --wattle: callbacks of the plugin, in the order in which Slurm calls them. They never fail for Slurm: a job runs
 * whether it can be measured or not. The exception is invalid option values, which srun rejects before anything is
 * started.
 *
 *   in srun, sbatch, salloc    slurm_spank_init: settings of the site; options of the user
 *   in srun, at its end        slurm_spank_exit: reports if no node has summed up
 *   in slurmstepd, as root     slurm_spank_init, slurm_spank_user_init: as above; a connection for each task
 *                              slurm_spank_task_post_fork: a recorder for each
 *   in the task, as the user   slurm_spank_task_init: waits for its recorder; only task prologs run between it and the
 *                              exec
 *   in slurmstepd              slurm_spank_task_exit: informs the recorder; after the last task of the node waits for
 *                              all recorders, and sums up the measurements of the step */
#include "base/num.h"
#include "base/util.h"
#include "job/job.h"
#include "spank/spank.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#include <slurm/slurm.h>
#include <slurm/spank.h>
SPANK_PLUGIN(wattle, 1)
#pragma GCC visibility pop

/* State shared by the callbacks, including those of options, because Slurm passes no context to them. All callbacks run
 * in one thread. */
static struct {
	struct settings settings;
	struct task_line *lines; // owned: one per task of this node; NULL: nothing is measured
	uint32_t n_tasks, n_ended;
	int folder_fd;        // owned: working folder of the step; -1: unknown
	struct rusage before; // sum over all children that slurmstepd had waited for when the last task ended
	char step[16];        // in srun: id of the started step; "" none
	bool is_error_reported; // an error of a recorder was reported; one per node is enough
} plugin = {.folder_fd = -1};

// Messages from wattle itself already have this prefix.
static void print_warning(const char *text)
{
	static const char prefix[] = "wattle: ";
	bool has_it = strncmp(text, prefix, sizeof(prefix) - 1) == 0;
	slurm_spank_log("%s%s", has_it ? "" : prefix, text);
}

/* ---- options ---- */

static int take_option(int option, const char *value, int remote)
{
	struct wattle_error error = {0};
	int r = settings_take_user(&plugin.settings, (enum settings_option)option, value, &error);
	if (r < 0 && !remote)
		slurm_error("%s", error.text);
	return r < 0 && !remote ? -1 : 0;
}

static const struct spank_option options[] = {
	{"wattle", "INTERVAL",
		"measure energy and resources of the tasks, every INTERVAL (default 100ms); off: don't measure", 2,
		SETTINGS_INTERVAL, take_option},
	{"wattle-folder", "DIR", "folder for the run files of --wattle; %j is the job ID (default wattle-%j)", 1,
		SETTINGS_FOLDER, take_option},
	{"wattle-options", "WORDS", "further options of wattle attach, such as \"--per-process\"", 1, SETTINGS_WORDS,
		take_option},
};

static void take_site(int n, char **arguments)
{
	struct wattle_error error;
	settings_init(&plugin.settings, WATTLE_PROGRAM);
	for (int i = 0; i < n; i++)
		if (settings_take_site(&plugin.settings, arguments[i], &error) < 0)
			slurm_error("wattle: %s", error.text);
}

/* ---- information from Slurm ---- */

static uint32_t number_of(spank_t spank, spank_item_t item)
{
	uint32_t value = 0;
	return spank_get_item(spank, item, &value) == ESPANK_SUCCESS ? value : 0;
}

static int task_of(spank_t spank)
{
	int task = -1;
	return spank_get_item(spank, S_TASK_ID, &task) == ESPANK_SUCCESS && task >= 0 && (uint32_t)task < plugin.n_tasks
		? task
		: -1;
}

static const char *name_step(spank_t spank, char *out, size_t size)
{
	uint32_t step = number_of(spank, S_JOB_STEPID);
	if (step == SLURM_BATCH_SCRIPT)
		return "batch";
	if (step == SLURM_INTERACTIVE_STEP)
		return "interactive";
	snprintf(out, size, "%u", step);
	return out;
}

static bool is_measured(spank_t spank)
{
	return plugin.settings.wanted && number_of(spank, S_JOB_STEPID) != SLURM_EXTERN_CONT;
}

static int64_t microseconds(const struct timeval *time)
{
	return (int64_t)time->tv_sec * 1000000 + time->tv_usec;
}

/* Number of nodes that will sum up. In a heterogeneous job Slurm gives each component its own number of nodes; the
 * environment has the number of all nodes of the step. */
static uint32_t count_nodes(spank_t spank, char **environment)
{
	int64_t all;
	uint32_t own = number_of(spank, S_JOB_NNODES);
	if (number_of(spank, S_JOB_STEPID) == SLURM_BATCH_SCRIPT)
		return 1;
	const char *text = environment_variable("SLURM_STEP_NUM_NODES", environment);
	bool known = text != NULL && num_parse_i64(text, &all) == 0 && all > own && all < UINT32_MAX;
	return known ? (uint32_t)all : own;
}

static void find_owner(spank_t spank, struct task_owner *owner)
{
	gid_t *groups = NULL;
	int n_groups = 0;
	*owner = (struct task_owner){.uid = (uid_t)-1, .gid = (gid_t)-1, .folder_fd = plugin.folder_fd};
	spank_get_item(spank, S_JOB_UID, &owner->uid);
	spank_get_item(spank, S_JOB_GID, &owner->gid);
	if (spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &n_groups) == ESPANK_SUCCESS && n_groups > 0) {
		owner->groups = groups;
		owner->n_groups = (size_t)n_groups;
	}
}

/* ---- callbacks ---- */

#pragma GCC visibility push(default)

int slurm_spank_init(spank_t spank, int n, char **arguments)
{
	take_site(n, arguments);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		struct spank_option option = options[i]; // Slurm makes a copy
		if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
			slurm_error("wattle: can't register --%s", option.name);
	}
	return ESPANK_SUCCESS;
}

int slurm_spank_user_init(spank_t spank, int n, char **arguments)
{
	if (!is_measured(spank))
		return ESPANK_SUCCESS;
	/* Slurm changes to the step's folder as its user, calls this and forks the tasks. It changes back to slurmd's
	 * start folder before the next callback (slurmstepd, 22.05). */
	plugin.folder_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	plugin.n_tasks = number_of(spank, S_JOB_LOCAL_TASK_COUNT);
	plugin.lines = calloc_array(plugin.n_tasks, sizeof(*plugin.lines));
	for (uint32_t i = 0; plugin.lines != NULL && i < plugin.n_tasks; i++)
		if (task_line_open(&plugin.lines[i]) < 0)
			slurm_debug("wattle: can't connect to the recorder of task %u", i);
	return ESPANK_SUCCESS;
}

int slurm_spank_task_post_fork(spank_t spank, int n, char **arguments)
{
	int task = plugin.lines != NULL ? task_of(spank) : -1;
	pid_t pid = 0;
	if (task < 0 || plugin.lines[task].fd < 0 || spank_get_item(spank, S_TASK_PID, &pid) != ESPANK_SUCCESS)
		return ESPANK_SUCCESS;
	char step[16];
	struct task_owner owner;
	struct wattle_error error = {0};
	find_owner(spank, &owner);
	if (task_line_start(&plugin.lines[task], &plugin.settings, &owner, pid, name_step(spank, step, sizeof(step)),
		    &error) < 0)
		slurm_error("wattle: %s", error.text);
	getrusage(RUSAGE_CHILDREN, &plugin.before); // excludes our own children that have ended
	return ESPANK_SUCCESS;
}

int slurm_spank_task_init(spank_t spank, int n, char **arguments)
{
	int task = plugin.lines != NULL ? task_of(spank) : -1;
	if (task < 0)
		return ESPANK_SUCCESS;
	char **environment = NULL, **command = NULL, ring[256] = "";
	int n_words = 0;
	struct wattle_error error = {0};
	spank_get_item(spank, S_JOB_ENV, &environment);
	spank_get_item(spank, S_JOB_ARGV, &n_words, &command);
	int r = task_line_join(plugin.lines, plugin.n_tasks, (size_t)task, environment, command,
		plugin.settings.ready_ns, ring, sizeof(ring), &error);
	if (r < 0 && task == 0) // an error of one task usually affects all tasks of a node
		slurm_spank_log("wattle: task %u is not measured: %s", number_of(spank, S_TASK_GLOBAL_ID), error.text);
	if (r == 0 && ring[0] != '\0')
		spank_setenv(spank, "WATTLE_RING", ring, 1);
	return ESPANK_SUCCESS;
}

/* Slurm does not pass on the kernel's accounting of a task. But it waits for the tasks one by one and calls this after
 * each: the growth of the children's usage since the last call is the usage of that task. */
static struct tracker_ended read_step_end(spank_t spank)
{
	struct rusage now, before = plugin.before;
	int status = 0;
	spank_get_item(spank, S_TASK_EXIT_STATUS, &status);
	getrusage(RUSAGE_CHILDREN, &now);
	plugin.before = now;
	return (struct tracker_ended){
		.wait_status = status,
		.user_us = microseconds(&now.ru_utime) - microseconds(&before.ru_utime),
		.system_us = microseconds(&now.ru_stime) - microseconds(&before.ru_stime),
		.minor_faults = now.ru_minflt - before.ru_minflt,
		.major_faults = now.ru_majflt - before.ru_majflt,
		.blocks_in = now.ru_inblock - before.ru_inblock,
		.blocks_out = now.ru_oublock - before.ru_oublock,
		.voluntary_switches = now.ru_nvcsw - before.ru_nvcsw,
		.involuntary_switches = now.ru_nivcsw - before.ru_nivcsw,
	};
}

static void print_once(const char *text)
{
	if (!plugin.is_error_reported)
		print_warning(text);
	plugin.is_error_reported = true;
}

static void finish(spank_t spank)
{
	char step[16], text[100];
	size_t n_late = task_lines_finish(plugin.lines, plugin.n_tasks, plugin.settings.wait_ns, print_once);
	free(plugin.lines);
	plugin.lines = NULL;
	if (n_late > 0) {
		snprintf(text, sizeof(text), "%zu recorders of this node did not finish in time and were ended",
			n_late);
		print_warning(text);
	}
	struct task_owner owner;
	struct job_env job_env;
	char **environment = NULL;
	find_owner(spank, &owner);
	spank_get_item(spank, S_JOB_ENV, &environment);
	job_env_find(environment_variable, environment, &job_env);
	const struct step_end end = {
		.settings = &plugin.settings,
		.owner = &owner,
		.job_id = job_env.id,
		.slurm_job = number_of(spank, S_JOB_ID),
		.step = name_step(spank, step, sizeof(step)),
		.restart = number_of(spank, S_SLURM_RESTART_COUNT),
		.node = number_of(spank, S_JOB_NODEID),
		.n_nodes = count_nodes(spank, environment),
	};
	step_end(&end, print_warning);
}

int slurm_spank_task_exit(spank_t spank, int n, char **arguments)
{
	int task = plugin.lines != NULL ? task_of(spank) : -1;
	if (task < 0)
		return ESPANK_SUCCESS;
	const struct tracker_ended ended = read_step_end(spank);
	task_line_ended(&plugin.lines[task], &ended);
	if (++plugin.n_ended == plugin.n_tasks)
		finish(spank);
	return ESPANK_SUCCESS;
}

// In srun, where the step exists by now.
int slurm_spank_local_user_init(spank_t spank, int n, char **arguments)
{
	if (is_measured(spank))
		snprintf(plugin.step, sizeof(plugin.step), "%u", number_of(spank, S_JOB_STEPID));
	return ESPANK_SUCCESS;
}

int slurm_spank_exit(spank_t spank, int n, char **arguments)
{
	if (spank_context() != S_CTX_LOCAL || plugin.step[0] == '\0')
		return ESPANK_SUCCESS;
	struct job_env job_env;
	job_env_find(job_from_environment, NULL, &job_env);
	const struct step_end end = {
		.settings = &plugin.settings,
		.job_id = job_env.id,
		.step = plugin.step,
		.restart = value_ok(job_env.restart) ? (uint32_t)job_env.restart : 0,
	};
	if (step_end_is_apart(&end))
		slurm_spank_log(
			"wattle: no total: the run files are on the step's nodes, because %s is not a shared folder",
			plugin.settings.folder);
	return ESPANK_SUCCESS;
}

#pragma GCC visibility pop
