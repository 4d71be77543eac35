/* An unmodified program with NVTX: nvtx_app ACT. With -DNVTX_HEADER=<nvtx3/nvToolsExt.h> it is built with NVIDIA's
 * header, else with a re-implementation. Prints its actions, if a test needs them. */
#ifdef NVTX_HEADER
#include NVTX_HEADER
#else
#include "nvtx_program.h"
#endif

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void nvtx_part(void);

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void spin_ms(int64_t ms)
{
	for (int64_t until = now_ns() + ms * 1000000; now_ns() < until;)
		;
}

static nvtxEventAttributes_t event(const char *message)
{
	nvtxEventAttributes_t attributes;
	memset(&attributes, 0, sizeof(attributes));
	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
	attributes.message.ascii = message;
	return attributes;
}

static int nested(void)
{
	for (int i = 0; i < 3; i++) {
		if (nvtxRangePushA("step") != 0 || nvtxRangePushW(L"caf\u00e9") != 1)
			return 1;
		spin_ms(20);
		if (nvtxRangePop() != 1)
			return 1;
		spin_ms(10);
		if (nvtxRangePop() != 0)
			return 1;
	}
	return nvtxRangePop() < 0 ? 0 : 1;
}

static void *end_it(void *range)
{
	spin_ms(20);
	nvtxRangeEnd(*(nvtxRangeId_t *)range);
	return NULL;
}

static int ranges(void)
{
	pthread_t thread;
	nvtxRangeId_t outer = nvtxRangeStartA("outer");
	nvtxRangeId_t across = nvtxRangeStartA("across");
	nvtxRangeEnd(outer);
	if (pthread_create(&thread, NULL, end_it, &across) != 0)
		return 1;
	pthread_join(thread, NULL);
	nvtxDomainHandle_t domain = nvtxDomainCreateA("dom");
	nvtxEventAttributes_t attributes = event("range");
	attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
	attributes.payload.iValue = 5;
	nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &attributes));
	return 0;
}

static int domains(void)
{
	nvtxDomainHandle_t one = nvtxDomainCreateA("one"), two = nvtxDomainCreateA("two");
	nvtxNameCategoryA(7, "plain category");
	nvtxDomainNameCategoryA(one, 7, "category of one");
	nvtxEventAttributes_t attributes = event("message");
	attributes.category = 7;
	nvtxRangePushEx(&attributes);
	nvtxDomainRangePushEx(one, &attributes);
	nvtxEventAttributes_t registered = event(NULL);
	registered.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	registered.message.registered = nvtxDomainRegisterStringA(two, "registered");
	nvtxDomainRangePushEx(two, &registered);
	spin_ms(5);
	int level = nvtxDomainRangePop(one); // two's is open inside it, and continues
	spin_ms(5);
	nvtxDomainRangePop(two);
	nvtxDomainDestroy(one);
	nvtxDomainRangePushEx(one, &attributes);
	nvtxDomainRangePop(one);
	nvtxRangePop();
	return level;
}

static int tokens(void)
{
	nvtxEventAttributes_t attributes = event("decode");
	attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
	for (unsigned i = 0; i < 4; i++) {
		attributes.payload.ullValue = 100 + i;
		nvtxRangePushEx(&attributes);
		spin_ms(100);
		nvtxRangePop();
	}
	nvtxEventAttributes_t loss = event("loss");
	loss.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
	loss.payload.dValue = 0.125;
	nvtxMarkEx(&loss);
	nvtxMarkA("done");
	return 0;
}

static void *work(void *name)
{
	for (int i = 0; i < 100; i++) {
		nvtxRangePushA(name);
		nvtxRangePushA("part");
		nvtxRangePop();
		nvtxRangePop();
	}
	return NULL;
}

static int threads(void)
{
	static char names[4][16];
	pthread_t ids[4];
	for (int i = 0; i < 4; i++) {
		snprintf(names[i], sizeof(names[i]), "thread %d", i);
		if (pthread_create(&ids[i], NULL, work, names[i]) != 0)
			return 1;
	}
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

static int forked(void)
{
	nvtxRangePushA("parent");
	pid_t child = fork();
	if (child == 0) {
		nvtxRangePushA("child");
		spin_ms(10);
		nvtxRangePop();
		exit(0);
	}
	waitpid(child, NULL, 0);
	nvtxRangePop();
	printf("%d %d\n", getpid(), child);
	return 0;
}

static int killed(void)
{
	nvtxRangePushA("whole");
	nvtxRangePop();
	nvtxRangePushA("doomed");
	nvtxRangeStartA("doomed range");
	puts("ready");
	fflush(stdout);
	while (pause() != 0)
		;
	return 0;
}

static int library(void)
{
	nvtxRangePushA("in the program");
	nvtx_part();
	nvtxRangePop();
	return 0;
}

static void at_exit(void)
{
	nvtxRangePushA("at exit");
	nvtxRangePop();
}

static void at_thread_end(void *data)
{
	nvtxRangePushA("at the thread's end");
	nvtxRangePop();
}

static void *with_destructor(void *key)
{
	pthread_setspecific(*(pthread_key_t *)key, key);
	nvtxRangePushA("left open");
	return NULL;
}

static int late(void)
{
	pthread_key_t key;
	pthread_t thread;
	atexit(at_exit);
	if (pthread_key_create(&key, at_thread_end) != 0 || pthread_create(&thread, NULL, with_destructor, &key) != 0)
		return 1;
	pthread_join(thread, NULL);
	return 0;
}

// Cost of a push and its pop, and of two clock readings, which they need.
static int cost(void)
{
	enum { PAIRS = 5000, ROUNDS = 40 };
	int64_t best_ns = INT64_MAX, best_clock_ns = INT64_MAX;
	nvtxRangePushA("warm");
	nvtxRangePop();
	for (int round = 0; round < ROUNDS; round++) {
		int64_t begin_ns = now_ns();
		for (int i = 0; i < PAIRS; i++) {
			nvtxRangePushA("block");
			nvtxRangePop();
		}
		int64_t between_ns = now_ns();
		for (int i = 0; i < 2 * PAIRS; i++)
			now_ns();
		int64_t end_ns = now_ns();
		best_ns = between_ns - begin_ns < best_ns ? between_ns - begin_ns : best_ns;
		best_clock_ns = end_ns - between_ns < best_clock_ns ? end_ns - between_ns : best_clock_ns;
		usleep(50000); // the recorder empties the ring
	}
	printf("{\"pair_ns\": %.1f, \"clock_ns\": %.1f}\n", (double)best_ns / PAIRS, (double)best_clock_ns / PAIRS);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*act)(void);
	} acts[] = {{"nested", nested}, {"ranges", ranges}, {"domains", domains}, {"tokens", tokens},
		{"threads", threads}, {"fork", forked}, {"killed", killed}, {"library", library}, {"late", late},
		{"cost", cost}};
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		if (argc == 2 && strcmp(argv[1], acts[i].name) == 0)
			return acts[i].act();
	fprintf(stderr, "usage: nvtx_app ACT\n");
	return 2;
}
