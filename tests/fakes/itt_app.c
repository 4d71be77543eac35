/* A program with a re-implementation of ITT's static part and the few calls that it makes: itt_app. */
#include "span/capture/itt_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct itt_domain *(*domain_create)(const char *);
static struct itt_string *(*string_create)(const char *);
static void (*task_begin)(const struct itt_domain *, struct itt_id, struct itt_id, const struct itt_string *);
static void (*task_end)(const struct itt_domain *);
static void (*overlapped_begin)(const struct itt_domain *, struct itt_id, struct itt_id, const struct itt_string *);
static void (*overlapped_end)(const struct itt_domain *, struct itt_id);
static void (*marker)(const struct itt_domain *, struct itt_id, const struct itt_string *, int);
static void (
	*metadata_add)(const struct itt_domain *, struct itt_id, const struct itt_string *, int, size_t, const void *);
static void (*pause_recording)(void), (*resume_recording)(void);

#define ENTRY(pointer, text)                                                                                           \
	{                                                                                                              \
		"__itt_" text, (itt_function *)(void *)&(pointer), NULL, NULL, 1                                       \
	}
static struct itt_api apis[] = {
	ENTRY(domain_create, "domain_create"),
	ENTRY(string_create, "string_handle_create"),
	ENTRY(task_begin, "task_begin"),
	ENTRY(task_end, "task_end"),
	ENTRY(overlapped_begin, "task_begin_overlapped"),
	ENTRY(overlapped_end, "task_end_overlapped"),
	ENTRY(marker, "marker"),
	ENTRY(metadata_add, "metadata_add"),
	ENTRY(pause_recording, "pause"),
	ENTRY(resume_recording, "resume"),
	{NULL},
};
static struct itt_global global = {.apis = apis};

static void load(void)
{
	const char *path = getenv("INTEL_LIBITTNOTIFY64");
	void *library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
	void (*init)(struct itt_global *, int) = NULL;
	if (library != NULL)
		*(void **)&init = dlsym(library, "__itt_api_init");
	if (init != NULL)
		init(&global, -1);
}

static void spin_ms(long ms)
{
	struct timespec now, begin;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < ms * 1000000L);
}

// itt_app [BATCHES]
int main(int argc, char **argv)
{
	uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 3;
	const struct itt_id none = {0}, a = {1, 0, 0}, b = {2, 0, 0};
	load();
	if (task_begin == NULL) {
		puts("nobody listens");
		return 0;
	}
	struct itt_domain *domain = domain_create("app");
	overlapped_begin(domain, a, none, string_create("first"));
	overlapped_begin(domain, b, none, string_create("second"));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t images = 8;
		task_begin(domain, none, none, string_create("batch"));
		metadata_add(domain, none, string_create("images"), ITT_U32, 1, &images);
		task_begin(domain, none, none, string_create("layer"));
		spin_ms(20);
		task_end(domain);
		task_end(domain);
	}
	overlapped_end(domain, a);
	pause_recording();
	task_begin(domain, none, none, string_create("unseen"));
	task_end(domain);
	resume_recording();
	overlapped_end(domain, b);
	marker(domain, none, string_create("end"), 0);
	return 0;
}
