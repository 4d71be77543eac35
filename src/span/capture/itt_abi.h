/* The binary interface between a program with the static part of Intel's ITT (oneDNN, oneTBB, OpenVINO, OpenCV) and a
 * collector library, as far as it is used here. Own declarations of published layouts; none of Intel's headers is needed.
 *
 * At the program's first ITT call the static part loads the library that INTEL_LIBITTNOTIFY64 names and, because it exports
 * __itt_api_init, calls it once with its own tables: a list of every call that it knows, ended by one without a name. The
 * collector sets *function_at of each; its null function costs the program nothing. A process has as many static parts as
 * binaries that were linked with one. */
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
	// More follows: not ours.
};

struct itt_id { // passed by value
	unsigned long long d1, d2, d3;
};

struct itt_domain {         // made by the collector, read by the program's macros
	volatile int flags; // 0: its calls are not made
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

enum itt_metadata { // the types of metadata and of counters
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

// What wattle-itt exports.
void __itt_api_init(struct itt_global *global, int groups);
