/* Binary interface between a program with the static part of Intel's ITT (oneDNN, oneTBB, OpenVINO, OpenCV) and a
 * collector library, as far as used here. These are our own declarations of published layouts; Intel's headers are not
 * needed.
 *
 * At the program's first ITT call the static part loads the library named by INTEL_LIBITTNOTIFY64. As that exports
 * __itt_api_init, it is called once with the static part's tables: a list of all known calls, terminated by one without
 * a name. The collector sets *function_at of each; its null function costs the program nothing. A process has one
 * static part per binary that was linked with it. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*itt_function)(void);

struct itt_api {
	const char *name; // "__itt_task_begin"
	itt_function *function_at;
	itt_function init;
	itt_function null;
	int group;
};

struct itt_global {
	unsigned char magic[8];
	unsigned long version_major, version_minor, version_build;
	volatile long api_initialized, mutex_initialized, atomic_counter;
	pthread_mutex_t mutex;
	void *library;
	void *error_handler;
	const char **library_path;
	struct itt_api *apis;
	// The rest of the struct is not used.
};

struct itt_id { // passed by value
	unsigned long long d1, d2, d3;
};

struct itt_domain {         // created by the collector, read by the program's macros
	volatile int flags; // 0: the program skips calls of this domain
	const char *name;
	void *wide_name;
	int extra1;
	void *extra2;
	struct itt_domain *next;
};

struct itt_string {
	const char *text;
	void *wide_text;
	int extra1;
	void *extra2;
	struct itt_string *next;
};

enum itt_metadata { // types of metadata and counters
	ITT_UNKNOWN,
	ITT_U64,
	ITT_S64,
	ITT_U32,
	ITT_S32,
	ITT_U16,
	ITT_S16,
	ITT_FLOAT,
	ITT_DOUBLE,
};

// Exported by wattle-itt.
void __itt_api_init(struct itt_global *global, int groups);
