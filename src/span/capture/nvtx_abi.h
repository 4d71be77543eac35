/* Binary interface between a program with NVTX (the header-only version 3, and the compatible libnvToolsExt) and an
 * injection library, as far as used here. These are our own declarations of published layouts; NVIDIA's headers are not
 * needed.
 *
 * At the first NVTX call of each binary in a process (the program, and every shared library with its own NVTX), NVTX
 * loads the library named by NVTX_INJECTION64_PATH and calls its InitializeInjectionNvtx2 with that binary's get_table.
 * It returns 1 on success, and 0 to be left out. In the tables of a module, entry i points to the function pointer of
 * call i; unset calls cost the program nothing. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum nvtx_table { NVTX_TABLE_CALLBACKS = 1, NVTX_TABLE_VERSION = 3 };
enum nvtx_module { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 }; // others: CUDA 2, OpenCL 3, CUDA runtime 4, sync 6
enum { NVTX_INTERFACE_VERSION = 3, NVTX_NO_TRACKING = -2 };

typedef void (*nvtx_function)(void);
typedef const void *nvtx_get_table(uint32_t id);

struct nvtx_callbacks { // table NVTX_TABLE_CALLBACKS
	size_t struct_size;
	int (*get_module_table)(int module, nvtx_function ***ret_table, unsigned *ret_size); // returns 1 if the module exists
};

struct nvtx_version { // table NVTX_TABLE_VERSION
	size_t struct_size;
	uint32_t version; // of the program's NVTX
	uint32_t reserved;
	void (*set_injection_version)(uint32_t version);
};

enum nvtx_core { // calls of the default domain
	NVTX_MARK_EX = 1,
	NVTX_MARK_A,
	NVTX_MARK_W,
	NVTX_RANGE_START_EX,
	NVTX_RANGE_START_A,
	NVTX_RANGE_START_W,
	NVTX_RANGE_END,
	NVTX_RANGE_PUSH_EX,
	NVTX_RANGE_PUSH_A,
	NVTX_RANGE_PUSH_W,
	NVTX_RANGE_POP,
	NVTX_NAME_CATEGORY_A,
	NVTX_NAME_CATEGORY_W,
	NVTX_NAME_OS_THREAD_A,
	NVTX_NAME_OS_THREAD_W,
	NVTX_CORE_CALLS
};

enum nvtx_core2 { // calls with a domain argument
	NVTX_DOMAIN_MARK_EX = 1,
	NVTX_DOMAIN_RANGE_START_EX,
	NVTX_DOMAIN_RANGE_END,
	NVTX_DOMAIN_RANGE_PUSH_EX,
	NVTX_DOMAIN_RANGE_POP,
	NVTX_DOMAIN_RESOURCE_CREATE,
	NVTX_DOMAIN_RESOURCE_DESTROY,
	NVTX_DOMAIN_NAME_CATEGORY_A,
	NVTX_DOMAIN_NAME_CATEGORY_W,
	NVTX_DOMAIN_REGISTER_STRING_A,
	NVTX_DOMAIN_REGISTER_STRING_W,
	NVTX_DOMAIN_CREATE_A,
	NVTX_DOMAIN_CREATE_W,
	NVTX_DOMAIN_DESTROY,
	NVTX_INITIALIZE,
	NVTX_CORE2_CALLS
};

enum nvtx_payload { // values of nvtx_attributes.payload_type
	NVTX_PAYLOAD_NONE,
	NVTX_PAYLOAD_UINT64,
	NVTX_PAYLOAD_INT64,
	NVTX_PAYLOAD_DOUBLE,
	NVTX_PAYLOAD_UINT32,
	NVTX_PAYLOAD_INT32,
	NVTX_PAYLOAD_FLOAT,
};

enum nvtx_message { // values of nvtx_attributes.message_type
	NVTX_MESSAGE_NONE,
	NVTX_MESSAGE_ASCII,
	NVTX_MESSAGE_WIDE,
	NVTX_MESSAGE_REGISTERED,
};

struct nvtx_attributes {
	uint16_t version, size; // size: bytes of this struct in the program's version
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved;
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		uint32_t u32;
		int32_t i32;
		float f32;
	} payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *wide;
		const void *registered;
	} message;
};
static_assert(sizeof(void *) != 8 || sizeof(struct nvtx_attributes) == 48, "layout of NVTX 3");

// Exported by wattle-nvtx.
int InitializeInjectionNvtx2(nvtx_get_table *get_table);
