/* A program of short code blocks of known power, and the energy counter of its machine.
 *
 *	block_loop ENERGY_UJ SECONDS PERIOD_MS BLOCKS
 *
 * Spans "block 0" … of 0.2 to 5 ms follow each other in a loop by busy waiting, each call up to a tenth longer or shorter.
 * A thread updates the file ENERGY_UJ every PERIOD_MS with the exact energy up to that instant: the duration of each
 * block is known from the clock, so a busy machine changes the true values and not the knowledge of them.
 *
 * At the end it prints, as JSON, the true energy and time of each block, the delays of the updates, and the time that it waited for a CPU. */
#include <wattle.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS_MAX = 32, TRIES = 5 };
static const double outside_w = 15, min_w = 30, max_w = 250;
static const double min_s = 2e-4, max_s = 5e-3, vary = 0.1;
static const int64_t late_ns = 100000; // an update that took longer than this is repeated

struct block {
	char name[16];
	double power_w, length_s; // of a call, on average
	double energy_j, time_s;  // true value
	long calls;
};

struct machine {
	pthread_mutex_t lock; // of the next four, which give the energy used up to an instant
	int64_t since_ns;
	double energy_j, power_w;
	bool ended;
	int counter_fd;
	int64_t period_ns;
	long renewals;
	double late_s2; // squares of the delays, summed
};

__attribute__((noreturn)) static void fail(const char *what)
{
	fprintf(stderr, "block_loop: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// A pseudo-random number from 0 to 1, the same in each run.
static double chance(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(*state >> 11) / (double)(UINT64_C(1) << 53);
}

// From now on the machine uses another power. Returns the time of the change.
static int64_t switch_to(struct machine *machine, double power_w)
{
	pthread_mutex_lock(&machine->lock);
	int64_t t_ns = now_ns();
	machine->energy_j += machine->power_w * (double)(t_ns - machine->since_ns) / 1e9;
	machine->since_ns = t_ns;
	machine->power_w = power_w;
	pthread_mutex_unlock(&machine->lock);
	return t_ns;
}

/* ---- the counter ---- */

// Always of the same length, so that readers find a complete number.
static void show(const struct machine *machine, double energy_j)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "%-22" PRId64 "\n", 1000000 + (int64_t)(energy_j * 1e6));
	if (pwrite(machine->counter_fd, text, (size_t)length, 0) != length)
		fail("counter");
}

// If the thread was delayed between reading the clock and writing, the number is old already: again.
static void renew(struct machine *machine, int64_t due_ns)
{
	int64_t written_ns = 0;
	for (int i = 0; i < TRIES; i++) {
		pthread_mutex_lock(&machine->lock);
		int64_t t_ns = now_ns();
		double energy_j = machine->energy_j + machine->power_w * (double)(t_ns - machine->since_ns) / 1e9;
		pthread_mutex_unlock(&machine->lock);
		show(machine, energy_j);
		written_ns = now_ns();
		if (written_ns - t_ns <= late_ns)
			break;
	}
	double late_s = (double)(written_ns - due_ns) / 1e9;
	machine->late_s2 += late_s * late_s;
	machine->renewals++;
}

static bool has_ended(struct machine *machine)
{
	pthread_mutex_lock(&machine->lock);
	bool ended = machine->ended;
	pthread_mutex_unlock(&machine->lock);
	return ended;
}

static void *count(void *data)
{
	struct machine *machine = data;
	struct sched_param param = {.sched_priority = 1};
	(void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &param); // where that is allowed
	for (int64_t due_ns = now_ns() + machine->period_ns; !has_ended(machine); due_ns += machine->period_ns) {
		struct timespec until = {.tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		renew(machine, due_ns);
	}
	return NULL;
}

/* ---- the program ---- */

// Neighbours differ in power and in length.
static void make_blocks(struct block *blocks, size_t n, uint64_t *random)
{
	for (size_t i = 0; i < n; i++) {
		double rank = n > 1 ? (double)(i * 7 % n) / (double)(n - 1) : 0;
		snprintf(blocks[i].name, sizeof(blocks[i].name), "block %zu", i);
		blocks[i].length_s = min_s * pow(max_s / min_s, rank);
		blocks[i].power_w = min_w + (max_w - min_w) * chance(random);
	}
}

static void call(struct machine *machine, struct block *block, double length_s)
{
	WATTLE_SPAN(block->name)
	{
		int64_t begin_ns = switch_to(machine, outside_w + block->power_w);
		while (now_ns() - begin_ns < (int64_t)(length_s * 1e9))
			;
		int64_t end_ns = switch_to(machine, outside_w);
		block->time_s += (double)(end_ns - begin_ns) / 1e9;
		block->calls++;
	}
}

// Of the main thread; 0 where the kernel does not count it.
static double waited_s(void)
{
	unsigned long long on_cpu_ns, waited_ns = 0;
	FILE *file = fopen("/proc/self/schedstat", "re");
	if (file != NULL && fscanf(file, "%llu %llu", &on_cpu_ns, &waited_ns) != 2)
		waited_ns = 0;
	if (file != NULL)
		fclose(file);
	return (double)waited_ns / 1e9;
}

static void print_truth(const struct machine *machine, const struct block *blocks, size_t n)
{
	printf("{\"total_j\": %.6f, \"late_s\": %.9f, \"waited_s\": %.3f, \"blocks\": {", machine->energy_j,
		sqrt(machine->late_s2 / (double)(machine->renewals > 0 ? machine->renewals : 1)), waited_s());
	for (size_t i = 0; i < n; i++)
		printf("%s\"%s\": {\"energy_j\": %.6f, \"time_s\": %.9f, \"calls\": %ld}", i > 0 ? ", " : "",
			blocks[i].name, (outside_w + blocks[i].power_w) * blocks[i].time_s, blocks[i].time_s,
			blocks[i].calls);
	puts("}}");
}

int main(int argc, char **argv)
{
	struct block blocks[BLOCKS_MAX] = {0};
	uint64_t random = 1;
	size_t n = argc == 5 ? (size_t)atoi(argv[4]) : 0;
	if (n == 0 || n > BLOCKS_MAX) {
		fputs("usage: block_loop ENERGY_UJ SECONDS PERIOD_MS BLOCKS\n", stderr);
		return 2;
	}
	struct machine machine = {.lock = PTHREAD_MUTEX_INITIALIZER,
		.since_ns = now_ns(),
		.power_w = outside_w,
		.counter_fd = open(argv[1], O_WRONLY | O_CLOEXEC),
		.period_ns = (int64_t)(atof(argv[3]) * 1e6)};
	if (machine.counter_fd < 0)
		fail(argv[1]);
	pthread_t counter;
	if (pthread_create(&counter, NULL, count, &machine) != 0)
		fail("thread");
	make_blocks(blocks, n, &random);
	int64_t end_ns = now_ns() + (int64_t)(atof(argv[2]) * 1e9);
	while (now_ns() < end_ns)
		for (size_t i = 0; i < n; i++)
			call(&machine, &blocks[i], blocks[i].length_s * (1 + vary * (2 * chance(&random) - 1)));
	switch_to(&machine, outside_w);
	pthread_mutex_lock(&machine.lock);
	machine.ended = true;
	pthread_mutex_unlock(&machine.lock);
	pthread_join(counter, NULL);
	print_truth(&machine, blocks, n);
	return 0;
}
