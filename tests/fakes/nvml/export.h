/* What the exported functions share: their codes, their wire structs, and two macros that keep each of them short. */
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
struct wire_sample {
	unsigned int pid;
	unsigned long long timestamp_us;
	unsigned int sm, memory, encoder, decoder;
};
_Static_assert(sizeof(struct wire_memory_v2) == 40 && sizeof(struct wire_power_value) == 12 &&
		sizeof(struct wire_sample) == 32,
	"layouts of the real library");

// Declares and opens the definition of an exported function.
#define API(name, ...)                                                                                                 \
	__attribute__((visibility("default"))) int name(__VA_ARGS__);                                                  \
	int name(__VA_ARGS__)

// Counts the call, applies the errors of the file, and gives `view`; returns from the function on any of them.
#define GPU(device)                                                                                                    \
	struct fake_view view;                                                                                         \
	int enter_code_ = fake_enter(__func__, device, &view);                                                         \
	if (enter_code_ != SUCCESS)                                                                                    \
	return enter_code_
