/* The environment of a recorder, made from those of the job and of slurmd. */
#include "spank/spank.h"

#include "base/util.h"
#include "rows.h"

#include <string.h>

enum { VARIABLES_MAX = 6 };

static const struct row {
	const char *teaches, *job[VARIABLES_MAX], *site[VARIABLES_MAX];
	const char *name, *value; // NULL: not set
} rows[] = {
	{"LD_PRELOAD of the job: dropped", {"LD_PRELOAD=/x", NULL}, {NULL}, "LD_PRELOAD", NULL},
	{"LD_LIBRARY_PATH of slurmd: dropped", {NULL}, {"LD_LIBRARY_PATH=/x", NULL}, "LD_LIBRARY_PATH", NULL},
	{"WATTLE_NVML of the job: dropped", {"WATTLE_NVML=/x", NULL}, {NULL}, "WATTLE_NVML", NULL},
	{"WATTLE_ROCM_SMI of the job: dropped", {"WATTLE_ROCM_SMI=/x", NULL}, {NULL}, "WATTLE_ROCM_SMI", NULL},
	{"WATTLE_NVML of slurmd: dropped", {NULL}, {"WATTLE_NVML=/x", NULL}, "WATTLE_NVML", NULL},
	{"LD_AUDIT of the job: dropped", {"LD_AUDIT=/x", NULL}, {NULL}, "LD_AUDIT", NULL},
	{"LD_LIBRARY_PATH of the job: dropped", {"LD_LIBRARY_PATH=/x", NULL}, {NULL}, "LD_LIBRARY_PATH", NULL},
	{"PYTHONPATH of the job: dropped", {"PYTHONPATH=/x", NULL}, {NULL}, "PYTHONPATH", NULL},
	{"LOCPATH of the job: dropped", {"LOCPATH=/x", NULL}, {NULL}, "LOCPATH", NULL},
	{"OPENSSL_CONF of the job: dropped", {"OPENSSL_CONF=/x", NULL}, {NULL}, "OPENSSL_CONF", NULL},
	{"GCONV_PATH of the job: dropped", {"GCONV_PATH=/x", NULL}, {NULL}, "GCONV_PATH", NULL},
	{"WATTLE_SYSFS of both: that of slurmd", {"WATTLE_SYSFS=/job", NULL}, {"WATTLE_SYSFS=/site", NULL},
		"WATTLE_SYSFS", "/site"},
	{"WATTLE_SYSFS of the job alone: dropped", {"WATTLE_SYSFS=/job", NULL}, {NULL}, "WATTLE_SYSFS", NULL},
	{"WATTLE_PROCFS of the job alone: dropped", {"WATTLE_PROCFS=/job", NULL}, {NULL}, "WATTLE_PROCFS", NULL},
	{"WATTLE_STATE of the job alone: dropped", {"WATTLE_STATE=/job", NULL}, {NULL}, "WATTLE_STATE", NULL},
	{"WATTLE_HELPER of both: that of slurmd", {"WATTLE_HELPER=/job", NULL}, {"WATTLE_HELPER=/site", NULL},
		"WATTLE_HELPER", "/site"},
	{"SLURM_ variables: kept", {"SLURM_STEP_GPUS=0,1", NULL}, {NULL}, "SLURM_STEP_GPUS", "0,1"},
	{"a longer name than a listed one: dropped", {"HOMELESS=/x", NULL}, {NULL}, "HOMELESS", NULL},
	{"rank of a launcher: kept", {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4", NULL}, {NULL},
		"OMPI_COMM_WORLD_RANK", "3"},
	{"address of a torchrun launch: kept",
		{"TORCHELASTIC_RUN_ID=x", "RANK=5", "WORLD_SIZE=8", "MASTER_ADDR=a", "MASTER_PORT=1", NULL}, {NULL},
		"MASTER_ADDR", "a"},
	{"PATH: fixed", {"PATH=/home/me/bin", NULL}, {"PATH=/opt/bin", NULL}, "PATH",
		"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	{"locale by name: kept", {"LC_ALL=de_DE.UTF-8", NULL}, {NULL}, "LC_ALL", "de_DE.UTF-8"},
	{"locale by path: dropped", {"LC_ALL=../../home/me/x", NULL}, {NULL}, "LC_ALL", NULL},
	{"password file of a store: kept", {"PGPASSFILE=/home/me/pass", NULL}, {NULL}, "PGPASSFILE", "/home/me/pass"},
	{"key of a store, which can name a module: dropped", {"PGSSLKEY=engine:x", NULL}, {NULL}, "PGSSLKEY", NULL},
	{"service of a store, whose key can name a module: dropped", {"PGSERVICE=x", NULL}, {NULL}, "PGSERVICE", NULL},
	{"services of the job's user: none", {"PGSERVICEFILE=/home/me/services", NULL}, {NULL}, "PGSERVICEFILE",
		"/dev/null"},
};

static void check(void **state)
{
	const struct row *row = *state;
	char **environment = recorder_environment((char **)(uintptr_t)row->job, (char **)(uintptr_t)row->site);
	assert_non_null(environment);
	const char *value = environment_variable(row->name, environment);
	if (row->value == NULL)
		assert_null(value);
	else
		assert_string_equal(value, row->value);
	free(environment);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "environment");
}
