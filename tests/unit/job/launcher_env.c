#include "job/job.h"

#include "base/util.h"
#include "rows.h"

#include <string.h>

enum { NO = -1 }; // unknown

static const struct row {
	const char *teaches;
	const char *environment; // "NAME=VALUE NAME=VALUE"
	const char *id, *step, *launcher;
	int rank, local_rank, world_size, local_size, n_nodes, restart;
	const char *restart_text;
} rows[] = {
	{"no variables: no job", "HOME=/root", "", "", "", NO, NO, NO, NO, NO, 0, ""},
	{"srun: sets all of a rank's variables",
		"SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_LOCALID=1 SLURM_STEP_NUM_TASKS=8 SLURM_STEP_NUM_NODES=2 "
		"SLURM_GTIDS=4,5,6,7",
		"42", "0", "slurm", 5, 1, 8, 4, 2, 0, ""},
	{"Slurm step smaller than its job: the step's tasks count",
		"SLURM_JOB_ID=42 SLURM_STEP_ID=3 SLURM_PROCID=0 SLURM_NTASKS=64 SLURM_STEP_NUM_TASKS=2 SLURM_NNODES=8 "
		"SLURM_STEP_NUM_NODES=1",
		"42", "3", "slurm", 0, NO, 2, NO, 1, 0, ""},
	{"Slurm batch script: SLURM_PROCID=0 is no rank",
		"ENVIRONMENT=BATCH SLURM_JOB_ID=42 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=4 SLURM_NNODES=2", "42",
		"", "", NO, NO, NO, NO, 2, 0, ""},
	{"srun in a batch script: its tasks are ranks",
		"ENVIRONMENT=BATCH SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2", "42", "0", "slurm",
		1, NO, 2, NO, NO, 0, ""},
	{"Slurm variables set by hand: ignored", "SLURM_JOB_ID=42 SLURM_PROCID=0 SLURM_NTASKS=2", "42", "", "slurm", 0,
		NO, 2, NO, NO, 0, ""},
	{"salloc's shell, whose step number means `interactive`: no rank",
		"SLURM_JOB_ID=42 SLURM_STEP_ID=4294967290 SLURM_PROCID=0 SLURM_NTASKS=4", "42", "", "", NO, NO, NO, NO,
		NO, 0, ""},
	{"Slurm array: each task is a job of its own",
		"SLURM_JOB_ID=45 SLURM_ARRAY_JOB_ID=42 SLURM_ARRAY_TASK_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1",
		"42_7", "0", "slurm", 0, NO, 1, NO, NO, 0, ""},
	{"mpirun in a Slurm job: the daemon's SLURM_PROCID is not the rank, its step not the step",
		"SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 "
		"OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_RANK=5 PMIX_NAMESPACE=77",
		"42", "77", "openmpi", 5, 1, 8, 4, NO, 0, ""},
	{"mpirun without a scheduler: its launch id is the job",
		"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_MCA_orte_num_nodes=1 PMIX_NAMESPACE=2102067201",
		"2102067201", "", "openmpi", 0, NO, 2, NO, 1, 0, ""},
	{"Hydra (MPICH, Intel MPI) in a Slurm job: srun starts its proxies",
		"SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 PMI_RANK=6 PMI_SIZE=8 MPI_LOCALRANKID=2 "
		"MPI_LOCALNRANKS=4",
		"42", "0", "mpich", 6, 2, 8, 4, NO, 0, ""},
	{"srun --mpi=pmi2: sets PMI's variables itself",
		"SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=6 SLURM_LOCALID=2 SLURM_NTASKS=8 PMI_RANK=6 PMI_SIZE=8",
		"42", "0", "slurm", 6, 2, 8, NO, NO, 0, ""},
	{"srun --mpi=pmix: sets PMIx variables itself",
		"SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=6 SLURM_NTASKS=8 PMIX_RANK=6 PMIX_NAMESPACE=slurm.pmix.42.0",
		"42", "0", "slurm", 6, NO, 8, NO, NO, 0, ""},
	{"torchrun within srun: torchrun counts",
		"SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=2 TORCHELASTIC_RUN_ID=none RANK=12 LOCAL_RANK=4 "
		"WORLD_SIZE=16 LOCAL_WORLD_SIZE=8 GROUP_WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=0",
		"42", "0", "torchrun", 12, 4, 16, 8, 2, 0, ""},
	{"torchrun's run id `none`: no job id",
		"TORCHELASTIC_RUN_ID=none RANK=1 WORLD_SIZE=2 TORCHELASTIC_RESTART_COUNT=2", "", "", "torchrun", 1, NO,
		2, NO, NO, 2, "2"},
	{"torchrun's run id set by the user: the job id", "TORCHELASTIC_RUN_ID=exp-7 RANK=1 WORLD_SIZE=2", "exp-7", "",
		"torchrun", 1, NO, 2, NO, NO, 0, ""},
	{"requeued job: restart count known",
		"SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_RESTART_COUNT=1", "42", "0",
		"slurm", 0, NO, 1, NO, NO, 1, "1"},
	{"requeued job with restarted workers: names differ",
		"SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_RESTART_COUNT=1 TORCHELASTIC_RUN_ID=42 TORCHELASTIC_RESTART_COUNT=1 RANK=0 "
		"WORLD_SIZE=2",
		"42", "0", "torchrun", 0, NO, 2, NO, NO, 2, "1.1"},
	{"RANK and WORLD_SIZE set by any launcher", "RANK=3 WORLD_SIZE=4 LOCAL_RANK=3", "", "", "environment", 3, 3, 4,
		NO, NO, 0, ""},
	{"RANK alone: used if no other variable is set", "RANK=3", "", "", "environment", 3, NO, NO, NO, NO, 0, ""},
	{"RANK alone beside a launcher's variables: ignored", "RANK=3 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2",
		"", "", "openmpi", 1, NO, 2, NO, NO, 0, ""},
	{"rank that is no number: ignored", "RANK=first WORLD_SIZE=4", "", "", "", NO, NO, NO, NO, NO, 0, ""},
	{"empty variable: treated as unset", "SLURM_JOB_ID= PBS_JOBID=9.head", "9.head", "", "", NO, NO, NO, NO, NO, 0,
		""},
	{"rank not below the world size: the world size is ignored", "RANK=9 WORLD_SIZE=4", "", "", "environment", 9,
		NO, NO, NO, NO, 0, ""},
	{"negative rank, which shells use for `not yet`: ignored", "RANK=-1 WORLD_SIZE=4", "", "", "", NO, NO, NO, NO,
		NO, 0, ""},
	{"PBS with an array", "PBS_JOBID=12[3].head", "12[3].head", "", "", NO, NO, NO, NO, NO, 0, ""},
	{"LSF: index 0 is no array", "LSB_JOBID=88 LSB_JOBINDEX=0", "88", "", "", NO, NO, NO, NO, NO, 0, ""},
	{"LSF with an array", "LSB_JOBID=88 LSB_JOBINDEX=4", "88[4]", "", "", NO, NO, NO, NO, NO, 0, ""},
	{"Grid Engine without an array: task id `undefined`", "JOB_ID=5 SGE_TASK_ID=undefined", "5", "", "", NO, NO, NO,
		NO, NO, 0, ""},
	{"Grid Engine with an array", "JOB_ID=5 SGE_TASK_ID=2", "5.2", "", "", NO, NO, NO, NO, NO, 0, ""},
	{"flux: job and rank", "FLUX_JOB_ID=f1 FLUX_TASK_RANK=1 FLUX_JOB_SIZE=2 FLUX_TASK_LOCAL_ID=0 FLUX_JOB_NNODES=2",
		"f1", "", "flux", 1, 0, 2, NO, 2, 0, ""},
	{"flux job in a Slurm job: a step of the Slurm job",
		"SLURM_JOB_ID=42 FLUX_JOB_ID=f1 FLUX_TASK_RANK=1 FLUX_JOB_SIZE=2", "42", "f1", "flux", 1, NO, 2, NO, NO,
		0, ""},
	{"jsrun",
		"LSB_JOBID=8 JSM_NAMESPACE_RANK=2 JSM_NAMESPACE_SIZE=6 JSM_NAMESPACE_LOCAL_RANK=2 OMPI_COMM_WORLD_RANK=2",
		"8", "", "jsrun", 2, 2, 6, NO, NO, 0, ""},
	{"PALS", "PBS_JOBID=1.s PALS_RANKID=3 PALS_LOCAL_RANKID=1 PMI_SIZE=4 PALS_APID=ab", "1.s", "ab", "pals", 3, 1,
		4, NO, NO, 0, ""},
};

static char value_text[256];

static const char *variable(const char *name, void *data)
{
	size_t length = strlen(name);
	for (const char *at = data; at != NULL && *at != '\0';) {
		size_t size = strcspn(at, " ");
		if (strncmp(at, name, length) == 0 && at[length] == '=') {
			memcpy(value_text, at + length + 1, size - length - 1);
			value_text[size - length - 1] = '\0';
			return value_text;
		}
		at += size + (at[size] == ' ');
	}
	return NULL;
}

static int64_t known(int value)
{
	return value == NO ? VALUE_MISSING : value;
}

static char places[8][JOB_TEXT_SIZE]; // values are borrowed until the next call but one, so each is copied
static size_t n_places;

static const char *kept(const char *name, void *data)
{
	const char *value = variable(name, data);
	if (value == NULL)
		return NULL;
	char *env = places[n_places++ % 8];
	text_copy(env, JOB_TEXT_SIZE, value);
	return env;
}

static void check(void **state)
{
	const struct row *row = *state;
	struct job_env env;
	job_env_find(kept, (void *)(uintptr_t)row->environment, &env);
	assert_string_equal(env.id, row->id);
	assert_string_equal(env.step, row->step);
	assert_string_equal(env.launcher, row->launcher);
	assert_int_equal(env.rank, known(row->rank));
	assert_int_equal(env.local_rank, known(row->local_rank));
	assert_int_equal(env.world_size, known(row->world_size));
	assert_int_equal(env.local_size, known(row->local_size));
	assert_int_equal(env.n_nodes, known(row->n_nodes));
	assert_int_equal(env.restart, row->restart);
	assert_string_equal(env.restart_text, row->restart_text);
	assert_int_equal(env.in_job, row->id[0] != '\0' || row->rank != NO);
}

static void names_of_a_job(void **state)
{
	struct job_env env;
	char environment[] =
		"SLURM_JOB_ID=1 SLURM_JOB_NAME=train SLURM_JOB_USER=ada SLURM_CLUSTER_NAME=big SLURMD_NODENAME=n7";
	job_env_find(kept, environment, &env);
	assert_string_equal(env.name, "train");
	assert_string_equal(env.user, "ada");
	assert_string_equal(env.cluster, "big");
	assert_string_equal(env.node, "n7");
}

static void launches_without_id(void **state)
{
	struct job_env env;
	char environment[] = "RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500";
	job_env_find(kept, environment, &env);
	assert_string_equal(env.id, "");
	assert_string_equal(env.group, "10.0.0.1:29500");
	assert_true(job_env_is_shared(&env));
}

static void long_values(void **state)
{
	struct job_env env;
	char environment[200] = "SLURM_JOB_ID=";
	memset(environment + 13, '7', 180);
	job_env_find(kept, environment, &env);
	assert_int_equal(strlen(env.id), JOB_TEXT_SIZE - 1);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "job title: owner's name and cluster's name", names_of_a_job);
	ROWS_ADD_ONE(&tests, "launch without an id: the ranks' rendezvous address identifies it",
		launches_without_id);
	ROWS_ADD_ONE(&tests, "value longer than its buffer: truncated", long_values);
	return rows_run(&tests, "place");
}
