#include "job/job.h"

#include "base/num.h"
#include "base/proc.h"
#include "base/util.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAMES_MAX = 3 };

typedef const char *const names[NAMES_MAX]; // alternatives: the first one that is set counts

/* Launchers, innermost first: an inner launcher's ranks inherit the variables of the outer ones, so the inner must be
 * found first.
 *
 * marker  must be set too, because the rank variable alone does not identify the launcher
 * apart   identifies one launch; two launches in one job of a scheduler are two steps */
struct launcher {
	const char *name;
	const char *marker;
	bool needs_size; // the rank counts only with a size: "RANK" alone may mean anything
	names rank, size, local_rank, local_size, n_nodes;
	names apart;
};

// clang-format off
static const struct launcher launchers[] = {
	{.name = "torchrun", .marker = "TORCHELASTIC_RUN_ID", .needs_size = true,
		.rank = {"RANK"}, .size = {"WORLD_SIZE"}, .local_rank = {"LOCAL_RANK"},
		.local_size = {"LOCAL_WORLD_SIZE"}, .n_nodes = {"GROUP_WORLD_SIZE"}},
	{.name = "environment", .needs_size = true,
		.rank = {"RANK"}, .size = {"WORLD_SIZE"}, .local_rank = {"LOCAL_RANK"}, .local_size = {"LOCAL_WORLD_SIZE"}},
	{.name = "horovod",
		.rank = {"HOROVOD_RANK"}, .size = {"HOROVOD_SIZE"}, .local_rank = {"HOROVOD_LOCAL_RANK"},
		.local_size = {"HOROVOD_LOCAL_SIZE"}, .n_nodes = {"HOROVOD_CROSS_SIZE"}},
	{.name = "jsrun",
		.rank = {"JSM_NAMESPACE_RANK"}, .size = {"JSM_NAMESPACE_SIZE"}, .local_rank = {"JSM_NAMESPACE_LOCAL_RANK"},
		.local_size = {"JSM_NAMESPACE_LOCAL_SIZE"}, .apart = {"PMIX_NAMESPACE"}},
	{.name = "openmpi",
		.rank = {"OMPI_COMM_WORLD_RANK"}, .size = {"OMPI_COMM_WORLD_SIZE"}, .local_rank = {"OMPI_COMM_WORLD_LOCAL_RANK"},
		.local_size = {"OMPI_COMM_WORLD_LOCAL_SIZE"}, .n_nodes = {"OMPI_MCA_orte_num_nodes"},
		.apart = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
	{.name = "mvapich2",
		.rank = {"MV2_COMM_WORLD_RANK"}, .size = {"MV2_COMM_WORLD_SIZE"}, .local_rank = {"MV2_COMM_WORLD_LOCAL_RANK"},
		.local_size = {"MV2_COMM_WORLD_LOCAL_SIZE"}},
	{.name = "flux",
		.rank = {"FLUX_TASK_RANK"}, .size = {"FLUX_JOB_SIZE"}, .local_rank = {"FLUX_TASK_LOCAL_ID"},
		.n_nodes = {"FLUX_JOB_NNODES"}, .apart = {"FLUX_JOB_ID"}},
	{.name = "pals",
		.rank = {"PALS_RANKID"}, .size = {"PALS_SIZE", "PMI_SIZE"}, .local_rank = {"PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"},
		.local_size = {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"}, .apart = {"PALS_APID"}},
	{.name = "mpich", .needs_size = true, // Hydra: also Intel MPI
		.rank = {"PMI_RANK"}, .size = {"PMI_SIZE"}, .local_rank = {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
		.local_size = {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}},
	{.name = "pmix", .marker = "PMIX_NAMESPACE",
		.rank = {"PMIX_RANK"}, .apart = {"PMIX_NAMESPACE"}},
	{.name = "slurm",
		.rank = {"SLURM_PROCID"}, .size = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
		.local_rank = {"SLURM_LOCALID"}, .n_nodes = {"SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"}},
	{.name = "environment", .rank = {"RANK"}, .local_rank = {"LOCAL_RANK"}}, // fallback without a size
};

/* Schedulers; the first one present owns the job. An array task is a job of its own: its id consists of `array` (or the
 * id) and the index. */
struct scheduler {
	names id, array, index;
	const char *own_id; // number unique to a job or array task; NULL: other programs may use the variable
	const char *no_index;                  // value of the index without an array
	const char *before_index, *after_index; // separators in the resulting id
	names step, name, user, cluster, node, n_nodes;
};

static const struct scheduler schedulers[] = {
	{.id = {"SLURM_HET_JOB_ID", "SLURM_JOB_ID", "SLURM_JOBID"}, .own_id = "SLURM_JOB_ID", .array = {"SLURM_ARRAY_JOB_ID"}, .index = {"SLURM_ARRAY_TASK_ID"},
		.before_index = "_", .after_index = "", .step = {"SLURM_STEP_ID", "SLURM_STEPID"}, .name = {"SLURM_JOB_NAME"}, .user = {"SLURM_JOB_USER"},
		.cluster = {"SLURM_CLUSTER_NAME"}, .node = {"SLURMD_NODENAME"}, .n_nodes = {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}},
	{.id = {"PBS_JOBID"}, .own_id = "PBS_JOBID", .name = {"PBS_JOBNAME"}, .user = {"PBS_O_LOGNAME"}}, // the id contains an
	                                                                                                  // array's index:
	                                                                                                  // 12[3].server
	{.id = {"LSB_JOBID"}, .own_id = "LSB_JOBID", .index = {"LSB_JOBINDEX"}, .no_index = "0", .before_index = "[", .after_index = "]",
		.name = {"LSB_JOBNAME"}},
	{.id = {"FLUX_JOB_ID"}, .own_id = "FLUX_JOB_ID", .n_nodes = {"FLUX_JOB_NNODES"}},
	{.id = {"COBALT_JOBID"}, .own_id = "COBALT_JOBID"},
	{.id = {"OAR_JOB_ID"}, .own_id = "OAR_JOB_ID", .name = {"OAR_JOB_NAME"}, .user = {"OAR_USER"}},
	{.id = {"JOB_ID"}, .index = {"SGE_TASK_ID"}, .no_index = "undefined", .before_index = ".", .after_index = "",
		.name = {"JOB_NAME"}, .cluster = {"SGE_CLUSTER_NAME"}},
};
// clang-format on

// Slurm's special step numbers (batch, extern, interactive, pending) start here.
static const int64_t SLURM_STEPS_END = 0xfffffff0;

struct finder {
	job_variable *variable;
	void *data;
	struct job_env *env;
};

static const char *get(const struct finder *f, const char *name)
{
	const char *value = f->variable(name, f->data);
	return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *first_of(const struct finder *f, names of)
{
	for (size_t i = 0; i < NAMES_MAX && of[i] != NULL; i++) {
		const char *value = get(f, of[i]);
		if (value != NULL)
			return value;
	}
	return NULL;
}

static const int64_t NUMBERS_END = INT64_C(1) << 40; // larger numbers are invalid

// The first value that is a number of at least `least`.
static int64_t number_of(const struct finder *f, names of, int64_t least)
{
	int64_t value;
	for (size_t i = 0; i < NAMES_MAX && of[i] != NULL; i++) {
		const char *text = get(f, of[i]);
		if (text != NULL && num_parse_i64(text, &value) == 0 && value >= least && value < NUMBERS_END)
			return value;
	}
	return VALUE_MISSING;
}

static void copy(char out[JOB_TEXT_SIZE], const char *value)
{
	if (value != NULL)
		text_copy(out, JOB_TEXT_SIZE, value);
}

/* ---- rank ---- */

static bool slurm_runs_a_step(const struct finder *f)
{
	int64_t step = number_of(f, (names){"SLURM_STEP_ID", "SLURM_STEPID"}, 0);
	return value_ok(step) && step < SLURM_STEPS_END;
}

/* A batch script has SLURM_PROCID=0 but no step. Its ENVIRONMENT variable identifies it, and tasks started from it
 * inherit that (slurmd 22.05). If neither is set, another program set these variables, and they count. */
static bool slurm_gives_ranks(const struct finder *f)
{
	if (first_of(f, (names){"SLURM_STEP_ID", "SLURM_STEPID"}) != NULL)
		return slurm_runs_a_step(f);
	const char *environment = get(f, "ENVIRONMENT");
	return environment == NULL || strcmp(environment, "BATCH") != 0;
}

// srun also sets PMI and PMIx variables: they give the same ranks, but Slurm's variables give more information.
static bool is_srun(const struct finder *f, int64_t rank, int64_t size)
{
	const char *space = get(f, "PMIX_NAMESPACE");
	bool is_pmix = space != NULL && strncmp(space, "slurm.", 6) == 0;
	int64_t tasks = number_of(f, (names){"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, 1);
	return slurm_runs_a_step(f) && rank == number_of(f, (names){"SLURM_PROCID"}, 0) && (is_pmix || size == tasks);
}

static bool is_launched_by(const struct finder *f, const struct launcher *launcher)
{
	int64_t rank = number_of(f, launcher->rank, 0), size = number_of(f, launcher->size, 1);
	if (!value_ok(rank) || (launcher->needs_size && !value_ok(size)))
		return false;
	if (launcher->marker != NULL && get(f, launcher->marker) == NULL)
		return false;
	if (strcmp(launcher->name, "slurm") == 0)
		return slurm_gives_ranks(f);
	bool is_pm = strcmp(launcher->name, "mpich") == 0 || strcmp(launcher->name, "pmix") == 0;
	return !is_pm || !is_srun(f, rank, size);
}

static const struct launcher *find_launcher(const struct finder *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++)
		if (is_launched_by(f, &launchers[i]))
			return &launchers[i];
	return NULL;
}

// SLURM_GTIDS: the ranks on this node, "4,5,6,7".
static int64_t count_slurm_tasks(const struct finder *f)
{
	const char *at = get(f, "SLURM_GTIDS");
	int64_t n = at != NULL ? 1 : VALUE_MISSING;
	for (; at != NULL && *at != '\0'; at++)
		n += *at == ',';
	return n;
}

static void take_rank(const struct finder *f, const struct launcher *launcher)
{
	struct job_env *env = f->env;
	text_copy(env->launcher, sizeof(env->launcher), launcher->name);
	env->rank = number_of(f, launcher->rank, 0);
	env->local_rank = number_of(f, launcher->local_rank, 0);
	env->world_size = number_of(f, launcher->size, 1);
	env->local_size = number_of(f, launcher->local_size, 1);
	env->n_nodes = number_of(f, launcher->n_nodes, 1);
	if (strcmp(launcher->name, "slurm") == 0)
		env->local_size = count_slurm_tasks(f);
	if (env->world_size <= env->rank) // inconsistent: one of the two is not from this launcher
		env->world_size = VALUE_MISSING;
	if (env->local_size <= env->local_rank)
		env->local_size = VALUE_MISSING;
}

/* ---- job ---- */

static void take_id(const struct finder *f, const struct scheduler *scheduler)
{
	const char *id = first_of(f, scheduler->id), *array = first_of(f, scheduler->array);
	const char *index = first_of(f, scheduler->index);
	if (index != NULL && scheduler->no_index != NULL && strcmp(index, scheduler->no_index) == 0)
		index = NULL;
	if (index == NULL)
		copy(f->env->id, id);
	else
		snprintf(f->env->id, JOB_TEXT_SIZE, "%s%s%s%s", array != NULL ? array : id, scheduler->before_index,
			index, scheduler->after_index);
}

static void take_job(const struct finder *f, const struct scheduler *scheduler)
{
	struct job_env *env = f->env;
	take_id(f, scheduler);
	copy(env->name, first_of(f, scheduler->name));
	copy(env->user, first_of(f, scheduler->user));
	copy(env->cluster, first_of(f, scheduler->cluster));
	copy(env->node, first_of(f, scheduler->node));
	if (scheduler->step[0] != NULL && slurm_runs_a_step(f))
		copy(env->step, first_of(f, scheduler->step));
	if (!value_ok(env->n_nodes))
		env->n_nodes = number_of(f, scheduler->n_nodes, 1);
}

static bool find_scheduler(const struct finder *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(schedulers); i++)
		if (first_of(f, schedulers[i].id) != NULL) {
			take_job(f, &schedulers[i]);
			return true;
		}
	return false;
}

/* mpirun's daemons that Slurm starts on other nodes belong to a Slurm step, the processes on mpirun's own node do not.
 * So for all of them the launch by mpirun counts as the step. */
static void take_launch(const struct finder *f, const struct launcher *launcher, bool has_scheduler)
{
	struct job_env *env = f->env;
	const char *apart = first_of(f, launcher->apart);
	const char *run_id = get(f, "TORCHELASTIC_RUN_ID");
	if (apart != NULL && strcmp(apart, env->id) != 0)
		copy(has_scheduler ? env->step : env->id, apart);
	bool is_torchrun = strcmp(launcher->name, "torchrun") == 0;
	if (!has_scheduler && is_torchrun && run_id != NULL && strcmp(run_id, "none") != 0) // "none" is the default of all jobs
		copy(env->id, run_id);
	const char *address = get(f, "MASTER_ADDR"), *port = get(f, "MASTER_PORT");
	if (address != NULL && port != NULL)
		snprintf(env->group, sizeof(env->group), "%.100s:%.20s", address, port);
}

/* ---- restarts ---- */

static void take_restarts(const struct finder *f)
{
	struct job_env *env = f->env;
	int64_t requeued = number_of(f, (names){"SLURM_RESTART_COUNT"}, 1);
	bool is_elastic = strcmp(env->launcher, "torchrun") == 0;
	int64_t again = is_elastic ? number_of(f, (names){"TORCHELASTIC_RESTART_COUNT"}, 0) : VALUE_MISSING;
	int64_t both = (value_ok(requeued) ? requeued : 0) + (value_ok(again) ? again : 0);
	if (both <= 0)
		return;
	env->restart = both;
	// The workers of a requeued job count from 0 again, so names contain both counts.
	if (value_ok(requeued) && value_ok(again))
		snprintf(env->restart_text, sizeof(env->restart_text), "%lld.%lld", (long long)requeued,
			(long long)again);
	else
		snprintf(env->restart_text, sizeof(env->restart_text), "%lld", (long long)both);
}

void job_env_find(job_variable *variable, void *data, struct job_env *ret_env)
{
	*ret_env = (struct job_env){
		.rank = VALUE_MISSING,
		.local_rank = VALUE_MISSING,
		.world_size = VALUE_MISSING,
		.local_size = VALUE_MISSING,
		.n_nodes = VALUE_MISSING,
	};
	const struct finder f = {variable, data, ret_env};
	const struct launcher *launcher = find_launcher(&f);
	if (launcher != NULL)
		take_rank(&f, launcher);
	bool has_scheduler = find_scheduler(&f);
	if (launcher != NULL)
		take_launch(&f, launcher, has_scheduler);
	ret_env->in_job = ret_env->id[0] != '\0' || value_ok(ret_env->rank);
	if (ret_env->in_job)
		take_restarts(&f);
}

const char *job_from_environment(const char *name, void *data)
{
	return getenv(name);
}

const char *job_from_environ(const char *name, void *data)
{
	const struct job_environ *environment = data;
	return proc_environ_find(environment->text, environment->size, name);
}

const char *job_id_variable(size_t *at)
{
	while (*at < ARRAY_SIZE(schedulers)) {
		const char *name = schedulers[(*at)++].own_id;
		if (name != NULL)
			return name;
	}
	return NULL;
}

bool job_env_is_shared(const struct job_env *env)
{
	return env->id[0] != '\0' || (value_ok(env->world_size) && env->world_size > 1);
}
