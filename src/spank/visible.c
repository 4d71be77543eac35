#include "spank/spank.h"

#include "base/util.h"

#include <stdio.h>

enum { LIST_SIZE = 1024 };

static bool is_list_of_numbers(const char *text)
{
	return text != NULL && text[0] != '\0' && text[strspn(text, "0123456789,")] == '\0';
}

static void set(char **environment, const char *name, const char *value)
{
	char **at = environment_find(name, environment), *text;
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return;
	if (*at == NULL)
		at[1] = NULL;
	*at = text;
}

// "0,1,2" for a list of three
static void count_up(const char *list, char *out, size_t size)
{
	size_t n = 1, at = 0;
	for (; *list != '\0'; list++)
		n += *list == ',';
	out[0] = '\0';
	for (size_t i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%zu", i > 0 ? "," : "", i);
}

/* ROCm applies two filters: ROCR_VISIBLE_DEVICES, and within its result HIP_VISIBLE_DEVICES, or CUDA_VISIBLE_DEVICES if
 * that is not set. So if ROCR_VISIBLE_DEVICES is present, it alone gets the node's numbers, and all GPUs in it are made
 * visible. */
static void rewrite_rocm(char **environment, const char *gpus)
{
	char all[LIST_SIZE];
	const char *hip = environment_variable("HIP_VISIBLE_DEVICES", environment);
	if (!is_list_of_numbers(environment_variable("ROCR_VISIBLE_DEVICES", environment))) {
		if (is_list_of_numbers(hip))
			set(environment, "HIP_VISIBLE_DEVICES", gpus);
		return;
	}
	set(environment, "ROCR_VISIBLE_DEVICES", gpus);
	count_up(gpus, all, sizeof(all));
	set(environment, "HIP_VISIBLE_DEVICES", all);
}

void visible_of_node(char **environment)
{
	const char *gpus = environment_variable("SLURM_STEP_GPUS", environment);
	if (gpus == NULL)
		gpus = environment_variable("SLURM_JOB_GPUS", environment);
	if (!is_list_of_numbers(gpus) || strlen(gpus) >= LIST_SIZE / 2)
		return;
	rewrite_rocm(environment, gpus);
	if (!is_list_of_numbers(environment_variable("CUDA_VISIBLE_DEVICES", environment)))
		return;
	set(environment, "CUDA_VISIBLE_DEVICES", gpus);
	set(environment, "CUDA_DEVICE_ORDER",
		"PCI_BUS_ID"); // the node's order, whatever the program uses
}
