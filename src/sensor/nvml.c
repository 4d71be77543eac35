#include "sensor/sensor.h"

#include "base/util.h"
#include "sensor/gpu_roster.h"
#include "sensor/nvml_api.h"
#include "sensor/nvml_gpu.h"
#include "sensor/nvml_pick.h"

#include <errno.h>
#include <stdio.h>

// Lists of processes and samples are short; the room for them is not asked for again after open, so it is ample.
enum { RECORDS_MIN = 4096, SAMPLES_MIN = 1024, SAMPLES_MAX = 65536 };

struct nvml_state {
	struct nvml_api api;
	struct nvml_gpu *gpus;  // owned; gpus[i] belongs to domains[i]
	struct domain *domains; // owned
	size_t n;
	struct nvml_scratch scratch;
};

static void set_unreadable(struct domain *domain, const char *why, const char *remedy)
{
	domain->readable = domain->used = false;
	text_copy(domain->why, sizeof(domain->why), why);
	text_copy(domain->remedy, sizeof(domain->remedy), remedy);
}

static void init_domain(struct domain *domain, int index)
{
	*domain = (struct domain){
		.kind = DOMAIN_GPU,
		.index = index,
		.provenance = PROVENANCE_DERIVED,
		.readable = true,
	};
	snprintf(domain->name, sizeof(domain->name), "gpu-%d", index);
}

static int make_room(struct nvml_state *nvml, size_t n)
{
	nvml->gpus = calloc_array(n, sizeof(*nvml->gpus));
	nvml->domains = calloc_array(n, sizeof(*nvml->domains));
	return nvml->gpus != NULL && nvml->domains != NULL ? 0 : -ENOMEM;
}

/* No GPU can be had at all. A machine without NVIDIA's driver is normal, so that is said only where everything is
 * described; a driver that is there and fails has a row in a run too. How many GPUs stand behind it nobody knows, so
 * the row counts as none. */
static int open_nothing(struct nvml_state *nvml, const struct sensor_options *options, bool absent, const char *why,
	const char *remedy)
{
	gpu_roster_explain(options->roster, "NVIDIA", why);
	if (absent && !options->describe_only)
		return 0;
	int r = make_room(nvml, 1);
	if (r < 0)
		return r;
	struct domain *domain = &nvml->domains[0];
	init_domain(domain, gpu_roster_next(options->roster));
	domain->index = -1;
	text_copy(domain->device, sizeof(domain->device), "NVIDIA GPU");
	set_unreadable(domain, why, remedy);
	nvml->n = 1;
	return 0;
}

static int open_without_library(struct nvml_state *nvml, const struct wattle_env *env,
	const struct sensor_options *options, const struct wattle_error *cause)
{
	char why[sizeof(nvml->domains->why)];
	if (cause->code != -ENOENT)
		return open_nothing(nvml, options, false, cause->text, "install a newer NVIDIA driver");
	if (strstr(cause->text, "No such file") != NULL)
		snprintf(why, sizeof(why), "%s not found", nvml_library(env));
	else
		text_copy(why, sizeof(why), cause->text);
	return open_nothing(nvml, options, true, why,
		"install the NVIDIA driver (Debian: sudo apt install nvidia-driver); start a container with --gpus all");
}

static int open_without_driver(struct nvml_state *nvml, const struct sensor_options *options, int code)
{
	struct nvml_failure failure = nvml_failure(code);
	return open_nothing(nvml, options, code == NVML_DRIVER_NOT_LOADED, failure.why, failure.remedy);
}

static void find_gpu(struct nvml_state *nvml, unsigned int index, int first)
{
	struct nvml_gpu *gpu = &nvml->gpus[index];
	struct domain *domain = &nvml->domains[index];
	init_domain(domain, first + (int)index);
	int code = nvml->api.by_index(index, &gpu->handle);
	if (code == NVML_SUCCESS)
		nvml_gpu_describe(&nvml->api, gpu, domain);
	else
		gpu->handle = NULL;
	if (gpu->lost)
		code = NVML_GPU_IS_LOST;
	if (code == NVML_SUCCESS)
		return;
	struct nvml_failure failure = nvml_failure(code);
	set_unreadable(domain, failure.why, failure.remedy);
}

static int find_gpus(struct nvml_state *nvml, int first)
{
	unsigned int count = 0;
	if (nvml->api.count(&count) != NVML_SUCCESS)
		count = 0;
	int r = make_room(nvml, count);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < count; i++)
		find_gpu(nvml, i, first);
	nvml->n = count;
	return 0;
}

// GPUs that are not wanted stay in the list: `wattle sensors` and the number of the machine's GPUs count them.
static void mark_unwanted(struct nvml_state *nvml, const struct sensor_options *options, const bool *wanted)
{
	const char *why = options->gpus != NULL ? "not in --gpus" : "hidden by CUDA_VISIBLE_DEVICES";
	for (size_t i = 0; i < nvml->n; i++) {
		struct domain *domain = &nvml->domains[i];
		domain->unwanted = !wanted[i];
		domain->used = wanted[i] && domain->readable;
		if (domain->unwanted && domain->readable)
			text_copy(domain->why, sizeof(domain->why), why);
	}
}

static int choose_gpus(struct nvml_state *nvml, const struct sensor_options *options)
{
	bool *wanted = calloc_array(nvml->n, sizeof(*wanted));
	if (wanted == NULL)
		return -ENOMEM;
	int r = nvml_pick(&nvml->api, nvml->gpus, nvml->domains, nvml->n, options, wanted);
	if (r == 0)
		mark_unwanted(nvml, options, wanted);
	free(wanted);
	return r;
}

static int make_scratch(struct nvml_state *nvml)
{
	struct nvml_scratch *scratch = &nvml->scratch;
	size_t n_samples = SAMPLES_MIN;
	for (size_t i = 0; i < nvml->n; i++) {
		size_t asked = nvml->domains[i].used ? nvml_gpu_sample_room(&nvml->api, &nvml->gpus[i]) : 0;
		if (asked * 2 > n_samples) // the list may grow
			n_samples = asked < SAMPLES_MAX / 2 ? asked * 2 : SAMPLES_MAX;
	}
	scratch->n_samples = n_samples;
	scratch->n_records = RECORDS_MIN;
	scratch->processes.capacity = RECORDS_MIN;
	scratch->samples = calloc_array(n_samples, sizeof(*scratch->samples));
	scratch->records = calloc_array(RECORDS_MIN, sizeof(struct nvml_process_r535));
	scratch->processes.processes = calloc_array(RECORDS_MIN, sizeof(*scratch->processes.processes));
	if (scratch->samples == NULL || scratch->records == NULL || scratch->processes.processes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < nvml->n; i++) {
		if (nvml->domains[i].used)
			nvml_gpu_prime(&nvml->api, &nvml->gpus[i], scratch);
	}
	return 0;
}

static int nvml_open(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	struct nvml_state *nvml = state;
	struct wattle_error cause = {0};
	if (options->gpu_brand != NULL && strcmp(options->gpu_brand, "nvidia") != 0)
		return 0;
	if (nvml_api_open(&nvml->api, env, &cause) < 0)
		return open_without_library(nvml, env, options, &cause);
	int code = nvml->api.init();
	if (code != NVML_SUCCESS)
		return open_without_driver(nvml, options, code);
	nvml->api.initialised = true;
	int r = find_gpus(nvml, gpu_roster_next(options->roster));
	if (r == 0)
		r = choose_gpus(nvml, options);
	return r < 0 ? r : make_scratch(nvml);
}

static struct domain *nvml_domains(void *state, size_t *ret_count)
{
	struct nvml_state *nvml = state;
	*ret_count = nvml->n;
	return nvml->domains;
}

static void nvml_read(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	struct nvml_state *nvml = state;
	for (size_t i = 0; i < nvml->n; i++) {
		if (nvml->domains[i].used)
			nvml_gpu_read(&nvml->api, &nvml->gpus[i], &nvml->scratch, context, rows[i]);
	}
}

static void nvml_close(void *state)
{
	struct nvml_state *nvml = state;
	nvml_api_close(&nvml->api);
	free(nvml->gpus);
	free(nvml->domains);
	free(nvml->scratch.samples);
	free(nvml->scratch.records);
	free(nvml->scratch.processes.processes);
	*nvml = (struct nvml_state){0};
}

const struct sensor_ops sensor_nvml = {
	.name = "nvml",
	.state_size = sizeof(struct nvml_state),
	.open = nvml_open,
	.domains = nvml_domains,
	.read = nvml_read,
	.close = nvml_close,
};
