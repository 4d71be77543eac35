/* A program that works on cards of the fake NVML (WATTLE_FAKE_NVML): steps whose duration follows the current limits and
 * locked clocks. tests/fakes/nvml/README.md has the formulas, tests/e2e/gpu_card.py their values.
 *
 *	gpu_worker [--gpus 0,1] [--step-ms 5] [--noise PERCENT] [--drift PERCENT_PER_S] [--seed N]
 *	           [--steps N | --seconds S] [--name step] [--as spans|nvtx|metric|total|nothing] [--warm-up N] [--prompt]
 *
 * A step takes --step-ms at full clock, times 1 + noise; one on several cards ends when the slowest is done. The first
 * --warm-up steps take three times as long. Without --steps and --seconds it works until it is killed; SIGTERM and
 * SIGINT end it after the step. Prints {"steps": N, "seconds": S} at the end.
 *
 * A step ends when its work is done by the formula, also if the program is scheduled late; the next begins then. So the
 * rate of work is exact on a busy machine, and only the program's own marks come late; --prompt raises its priority, so
 * that these do not either. --as total reports the steps so far. */
#include "nvml/fake.h"
#include "nvtx_program.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wattle.h>

enum marks { MARK_SPANS, MARK_NVTX, MARK_METRIC, MARK_TOTAL, MARK_NOTHING };
static const char *const mark_names[] = {"spans", "nvtx", "metric", "total", "nothing"};

struct worker {
	unsigned int gpus[GPUS_MAX], n_gpus;
	double step_s, noise, drift_per_s, until_s;
	uint64_t random, steps, warm_up;
	const char *name, *cards;
	enum marks marks;
	struct fake_config config;
	struct fake_logs logs;
};

static volatile sig_atomic_t is_told_to_end;

static void end(int signal)
{
	(void)signal;
	is_told_to_end = 1;
}

int64_t fake_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static double now_s(const struct worker *worker)
{
	return (double)(fake_now_ns() - worker->config.epoch_ns) * 1e-9;
}

static double uniform(struct worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return ((double)(worker->random >> 11) + 0.5) * 0x1p-53;
}

static double normal(struct worker *worker)
{
	double radius = sqrt(-2 * log(uniform(worker)));
	return radius * cos(2 * M_PI * uniform(worker));
}

struct progress {
	double left_s; // of work at full clock
	double done_s; // time of its end; NaN: not yet
};

static void work(const struct fake_gpu *gpu, struct fake_bound bound, double from_s, double until_s, void *data)
{
	struct progress *progress = data;
	double speed = fake_speed(gpu, bound), worked_s = speed * (until_s - from_s);
	if (isnan(progress->done_s) && worked_s >= progress->left_s)
		progress->done_s = from_s + progress->left_s / speed;
	progress->left_s -= worked_s;
}

// End of work that begins now, with the current limits and as far as their effect is known to come.
static double done_s(const struct worker *worker, double begin_s, double work_s)
{
	double last_s = begin_s;
	for (unsigned int i = 0; i < worker->n_gpus; i++) {
		struct fake_view view = {.config = &worker->config,
			.logs = &worker->logs,
			.gpu = &worker->config.gpus[worker->gpus[i]],
			.index = worker->gpus[i]};
		struct progress progress = {work_s, NAN};
		fake_stretches(&view, begin_s, begin_s + 1e6, work, &progress);
		last_s = fmax(last_s, progress.done_s);
	}
	return last_s;
}

static void sleep_until(const struct worker *worker, double at_s)
{
	int64_t at_ns = worker->config.epoch_ns + (int64_t)llround(at_s * 1e9);
	const struct timespec at = {at_ns / 1000000000, at_ns % 1000000000};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR && !is_told_to_end)
		continue;
}

// Limits may change while it sleeps: it checks again at the predicted end.
static double step(struct worker *worker, double begin_s, double work_s)
{
	for (;;) {
		fake_logs_read(worker->cards, &worker->logs);
		double end_s = done_s(worker, begin_s, work_s);
		if (end_s <= now_s(worker) || is_told_to_end)
			return end_s;
		sleep_until(worker, end_s);
	}
}

static void mark_begin(const struct worker *worker)
{
	if (worker->marks == MARK_SPANS)
		wattle_span_begin(worker->name);
	if (worker->marks == MARK_NVTX)
		nvtxRangePushA(worker->name);
}

static void mark_end(const struct worker *worker, uint64_t n_done)
{
	if (worker->marks == MARK_SPANS)
		wattle_span_end();
	if (worker->marks == MARK_NVTX)
		nvtxRangePop();
	if (worker->marks == MARK_METRIC)
		wattle_metric(worker->name, 1);
	if (worker->marks == MARK_TOTAL)
		wattle_metric(worker->name, (double)n_done);
}

// For cards that are idle between programs, and for tests.
static void show_work(const struct worker *worker, bool begins)
{
	char words[32];
	snprintf(words, sizeof(words), "%d %d", begins, (int)getpid());
	for (unsigned int i = 0; i < worker->n_gpus; i++)
		fake_log_add(worker->cards, &worker->logs.of[FAKE_WORK], worker->gpus[i], words);
}

static void run(struct worker *worker)
{
	const double behind_max_s = 1; // stopped, or suspended: it continues from now
	double start_s = now_s(worker), at_s = start_s;
	uint64_t n = 0;
	while (!is_told_to_end && n < worker->steps && at_s - start_s < worker->until_s) {
		double work_s = worker->step_s * fmax(0.1, 1 + worker->noise * normal(worker));
		work_s *= (1 + worker->drift_per_s * (at_s - start_s)) * (n < worker->warm_up ? 3 : 1);
		mark_begin(worker);
		at_s = step(worker, at_s, work_s);
		mark_end(worker, n + 1);
		at_s = now_s(worker) - at_s > behind_max_s ? now_s(worker) : at_s;
		n++;
	}
	printf("{\"steps\": %lu, \"seconds\": %.9f}\n", (unsigned long)n, at_s - start_s);
}

static bool take_gpus(char *text, struct worker *worker)
{
	worker->n_gpus = 0;
	for (char *rest, *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
		unsigned int gpu = (unsigned int)strtoul(word, NULL, 10);
		if (gpu >= worker->config.n_gpus || worker->config.gpus[gpu].power.shape != SHAPE_SPEED) {
			fprintf(stderr, "gpu_worker: gpu %u is no card of `power_mw speed`\n", gpu);
			return false;
		}
		worker->gpus[worker->n_gpus++] = gpu;
	}
	return worker->n_gpus > 0;
}

static bool take_marks(const char *text, enum marks *ret_marks)
{
	for (size_t i = 0; i < sizeof(mark_names) / sizeof(mark_names[0]); i++) {
		if (strcmp(text, mark_names[i]) == 0) {
			*ret_marks = (enum marks)i;
			return true;
		}
	}
	return false;
}

static bool take_options(int argc, char **argv, struct worker *worker)
{
	const struct option options[] = {{"gpus", 1, NULL, 'g'}, {"step-ms", 1, NULL, 't'}, {"noise", 1, NULL, 'n'},
		{"drift", 1, NULL, 'd'}, {"seed", 1, NULL, 's'}, {"steps", 1, NULL, 'N'}, {"seconds", 1, NULL, 'S'},
		{"name", 1, NULL, 'm'}, {"as", 1, NULL, 'a'}, {"warm-up", 1, NULL, 'w'}, {"prompt", 0, NULL, 'p'}, {0}};
	char first[] = "0";
	char *gpus = first;
	bool good = true;
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
		switch (c) {
		case 'g':
			gpus = optarg;
			break;
		case 't':
			worker->step_s = strtod(optarg, NULL) * 1e-3;
			break;
		case 'n':
			worker->noise = strtod(optarg, NULL) * 1e-2;
			break;
		case 'd':
			worker->drift_per_s = strtod(optarg, NULL) * 1e-2;
			break;
		case 's':
			worker->random += strtoull(optarg, NULL, 10) * UINT64_C(0x2545F4914F6CDD1D);
			break;
		case 'N':
			worker->steps = strtoull(optarg, NULL, 10);
			break;
		case 'S':
			worker->until_s = strtod(optarg, NULL);
			break;
		case 'm':
			worker->name = optarg;
			break;
		case 'a':
			good = take_marks(optarg, &worker->marks);
			break;
		case 'w':
			worker->warm_up = strtoull(optarg, NULL, 10);
			break;
		case 'p': // where that is not allowed it runs without
			sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
			break;
		default:
			good = false;
		}
	}
	return good && worker->step_s > 0 && optind == argc && take_gpus(gpus, worker);
}

int main(int argc, char **argv)
{
	static struct worker worker = {.step_s = 5e-3,
		.until_s = INFINITY,
		.random = UINT64_C(0x9E3779B97F4A7C15),
		.steps = UINT64_MAX,
		.name = "step",
		.logs = FAKE_NO_LOGS};
	worker.cards = getenv("WATTLE_FAKE_NVML");
	if (worker.cards == NULL || !fake_config_read(worker.cards, fake_now_ns(), &worker.config)) {
		fprintf(stderr, "gpu_worker: WATTLE_FAKE_NVML names no file of cards\n");
		return 2;
	}
	if (!take_options(argc, argv, &worker))
		return 2;
	const struct sigaction action = {.sa_handler = end};
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	show_work(&worker, true);
	run(&worker);
	show_work(&worker, false);
	return 0;
}
