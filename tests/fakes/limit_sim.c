/* Makes files of a /sys tree behave as a card of the fake NVML (`power_mw speed`): a value written into its limit file is
 * the card's limit, and its counter and power follow. So gpu_worker works under the limits of a CPU package, or of a GPU
 * with its limit in hwmon.
 *
 *	limit_sim --gpu N --limit FILE [--energy FILE] [--power FILE] [--range UJ]
 *
 * The card is number N of WATTLE_FAKE_NVML; its limit at the start is the contents of FILE (µW). --energy: a counter in µJ, which
 * wraps at --range; --power: µW. All three are written every millisecond, until SIGTERM; "ready" is printed when they exist. */
#include "nvml/fake.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TICK_NS = 1000000 };

struct simulation {
	struct fake_config config;
	struct fake_logs logs;
	struct fake_view view;
	const char *cards, *limit_file;
	int energy_fd, power_fd; // -1: none
	uint64_t range_uj;
	unsigned int limit_mw; // as last seen
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

// A file that is empty for a moment keeps the last value.
static void follow_limit(struct simulation *sim)
{
	char words[32];
	int64_t uw;
	FILE *file = fopen(sim->limit_file, "re");
	bool has_value = file != NULL && fscanf(file, "%" SCNd64, &uw) == 1 && uw > 0;
	if (file != NULL)
		fclose(file);
	if (!has_value || (unsigned int)(uw / 1000) == sim->limit_mw)
		return;
	sim->limit_mw = (unsigned int)(uw / 1000);
	snprintf(words, sizeof(words), "%u %d", sim->limit_mw, (int)getpid());
	fake_log_add(sim->cards, &sim->logs.of[FAKE_LIMITS], sim->view.index, words);
	fake_log_read(sim->cards, &sim->logs.of[FAKE_LIMITS]);
}

// In place and never shorter than the file: a reader never finds an incomplete number.
static void put(int fd, uint64_t value)
{
	char text[32];
	int length = snprintf(text, sizeof(text), "%020" PRIu64 "\n", value);
	if (fd >= 0 && pwrite(fd, text, (size_t)length, 0) != length)
		perror("limit_sim");
}

static void show(struct simulation *sim)
{
	sim->view.t_ns = fake_now_ns() - sim->config.epoch_ns;
	double t_s = (double)sim->view.t_ns * 1e-9;
	uint64_t uj = (uint64_t)(fake_limited_energy_mj(&sim->view, t_s) * 1e3);
	put(sim->energy_fd, sim->range_uj > 0 ? uj % sim->range_uj : uj);
	put(sim->power_fd, (uint64_t)llround(fake_power_mw(sim->view.gpu, fake_bound_at(&sim->view, t_s), t_s) * 1e3));
}

static int open_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0) {
		fprintf(stderr, "limit_sim: %s: %m\n", path);
		exit(2);
	}
	return fd;
}

static bool take_options(int argc, char **argv, struct simulation *sim)
{
	const struct option options[] = {{"gpu", 1, NULL, 'g'}, {"limit", 1, NULL, 'l'}, {"energy", 1, NULL, 'e'},
		{"power", 1, NULL, 'p'}, {"range", 1, NULL, 'r'}, {0}};
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
		switch (c) {
		case 'g':
			sim->view.index = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'l':
			sim->limit_file = optarg;
			break;
		case 'e':
			sim->energy_fd = open_file(optarg);
			break;
		case 'p':
			sim->power_fd = open_file(optarg);
			break;
		case 'r':
			sim->range_uj = strtoull(optarg, NULL, 10);
			break;
		default:
			return false;
		}
	}
	return optind == argc && sim->limit_file != NULL && sim->view.index < sim->config.n_gpus;
}

int main(int argc, char **argv)
{
	static struct simulation sim = {.energy_fd = -1, .power_fd = -1, .logs = FAKE_NO_LOGS};
	sim.cards = getenv("WATTLE_FAKE_NVML");
	if (sim.cards == NULL || !fake_config_read(sim.cards, fake_now_ns(), &sim.config) ||
		!take_options(argc, argv, &sim)) {
		fprintf(stderr,
			"limit_sim --gpu N --limit FILE [--energy FILE] [--power FILE]; WATTLE_FAKE_NVML: cards\n");
		return 2;
	}
	sim.view = (struct fake_view){&sim.config, &sim.logs, &sim.config.gpus[sim.view.index], sim.view.index, -1, 0};
	const struct sigaction action = {.sa_handler = end};
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	// No program delays real hardware: this one gets a higher priority where that is allowed.
	(void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	for (bool is_ready = false; !is_told_to_end; is_ready = true) {
		follow_limit(&sim);
		show(&sim);
		if (!is_ready && (puts("ready") < 0 || fflush(stdout) != 0))
			return 1;
		nanosleep(&(struct timespec){0, TICK_NS}, NULL);
	}
	return 0;
}
