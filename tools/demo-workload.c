/* A workload of every kind that a report shows: two busy threads, memory that grows, and a hundred children of a few
 * milliseconds each, all marked with spans. About five seconds. */
#include <wattle.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 100, MEGABYTE = 1000 * 1000, MEMORY_MB = 200 };

static double cpu_s(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void burn(double seconds)
{
	volatile double sum = 0;
	for (double end = cpu_s(CLOCK_THREAD_CPUTIME_ID) + seconds; cpu_s(CLOCK_THREAD_CPUTIME_ID) < end;)
		for (int i = 1; i < 10000; i++)
			sum = sum + 1.0 / i;
}

static void steps(int n, double seconds)
{
	for (int i = 0; i < n; i++) {
		WATTLE_SPAN("step") {
			burn(seconds);
			wattle_metric("steps", 1);
		}
	}
}

static void *thread(void *unused)
{
	(void)unused;
	WATTLE_SPAN("second thread")
		steps(300, 0.005);
	return NULL;
}

static void two_threads(void)
{
	pthread_t other;
	if (pthread_create(&other, NULL, thread, NULL) != 0)
		return;
	steps(300, 0.005);
	pthread_join(other, NULL);
}

static void grow_memory(void)
{
	char *blocks[MEMORY_MB] = {0};
	for (int i = 0; i < MEMORY_MB; i++) {
		WATTLE_SPAN("touch 1 MB") {
			blocks[i] = malloc(MEGABYTE);
			if (blocks[i] != NULL)
				memset(blocks[i], i, MEGABYTE);
		}
		burn(0.005);
	}
	for (int i = 0; i < MEMORY_MB; i++)
		free(blocks[i]);
}

static void short_children(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		if (child == 0) {
			WATTLE_SPAN("child")
				burn(0.01);
			_exit(0);
		}
		if (child > 0)
			waitpid(child, NULL, 0);
	}
}

static const struct {
	const char *name, *told;
	void (*run)(void);
} phases[] = {
	{"compute", "two threads, 1.5 s of CPU each", two_threads},
	{"allocate", "200 MB of memory, 1 s of CPU", grow_memory},
	{"fork", "100 children of 10 ms", short_children},
};

int main(void)
{
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		printf("demo: %s\n", phases[i].told);
		fflush(stdout);
		WATTLE_SPAN(phases[i].name)
			phases[i].run();
	}
	return 0;
}
