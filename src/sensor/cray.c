#include "sensor/sensor.h"

#include "base/file.h"
#include "base/num.h"
#include "base/util.h"
#include "sensor/internal.h"

#include <errno.h>
#include <stdio.h>

/* Energy of a Cray EX (XC) node as its controller counts it: /sys/cray/pm_counters, updated about ten times a second, in
 * whole joules. Each line has its own time stamp: "20494936 J 1741234567890123 us".
 *
 * The counters run from the boot of the node. The controller counts its own restarts in `startup`; counts from before a
 * restart can't be compared with counts after it. (`generation` counts changes of the power cap, which do not affect the
 * counters. `freshness` counts scans.) */

static const char folder[] = "cray/pm_counters";

enum { ACCELERATORS_MAX = 16, METERS_MAX = 3 + ACCELERATORS_MAX, TRIES_MAX = 3 };

struct meter {
	struct file_kept energy, power;
	struct stamp_clock clock;
	int64_t base_uj; // added to the node's counter after a restart of the controller
	int64_t last_uj; // latest reported value; VALUE_MISSING before the first
	bool restarted;  // the controller has restarted since last_uj
};

struct cray {
	const struct wattle_env *env; // borrowed
	struct domain domains[METERS_MAX];
	struct meter meters[METERS_MAX];
	size_t n;
	struct file_kept freshness, startup;
	uint64_t last_startup;
	bool startup_known;
	int64_t first_t_ns;
};

struct line {             // parsed line of one file
	int64_t value;    // J or W
	int64_t stamp_ns; // VALUE_MISSING: the line has none
};

// "12345 J 1741234567890123 us"
static bool parse_line(char *text, char unit, struct line *ret_line)
{
	char *save, *words[4] = {0};
	size_t n = 0;
	for (char *word = strtok_r(text, " \t\n", &save); word != NULL && n < ARRAY_SIZE(words);
		word = strtok_r(NULL, " \t\n", &save))
		words[n++] = word;
	uint64_t value, stamp_us;
	if (n < 2 || num_parse_u64(words[0], &value) < 0 || words[1][0] != unit || words[1][1] != '\0')
		return false;
	if (value > INT64_MAX / 1000000)
		return false;
	*ret_line = (struct line){(int64_t)value, VALUE_MISSING};
	if (n == 4 && strcmp(words[3], "us") == 0 && num_parse_u64(words[2], &stamp_us) == 0 &&
		stamp_us < INT64_MAX / 1000)
		ret_line->stamp_ns = (int64_t)stamp_us * 1000;
	return true;
}

static int read_line(struct file_kept *kept, char unit, struct line *ret_line)
{
	char text[96];
	ssize_t length = file_kept_read(kept, text, sizeof(text));
	if (length < 0)
		return (int)length;
	return parse_line(text, unit, ret_line) ? 0 : -EINVAL;
}

static bool open_file(struct file_kept *kept, const struct wattle_env *env, const char *prefix, const char *what)
{
	char path[96];
	snprintf(path, sizeof(path), "%s/%s%s", folder, prefix, what);
	return file_kept_open(kept, env->sysfs_fd, path) != -ENOENT;
}

static void add_meter(struct cray *cray, const char *prefix, enum domain_kind kind, const char *name)
{
	struct domain *d = &cray->domains[cray->n];
	struct meter *meter = &cray->meters[cray->n];
	struct line line;
	*meter = (struct meter){.last_uj = VALUE_MISSING, .energy.fd = -1, .power.fd = -1};
	stamp_clock_init(&meter->clock, cray->env);
	bool has_energy = open_file(&meter->energy, cray->env, prefix, "energy");
	bool has_power = open_file(&meter->power, cray->env, prefix, "power");
	if (!has_energy && !has_power)
		return;
	cray->n++;
	int energy_r = read_line(&meter->energy, 'J', &line), power_r = read_line(&meter->power, 'W', &line);
	*d = (struct domain){
		.kind = kind,
		.index = -1,
		.has_energy = energy_r == 0,
		.provenance = energy_r == 0 ? PROVENANCE_MEASURED : PROVENANCE_DERIVED,
		.unmatched = kind != DOMAIN_NODE,
		.resolution_uj = energy_r == 0 ? 1000000 : 0,
		.readable = true,
		.used = true,
	};
	text_copy(d->name, sizeof(d->name), name);
	text_copy(d->inside, sizeof(d->inside), kind != DOMAIN_NODE ? "node" : "");
	snprintf(d->device, sizeof(d->device), "pm_counters/%senergy", prefix);
	if (energy_r < 0 && power_r < 0)
		domain_set_unreadable(d, cray->env, has_energy ? meter->energy.path : meter->power.path,
			has_energy ? energy_r : power_r);
}

static void add_accelerators(struct cray *cray)
{
	size_t before = cray->n;
	for (int i = 0; i < ACCELERATORS_MAX; i++) {
		char prefix[16], name[16];
		snprintf(prefix, sizeof(prefix), "accel%d_", i);
		snprintf(name, sizeof(name), "gpu-%d", i);
		size_t n = cray->n;
		add_meter(cray, prefix, DOMAIN_GPU, name);
		if (cray->n > n)
			cray->domains[n].index = i;
	}
	if (cray->n == before) // XC has one file without a number
		add_meter(cray, "accel_", DOMAIN_GPU, "gpu-0");
}

static void read_scan_rate(struct cray *cray)
{
	char path[96];
	uint64_t hz;
	snprintf(path, sizeof(path), "%s/raw_scan_hz", folder);
	if (file_read_u64_in(cray->env->sysfs_fd, path, &hz) < 0 || hz == 0 || hz > 1000000)
		return;
	for (size_t i = 0; i < cray->n; i++)
		cray->domains[i].update_period_ns = NS_PER_S / (int64_t)hz;
}

static int open_sensor(void *state, const struct wattle_env *env, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	struct cray *cray = state;
	cray->env = env;
	cray->first_t_ns = VALUE_MISSING;
	add_meter(cray, "", DOMAIN_NODE, "node");
	add_meter(cray, "cpu_", DOMAIN_PACKAGE, "package-0"); // sum of all sockets
	add_meter(cray, "memory_", DOMAIN_DRAM, "dram-0");
	add_accelerators(cray);
	read_scan_rate(cray);
	open_file(&cray->freshness, env, "", "freshness");
	open_file(&cray->startup, env, "", "startup");
	return 0;
}

static struct domain *domains(void *state, size_t *ret_count)
{
	struct cray *cray = state;
	*ret_count = cray->n;
	return cray->domains;
}

static void detect_restart(struct cray *cray)
{
	uint64_t startup;
	if (file_kept_read_u64(&cray->startup, &startup) < 0)
		return;
	for (size_t i = 0; cray->startup_known && startup != cray->last_startup && i < cray->n; i++)
		cray->meters[i].restarted = true;
	cray->last_startup = startup;
	cray->startup_known = true;
}

static void report_energy(struct cray *cray, size_t i, const struct line *line, int64_t t_ns, int64_t *row)
{
	struct meter *meter = &cray->meters[i];
	int64_t raw_uj = line->value * 1000000;
	if (meter->restarted && value_ok(meter->last_uj))
		meter->base_uj = meter->last_uj - raw_uj +
			counter_restart_jump_uj(cray->domains[i].max_power_w, t_ns - cray->first_t_ns);
	meter->restarted = false;
	meter->last_uj = row[DEVICE_ENERGY_RAW] = meter->base_uj + raw_uj;
	if (value_ok(line->stamp_ns))
		row[DEVICE_ENERGY_TIME] = stamp_to_monotonic(&meter->clock, line->stamp_ns, t_ns);
}

static void read_all(struct cray *cray, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	for (size_t i = 0; i < cray->n; i++) {
		struct line line;
		if (!cray->domains[i].used)
			continue;
		if (cray->domains[i].has_energy && read_line(&cray->meters[i].energy, 'J', &line) == 0)
			report_energy(cray, i, &line, context->t_ns, rows[i]);
		if (!context->energy_only && read_line(&cray->meters[i].power, 'W', &line) == 0)
			rows[i][DEVICE_POWER] = line.value * 1000;
	}
}

// The controller updates all files in one scan. A scan during our reads would mix two sets of values.
static void read_sensor(void *state, const struct sensor_context *context, int64_t (*rows)[DEVICE_COUNT])
{
	struct cray *cray = state;
	uint64_t before, after;
	if (cray->n == 0)
		return;
	if (!value_ok(cray->first_t_ns))
		cray->first_t_ns = context->t_ns;
	detect_restart(cray);
	for (int i = 0; i < TRIES_MAX; i++) {
		bool known = file_kept_read_u64(&cray->freshness, &before) == 0;
		read_all(cray, context, rows);
		if (!known || file_kept_read_u64(&cray->freshness, &after) < 0 || after == before)
			return;
	}
}

static void close_sensor(void *state)
{
	struct cray *cray = state;
	if (cray->env == NULL)
		return;
	for (size_t i = 0; i < cray->n; i++) {
		file_kept_close(&cray->meters[i].energy);
		file_kept_close(&cray->meters[i].power);
	}
	file_kept_close(&cray->freshness);
	file_kept_close(&cray->startup);
}

const struct sensor_ops sensor_cray = {
	.name = "cray",
	.state_size = sizeof(struct cray),
	.open = open_sensor,
	.domains = domains,
	.read = read_sensor,
	.close = close_sensor,
};
