#include "sensor/gpu/nvml.h"

#include "base/util.h"

#include <stdio.h>

/* Relative error of the power of a module and of a GPU's memory, for which no accuracy is published: NVIDIA states 5 % for
 * the power of older boards. The gain of a GPU's own power sensor, and of the counter that integrates it, is a calibration
 * error stated separately (gpu_gain.h). */
static const double beside_power_error = 0.05;
// A 300 W limit does not prevent peaks of a few milliseconds above 300 W.
static const double peak_over_limit = 1.2;

static void get_text(int (*get)(nvml_device, char *, unsigned int), nvml_device handle, char *ret_text, size_t size)
{
	char text[NVML_TEXT_MAX] = "";
	if (get == NULL || get(handle, text, sizeof(text)) != NVML_SUCCESS)
		return;
	text[sizeof(text) - 1] = '\0';
	text_copy(ret_text, size, text);
}

// Returns 0, which selects the default of all GPUs, if the driver reports no limit.
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

static const struct {
	enum domain_kind kind;
	const char *note, *uuid_suffix;
} scopes[NVML_SCOPES] = {
	[NVML_SCOPE_GPU] = {DOMAIN_GPU, "", ""},
	[NVML_SCOPE_MODULE] = {DOMAIN_MODULE, "the whole module: CPU, GPU and memory; shown, not included in the total",
		"/module"},
	[NVML_SCOPE_MEMORY] = {DOMAIN_GPU_MEMORY, "", "/memory"},
};

static void name_beside(const struct nvml_gpu *gpu, enum nvml_scope scope, int index, struct domain *domain)
{
	if (scope == NVML_SCOPE_MODULE) {
		snprintf(domain->name, sizeof(domain->name), "module-%d", index);
		return;
	}
	snprintf(domain->name, sizeof(domain->name), "gpu-%d-memory", index);
	text_copy(domain->inside, sizeof(domain->inside), gpu->domain->name);
}

void nvml_gpu_describe_beside(struct nvml_gpu *gpu, enum nvml_scope scope, int index, struct domain *ret_domain)
{
	const struct nvml_fields *of = &gpu->energy.of[scope];
	struct domain *domain = ret_domain;
	*domain = (struct domain){.kind = scopes[scope].kind, .index = index, .readable = of->refusal == NVML_SUCCESS};
	name_beside(gpu, scope, index, domain);
	text_copy(domain->device, sizeof(domain->device), gpu->domain->device);
	if (gpu->domain->uuid[0] != '\0')
		snprintf(domain->uuid, sizeof(domain->uuid), "%.80s%s", gpu->domain->uuid, scopes[scope].uuid_suffix);
	text_copy(domain->note, sizeof(domain->note), scopes[scope].note);
	describe_energy(domain, of->energy_field != 0);
	domain->relative_error = of->energy_field != 0 ? 0 : beside_power_error;
	domain->used = gpu->domain->used && domain->readable;
	domain->unwanted = gpu->domain->unwanted;
	text_copy(domain->why, sizeof(domain->why), gpu->domain->why);
	if (domain->readable)
		return;
	struct nvml_failure failure = nvml_failure(of->refusal);
	text_copy(domain->why, sizeof(domain->why), failure.why);
	text_copy(domain->remedy, sizeof(domain->remedy), failure.remedy);
}

void nvml_gpu_explain_no_power(struct nvml_gpu *gpu, char *ret_why, size_t size, const char **ret_remedy)
{
	bool module_only = gpu->energy.scope == NVML_SCOPE_MODULE;
	if (module_only)
		snprintf(ret_why, size,
			"the driver reports no power for the GPU alone, only for %s, which includes the CPU",
			gpu->domain->inside);
	else
		snprintf(ret_why, size, "the driver reports neither energy nor power of this GPU");
	*ret_remedy = "update the NVIDIA driver; `nvidia-smi -q -d POWER` shows what it can read";
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
