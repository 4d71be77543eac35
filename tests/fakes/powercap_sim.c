/* A powercap tree whose counters move along a known function of time.
 *
 *	powercap_sim DIR --zone package-0=50+20*sin@2 --zone package-0/dram=5 [OPTIONS]
 *
 * DIR replaces /sys (WATTLE_SYSFS=DIR). A zone is NAME or PARENT/NAME; its load is explained in powercap_load.h.
 *
 *	--seconds S          end after S seconds; else at SIGTERM or SIGINT
 *	--tick US            the counters are written this often (1000)
 *	--manual-clock       the counters are written when a line of standard input gives the seconds since the
 *	                     origin, and "done" is printed then: the caller sets the time, so a busy machine does not matter
 *	--rename             each value is a new file, renamed over the old one; else it is written in place
 *	--range ZONE=UJ      max_energy_range_uj (262143328850)
 *	--start ZONE=UJ      first value (1000000); close below the range for an early wrap
 *	--quantum ZONE=UJ    step of the counter (61)
 *	--vanish ZONE=A:B    energy_uj is missing from second A to second B
 *	--garbage ZONE=A:B   energy_uj contains no number from A to B
 *	--stuck ZONE=A:B     energy_uj does not change from A to B, then catches up at once
 *	--reset ZONE=A       the counter restarts at 0 at second A
 *	--busy ZONE=W        W watts more for each CPU of the machine that is busy; not in truth.json, but in the history
 *	--history FILE       appends "CLOCK_MONOTONIC_NS JOULES..." at each tick: energy of each zone since the origin
 *
 * Once the tree is complete, "ready" is printed, and DIR/truth.json has everything needed to compute the
 * energy between any two instants of CLOCK_MONOTONIC (tests/fakes/expected_values.py does). At the end its "end_ns" is filled, and
 * "late_ns": a reader found no value older than a tick and that, also where this program was delayed. */

#include "powercap_sim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
	stop_asked = 1;
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// --- the tree ---

__attribute__((format(printf, 2, 3))) static void join(char *out, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(out, PATH_SIZE, format, args);
	va_end(args);
	if (length < 0 || length >= PATH_SIZE)
		sim_fail("path too long");
}

static void make_folders(const char *path)
{
	char part[PATH_SIZE];
	join(part, "%s", path);
	for (char *at = part + 1;; at++) {
		if (*at != '/' && *at != '\0')
			continue;
		char c = *at;
		*at = '\0';
		if (mkdir(part, 0755) != 0 && errno != EEXIST)
			sim_fail("%s: %s", part, strerror(errno));
		*at = c;
		if (c == '\0')
			return;
	}
}

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[PATH_SIZE], temporary[PATH_SIZE];
	join(path, "%s/%s", folder, name);
	join(temporary, "%s/.%s.new", folder, name);
	FILE *file = fopen(temporary, "we");
	if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0 || rename(temporary, path) != 0)
		sim_fail("%s: %s", path, strerror(errno));
}

static void link_into_class(const struct sim *sim, const char *id, const char *below)
{
	char path[PATH_SIZE], target[PATH_SIZE];
	join(path, "%s/class/powercap/%s", sim->dir, id);
	join(target, "../../devices/virtual/powercap/%s", below);
	unlink(path);
	if (symlink(target, path) != 0)
		sim_fail("%s: %s", path, strerror(errno));
}

static void make_zone(const struct sim *sim, struct zone *zone)
{
	char below[PATH_SIZE], text[64];
	const char *name = strrchr(zone->name, '/');
	join(below, "intel-rapl/%s%s%s", zone->parent != NULL ? zone->parent->id : "", zone->parent != NULL ? "/" : "",
		zone->id);
	snprintf(zone->folder, sizeof(zone->folder), "%.400s/devices/virtual/powercap/%.400s", sim->dir, below);
	make_folders(zone->folder);
	snprintf(text, sizeof(text), "%.60s\n", name != NULL ? name + 1 : zone->name);
	write_file(zone->folder, "name", text);
	snprintf(text, sizeof(text), "%" PRIu64 "\n", zone->range_uj);
	write_file(zone->folder, "max_energy_range_uj", text);
	write_file(zone->folder, "enabled", "0\n");
	link_into_class(sim, zone->id, below);
}

static void make_tree(struct sim *sim)
{
	char path[PATH_SIZE];
	join(path, "%s/class/powercap", sim->dir);
	make_folders(path);
	join(path, "%s/devices/virtual/powercap/intel-rapl", sim->dir);
	make_folders(path);
	link_into_class(sim, "intel-rapl", "intel-rapl");
	for (int i = 0; i < sim->n_zones; i++)
		make_zone(sim, &sim->zones[i]);
}

// --- the counters ---

static bool in_window(struct window window, double t_s)
{
	return t_s >= window.from_s && t_s < window.to_s; // never for NaN
}

/* CPU time of all processes since boot: exact from the CPU controller of cgroup v1, else in ticks. The files stay open: the
 * caller may mount the tree over /sys. */
static double read_busy_s(struct sim *sim)
{
	char text[512];
	double user, nice, system, idle, wait, irq, softirq;
	if (sim->busy_file < 0) {
		sim->busy_file = open("/sys/fs/cgroup/cpuacct/cpuacct.usage", O_RDONLY | O_CLOEXEC);
		sim->busy_is_exact = sim->busy_file >= 0;
	}
	if (sim->busy_file < 0)
		sim->busy_file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = pread(sim->busy_file, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	if (n > 0 && sim->busy_is_exact)
		return strtod(text, NULL) * 1e-9;
	if (sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait, &irq, &softirq) != 7)
		sim_fail("/proc/stat: no CPU time");
	return (user + nice + system + irq + softirq) / (double)sysconf(_SC_CLK_TCK);
}

static double zone_energy_j(const struct sim *sim, const struct zone *zone, double t_s)
{
	return load_energy_j(&zone->load, t_s) + zone->busy_w * sim->busy_s;
}

static void update_busy(struct sim *sim)
{
	for (int i = 0; i < sim->n_zones; i++) {
		if (sim->zones[i].busy_w > 0) {
			sim->busy_s = read_busy_s(sim) - sim->busy_origin_s;
			return;
		}
	}
}

static void add_history(const struct sim *sim, FILE *history, int64_t t_ns)
{
	fprintf(history, "%" PRId64, t_ns);
	for (int i = 0; i < sim->n_zones; i++)
		fprintf(history, " %.6f", zone_energy_j(sim, &sim->zones[i], (double)(t_ns - sim->origin_ns) / 1e9));
	fputc('\n', history);
}

static uint64_t counter_uj(const struct sim *sim, const struct zone *zone, double t_s)
{
	double energy_j = zone_energy_j(sim, zone, t_s);
	uint64_t start_uj = zone->start_uj;
	if (t_s >= zone->reset_s) {
		energy_j -= load_energy_j(&zone->load, zone->reset_s);
		start_uj = 0;
	}
	uint64_t uj = start_uj + (uint64_t)llround(energy_j * 1e6);
	uj -= uj % zone->quantum_uj;
	return zone->range_uj > 0 ? uj % (zone->range_uj + 1) : uj;
}

static void remove_counter(struct zone *zone)
{
	char path[PATH_SIZE];
	join(path, "%s/energy_uj", zone->folder);
	unlink(path);
	if (zone->fd >= 0)
		close(zone->fd);
	zone->fd = -1;
}

/* Always of the same length, blanks after the number, in one pwrite: readers find a complete number, never an empty
 * file or the tail of a longer number. */
static void write_counter(const struct sim *sim, struct zone *zone, const char *value)
{
	char text[32], path[PATH_SIZE];
	snprintf(text, sizeof(text), "%-22s\n", value);
	if (sim->by_rename) {
		write_file(zone->folder, "energy_uj", text);
		return;
	}
	if (zone->fd < 0) {
		write_file(zone->folder, "energy_uj", text);
		join(path, "%s/energy_uj", zone->folder);
		zone->fd = open(path, O_WRONLY | O_CLOEXEC);
	}
	if (pwrite(zone->fd, text, strlen(text), 0) < 0)
		sim_fail("%s: %s", zone->folder, strerror(errno));
}

static void update(const struct sim *sim, struct zone *zone, double t_s)
{
	char value[24];
	if (in_window(zone->vanish, t_s)) {
		remove_counter(zone);
		return;
	}
	bool is_stuck = in_window(zone->stuck, t_s), is_garbage = in_window(zone->garbage, t_s);
	snprintf(value, sizeof(value), "%" PRIu64, counter_uj(sim, zone, is_stuck ? zone->stuck.from_s : t_s));
	write_counter(sim, zone, is_garbage ? "garbage" : value);
}

// --- true values ---

static void write_zone_truth(FILE *out, const struct zone *zone)
{
	fprintf(out,
		"    {\"zone\": \"%s\", \"id\": \"%s\", \"range_uj\": %" PRIu64 ", \"quantum_uj\": %" PRIu64
		", \"terms\": [",
		zone->name, zone->id, zone->range_uj, zone->quantum_uj);
	for (size_t i = 0; i < zone->load.n; i++) {
		const struct load_term *term = &zone->load.terms[i];
		fprintf(out, "%s{\"shape\": \"%s\", \"watts\": %.17g, \"period_s\": %.17g}", i > 0 ? ", " : "",
			load_shape_names[term->shape], term->watts, term->period_s);
	}
	fputs("]}", out);
}

static void write_truth(const struct sim *sim, int64_t end_ns, int64_t late_ns)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		sim_fail("no memory");
	fprintf(out, "{\"origin_ns\": %" PRId64, sim->origin_ns);
	if (end_ns > 0)
		fprintf(out, ", \"end_ns\": %" PRId64 ", \"late_ns\": %" PRId64, end_ns, late_ns);
	fputs(",\n  \"zones\": [\n", out);
	for (int i = 0; i < sim->n_zones; i++) {
		write_zone_truth(out, &sim->zones[i]);
		fputs(i + 1 < sim->n_zones ? ",\n" : "\n", out);
	}
	fputs("  ]}\n", out);
	fclose(out);
	write_file(sim->dir, "truth.json", text);
	free(text);
}

static void print_line(const char *word)
{
	puts(word);
	fflush(stdout);
}

static void run_by_manual_clock(struct sim *sim)
{
	char line[64] = "0";
	const char *answer = "ready";
	do {
		for (int i = 0; i < sim->n_zones; i++)
			update(sim, &sim->zones[i], strtod(line, NULL));
		print_line(answer);
		answer = "done";
	} while (!stop_asked && fgets(line, sizeof(line), stdin) != NULL);
}

// Returns by how much the largest age of a value, when the next one replaced it, exceeded a tick.
static int64_t run(struct sim *sim)
{
	FILE *history = sim->history_path != NULL ? fopen(sim->history_path, "ae") : NULL;
	if (sim->history_path != NULL && history == NULL)
		sim_fail("%s: %s", sim->history_path, strerror(errno));
	sim->busy_origin_s = read_busy_s(sim);
	int64_t tick_ns = (int64_t)llround(sim->tick_s * 1e9), last_ns = sim->origin_ns, late_ns = 0;
	bool ready = false;
	for (int64_t due_ns = sim->origin_ns + tick_ns; !stop_asked; due_ns += tick_ns) {
		int64_t begin_ns = now_ns();
		update_busy(sim);
		for (int i = 0; i < sim->n_zones; i++)
			update(sim, &sim->zones[i], (double)(now_ns() - sim->origin_ns) / 1e9);
		if (history != NULL)
			add_history(sim, history, begin_ns);
		if (!ready)
			print_line("ready");
		ready = true;
		int64_t t_ns = now_ns();
		int64_t excess_ns = t_ns - last_ns - tick_ns;
		late_ns = excess_ns > late_ns ? excess_ns : late_ns;
		last_ns = begin_ns;
		if (sim->seconds > 0 && (double)(t_ns - sim->origin_ns) / 1e9 >= sim->seconds)
			break;
		if (t_ns > due_ns) // late: missed ticks stay missed
			due_ns = t_ns;
		struct timespec until = {.tv_sec = due_ns / 1000000000, .tv_nsec = due_ns % 1000000000};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	if (history != NULL)
		fclose(history);
	return late_ns;
}

int main(int argc, char **argv)
{
	struct sim sim = {.tick_s = 0.001, .busy_file = -1};
	struct sigaction action = {.sa_handler = on_signal};
	sim_parse_options(&sim, argc, argv);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	make_tree(&sim);
	// No program delays real hardware: this one gets a higher priority where that is allowed.
	(void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	sim.origin_ns = now_ns();
	write_truth(&sim, 0, 0);
	int64_t late_ns = 0;
	if (sim.has_manual_clock)
		run_by_manual_clock(&sim);
	else
		late_ns = run(&sim);
	write_truth(&sim, now_ns(), late_ns);
	return 0;
}
