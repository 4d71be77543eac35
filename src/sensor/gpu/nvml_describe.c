#include "sensor/gpu/nvml_gpu.h"

#include "base/util.h"
#include "sensor/gpu/nvml_memory.h"

#include <stdio.h>

/* The gain of a GPU's power sensor, and of the counter that integrates it, is a calibration error and stated separately
 * (gpu_gain.h). This is for a module's, of which nothing is published. NVIDIA states 5 % for power of older boards. */
static const double module_power_error = 0.05;
// A limit of 300 W does not keep peaks of some milliseconds below 300 W.
static const double peak_over_limit = 1.2;

static void get_text(int (*get)(nvml_device, char *, unsigned int), nvml_device handle, char *ret_text, size_t size)
{
	char text[NVML_TEXT_MAX] = "";
	if (get == NULL || get(handle, text, sizeof(text)) != NVML_SUCCESS)
		return;
	text[sizeof(text) - 1] = '\0';
	text_copy(ret_text, size, text);
}

// 0, for the default of all GPUs, where the driver does not say.
static double get_max_power_w(const struct nvml_board *board)
{
	unsigned int min_mw, max_mw;
	if (board->api->limit_range_mw == NULL ||
		board->api->limit_range_mw(board->handle, &min_mw, &max_mw) != NVML_SUCCESS)
		return 0;
	return max_mw / 1000.0 * peak_over_limit;
}

static void describe_energy(struct domain *domain, bool counts)
{
	domain->has_energy = counts;
	domain->provenance = counts ? PROVENANCE_MEASURED : PROVENANCE_DERIVED;
	domain->resolution_uj = counts ? 1000 : 0;
}

void nvml_gpu_describe(struct nvml_gpu *gpu, bool power_only)
{
	struct nvml_board *board = &gpu->board;
	struct domain *domain = gpu->domain;
	struct nvml_memory memory;
	unsigned int minor;
	get_text(board->api->name, board->handle, domain->device, sizeof(domain->device));
	get_text(board->api->uuid, board->handle, domain->uuid, sizeof(domain->uuid));
	gpu->minor = UINT32_MAX;
	if (board->api->minor != NULL && board->api->minor(board->handle, &minor) == NVML_SUCCESS)
		gpu->minor = minor;
	nvml_energy_open(&gpu->energy, board, power_only);
	describe_energy(domain, gpu->energy.counts && gpu->energy.scope == NVML_SCOPE_GPU);
	domain->max_power_w = get_max_power_w(board);
	if (nvml_memory_read(board, &memory) == NVML_SUCCESS && memory.total_bytes <= INT64_MAX)
		domain->memory_total_bytes = memory.total_bytes;
	nvml_mig_open(&gpu->mig, board, domain->memory_total_bytes);
	nvml_accounts_open(&gpu->accounts, board);
}

void nvml_gpu_describe_module(struct nvml_gpu *gpu)
{
	struct domain *module = gpu->module;
	*module = (struct domain){.kind = DOMAIN_MODULE, .index = gpu->domain->index, .readable = true};
	snprintf(module->name, sizeof(module->name), "module-%d", gpu->domain->index);
	text_copy(module->device, sizeof(module->device), gpu->domain->device);
	text_copy(module->note, sizeof(module->note),
		"the driver tells power of the whole module only: CPU, GPU and memory; shown, not added to the total");
	describe_energy(module, gpu->energy.counts);
	module->relative_error = gpu->energy.counts ? 0 : module_power_error;
	module->used = gpu->domain->used;
	module->unwanted = gpu->domain->unwanted;
	text_copy(module->why, sizeof(module->why), gpu->domain->why);
	text_copy(gpu->domain->inside, sizeof(gpu->domain->inside), module->name);
	snprintf(gpu->domain->note, sizeof(gpu->domain->note),
		"the driver tells no power of the GPU alone, only that of %s, which has the CPU in it", module->name);
}

double nvml_gpu_speed(const struct nvml_gpu *gpu)
{
	unsigned int cores, clock_mhz;
	const struct nvml_api *api = gpu->board.api;
	nvml_device handle = gpu->board.handle;
	if (handle == NULL || api->cores == NULL || api->max_clock_mhz == NULL)
		return 0;
	if (api->cores(handle, &cores) != NVML_SUCCESS ||
		api->max_clock_mhz(handle, NVML_CLOCK_SM, &clock_mhz) != NVML_SUCCESS)
		return 0;
	return (double)cores * clock_mhz;
}

void nvml_gpu_prime(struct nvml_gpu *gpu, const struct nvml_scratch *scratch)
{
	nvml_use_prime(&gpu->use, &gpu->board, &scratch->use);
	struct nvml_spacing spacing = nvml_energy_prime(&gpu->energy, &gpu->board, &scratch->power);
	if (spacing.median_ns == 0)
		return;
	gpu->domain->update_period_ns = spacing.median_ns;
	gpu->domain->update_jitter_ns = spacing.jitter_ns;
}
