/* Uses of a meter in a C program, one act for each run: meter.py compiles and runs it and checks its output. A
 * reading is a line "NAME BEGAN_NS FROM_NS TO_NS ENDED_NS SECONDS CPU DRAM GPU TOTAL ERROR ESTIMATED", with the times of
 * CLOCK_MONOTONIC before and after the call that starts it, and before and after the call that reads it. */
#include <wattle.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void say(const char *name, long long value)
{
	printf("%s %lld\n", name, value);
	fflush(stdout);
}

// Not delayed by other programs, as the simulated counters are, where that is allowed.
static void run_first(void)
{
	struct sched_param param = {.sched_priority = 1};
	say("is_first", sched_setscheduler(0, SCHED_FIFO, &param) == 0);
}

static void rest(double seconds)
{
	struct timespec time = {.tv_sec = (time_t)seconds,
		.tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
	nanosleep(&time, NULL);
}

struct times {
	long long began_ns, from_ns, to_ns, ended_ns;
};

static struct times start(wattle_meter *meter)
{
	struct times times = {.began_ns = now_ns()};
	wattle_meter_start(meter);
	times.from_ns = now_ns();
	return times;
}

static int read_with(int (*call)(wattle_meter *, struct wattle_reading *), wattle_meter *meter, struct times *times,
	struct wattle_reading *reading)
{
	times->to_ns = now_ns();
	int r = call(meter, reading);
	times->ended_ns = now_ns();
	return r;
}

static void show(const char *name, struct times times, const struct wattle_reading *r)
{
	printf("%s %lld %lld %lld %lld %.9g %.9g %.9g %.9g %.9g %.9g %d\n", name, times.began_ns, times.from_ns,
		times.to_ns, times.ended_ns, r->seconds, r->cpu_j, r->dram_j, r->gpu_j, r->total_j, r->error_j,
		r->estimated);
	fflush(stdout);
}

static wattle_meter *opened(void)
{
	wattle_meter *meter;
	int r = wattle_meter_open(NULL, &meter);
	say("open", r);
	if (r < 0)
		exit(1);
	return meter;
}

static void once(double seconds)
{
	struct wattle_reading reading = {.size = sizeof(reading)};
	run_first();
	wattle_meter *meter = opened();
	say("stop_early", wattle_meter_stop(meter, &reading));
	struct times times = start(meter);
	rest(seconds);
	say("stop", read_with(wattle_meter_stop, meter, &times, &reading));
	show("once", times, &reading);
	say("read_late", wattle_meter_read(meter, &reading));
	wattle_meter_close(meter);
	wattle_meter_close(NULL);
}

// The energy of each domain, in millijoules.
static void domains(double seconds)
{
	struct wattle_reading reading = {.size = sizeof(reading)};
	struct wattle_domain_reading domain = {.size = sizeof(domain)};
	wattle_meter *meter = opened();
	struct times times = start(meter);
	say("domain_early", wattle_meter_domain(meter, 0, &domain));
	rest(seconds);
	read_with(wattle_meter_stop, meter, &times, &reading);
	show("domains", times, &reading);
	size_t n = 0;
	for (; wattle_meter_domain(meter, n, &domain) == 0; n++) {
		say(domain.domain, (long long)(domain.energy_j * 1e3));
		say(domain.in_total ? "n_in_total" : "n_inside", (long long)n);
		say("error_mj", (long long)(domain.error_j * 1e3));
	}
	say("past", wattle_meter_domain(meter, n, &domain));
	domain.size = offsetof(struct wattle_domain_reading, energy_j);
	domain.energy_j = -1;
	say("older", wattle_meter_domain(meter, 0, &domain));
	say("untouched", (long long)domain.energy_j);
	domain.size = 0;
	say("no_size", wattle_meter_domain(meter, 0, &domain));
	wattle_meter_start(meter);
	domain.size = sizeof(domain);
	say("domain_again", wattle_meter_domain(meter, 0, &domain));
	wattle_meter_close(meter);
}

// The same meter repeatedly; earlier readings count as well.
static void often(double seconds)
{
	struct wattle_reading reading = {.size = sizeof(reading)};
	wattle_meter *meter = opened();
	for (int i = 0; i < 5; i++) {
		struct times times = start(meter);
		rest(seconds / 10);
		read_with(wattle_meter_read, meter, &times, &reading);
		show("read", times, &reading);
		rest(seconds / 10);
		read_with(wattle_meter_stop, meter, &times, &reading);
		show("stop", times, &reading);
	}
	wattle_meter_close(meter);
}

static void forked(double seconds)
{
	struct wattle_reading reading = {.size = sizeof(reading)};
	wattle_meter *meter = opened();
	struct times times = start(meter);
	if (fork() == 0) {
		rest(seconds);
		say("child", read_with(wattle_meter_stop, meter, &times, &reading));
		show("reading", times, &reading);
		wattle_meter_close(meter);
		_exit(0);
	}
	wait(NULL);
	say("parent", read_with(wattle_meter_stop, meter, &times, &reading));
	show("reading", times, &reading);
	wattle_meter_close(meter);
}

static void cost(double seconds)
{
	enum { ROUNDS = 1000 };
	struct wattle_reading reading = {.size = sizeof(reading)};
	wattle_meter *meter = opened();
	(void)seconds;
	long long begin_ns = now_ns();
	for (int i = 0; i < ROUNDS; i++) {
		wattle_meter_start(meter);
		wattle_meter_stop(meter, &reading);
	}
	say("pair_ns", (now_ns() - begin_ns) / ROUNDS);
	wattle_meter_close(meter);
}

// A program compiled with an older header, and one that left out the size.
static void sizes(double seconds)
{
	struct wattle_meter_options none = {0};
	struct wattle_reading reading = {.size = offsetof(struct wattle_reading, total_j), .total_j = -1};
	wattle_meter *meter = NULL;
	(void)seconds;
	say("no_size", wattle_meter_open(&none, &meter));
	say("untouched", meter == NULL);
	meter = opened();
	wattle_meter_start(meter);
	say("older", wattle_meter_stop(meter, &reading));
	say("total", (long long)reading.total_j);
	wattle_meter_start(meter);
	reading.size = 0;
	say("reading_size", wattle_meter_read(meter, &reading));
	wattle_meter_close(meter);
}

// Whether there are such GPUs at all or not.
static void wrong_options(double seconds)
{
	struct wattle_meter_options brand = {.size = sizeof(brand), .gpu_brand = "matrox"};
	struct wattle_meter_options gpus = {.size = sizeof(gpus), .gpus = "GPU-nowhere"};
	wattle_meter *meter = NULL;
	(void)seconds;
	say("brand", wattle_meter_open(&brand, &meter));
	say("gpus", wattle_meter_open(&gpus, &meter));
	say("untouched", meter == NULL);
}

static const struct {
	const char *name;
	void (*run)(double seconds);
} acts[] = {
	{"once", once},
	{"domains", domains},
	{"often", often},
	{"forked", forked},
	{"cost", cost},
	{"sizes", sizes},
	{"wrong_options", wrong_options},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 2 && i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(argv[1], acts[i].name) == 0) {
			acts[i].run(atof(argv[2]));
			return 0;
		}
	return 2;
}
