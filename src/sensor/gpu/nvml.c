#include "sensor/gpu/nvml.h"

#include "base/util.h"
#include "sensor/gpu/nvml_api.h"
#include "sensor/gpu/pid_match.h"
#include "sensor/gpu_roster.h"
#include "sensor/sensor.h"

#include <errno.h>
#include <stdio.h>

static int list_instances(const struct nvml_mig *mig, struct gpu_candidate *candidate)
{
	const char **uuids = calloc_array(mig->n, sizeof(*uuids));
	if (uuids == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < mig->n; i++) {
		if (mig->instances[i].uuid[0] != '\0')
			uuids[candidate->n_mig_uuids++] = mig->instances[i].uuid;
	}
	candidate->mig_uuids = uuids;
	return 0;
}

// If the speed of one GPU is unknown, the speeds can't order the GPUs.
static void drop_partial_speeds(struct gpu_candidate *candidates, size_t n)
{
	bool all = true;
	for (size_t i = 0; i < n; i++)
		all = all && (candidates[i].speed > 0 || !candidates[i].usable);
	for (size_t i = 0; i < n && !all; i++)
		candidates[i].speed = 0;
}

static int describe(struct gpu_candidate *candidates, const struct nvml_gpu *gpus, size_t n)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		candidates[i].usable = gpus[i].domain->readable;
		if (!candidates[i].usable)
			continue;
		candidates[i].speed = nvml_gpu_speed(&gpus[i]);
		r = list_instances(&gpus[i].mig, &candidates[i]);
	}
	drop_partial_speeds(candidates, n);
	return r;
}

static const char *visible_to_target(const struct sensor_options *options, const struct gpu_candidate *candidates,
	size_t n, bool *ret_wanted)
{
	gpu_select_visible(options->cuda_visible_devices, options->cuda_device_order, candidates, n, ret_wanted);
	return "hidden by CUDA_VISIBLE_DEVICES";
}

/* Adds the n GPUs to options->roster and sets `unwanted`, `used` and `why` of their domains. GPUs that are not wanted stay
 * listed for `wattle sensors` and the machine's GPU count. Returns -ENOMEM on failure. */
static int pick(const struct nvml_gpu *gpus, struct domain *domains, size_t n, const struct sensor_options *options)
{
	struct gpu_candidate *candidates = gpu_choice_candidates(domains, n);
	int r = candidates != NULL ? describe(candidates, gpus, n) : -ENOMEM;
	for (size_t i = 0; i < n; i++)
		domains[i].used = domains[i].readable;
	if (r == 0)
		r = gpu_choice_resolve(domains, candidates, n, visible_to_target, options);
	for (size_t i = 0; candidates != NULL && i < n; i++)
		free((void *)(uintptr_t)candidates[i].mig_uuids);
	free(candidates);
	return r;
}

/* Laptops: while all GPUs sleep, nvmlInit would wake them, so the library is loaded but not initialised. The domains then
 * come from the PCI bus, and their energy is integrated from power, because it is unknown whether a counter exists. The
 * library is initialised at the first tick at which a GPU is awake. That tick takes as long as nvmlInit. */
struct nvml_state {
	const struct wattle_env *env; // borrowed
	struct nvml_api api;
	struct nvml_bus bus;
	bool waits_for_waking;
	bool list_users;
	struct nvml_gpu *gpus; // owned
	size_t n_gpus;
	struct domain *
		domains; // owned: those of the GPUs in order, then modules and memories, then MIG instances
	size_t n_domains;
	struct nvml_scratch scratch;
	struct pid_match match;
};

static const char asleep[] = "suspended (runtime power management): not read, to avoid waking it";

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

// Reserves domains for each GPU, its module, its memory and its instances: domains must not move once other modules refer to
// them.
static int make_room(struct nvml_state *nvml, size_t n_gpus)
{
	nvml->gpus = calloc_array(n_gpus, sizeof(*nvml->gpus));
	nvml->domains = calloc_array(n_gpus, (NVML_SCOPES + NVML_INSTANCES_MAX) * sizeof(*nvml->domains));
	return nvml->gpus != NULL && nvml->domains != NULL ? 0 : -ENOMEM;
}

/* No GPU is available. A machine without NVIDIA's driver is normal, so it is reported only where everything is described and
 * such a GPU may exist. A driver that is present but fails has a row in a run too. The number of GPUs behind it is unknown,
 * so the row counts as no GPU. */
static int open_nothing(struct nvml_state *nvml, const struct sensor_options *options, bool absent, const char *why,
	const char *remedy)
{
	gpu_roster_explain(options->roster, "NVIDIA", why);
	if (absent && (!options->describe_only || nvml_bus_has_none(&nvml->bus)))
		return 0;
	int r = make_room(nvml, 1);
	if (r < 0)
		return r;
	struct domain *domain = &nvml->domains[0];
	init_domain(domain, gpu_roster_next(options->roster));
	domain->index = -1;
	text_copy(domain->device, sizeof(domain->device), "NVIDIA GPU");
	set_unreadable(domain, why, remedy);
	nvml->n_domains = 1;
	return 0;
}

static int open_without_library(struct nvml_state *nvml, const struct wattle_env *env,
	const struct sensor_options *options, const struct wattle_error *cause)
{
	char why[sizeof(nvml->domains->why)];
	const char *remedy = nvml_library_failure(env, cause, why, sizeof(why));
	return open_nothing(nvml, options, cause->code == -ENOENT, why, remedy);
}

static int open_without_driver(struct nvml_state *nvml, const struct sensor_options *options, int code)
{
	struct nvml_failure failure = nvml_failure(code);
	return open_nothing(nvml, options, code == NVML_DRIVER_NOT_LOADED, failure.why, failure.remedy);
}

// Initialises gpus[index] and assigns its domain.
static struct nvml_gpu *init_gpu(struct nvml_state *nvml, size_t index, int first)
{
	struct nvml_gpu *gpu = &nvml->gpus[index];
	*gpu = (struct nvml_gpu){
		.board = {.api = &nvml->api, .env = nvml->env},
		.domain = &nvml->domains[index],
		.minor = UINT32_MAX,
		.on_bus = -1,
		.users = {.wanted = nvml->list_users},
	};
	init_domain(gpu->domain, first + (int)index);
	return gpu;
}

/* ---- GPUs of the driver ---- */

static int find_on_bus(const struct nvml_state *nvml, nvml_device handle)
{
	struct nvml_pci pci = {0};
	if (nvml->api.pci == NULL || nvml->api.pci(handle, &pci) != NVML_SUCCESS)
		return -1;
	return nvml_bus_find(&nvml->bus, &pci);
}

static void find_gpu(struct nvml_state *nvml, unsigned int index, int first)
{
	struct nvml_gpu *gpu = init_gpu(nvml, index, first);
	int code = nvml->api.by_index(index, &gpu->board.handle);
	if (code == NVML_SUCCESS) {
		gpu->on_bus = find_on_bus(nvml, gpu->board.handle);
		nvml_gpu_describe(gpu, false);
	} else {
		gpu->board.handle = NULL;
	}
	if (gpu->board.lost)
		code = NVML_GPU_IS_LOST;
	if (code == NVML_SUCCESS)
		return;
	if (gpu->domain->device[0] == '\0')
		snprintf(gpu->domain->device, sizeof(gpu->domain->device), "NVIDIA GPU %d", gpu->domain->index);
	struct nvml_failure failure = nvml_failure(code);
	set_unreadable(gpu->domain, failure.why, failure.remedy);
}

static int find_gpus(struct nvml_state *nvml, unsigned int count, int first)
{
	int r = make_room(nvml, count);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < count; i++)
		find_gpu(nvml, i, first);
	nvml->n_gpus = nvml->n_domains = count;
	return 0;
}

/* Modules have the numbers of their CPU sockets, as in the kernel's meter of a module (hwmon_acpi.c). If /sys lacks the
 * socket, the module has the number of the GPU. */
static int module_of(const struct nvml_state *nvml, const struct nvml_gpu *gpu)
{
	int socket = gpu->on_bus >= 0 ? nvml_bus_numa_node(&nvml->bus, nvml->env, (size_t)gpu->on_bus) : -1;
	return socket >= 0 ? socket : gpu->domain->index;
}

static bool has_domain(const struct nvml_state *nvml, enum domain_kind kind, int index)
{
	for (size_t i = 0; i < nvml->n_domains; i++)
		if (nvml->domains[i].kind == kind && nvml->domains[i].index == index)
			return true;
	return false;
}

static void add_module(struct nvml_state *nvml, struct nvml_gpu *gpu)
{
	int index = module_of(nvml, gpu);
	snprintf(gpu->domain->inside, sizeof(gpu->domain->inside), "module-%d", index);
	if (has_domain(nvml, DOMAIN_MODULE, index)) // several GPUs of one module share its meter
		return;
	gpu->beside[NVML_SCOPE_MODULE] = &nvml->domains[nvml->n_domains++];
	nvml_gpu_describe_beside(gpu, NVML_SCOPE_MODULE, index, gpu->beside[NVML_SCOPE_MODULE]);
}

static bool exists(const struct nvml_fields *of)
{
	return nvml_fields_any(of) || of->refusal != NVML_SUCCESS;
}

// Adds the domains of the module and of the memory, for used GPUs or for the others.
static void add_beside(struct nvml_state *nvml, bool used)
{
	for (size_t i = 0; i < nvml->n_gpus; i++) {
		struct nvml_gpu *gpu = &nvml->gpus[i];
		if (gpu->board.handle == NULL || gpu->domain->used != used)
			continue;
		if (exists(&gpu->energy.of[NVML_SCOPE_MODULE]))
			add_module(nvml, gpu);
		if (!exists(&gpu->energy.of[NVML_SCOPE_MEMORY]))
			continue;
		gpu->beside[NVML_SCOPE_MEMORY] = &nvml->domains[nvml->n_domains++];
		nvml_gpu_describe_beside(gpu, NVML_SCOPE_MEMORY, gpu->domain->index, gpu->beside[NVML_SCOPE_MEMORY]);
	}
}

/* Handles GPUs without any energy or power reading: a run still samples utilization and memory and has a note; `wattle
 * sensors` lists the GPU as unreadable. */
static void explain_no_power(struct nvml_state *nvml, bool describe_only)
{
	for (size_t i = 0; i < nvml->n_gpus; i++) {
		struct nvml_gpu *gpu = &nvml->gpus[i];
		char why[sizeof(gpu->domain->why)];
		const char *remedy;
		if (gpu->board.handle == NULL || gpu->energy.has_source)
			continue;
		nvml_gpu_explain_no_power(gpu, why, sizeof(why), &remedy);
		if (describe_only)
			set_unreadable(gpu->domain, why, remedy);
		else
			text_copy(gpu->domain->note, sizeof(gpu->domain->note), why);
	}
}

static void add_instance(struct nvml_state *nvml, const struct nvml_gpu *gpu, size_t index)
{
	const struct nvml_instance *instance = &gpu->mig.instances[index];
	struct domain *domain = &nvml->domains[nvml->n_domains++];
	init_domain(domain, -1);
	domain->readable = false;
	domain->unwanted = gpu->domain->unwanted;
	domain->memory_total_bytes = instance->memory_bytes;
	snprintf(domain->name, sizeof(domain->name), "gpu-%d-mig-%u", gpu->domain->index, (unsigned int)index);
	text_copy(domain->inside, sizeof(domain->inside), gpu->domain->name);
	text_copy(domain->device, sizeof(domain->device), instance->name);
	text_copy(domain->uuid, sizeof(domain->uuid), instance->uuid);
	if (instance->slices > 0)
		snprintf(domain->why, sizeof(domain->why),
			"part of %s: its energy is divided by SM slices, %u of %u here", gpu->domain->name,
			instance->slices, gpu->mig.total_slices);
	else
		snprintf(domain->why, sizeof(domain->why),
			"part of %s: its energy is divided by memory, %.0f %% here", gpu->domain->name,
			instance->share * 100);
}

static void add_instances(struct nvml_state *nvml)
{
	for (size_t i = 0; i < nvml->n_gpus; i++)
		for (size_t k = 0; k < nvml->gpus[i].mig.n; k++)
			add_instance(nvml, &nvml->gpus[i], k);
}

static int make_scratch(struct nvml_state *nvml)
{
	size_t n_use = 0, n_power = 0;
	for (size_t i = 0; i < nvml->n_gpus; i++) {
		if (!nvml->domains[i].used)
			continue;
		size_t use = nvml_use_buffer_size(&nvml->gpus[i].board);
		size_t power = nvml_energy_buffer_size(&nvml->gpus[i].board);
		n_use = use > n_use ? use : n_use;
		n_power = power > n_power ? power : n_power;
	}
	return nvml_scratch_open(&nvml->scratch, n_use, n_power);
}

static int open_gpus(struct nvml_state *nvml, const struct sensor_options *options)
{
	int code = nvml->api.init();
	if (code != NVML_SUCCESS)
		return open_without_driver(nvml, options, code);
	nvml->api.initialised = true;
	unsigned int count = 0;
	code = nvml->api.count(&count);
	if (code != NVML_SUCCESS)
		return open_without_driver(nvml, options, code);
	int r = find_gpus(nvml, count, gpu_roster_next(options->roster));
	if (r == 0)
		r = pick(nvml->gpus, nvml->domains, nvml->n_gpus, options);
	if (r == 0)
		r = make_scratch(nvml);
	if (r < 0)
		return r;
	add_beside(nvml, true); // first: a module is read through its first GPU, which must be a used one
	add_beside(nvml, false);
	explain_no_power(nvml, options->describe_only);
	if (options->describe_only)
		add_instances(nvml);
	for (size_t i = 0; i < nvml->n_gpus; i++)
		if (nvml->domains[i].used)
			nvml_gpu_prime(&nvml->gpus[i], &nvml->scratch);
	return 0;
}

/* ---- all asleep ---- */

static void describe_asleep(struct nvml_state *nvml, size_t index, int first, bool describe_only)
{
	struct domain *domain = init_gpu(nvml, index, first)->domain;
	nvml->gpus[index].on_bus = (int)index;
	snprintf(domain->device, sizeof(domain->device), "NVIDIA GPU %s", nvml->bus.gpus[index].address);
	text_copy(domain->note, sizeof(domain->note), asleep);
	if (describe_only)
		set_unreadable(domain, asleep, "start a program that uses the GPU, then run wattle again");
}

static int open_asleep(struct nvml_state *nvml, const struct sensor_options *options)
{
	int first = gpu_roster_next(options->roster);
	int r = make_room(nvml, nvml->bus.n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < nvml->bus.n; i++)
		describe_asleep(nvml, i, first, options->describe_only);
	nvml->n_gpus = nvml->n_domains = nvml->bus.n;
	nvml->waits_for_waking = true;
	r = pick(nvml->gpus, nvml->domains, nvml->n_gpus, options);
	return r < 0 ? r : nvml_scratch_open(&nvml->scratch, 0, 0);
}

static struct nvml_gpu *find_asleep(struct nvml_state *nvml, nvml_device handle)
{
	int on_bus = find_on_bus(nvml, handle);
	return on_bus >= 0 && (size_t)on_bus < nvml->n_gpus ? &nvml->gpus[on_bus] : NULL;
}

// Called when the first GPU was woken by another program. A driver that fails now is not tried again.
static void wake_up(struct nvml_state *nvml)
{
	unsigned int count = 0;
	nvml_device handle;
	nvml->waits_for_waking = false;
	nvml->api.initialised = nvml->api.init() == NVML_SUCCESS;
	if (!nvml->api.initialised || nvml->api.count(&count) != NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < count; i++) {
		struct nvml_gpu *gpu = nvml->api.by_index(i, &handle) == NVML_SUCCESS ? find_asleep(nvml, handle)
										      : NULL;
		if (gpu == NULL || !gpu->domain->used)
			continue;
		gpu->board.handle = handle;
		nvml_gpu_describe(gpu, true);
		nvml_gpu_prime(gpu, &nvml->scratch);
	}
}

/* ---- the sensor ---- */

static int nvml_open(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	struct nvml_state *nvml = state;
	struct wattle_error cause = {0};
	nvml->env = env;
	nvml->list_users = options->list_users;
	if (options->gpu_brand != NULL && strcmp(options->gpu_brand, "nvidia") != 0)
		return 0;
	int r = nvml_bus_open(&nvml->bus, env);
	if (r == 0)
		r = pid_match_open(&nvml->match, env);
	if (r < 0)
		return r;
	if (nvml_api_open(&nvml->api, env, &cause) < 0)
		return open_without_library(nvml, env, options, &cause);
	return nvml_bus_all_asleep(&nvml->bus) ? open_asleep(nvml, options) : open_gpus(nvml, options);
}

static struct domain *nvml_domains(void *state, size_t *ret_count)
{
	struct nvml_state *nvml = state;
	*ret_count = nvml->n_domains;
	return nvml->domains;
}

// Returns whether the GPU sleeps, and updates its note when that changes.
static bool sleeps(struct nvml_state *nvml, struct nvml_gpu *gpu)
{
	char *note = gpu->domain->note;
	bool slept = strcmp(note, asleep) == 0;
	bool is_asleep = gpu->on_bus >= 0 && nvml_bus_is_asleep(&nvml->bus, (size_t)gpu->on_bus);
	if (is_asleep != slept)
		text_copy(note, sizeof(gpu->domain->note), is_asleep ? asleep : "no longer suspended");
	return is_asleep;
}

// Sets of_scopes to the rows wanted for a GPU; returns false if none. The GPU's own row is always writable.
static bool choose_rows(const struct nvml_state *nvml, size_t i, int64_t (*rows)[DEVICE_COUNT],
	int64_t *of_scopes[NVML_SCOPES])
{
	const struct nvml_gpu *gpu = &nvml->gpus[i];
	bool any = gpu->domain->used;
	of_scopes[NVML_SCOPE_GPU] = rows[i];
	for (unsigned int scope = NVML_SCOPE_MODULE; scope < NVML_SCOPES; scope++) {
		const struct domain *beside = gpu->beside[scope];
		bool is_wanted = beside != NULL && beside->used;
		of_scopes[scope] = is_wanted ? rows[beside - nvml->domains] : NULL;
		any = any || is_wanted;
	}
	return any;
}

static void nvml_read(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	struct nvml_state *nvml = state;
	if (nvml->waits_for_waking && !context->energy_only && !nvml_bus_all_asleep(&nvml->bus))
		wake_up(nvml);
	if (!context->energy_only)
		pid_match_update(&nvml->match, context);
	for (size_t i = 0; i < nvml->n_gpus && !nvml->waits_for_waking; i++) {
		struct nvml_gpu *gpu = &nvml->gpus[i];
		int64_t *of_scopes[NVML_SCOPES];
		if (!choose_rows(nvml, i, rows, of_scopes) || sleeps(nvml, gpu))
			continue;
		nvml_gpu_read(gpu, &nvml->scratch, &nvml->match, context, of_scopes);
	}
}

static const struct device_user *nvml_users(void *state, size_t domain, size_t *ret_count)
{
	struct nvml_state *nvml = state;
	if (domain >= nvml->n_gpus || !nvml->gpus[domain].users.known)
		return NULL;
	*ret_count = nvml->gpus[domain].users.n;
	return nvml->gpus[domain].users.users;
}

static void nvml_close(void *state)
{
	struct nvml_state *nvml = state;
	nvml_api_close(&nvml->api);
	nvml_bus_close(&nvml->bus);
	pid_match_close(&nvml->match);
	nvml_scratch_close(&nvml->scratch);
	free(nvml->gpus);
	free(nvml->domains);
	*nvml = (struct nvml_state){0};
}

const struct sensor_ops sensor_nvml = {
	.name = "nvml",
	.state_size = sizeof(struct nvml_state),
	.open = nvml_open,
	.domains = nvml_domains,
	.read = nvml_read,
	.users = nvml_users,
	.close = nvml_close,
};
