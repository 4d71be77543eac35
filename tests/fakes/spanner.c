/* A program with spans; each act has another way to start, nest and end them. Prints its actions as JSON.
 *
 *	spanner nested              outer { inner, inner, metric, mark }
 *	spanner threads N M         N threads with M spans each
 *	spanner flood N RATE S      N threads, RATE spans/s each, for S seconds; {"begun": …, "lost": …}
 *	spanner forks N             N children with a span each, which end at once
 *	spanner exec                a span is open when the program is replaced by `spanner nested`
 *	spanner range               a range begins in one thread and ends in another
 *	spanner wait                inside outer { inner {: prints its pid and waits to be killed
 *	spanner work S [off]        10^5 units of work a second, each in a span ("off": in none), for S seconds of CPU;
 *	                            {"units_per_s": of CPU time, …}
 *	spanner pulse S             a span each 10 ms inside "outer", for S seconds
 */
#include "ring_client.h"

#include <pthread.h>
#include <sys/wait.h>

enum { OUTER, INNER, TOKENS, HERE };
static const char *const names[] = {"outer", "inner", "tokens", "here"};

static struct ring_client open_ring(uint32_t image)
{
	struct ring_client client;
	if (!ring_client_open(&client, image)) {
		fprintf(stderr, "spanner: no ring\n");
		exit(3);
	}
	for (uint16_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ring_client_name(&client, i, names[i]);
	return client;
}

static void sleep_ms(long ms)
{
	const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&time, NULL);
}

static void span(struct ring_client *client, uint16_t name, long ms)
{
	ring_client_event(client, RECORD_BEGIN, name, 0);
	if (ms > 0)
		sleep_ms(ms);
	ring_client_event(client, RECORD_END, 0, 1);
}

static void nested(uint32_t image)
{
	struct ring_client client = open_ring(image);
	ring_client_event(&client, RECORD_BEGIN, OUTER, 0);
	span(&client, INNER, 20);
	span(&client, INNER, 20);
	ring_client_extra(&client, RECORD_METRIC, TOKENS, (struct record_extra){.value = 128});
	ring_client_event(&client, RECORD_MARK, HERE, 0);
	ring_client_event(&client, RECORD_END, 0, 1);
}

struct work {
	long n, rate;
	double seconds;
	long begun, lost;
};

static void *spans_of_thread(void *data)
{
	struct work *work = data;
	struct ring_client client = open_ring(1);
	for (long i = 0; i < work->n; i++)
		span(&client, INNER, 0);
	ring_client_event(&client, RECORD_THREAD_END, 0, 0);
	return NULL;
}

// Writes in bursts of a millisecond, as a busy program does, without busy waiting in between.
static void *flood_of_thread(void *data)
{
	struct work *work = data;
	struct ring_client client = open_ring(1);
	int64_t start_ns = ring_now_ns();
	while (ring_now_ns() - start_ns < (int64_t)(work->seconds * 1e9)) {
		long due = (long)((double)(ring_now_ns() - start_ns) / 1e9 * (double)work->rate);
		for (; work->begun + work->lost < due;) {
			if (!ring_client_has_room(&client, 2)) {
				work->lost++;
				atomic_fetch_add(&client.header->lost, 1);
				continue;
			}
			span(&client, INNER, 0);
			work->begun++;
		}
		sleep_ms(1);
	}
	return NULL;
}

static void in_threads(long n, const struct work *each, void *(*run)(void *))
{
	pthread_t threads[64];
	struct work works[64];
	long begun = 0, lost = 0;
	for (long i = 0; i < n; i++) {
		works[i] = *each;
		pthread_create(&threads[i], NULL, run, &works[i]);
	}
	for (long i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		begun += works[i].begun;
		lost += works[i].lost;
	}
	printf("{\"begun\": %ld, \"lost\": %ld}\n", begun, lost);
}

static void forks(long n)
{
	struct ring_client own = open_ring(1);
	ring_client_event(&own, RECORD_BEGIN, OUTER, 0);
	for (long i = 0; i < n; i++) {
		pid_t child = fork();
		if (child == 0) {
			struct ring_client client = open_ring(1);
			span(&client, INNER, 0);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	ring_client_event(&own, RECORD_END, 0, 1);
}

static void *end_range(void *data)
{
	struct ring_client client = open_ring(1);
	ring_client_extra(&client, RECORD_RANGE_END, 0, (struct record_extra){.number = 7});
	return NULL;
}

static void range(void)
{
	pthread_t thread;
	struct ring_client client = open_ring(1);
	ring_client_event(&client, RECORD_BEGIN, OUTER, 0);
	ring_client_extra(&client, RECORD_RANGE_BEGIN, INNER, (struct record_extra){.number = 7});
	ring_client_event(&client, RECORD_END, 0, 1);
	sleep_ms(30);
	pthread_create(&thread, NULL, end_range, NULL);
	pthread_join(thread, NULL);
}

static void wait_to_be_killed(void)
{
	struct ring_client client = open_ring(1);
	ring_client_event(&client, RECORD_BEGIN, OUTER, 0);
	ring_client_event(&client, RECORD_BEGIN, INNER, 0);
	printf("%d\n", getpid());
	fflush(stdout);
	for (;;)
		pause();
}

static void pulse(double seconds)
{
	struct ring_client client = open_ring(1);
	ring_client_event(&client, RECORD_BEGIN, OUTER, 0);
	for (int64_t end_ns = ring_now_ns() + (int64_t)(seconds * 1e9); ring_now_ns() < end_ns;)
		span(&client, INNER, 10);
	ring_client_event(&client, RECORD_END, 0, 1);
}

static double thread_cpu_s(void)
{
	struct timespec cpu;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	return (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
}

// About 10 us on a current machine.
static double unit(double x)
{
	for (int i = 0; i < 4400; i++)
		x = x * 0.999999 + 1.0;
	return x;
}

static void work(double seconds, bool with_spans)
{
	struct ring_client client = {0};
	if (with_spans)
		client = open_ring(1);
	double x = 1, begin_s = thread_cpu_s();
	long units = 0, lost = 0;
	while (thread_cpu_s() - begin_s < seconds)
		for (int i = 0; i < 10000; i++, units++) {
			bool is_recorded = with_spans && ring_client_has_room(&client, 2);
			lost += with_spans && !is_recorded;
			if (is_recorded)
				ring_client_event(&client, RECORD_BEGIN, INNER, 0);
			x = unit(x);
			if (is_recorded)
				ring_client_event(&client, RECORD_END, 0, 1);
		}
	printf("{\"units_per_s\": %.1f, \"units\": %ld, \"lost\": %ld, \"x\": %g}\n",
		(double)units / (thread_cpu_s() - begin_s), units, lost, x);
}

int main(int argc, char **argv)
{
	const char *act = argc > 1 ? argv[1] : "";
	long a = argc > 2 ? atol(argv[2]) : 1, b = argc > 3 ? atol(argv[3]) : 1;
	if (strcmp(act, "nested") == 0) {
		nested(argc > 2 ? (uint32_t)a : 1);
	} else if (strcmp(act, "threads") == 0) {
		in_threads(a, &(struct work){.n = b}, spans_of_thread);
	} else if (strcmp(act, "flood") == 0) {
		in_threads(a, &(struct work){.rate = b, .seconds = argc > 4 ? atof(argv[4]) : 1}, flood_of_thread);
	} else if (strcmp(act, "forks") == 0) {
		forks(a);
	} else if (strcmp(act, "exec") == 0) {
		struct ring_client client = open_ring(1);
		ring_client_event(&client, RECORD_BEGIN, OUTER, 0);
		sleep_ms(100);
		execl(argv[0], argv[0], "nested", "2", (char *)NULL);
	} else if (strcmp(act, "range") == 0) {
		range();
	} else if (strcmp(act, "wait") == 0) {
		wait_to_be_killed();
	} else if (strcmp(act, "work") == 0) {
		work(argc > 2 ? atof(argv[2]) : 1, argc < 4);
	} else if (strcmp(act, "pulse") == 0) {
		pulse(argc > 2 ? atof(argv[2]) : 1);
	} else {
		return 2;
	}
	return 0;
}
