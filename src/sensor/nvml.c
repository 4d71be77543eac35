#include "sensor/sensor.h"

#include "base/util.h"
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

static void init_domain(struct domain *domain, unsigned int index)
{
	*domain = (struct domain){
		.kind = DOMAIN_GPU,
		.index = (int)index,
		.provenance = PROVENANCE_DERIVED,
		.readable = true,
	};
	snprintf(domain->name, sizeof(domain->name), "gpu-%u", index);
}

static int make_room(struct nvml_state *nvml, size_t n)
{
	nvml->gpus = calloc_array(n, sizeof(*nvml->gpus));
	nvml->domains = calloc_array(n, sizeof(*nvml->domains));
	return nvml->gpus != NULL && nvml->domains != NULL ? 0 : -ENOMEM;
}

/* No GPU can be had at all. A machine without NVIDIA's driver is normal, so that is said only where everything is
 * described; a driver that is there and fails has a row in a run too. */
static int open_nothing(struct nvml_state *nvml, const struct sensor_options *options, bool absent, const char *why,
	const char *remedy, struct wattle_error *reterr)
{
	if (options->gpus != NULL)
		return error_set(reterr, -EINVAL, "--gpus %s: no NVIDIA GPU can be used: %s", options->gpus, why);
	if (absent && !options->describe_only)
		return 0;
	int r = make_room(nvml, 1);
	if (r < 0)
		return r;
	init_domain(&nvml->domains[0], 0);
	text_copy(nvml->domains[0].device, sizeof(nvml->domains[0].device), "NVIDIA GPU");
	set_unreadable(&nvml->domains[0], why, remedy);
	nvml->n = 1;
	return 0;
}

static int open_without_library(struct nvml_state *nvml, const struct wattle_env *env,
	const struct sensor_options *options, const struct wattle_error *cause, struct wattle_error *reterr)
{
	char why[sizeof(nvml->domains->why)];
	if (cause->code != -ENOENT)
		return open_nothing(nvml, options, false, cause->text, "install a newer NVIDIA driver", reterr);
	if (strstr(cause->text, "No such file") != NULL)
		snprintf(why, sizeof(why), "%s not found", nvml_library(env));
	else
		text_copy(why, sizeof(why), cause->text);
	return open_nothing(nvml, options, true, why,
		"install the NVIDIA driver (Debian: sudo apt install nvidia-driver); start a container with --gpus all",
		reterr);
}

static int open_without_driver(struct nvml_state *nvml, const struct sensor_options *options, int code,
	struct wattle_error *reterr)
{
	struct nvml_failure failure = nvml_failure(code);
	return open_nothing(nvml, options, code == NVML_DRIVER_NOT_LOADED, failure.why, failure.remedy, reterr);
}

static void find_gpu(struct nvml_state *nvml, unsigned int index)
{
	struct nvml_gpu *gpu = &nvml->gpus[index];
	struct domain *domain = &nvml->domains[index];
	init_domain(domain, index);
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

static int find_gpus(struct nvml_state *nvml)
{
	unsigned int count = 0;
	if (nvml->api.count(&count) != NVML_SUCCESS)
		count = 0;
	int r = make_room(nvml, count);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < count; i++)
		find_gpu(nvml, i);
	nvml->n = count;
	return 0;
}

// Keeps the GPUs that are wanted; the others only where everything is described.
static void keep_wanted(struct nvml_state *nvml, const struct sensor_options *options, const bool *wanted)
{
	const char *why = options->gpus != NULL ? "not in --gpus" : "hidden by CUDA_VISIBLE_DEVICES";
	size_t kept = 0;
	for (size_t i = 0; i < nvml->n; i++) {
		struct domain *domain = &nvml->domains[i];
		domain->used = wanted[i] && domain->readable;
		if (!wanted[i] && !options->describe_only)
			continue;
		if (!wanted[i] && domain->readable)
			text_copy(domain->why, sizeof(domain->why), why);
		nvml->gpus[kept] = nvml->gpus[i];
		nvml->domains[kept++] = *domain;
	}
	nvml->n = kept;
}

static int choose_gpus(struct nvml_state *nvml, const struct sensor_options *options, struct wattle_error *reterr)
{
	bool *wanted = calloc_array(nvml->n, sizeof(*wanted));
	if (wanted == NULL)
		return -ENOMEM;
	int r = nvml_pick(&nvml->api, nvml->gpus, nvml->domains, nvml->n, options, wanted, reterr);
	if (r == 0)
		keep_wanted(nvml, options, wanted);
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
		return open_without_library(nvml, env, options, &cause, reterr);
	int code = nvml->api.init();
	if (code != NVML_SUCCESS)
		return open_without_driver(nvml, options, code, reterr);
	nvml->api.initialised = true;
	int r = find_gpus(nvml);
	if (r == 0)
		r = choose_gpus(nvml, options, reterr);
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
