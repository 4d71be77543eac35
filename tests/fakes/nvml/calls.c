#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FUNCTIONS_MAX = 96 };

static struct {
	const char *function; // borrowed: __func__ of an exported function
	unsigned long count;
} calls[FUNCTIONS_MAX];

void fake_count(const char *function)
{
	size_t i = 0;
	while (i < FUNCTIONS_MAX && calls[i].function != NULL && strcmp(calls[i].function, function) != 0)
		i++;
	if (i == FUNCTIONS_MAX)
		return;
	calls[i].function = function;
	calls[i].count++;
}

static long long begun_ns, own_ns;

static long long thread_cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

// Reading that clock costs about as much as a cheap call, so it is done only on request.
void fake_begin(void)
{
	if (getenv("WATTLE_FAKE_NVML_CALLS") != NULL)
		begun_ns = thread_cpu_ns();
}

void fake_end(void)
{
	if (begun_ns != 0)
		own_ns += thread_cpu_ns() - begun_ns;
	begun_ns = 0;
}

void fake_write_counts(void)
{
	const char *path = getenv("WATTLE_FAKE_NVML_CALLS");
	FILE *file = path != NULL ? fopen(path, "we") : NULL;
	if (file == NULL)
		return;
	for (size_t i = 0; i < FUNCTIONS_MAX && calls[i].function != NULL; i++)
		fprintf(file, "%s %lu\n", calls[i].function, calls[i].count);
	fprintf(file, "cpu_ns %lld\n", own_ns);
	fclose(file);
}

// For tests, by dlsym: calls of one function so far, or (NULL) of all.
__attribute__((visibility("default"))) unsigned long fake_nvml_calls(const char *function);
unsigned long fake_nvml_calls(const char *function)
{
	unsigned long sum = 0;
	for (size_t i = 0; i < FUNCTIONS_MAX && calls[i].function != NULL; i++) {
		if (function == NULL || strcmp(calls[i].function, function) == 0)
			sum += calls[i].count;
	}
	return sum;
}
