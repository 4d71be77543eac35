/* Shared by the exported functions: their codes, their wire structs, and two macros that keep each of them short. */
#pragma once

#include "fake.h"

enum {
	SUCCESS = 0,
	UNINITIALIZED = 1,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NO_PERMISSION = 4,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9,
	FUNCTION_NOT_FOUND = 13,
	GPU_IS_LOST = 15,
	VERSION_MISMATCH = 25,
};

struct wire_utilization {
	unsigned int gpu, memory;
};
struct wire_memory {
	unsigned long long total_bytes, free_bytes, used_bytes;
};
struct wire_memory_v2 {
	unsigned int version;
	unsigned long long total_bytes, reserved_bytes, free_bytes, used_bytes;
};
struct wire_power_value {
	unsigned int version;
	unsigned char scope;
	unsigned int limit_mw;
};
struct wire_field {
	unsigned int id, scope;
	long long timestamp_us, latency_us;
	int type, code;
	union {
		double d;
		unsigned int u;
		unsigned long long ull;
	} value;
};
struct wire_power_sample {
	unsigned long long timestamp_us;
	union {
		unsigned int u;
		unsigned long long ull;
	} value;
};
struct wire_attributes {
	unsigned int multiprocessors, copy_engines, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
	unsigned long long memory_mib;
};
struct wire_accounting {
	unsigned int gpu_percent, memory_percent;
	unsigned long long max_bytes, time_ms, start_us;
	unsigned int is_running, reserved[5];
};
struct wire_pci {
	char legacy[16];
	unsigned int domain, bus, device, id, subsystem;
	char address[32];
};
struct wire_sample {
	unsigned int pid;
	unsigned long long timestamp_us;
	unsigned int sm, memory, encoder, decoder;
};
_Static_assert(sizeof(struct wire_memory_v2) == 40 && sizeof(struct wire_power_value) == 12 &&
		sizeof(struct wire_sample) == 32 && sizeof(struct wire_field) == 40 &&
		sizeof(struct wire_power_sample) == 16 && sizeof(struct wire_attributes) == 40 &&
		sizeof(struct wire_accounting) == 56 && sizeof(struct wire_pci) == 68,
	"layouts of the real library");

// Declares and opens the definition of an exported function.
#define API(name, ...)                                                                                                 \
	__attribute__((visibility("default"))) int name(__VA_ARGS__);                                                  \
	int name(__VA_ARGS__)

// Counts the call, applies the errors of the file, and defines `view`; returns from the function on any of them.
#define ENTER(device, parts_too)                                                                                       \
	__attribute__((cleanup(fake_leave))) struct fake_view view;                                                    \
	int enter_code_ = fake_enter(__func__, device, parts_too, &view);                                              \
	if (enter_code_ != SUCCESS)                                                                                    \
	return enter_code_
#define GPU(device) ENTER(device, false)
#define GPU_OR_PART(device) ENTER(device, true)
