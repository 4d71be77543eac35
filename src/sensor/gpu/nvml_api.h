/* The part of NVIDIA's management library that wattle calls, with our own declarations: no nvml.h is needed at build time.
 *
 * NVML_SYMBOLS is the single list from which the function table and the symbol names are generated. Only what is needed to
 * find a GPU is REQUIRED; with an old driver a metric is missing, not the GPU. A name is listed as the fallback of another
 * only if both take the same arguments with the same layout. Where the layout differs (process lists, memory) each layout has
 * its own entry, so that the caller knows which one it has.
 *
 * All layouts are those of LP64 Linux; the assertions below check their sizes. */
#pragma once

#include "base/dl.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nvml_device_opaque *nvml_device;

// The nvmlReturn_t codes that wattle distinguishes.
enum {
	NVML_SUCCESS = 0,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_INSUFFICIENT_POWER = 8,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_IRQ_ISSUE = 11,
	NVML_FUNCTION_NOT_FOUND = 13,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_OPERATING_SYSTEM = 17,
	NVML_VERSION_MISMATCH = 18, // the library does not match the kernel module, e.g. after an upgrade
	NVML_VERSION_ARGUMENT = 25, // a struct version unknown to this driver
	NVML_DEPRECATED = 26,
	NVML_GPU_NOT_FOUND = 28,
};

enum { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2, NVML_TEXT_MAX = 96 };

// Field numbers of nvmlDeviceGetFieldValues, and the scope of a value. ENERGY_OF is the energy field that takes a scope.
enum {
	NVML_FIELD_MEMORY_TEMPERATURE = 82, // °C
	NVML_FIELD_ENERGY = 83,
	NVML_FIELD_POWER_AVERAGE = 185,
	NVML_FIELD_POWER_INSTANT = 186,
	NVML_FIELD_ENERGY_OF = 191
};
enum nvml_scope { NVML_SCOPE_GPU, NVML_SCOPE_MODULE, NVML_SCOPE_MEMORY, NVML_SCOPES };

enum nvml_value_type {
	NVML_VALUE_DOUBLE,
	NVML_VALUE_UINT,
	NVML_VALUE_ULONG,
	NVML_VALUE_U64,
	NVML_VALUE_I64,
	NVML_VALUE_INT,
	NVML_VALUE_U16
};

enum { NVML_SAMPLES_POWER = 0 }; // for nvmlDeviceGetSamples

// Value that NVML writes for an unavailable number.
#define NVML_NOT_AVAILABLE UINT64_MAX

struct nvml_utilization {
	uint32_t gpu_percent, memory_percent;
};

struct nvml_memory_v1 {
	uint64_t total_bytes, free_bytes, used_bytes;
};

struct nvml_memory_v2 {
	uint32_t version; // in: NVML_MEMORY_V2_VERSION
	uint64_t total_bytes, reserved_bytes, free_bytes, used_bytes;
};

// The version includes the struct size; a plain 2 is answered with FUNCTION_NOT_FOUND.
#define NVML_MEMORY_V2_VERSION ((uint32_t)sizeof(struct nvml_memory_v2) | 2u << 24)

struct nvml_process_v1 {
	uint32_t pid;
	uint64_t used_bytes;
};

struct nvml_process_v2 {
	uint32_t pid;
	uint64_t used_bytes;
	uint32_t gpu_instance, compute_instance; // UINT32_MAX without MIG
};

// Layout that drivers 535.43 to before 535.98 use under the name _v3 (CUDA 12.2.0 and 12.2.1 headers).
struct nvml_process_r535 {
	struct nvml_process_v2 v2;
	uint64_t protected_bytes;
};

struct nvml_process_sample {
	uint32_t pid;
	uint64_t timestamp_us;
	uint32_t sm_percent, memory_percent, encoder_percent, decoder_percent;
};

union nvml_value { // the accompanying enum nvml_value_type selects the member
	double real;
	uint32_t u32;
	int32_t i32;
	uint64_t u64;
	int64_t i64;
	uint16_t u16;
};

struct nvml_field {
	uint32_t id, scope;
	int64_t timestamp_us; // since the Unix epoch; NVIDIA does not document whether of the query or of the value
	int64_t latency_us;
	int32_t value_type;
	int32_t code; // per value: the call succeeds if any value does
	union nvml_value value;
};

struct nvml_sample {
	uint64_t timestamp_us;
	union nvml_value value;
};

struct nvml_attributes { // of a MIG instance
	uint32_t multiprocessors, copy_engines, decoders, encoders, jpeg, ofa;
	uint32_t gpu_slices, compute_slices;
	uint64_t memory_mib;
};

struct nvml_account {
	uint32_t gpu_percent, memory_percent;
	uint64_t max_bytes; // NVML_NOT_AVAILABLE: not counted
	uint64_t active_ms, start_us;
	uint32_t is_running, reserved[5];
};

struct nvml_pci {
	char legacy_address[16];
	uint32_t domain, bus, device, pci_id, subsystem_id;
	char address[32]; // "00000000:01:00.0"
};

struct nvml_power_value {
	uint32_t version; // in: NVML_POWER_VALUE_VERSION
	uint8_t scope;    // enum nvml_scope
	uint32_t power_mw;
};
#define NVML_POWER_VALUE_VERSION ((uint32_t)sizeof(struct nvml_power_value) | 2u << 24)

static_assert(sizeof(struct nvml_power_value) == 12, "nvmlPowerValue_v2_t");
static_assert(sizeof(struct nvml_field) == 40, "nvmlFieldValue_t");
static_assert(sizeof(struct nvml_sample) == 16, "nvmlSample_t");
static_assert(sizeof(struct nvml_attributes) == 40, "nvmlDeviceAttributes_t");
static_assert(sizeof(struct nvml_account) == 56, "nvmlAccountingStats_t");
static_assert(sizeof(struct nvml_pci) == 68, "nvmlPciInfo_t");
static_assert(sizeof(struct nvml_utilization) == 8, "nvmlUtilization_t");
static_assert(sizeof(struct nvml_memory_v1) == 24, "nvmlMemory_t");
static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");
static_assert(NVML_MEMORY_V2_VERSION == 0x02000028, "nvmlMemory_v2");
static_assert(sizeof(struct nvml_process_v1) == 16, "nvmlProcessInfo_v1_t");
static_assert(sizeof(struct nvml_process_v2) == 24, "nvmlProcessInfo_v2_t");
static_assert(sizeof(struct nvml_process_r535) == 32, "nvmlProcessInfo_t of CUDA 12.2.0");
static_assert(sizeof(struct nvml_process_sample) == 32, "nvmlProcessUtilizationSample_t");

/* SYMBOL(member, need, (arguments), newest name, older names with the same arguments …)
 * The process lists take (device, count, records). `count` holds the capacity on input and the number written or required on
 * output. */
// clang-format off
#define NVML_SYMBOLS(SYMBOL) \
	SYMBOL(init, DL_REQUIRED, (void), "nvmlInit_v2", "nvmlInit") \
	SYMBOL(shutdown, DL_REQUIRED, (void), "nvmlShutdown") \
	SYMBOL(count, DL_REQUIRED, (unsigned int *), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount") \
	SYMBOL(by_index, DL_REQUIRED, (unsigned int, nvml_device *), \
		"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex") \
	SYMBOL(name, DL_OPTIONAL, (nvml_device, char *, unsigned int), "nvmlDeviceGetName") \
	SYMBOL(uuid, DL_OPTIONAL, (nvml_device, char *, unsigned int), "nvmlDeviceGetUUID") \
	SYMBOL(energy_mj, DL_OPTIONAL, (nvml_device, uint64_t *), "nvmlDeviceGetTotalEnergyConsumption") \
	SYMBOL(power_mw, DL_OPTIONAL, (nvml_device, unsigned int *), "nvmlDeviceGetPowerUsage") \
	SYMBOL(enforced_limit_mw, DL_OPTIONAL, (nvml_device, unsigned int *), "nvmlDeviceGetEnforcedPowerLimit") \
	SYMBOL(limit_range_mw, DL_OPTIONAL, (nvml_device, unsigned int *, unsigned int *), \
		"nvmlDeviceGetPowerManagementLimitConstraints") \
	SYMBOL(limit_mw, DL_OPTIONAL, (nvml_device, unsigned int *), "nvmlDeviceGetPowerManagementLimit") \
	SYMBOL(default_limit_mw, DL_OPTIONAL, (nvml_device, unsigned int *), \
		"nvmlDeviceGetPowerManagementDefaultLimit") \
	SYMBOL(set_limit_mw, DL_OPTIONAL, (nvml_device, unsigned int), "nvmlDeviceSetPowerManagementLimit") \
	SYMBOL(set_limit_v2, DL_OPTIONAL, (nvml_device, struct nvml_power_value *), \
		"nvmlDeviceSetPowerManagementLimit_v2") \
	SYMBOL(persistence, DL_OPTIONAL, (nvml_device, int *), "nvmlDeviceGetPersistenceMode") \
	SYMBOL(memory_clocks_mhz, DL_OPTIONAL, (nvml_device, unsigned int *, unsigned int *), \
		"nvmlDeviceGetSupportedMemoryClocks") \
	SYMBOL(graphics_clocks_mhz, DL_OPTIONAL, (nvml_device, unsigned int, unsigned int *, unsigned int *), \
		"nvmlDeviceGetSupportedGraphicsClocks") \
	SYMBOL(lock_clocks_mhz, DL_OPTIONAL, (nvml_device, unsigned int, unsigned int), \
		"nvmlDeviceSetGpuLockedClocks") \
	SYMBOL(unlock_clocks, DL_OPTIONAL, (nvml_device), "nvmlDeviceResetGpuLockedClocks") \
	SYMBOL(utilization, DL_OPTIONAL, (nvml_device, struct nvml_utilization *), "nvmlDeviceGetUtilizationRates") \
	SYMBOL(memory_v2, DL_OPTIONAL, (nvml_device, struct nvml_memory_v2 *), "nvmlDeviceGetMemoryInfo_v2") \
	SYMBOL(memory_v1, DL_OPTIONAL, (nvml_device, struct nvml_memory_v1 *), "nvmlDeviceGetMemoryInfo") \
	SYMBOL(temperature_c, DL_OPTIONAL, (nvml_device, int, unsigned int *), "nvmlDeviceGetTemperature") \
	SYMBOL(clock_mhz, DL_OPTIONAL, (nvml_device, int, unsigned int *), "nvmlDeviceGetClockInfo") \
	SYMBOL(throttle_bits, DL_OPTIONAL, (nvml_device, uint64_t *), \
		"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons") \
	SYMBOL(compute_v2, DL_OPTIONAL, (nvml_device, unsigned int *, void *), \
		"nvmlDeviceGetComputeRunningProcesses_v2") \
	SYMBOL(compute_v3, DL_OPTIONAL, (nvml_device, unsigned int *, void *), \
		"nvmlDeviceGetComputeRunningProcesses_v3") \
	SYMBOL(compute_v1, DL_OPTIONAL, (nvml_device, unsigned int *, void *), \
		"nvmlDeviceGetComputeRunningProcesses") \
	SYMBOL(graphics_v2, DL_OPTIONAL, (nvml_device, unsigned int *, void *), \
		"nvmlDeviceGetGraphicsRunningProcesses_v2") \
	SYMBOL(graphics_v3, DL_OPTIONAL, (nvml_device, unsigned int *, void *), \
		"nvmlDeviceGetGraphicsRunningProcesses_v3") \
	SYMBOL(graphics_v1, DL_OPTIONAL, (nvml_device, unsigned int *, void *), \
		"nvmlDeviceGetGraphicsRunningProcesses") \
	SYMBOL(mps_v2, DL_OPTIONAL, (nvml_device, unsigned int *, void *), \
		"nvmlDeviceGetMPSComputeRunningProcesses_v2") \
	SYMBOL(mps_v3, DL_OPTIONAL, (nvml_device, unsigned int *, void *), \
		"nvmlDeviceGetMPSComputeRunningProcesses_v3") \
	SYMBOL(mps_v1, DL_OPTIONAL, (nvml_device, unsigned int *, void *), \
		"nvmlDeviceGetMPSComputeRunningProcesses") \
	SYMBOL(sm_samples, DL_OPTIONAL, (nvml_device, struct nvml_process_sample *, unsigned int *, uint64_t), \
		"nvmlDeviceGetProcessUtilization") \
	SYMBOL(max_clock_mhz, DL_OPTIONAL, (nvml_device, int, unsigned int *), "nvmlDeviceGetMaxClockInfo") \
	SYMBOL(cores, DL_OPTIONAL, (nvml_device, unsigned int *), "nvmlDeviceGetNumGpuCores") \
	SYMBOL(mig_max, DL_OPTIONAL, (nvml_device, unsigned int *), "nvmlDeviceGetMaxMigDeviceCount") \
	SYMBOL(mig_by_index, DL_OPTIONAL, (nvml_device, unsigned int, nvml_device *), \
		"nvmlDeviceGetMigDeviceHandleByIndex") \
	SYMBOL(mig_mode, DL_OPTIONAL, (nvml_device, unsigned int *, unsigned int *), "nvmlDeviceGetMigMode") \
	SYMBOL(attributes, DL_OPTIONAL, (nvml_device, struct nvml_attributes *), "nvmlDeviceGetAttributes_v2") \
	SYMBOL(gpu_instance, DL_OPTIONAL, (nvml_device, unsigned int *), "nvmlDeviceGetGpuInstanceId") \
	SYMBOL(compute_instance, DL_OPTIONAL, (nvml_device, unsigned int *), "nvmlDeviceGetComputeInstanceId") \
	SYMBOL(fields, DL_OPTIONAL, (nvml_device, int, struct nvml_field *), "nvmlDeviceGetFieldValues") \
	SYMBOL(samples, DL_OPTIONAL, (nvml_device, int, uint64_t, int *, unsigned int *, struct nvml_sample *), \
		"nvmlDeviceGetSamples") \
	SYMBOL(accounting_mode, DL_OPTIONAL, (nvml_device, int *), "nvmlDeviceGetAccountingMode") \
	SYMBOL(accounting_pids, DL_OPTIONAL, (nvml_device, unsigned int *, unsigned int *), \
		"nvmlDeviceGetAccountingPids") \
	SYMBOL(account, DL_OPTIONAL, (nvml_device, unsigned int, struct nvml_account *), \
		"nvmlDeviceGetAccountingStats") \
	SYMBOL(pci, DL_OPTIONAL, (nvml_device, struct nvml_pci *), "nvmlDeviceGetPciInfo_v3") \
	SYMBOL(minor, DL_OPTIONAL, (nvml_device, unsigned int *), "nvmlDeviceGetMinorNumber") \
	SYMBOL(marks_r535, DL_OPTIONAL, (void), "nvmlDeviceGetConfComputeMemSizeInfo") \
	SYMBOL(marks_past_r535, DL_OPTIONAL, (void), "nvmlDeviceGetRunningProcessDetailList")
// clang-format on
// The last two are never called: their presence selects the record layout of _v3 (see nvml_api.c).

enum nvml_process_kind { NVML_COMPUTE, NVML_GRAPHICS, NVML_MPS, NVML_PROCESS_KINDS };

// The process list call of the loaded library.
struct nvml_process_call {
	int (*list)(nvml_device, unsigned int *, void *); // NULL: not available
	size_t record_size;
};

struct nvml_api {
#define NVML_MEMBER(member, need, arguments, ...) int(*member) arguments;
	NVML_SYMBOLS(NVML_MEMBER)
#undef NVML_MEMBER
	struct nvml_process_call processes[NVML_PROCESS_KINDS];
	void *handle; // owned
	bool initialised;
};

struct nvml_failure {
	const char *why, *remedy; // static strings
};

// Loads env->nvml or libnvidia-ml.so.1 and fills the table. The caller calls nvmlInit. Errors are those of dl_open.
int nvml_api_open(struct nvml_api *api, const struct wattle_env *env, struct wattle_error *reterr);
void nvml_api_close(struct nvml_api *api);              // shuts down what was initialised; accepts a zeroed struct
const char *nvml_library(const struct wattle_env *env); // file name that nvml_api_open loads
struct nvml_failure nvml_failure(int code);             // describes the code for messages
// Describes why nvml_api_open failed, for messages; returns the remedy.
const char *nvml_library_failure(const struct wattle_env *env, const struct wattle_error *cause, char *ret_why,
	size_t size);

/* NVIDIA GPUs on the kernel's PCI bus, and their sleep states. Any NVML query wakes a laptop's GPU, which then draws watts.
 * Its runtime status in /sys is therefore read first, which wakes nothing.
 *
 * A GPU that /sys does not show (a container, another tree) counts as awake. */

enum { NVML_BUS_MAX = 64 };

struct nvml_bus_gpu {
	char address[24]; // "0000:01:00.0"
	struct file_kept status;
};

struct nvml_bus {
	struct nvml_bus_gpu *gpus; // owned; by PCI address, the order of NVML
	size_t n;
	bool is_listed; // /sys lists the machine's graphics devices: a GPU that is not listed does not exist
};

int nvml_bus_open(struct nvml_bus *bus, const struct wattle_env *env); // -ENOMEM
void nvml_bus_close(struct nvml_bus *bus);
bool nvml_bus_is_asleep(struct nvml_bus *bus, size_t i);
// NUMA node of the CPU to which the GPU is attached; -1: unknown, or there is only one.
int nvml_bus_numa_node(const struct nvml_bus *bus, const struct wattle_env *env, size_t i);
// True only if /sys lists the GPUs and none is from NVIDIA.
bool nvml_bus_has_none(const struct nvml_bus *bus);
// True only if there are GPUs and each of them sleeps.
bool nvml_bus_all_asleep(struct nvml_bus *bus);
// Index of the GPU with this NVML address; -1: none.
int nvml_bus_find(const struct nvml_bus *bus, const struct nvml_pci *pci);
