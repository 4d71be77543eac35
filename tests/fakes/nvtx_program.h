/* A re-implementation of NVTX's program side, with the names that programs use: nvtx_app.c makes the same calls with
 * this or NVIDIA's header. At the first call of a binary the library named by NVTX_INJECTION64_PATH is loaded and sets
 * this binary's calls; calls that it does not set stay no-ops. */
#pragma once

#include "span/capture/nvtx_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#define NVTX_VERSION 3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE sizeof(nvtxEventAttributes_t)
#define NVTX_MESSAGE_TYPE_ASCII NVTX_MESSAGE_ASCII
#define NVTX_MESSAGE_TYPE_REGISTERED NVTX_MESSAGE_REGISTERED
#define NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 NVTX_PAYLOAD_UINT64
#define NVTX_PAYLOAD_TYPE_INT32 NVTX_PAYLOAD_INT32
#define NVTX_PAYLOAD_TYPE_DOUBLE NVTX_PAYLOAD_DOUBLE

typedef const void *nvtxDomainHandle_t;
typedef const void *nvtxStringHandle_t;
typedef uint64_t nvtxRangeId_t;
typedef struct {
	uint16_t version, size;
	uint32_t category;
	int32_t colorType;
	uint32_t color;
	int32_t payloadType, reserved0;
	union {
		uint64_t ullValue;
		int32_t iValue;
		double dValue;
	} payload;
	int32_t messageType;
	union {
		const char *ascii;
		nvtxStringHandle_t registered;
	} message;
} nvtxEventAttributes_t;
static_assert(sizeof(nvtxEventAttributes_t) == sizeof(struct nvtx_attributes), "one layout");

static nvtx_function program_core[NVTX_CORE_CALLS], program_core2[NVTX_CORE2_CALLS];

static int program_module(int module, nvtx_function ***ret_table, unsigned *ret_size)
{
	static nvtx_function *core[NVTX_CORE_CALLS], *core2[NVTX_CORE2_CALLS];
	for (unsigned i = 1; i < NVTX_CORE_CALLS; i++)
		core[i] = &program_core[i];
	for (unsigned i = 1; i < NVTX_CORE2_CALLS; i++)
		core2[i] = &program_core2[i];
	*ret_table = module == NVTX_MODULE_CORE ? core : module == NVTX_MODULE_CORE2 ? core2 : NULL;
	*ret_size = module == NVTX_MODULE_CORE ? NVTX_CORE_CALLS : NVTX_CORE2_CALLS;
	return *ret_table != NULL;
}

static void program_version(uint32_t version)
{
}

static const void *program_table(uint32_t id)
{
	static const struct nvtx_callbacks callbacks = {sizeof(callbacks), program_module};
	static const struct nvtx_version version = {sizeof(version), 3, 0, program_version};
	return id == NVTX_TABLE_CALLBACKS ? (const void *)&callbacks : id == NVTX_TABLE_VERSION ? &version : NULL;
}

static void program_load(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
	int (*start)(nvtx_get_table *) = NULL;
	if (library != NULL)
		*(void **)&start = dlsym(library, "InitializeInjectionNvtx2");
	if (library != NULL && (start == NULL || start(program_table) == 0))
		dlclose(library);
}

static inline nvtx_function program_call(nvtx_function *call)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, program_load);
	return *call;
}

// Defines an NVTX function by its result without a capture, its slot, its parameters and its arguments.
#define PROGRAM_CALL(type, nothing, function, slot, parameters, arguments)                                             \
	static inline type function parameters                                                                         \
	{                                                                                                              \
		nvtx_function call = program_call(&slot);                                                              \
		return call != NULL ? ((type(*) parameters)call)arguments : nothing;                                   \
	}
#define PROGRAM_VOID_CALL(function, slot, parameters, arguments)                                                       \
	static inline void function parameters                                                                         \
	{                                                                                                              \
		nvtx_function call = program_call(&slot);                                                              \
		if (call != NULL)                                                                                      \
			((void(*) parameters)call) arguments;                                                          \
	}

PROGRAM_CALL(int, -2, nvtxRangePushA, program_core[NVTX_RANGE_PUSH_A], (const char *m), (m))
PROGRAM_CALL(int, -2, nvtxRangePushW, program_core[NVTX_RANGE_PUSH_W], (const wchar_t *m), (m))
PROGRAM_CALL(int, -2, nvtxRangePushEx, program_core[NVTX_RANGE_PUSH_EX], (const nvtxEventAttributes_t *a), (a))
PROGRAM_CALL(int, -2, nvtxRangePop, program_core[NVTX_RANGE_POP], (void), ())
PROGRAM_CALL(uint64_t, 0, nvtxRangeStartA, program_core[NVTX_RANGE_START_A], (const char *m), (m))
PROGRAM_CALL(uint64_t, 0, nvtxRangeStartEx, program_core[NVTX_RANGE_START_EX], (const nvtxEventAttributes_t *a), (a))
PROGRAM_VOID_CALL(nvtxRangeEnd, program_core[NVTX_RANGE_END], (uint64_t id), (id))
PROGRAM_VOID_CALL(nvtxMarkA, program_core[NVTX_MARK_A], (const char *m), (m))
PROGRAM_VOID_CALL(nvtxMarkEx, program_core[NVTX_MARK_EX], (const nvtxEventAttributes_t *a), (a))
PROGRAM_VOID_CALL(nvtxNameCategoryA, program_core[NVTX_NAME_CATEGORY_A], (uint32_t c, const char *n), (c, n))
PROGRAM_CALL(nvtxDomainHandle_t, NULL, nvtxDomainCreateA, program_core2[NVTX_DOMAIN_CREATE_A], (const char *n), (n))
PROGRAM_VOID_CALL(nvtxDomainDestroy, program_core2[NVTX_DOMAIN_DESTROY], (nvtxDomainHandle_t d), (d))
PROGRAM_CALL(nvtxStringHandle_t, NULL, nvtxDomainRegisterStringA, program_core2[NVTX_DOMAIN_REGISTER_STRING_A],
	(nvtxDomainHandle_t d, const char *s), (d, s))
PROGRAM_VOID_CALL(nvtxDomainNameCategoryA, program_core2[NVTX_DOMAIN_NAME_CATEGORY_A],
	(nvtxDomainHandle_t d, uint32_t c, const char *n), (d, c, n))
PROGRAM_CALL(int, -2, nvtxDomainRangePushEx, program_core2[NVTX_DOMAIN_RANGE_PUSH_EX],
	(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a), (d, a))
PROGRAM_CALL(int, -2, nvtxDomainRangePop, program_core2[NVTX_DOMAIN_RANGE_POP], (nvtxDomainHandle_t d), (d))
PROGRAM_CALL(uint64_t, 0, nvtxDomainRangeStartEx, program_core2[NVTX_DOMAIN_RANGE_START_EX],
	(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a), (d, a))
PROGRAM_VOID_CALL(nvtxDomainRangeEnd, program_core2[NVTX_DOMAIN_RANGE_END], (nvtxDomainHandle_t d, uint64_t id),
	(d, id))
PROGRAM_VOID_CALL(nvtxDomainMarkEx, program_core2[NVTX_DOMAIN_MARK_EX],
	(nvtxDomainHandle_t d, const nvtxEventAttributes_t *a), (d, a))
#undef PROGRAM_CALL
#undef PROGRAM_VOID_CALL
