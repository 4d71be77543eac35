#include "spank/spank.h"

#include "base/util.h"
#include "rows.h"

static const struct row {
	const char *teaches, *environment, *becomes; // "NAME=VALUE NAME=VALUE"
} rows[] = {
	{"node's GPU numbers in place of the job's", "A=1 CUDA_VISIBLE_DEVICES=0,1 SLURM_STEP_GPUS=2,3",
		"A=1 CUDA_VISIBLE_DEVICES=2,3 SLURM_STEP_GPUS=2,3 CUDA_DEVICE_ORDER=PCI_BUS_ID"},
	{"node's order of GPUs", "CUDA_DEVICE_ORDER=FASTEST_FIRST CUDA_VISIBLE_DEVICES=0 SLURM_STEP_GPUS=2",
		"CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=2 SLURM_STEP_GPUS=2"},
	{"batch script: the job's variable is used", "CUDA_VISIBLE_DEVICES=0 SLURM_JOB_GPUS=7",
		"CUDA_VISIBLE_DEVICES=7 SLURM_JOB_GPUS=7 CUDA_DEVICE_ORDER=PCI_BUS_ID"},
	{"task's own GPU: one of the step's", "CUDA_VISIBLE_DEVICES=0 SLURM_STEP_GPUS=4,5,6",
		"CUDA_VISIBLE_DEVICES=4,5,6 SLURM_STEP_GPUS=4,5,6 CUDA_DEVICE_ORDER=PCI_BUS_ID"},
	{"UUID: unchanged", "CUDA_VISIBLE_DEVICES=GPU-1 SLURM_STEP_GPUS=2",
		"CUDA_VISIBLE_DEVICES=GPU-1 SLURM_STEP_GPUS=2"},
	{"empty variable: no GPUs", "CUDA_VISIBLE_DEVICES= SLURM_STEP_GPUS=2",
		"CUDA_VISIBLE_DEVICES= SLURM_STEP_GPUS=2"},
	{"Slurm's value for no GPUs", "CUDA_VISIBLE_DEVICES=NoDevFiles SLURM_JOB_ID=1",
		"CUDA_VISIBLE_DEVICES=NoDevFiles SLURM_JOB_ID=1"},
	{"no GPUs allocated by Slurm", "CUDA_VISIBLE_DEVICES=1 SLURM_JOB_ID=1",
		"CUDA_VISIBLE_DEVICES=1 SLURM_JOB_ID=1"},
	{"ROCm: numbers count within the visible ones",
		"ROCR_VISIBLE_DEVICES=0,1 CUDA_VISIBLE_DEVICES=0,1 SLURM_STEP_GPUS=6,7",
		"ROCR_VISIBLE_DEVICES=6,7 CUDA_VISIBLE_DEVICES=6,7 SLURM_STEP_GPUS=6,7 HIP_VISIBLE_DEVICES=0,1 "
		"CUDA_DEVICE_ORDER=PCI_BUS_ID"},
	{"HIP alone", "HIP_VISIBLE_DEVICES=0 SLURM_STEP_GPUS=3", "HIP_VISIBLE_DEVICES=3 SLURM_STEP_GPUS=3"},
	{"variable with a longer name: ignored", "XCUDA_VISIBLE_DEVICES=0 CUDA_VISIBLE_DEVICES_X=0 SLURM_STEP_GPUS=3",
		"XCUDA_VISIBLE_DEVICES=0 CUDA_VISIBLE_DEVICES_X=0 SLURM_STEP_GPUS=3"},
};

enum { VARIABLES = 16 };

static void check(void **state)
{
	const struct row *row = *state;
	char text[256], joined[512] = "", *rest = text, *environment[VARIABLES] = {NULL}, *given[VARIABLES] = {NULL};
	size_t n = 0;
	text_copy(text, sizeof(text), row->environment);
	while (rest != NULL) {
		environment[n] = given[n] = strsep(&rest, " ");
		n++;
	}
	visible_of_node(environment);
	for (size_t i = 0; environment[i] != NULL; i++) {
		strcat(strcat(joined, i > 0 ? " " : ""), environment[i]);
		if (environment[i] != given[i])
			free(environment[i]);
	}
	assert_string_equal(joined, row->becomes);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "visible");
}
