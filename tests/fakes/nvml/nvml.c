#include "fake.h"

#include "export.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The library has process-wide state, as the real one, so it is in file scope here. */
static struct {
	struct fake_config config;
	struct stat read_as; // the file as it was when it was read
	struct fake_logs logs;
	int64_t loaded_ns, wall_minus_monotonic_ns, frozen_ns;
	bool frozen;
	int references;
} library = {.logs = FAKE_NO_LOGS};

// As the real library, for any number of threads: one of them reads the files at a time.
static pthread_mutex_t files_mutex = PTHREAD_MUTEX_INITIALIZER;

// In a child: another thread of the parent may have held it. Taking it before each fork would wait for a thread that waits for a
// lock of the program's own, which the forking thread has.
static void renew_mutex(void)
{
	pthread_mutex_init(&files_mutex, NULL);
}

// A handle is the address of one of these: a GPU, or an instance of it.
static struct handle {
	unsigned int gpu;
	int instance; // -1: the whole GPU
} handles[GPUS_MAX][1 + MIG_MAX];

static int64_t clock_ns(clockid_t id)
{
	struct timespec now;
	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

__attribute__((constructor)) static void loaded(void)
{
	library.loaded_ns = clock_ns(CLOCK_MONOTONIC);
	library.wall_minus_monotonic_ns = clock_ns(CLOCK_REALTIME) - library.loaded_ns;
	pthread_atfork(NULL, NULL, renew_mutex);
}

// For tests, by dlsym: from now on the time is t_ns since the epoch, until the next call; negative: real time again.
__attribute__((visibility("default"))) void fake_nvml_freeze(int64_t t_ns);
void fake_nvml_freeze(int64_t t_ns)
{
	library.frozen = t_ns >= 0;
	library.frozen_ns = t_ns;
}

int64_t fake_now_ns(void)
{
	if (library.frozen)
		return library.config.epoch_ns + library.frozen_ns;
	return clock_ns(CLOCK_MONOTONIC);
}

// For tests too: the driver's timestamp of a time after the epoch.
int64_t fake_wall_us(int64_t t_ns)
{
	return (library.config.epoch_ns + t_ns + library.wall_minus_monotonic_ns) / 1000;
}

// Reads the file again when it was changed, so that a test can change the cards while the client runs.
static bool refresh(void)
{
	const char *path = getenv("WATTLE_FAKE_NVML");
	struct stat now;
	if (path == NULL || stat(path, &now) < 0)
		return false;
	if (strcmp(program_invocation_short_name, "wattled") == 0) {
		fake_log_keep(path, &library.logs.of[FAKE_LIMITS]);
		fake_log_keep(path, &library.logs.of[FAKE_CLOCKS]);
	}
	fake_logs_read(path, &library.logs);
	if (strcmp(path, library.config.path) == 0 && now.st_ino == library.read_as.st_ino &&
		now.st_size == library.read_as.st_size && now.st_mtim.tv_sec == library.read_as.st_mtim.tv_sec &&
		now.st_mtim.tv_nsec == library.read_as.st_mtim.tv_nsec)
		return true;
	library.read_as = now;
	return fake_config_read(path, library.loaded_ns, &library.config);
}

// "nvmlX" in the file means nvmlX and nvmlX_v2 and so on; "nvmlX_v2" only that one.
static bool names(const char *name, const char *function)
{
	size_t length = strlen(name);
	return strncmp(name, function, length) == 0 && (function[length] == '\0' || function[length] == '_');
}

static int find_error(const struct fake_error *errors, unsigned int n, const char *function, int64_t t_ns)
{
	for (unsigned int i = 0; i < n; i++) {
		if (names(errors[i].function, function) && fake_within(&errors[i].when, t_ns / 1000000))
			return errors[i].code;
	}
	return SUCCESS;
}

int fake_energy_error(const struct fake_view *view)
{
	return find_error(view->gpu->errors, view->gpu->n_errors, "nvmlDeviceGetTotalEnergyConsumption", view->t_ns);
}

static int enter_library(const char *function, int64_t *ret_t_ns)
{
	fake_count(function);
	const char *path = getenv("WATTLE_FAKE_NVML");
	pthread_mutex_lock(&files_mutex);
	int lock_fd = path != NULL ? fake_logs_lock(path, LOCK_SH) : -1;
	bool is_loaded = refresh();
	int64_t t_ns = fake_now_ns() - library.config.epoch_ns;
	fake_logs_unlock(lock_fd);
	pthread_mutex_unlock(&files_mutex);
	if (!is_loaded)
		return DRIVER_NOT_LOADED;
	*ret_t_ns = t_ns > 0 ? t_ns : 0;
	return find_error(library.config.errors, library.config.n_errors, function, *ret_t_ns);
}

// Relative to the cards.
static bool has_lost_file(const struct fake_gpu *gpu)
{
	char path[800];
	if (gpu->lost_when_file[0] == '\0')
		return false;
	const char *slash = strrchr(library.config.path, '/');
	int folder = gpu->lost_when_file[0] == '/' || slash == NULL ? 0 : (int)(slash + 1 - library.config.path);
	snprintf(path, sizeof(path), "%.*s%s", folder, library.config.path, gpu->lost_when_file);
	return access(path, F_OK) == 0;
}

static int enter_gpu(const char *function, unsigned int index, struct fake_view *ret_view)
{
	struct fake_view view = {.config = &library.config, .logs = &library.logs, .index = index, .instance = -1};
	int code = enter_library(function, &view.t_ns);
	if (code != SUCCESS)
		return code;
	if (library.references == 0)
		return UNINITIALIZED;
	if (index >= library.config.n_gpus)
		return INVALID_ARGUMENT;
	view.gpu = &library.config.gpus[index];
	*ret_view = view;
	if (fake_within(&view.gpu->lost, view.t_ns / 1000000) || has_lost_file(view.gpu))
		return GPU_IS_LOST;
	return find_error(view.gpu->errors, view.gpu->n_errors, function, view.t_ns);
}

static const struct handle *find_handle(const void *device)
{
	const struct handle *handle = device;
	return handle >= &handles[0][0] && handle <= &handles[GPUS_MAX - 1][MIG_MAX] ? handle : NULL;
}

int fake_enter(const char *function, const void *device, bool parts_too, struct fake_view *ret_view)
{
	const struct handle *handle = find_handle(device);
	fake_begin();
	if (handle == NULL) {
		fake_count(function);
		return INVALID_ARGUMENT;
	}
	int code = enter_gpu(function, handle->gpu, ret_view);
	ret_view->instance = handle->instance;
	return code == SUCCESS && handle->instance >= 0 && !parts_too ? NOT_SUPPORTED : code;
}

void fake_leave(struct fake_view *view)
{
	(void)view;
	fake_end();
}

const void *fake_part(unsigned int gpu, unsigned int instance)
{
	struct handle *handle = &handles[gpu][1 + instance];
	*handle = (struct handle){.gpu = gpu, .instance = (int)instance};
	return handle;
}

const void *fake_whole(unsigned int gpu)
{
	handles[gpu][0] = (struct handle){.gpu = gpu, .instance = -1};
	return &handles[gpu][0];
}

static void *take_signals(void *unused)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_UNBLOCK, &all, NULL);
	for (;;)
		pause();
	return unused;
}

static void start_thread(void)
{
	static bool is_started;
	pthread_t thread;
	if (library.config.takes_signals && !is_started)
		is_started = pthread_create(&thread, NULL, take_signals, NULL) == 0;
}

static int init(const char *function)
{
	int64_t t_ns;
	int code = enter_library(function, &t_ns);
	if (code != SUCCESS)
		return code;
	library.references++;
	start_thread();
	return code;
}

API(nvmlInit, void)
{
	return init(__func__);
}

API(nvmlShutdown, void)
{
	fake_count(__func__);
	if (library.references == 0)
		return UNINITIALIZED;
	if (--library.references == 0)
		fake_write_counts();
	return SUCCESS;
}

static int count(const char *function, unsigned int *ret_count)
{
	int64_t t_ns;
	int code = enter_library(function, &t_ns);
	if (code != SUCCESS)
		return code;
	if (library.references == 0)
		return UNINITIALIZED;
	*ret_count = library.config.n_gpus;
	return SUCCESS;
}

API(nvmlDeviceGetCount, unsigned int *ret_count)
{
	return count(__func__, ret_count);
}

static int by_index(const char *function, unsigned int index, const void **ret_device)
{
	struct fake_view view;
	int code = enter_gpu(function, index, &view);
	if (code != SUCCESS)
		return code;
	*ret_device = fake_whole(index);
	return SUCCESS;
}

API(nvmlDeviceGetHandleByIndex, unsigned int index, const void **ret_device)
{
	return by_index(__func__, index, ret_device);
}

// A whole GPU or an instance, by its complete name.
API(nvmlDeviceGetHandleByUUID, const char *uuid, const void **ret_device)
{
	int64_t t_ns;
	int code = enter_library(__func__, &t_ns);
	if (code != SUCCESS)
		return code;
	if (library.references == 0)
		return UNINITIALIZED;
	for (unsigned int i = 0; i < library.config.n_gpus; i++) {
		const struct fake_gpu *gpu = &library.config.gpus[i];
		if (strcmp(gpu->uuid, uuid) == 0)
			return by_index(__func__, i, ret_device);
		for (unsigned int part = 0; part < gpu->n_mig; part++) {
			if (strcmp(gpu->mig[part].uuid, uuid) != 0)
				continue;
			*ret_device = fake_part(i, part);
			return SUCCESS;
		}
	}
	return NOT_FOUND;
}

static int copy_text(const char *text, char *out, unsigned int size)
{
	if (strlen(text) >= size)
		return INSUFFICIENT_SIZE;
	memcpy(out, text, strlen(text) + 1);
	return SUCCESS;
}

static const struct fake_mig *part_of(const struct fake_view *view)
{
	return view->instance >= 0 ? &view->gpu->mig[view->instance] : NULL;
}

API(nvmlDeviceGetName, const void *device, char *out, unsigned int size)
{
	GPU_OR_PART(device);
	return copy_text(part_of(&view) != NULL ? part_of(&view)->name : view.gpu->name, out, size);
}

API(nvmlDeviceGetUUID, const void *device, char *out, unsigned int size)
{
	GPU_OR_PART(device);
	return copy_text(part_of(&view) != NULL ? part_of(&view)->uuid : view.gpu->uuid, out, size);
}

API(nvmlDeviceGetMinorNumber, const void *device, unsigned int *ret_minor)
{
	GPU(device);
	*ret_minor = view.gpu->minor;
	return SUCCESS;
}

API(nvmlSystemGetDriverVersion, char *out, unsigned int size)
{
	int64_t t_ns;
	int code = enter_library(__func__, &t_ns);
	return code == SUCCESS ? copy_text(library.config.driver, out, size) : code;
}

API(nvmlDeviceGetTemperature, const void *device, int sensor, unsigned int *ret_c)
{
	GPU(device);
	*ret_c = view.gpu->temperature_c;
	return sensor == 0 ? SUCCESS : INVALID_ARGUMENT;
}

API(nvmlDeviceGetUtilizationRates, const void *device, struct wire_utilization *ret)
{
	GPU(device);
	*ret = (struct wire_utilization){view.gpu->gpu_percent, view.gpu->memory_percent};
	return SUCCESS;
}

// Before R510 the driver's own part was hidden in a smaller total; since then it counts as used.
API(nvmlDeviceGetMemoryInfo, const void *device, struct wire_memory *ret)
{
	GPU_OR_PART(device);
	if (part_of(&view) != NULL) {
		*ret = (struct wire_memory){part_of(&view)->memory_bytes, part_of(&view)->memory_bytes, 0};
		return SUCCESS;
	}
	uint64_t total = view.gpu->memory_total_bytes, used = view.gpu->memory_used_bytes;
	if (FAKE_GENERATION < 510)
		total -= view.gpu->memory_reserved_bytes;
	else
		used += view.gpu->memory_reserved_bytes;
	*ret = (struct wire_memory){total, total - used, used};
	return SUCCESS;
}

#if FAKE_GENERATION >= 470

API(nvmlInit_v2, void)
{
	return init(__func__);
}

API(nvmlDeviceGetCount_v2, unsigned int *ret_count)
{
	return count(__func__, ret_count);
}

API(nvmlDeviceGetHandleByIndex_v2, unsigned int index, const void **ret_device)
{
	return by_index(__func__, index, ret_device);
}

API(nvmlDeviceGetMemoryInfo_v2, const void *device, struct wire_memory_v2 *ret)
{
	GPU_OR_PART(device);
	const struct fake_gpu *gpu = view.gpu;
	if (ret->version != (sizeof(*ret) | 2u << 24))
		return FUNCTION_NOT_FOUND;
	if (part_of(&view) != NULL) {
		*ret = (struct wire_memory_v2){ret->version, part_of(&view)->memory_bytes, 0,
			part_of(&view)->memory_bytes, 0};
		return SUCCESS;
	}
	ret->total_bytes = gpu->memory_total_bytes;
	ret->reserved_bytes = gpu->memory_reserved_bytes;
	ret->used_bytes = gpu->memory_used_bytes;
	ret->free_bytes = ret->total_bytes - ret->reserved_bytes - ret->used_bytes;
	return SUCCESS;
}

API(nvmlDeviceGetPciInfo_v3, const void *device, struct wire_pci *ret)
{
	GPU(device);
	*ret = (struct wire_pci){.id = 0x233010de};
	(void)sscanf(view.gpu->pci, "%x:%x:%x", &ret->domain, &ret->bus, &ret->device);
	snprintf(ret->address, sizeof(ret->address), "%s", view.gpu->pci);
	return SUCCESS;
}

API(nvmlDeviceGetNumGpuCores, const void *device, unsigned int *ret_cores)
{
	GPU(device);
	*ret_cores = view.gpu->cores;
	return SUCCESS;
}

API(nvmlDeviceGetConfComputeMemSizeInfo, const void *device, void *ret)
{
	GPU(device);
	return ret != NULL ? NOT_SUPPORTED : INVALID_ARGUMENT;
}

#endif
