#include "host.h"

#include "base/rng.h"
#include "metric/metric.h"
#include "store/postgres/tables.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RUN_ID, TIME, T_NS, DEVICE, LEVEL, METRIC, NOTHING };
#define NS_PER_MINUTE (60 * NS_PER_S)

void host_init(struct host *host, int64_t number)
{
	*host = (struct host){.number = number, .mono_ns = 1000 * NS_PER_S + number * INT64_C(7654321987)};
	struct rng rng = rng_init(8, (uint64_t)number);
	for (size_t i = 0; i < sizeof(host->run_id); i++)
		host->run_id[i] = (unsigned char)rng_next(&rng);
	char *at = host->run;
	for (size_t i = 0; i < sizeof(host->run_id); i++)
		at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", host->run_id[i]);
}

int64_t host_t_ns(const struct host *host, const struct fleet *fleet, int64_t tick)
{
	return host->mono_ns + tick * (NS_PER_S / fleet->hz);
}

/* ---- columns ---- */

static bool is_metric(enum metric_scope scope, const char *name, size_t *ret_metric)
{
	size_t n;
	const struct metric *metrics = metric_table(scope, &n);
	for (size_t i = 0; i < n; i++)
		if (strcmp(metrics[i].name, name) == 0) {
			*ret_metric = i;
			return true;
		}
	return false;
}

static int source_of(const char *name)
{
	static const char *const keys[] =
		{[RUN_ID] = "run_id", [TIME] = "time", [T_NS] = "t_ns", [DEVICE] = "device", [LEVEL] = "level"};
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(keys[i], name) == 0)
			return (int)i;
	return NOTHING;
}

void host_table_init(struct host_table *table, enum layout_table which, const struct layout_server *server)
{
	*table = (struct host_table){.name = layout_names[which].name, .n = server->n};
	enum metric_scope scope = which == LAYOUT_SAMPLE ? METRIC_RUN : METRIC_DEVICE;
	for (size_t i = 0; i < table->n; i++) {
		const struct layout_column *asked = &server->columns[i];
		struct host_column *column = &table->columns[i];
		*column = (struct host_column){asked->name, asked->type, source_of(asked->name), 0};
		if (column->source == NOTHING && is_metric(scope, column->name, &column->metric))
			column->source = METRIC;
	}
}

void host_table_copy_sql(const struct host_table *table, struct buf *out)
{
	buf_printf(out, "COPY %s (", table->name);
	for (size_t i = 0; i < table->n; i++)
		buf_printf(out, "%s\"%s\"", i > 0 ? ", " : "", table->columns[i].name);
	buf_str(out, ") FROM STDIN (FORMAT binary)");
}

/* ---- values ---- */

// As in a store: the first and the last of a run, else the first in its minute, in its second, or neither.
static int level_of(const struct host *host, const struct fleet *fleet, int64_t tick)
{
	int64_t t_ns = host_t_ns(host, fleet, tick), before_ns = host_t_ns(host, fleet, tick - 1);
	if (tick == 0 || tick == fleet->seconds * fleet->hz - 1 || t_ns / NS_PER_MINUTE != before_ns / NS_PER_MINUTE)
		return PG_LEVEL_MINUTE;
	return t_ns / NS_PER_S != before_ns / NS_PER_S ? PG_LEVEL_SECOND : PG_LEVEL_REST;
}

static bool is_gpu(int64_t device)
{
	return device >= (int64_t)2 * HOST_SOCKETS;
}

static int64_t power_mw(const struct host *host, int64_t device)
{
	int64_t spread_mw = (host->number * HOST_DEVICES + device) % 97 * 1000;
	if (is_gpu(device))
		return 350000 + spread_mw;
	return device < HOST_SOCKETS ? 150000 + spread_mw : 20000 + spread_mw / 10;
}

static int64_t energy_uj(const struct host *host, const struct fleet *fleet, int64_t device, int64_t tick)
{
	return power_mw(host, device) * tick * (1000 / fleet->hz);
}

struct reading { // variation around the minimum
	int64_t least;
	uint32_t swing;
};
static const struct reading gpu_readings[DEVICE_COUNT] = {
	[DEVICE_POWER_AVERAGE] = {350000, 90000},
	[DEVICE_POWER_CAP] = {700000, 1},
	[DEVICE_UTILIZATION] = {85, 15},
	[DEVICE_MEMORY_UTILIZATION] = {40, 30},
	[DEVICE_TARGET_UTILIZATION] = {80, 15},
	[DEVICE_OTHERS_UTILIZATION] = {0, 1},
	[DEVICE_MEMORY_USED] = {INT64_C(40000000000), 1 << 30},
	[DEVICE_MAIN_MEMORY] = {INT64_C(1000000000), 1 << 20},
	[DEVICE_TARGET_MEMORY] = {INT64_C(39000000000), 1 << 30},
	[DEVICE_OTHERS_MEMORY] = {0, 1},
	[DEVICE_TARGET_PROCESSES] = {2, 1},
	[DEVICE_OTHERS_PROCESSES] = {0, 1},
	[DEVICE_TEMPERATURE] = {55, 20},
	[DEVICE_SM_CLOCK] = {1700, 280},
	[DEVICE_MEMORY_CLOCK] = {2619, 1},
	[DEVICE_THROTTLE_REASONS] = {0, 8},
};

static int64_t gpu_value(size_t metric, struct rng *rng)
{
	const struct reading *reading = &gpu_readings[metric];
	return reading->swing == 0 ? VALUE_MISSING : reading->least + rng_below(rng, reading->swing);
}

static int64_t made_device_value(const struct host *host, const struct fleet *fleet, int64_t device, int64_t tick,
	size_t metric, struct rng *rng)
{
	switch (metric) {
	case DEVICE_ENERGY:
		return energy_uj(host, fleet, device, tick);
	case DEVICE_ENERGY_RAW: // start of counting
		return tick == 0 ? 0 : VALUE_MISSING;
	case DEVICE_POWER:
		return is_gpu(device) ? power_mw(host, device) : VALUE_MISSING;
	case DEVICE_TEMPERATURE:
		return 50 + rng_below(rng, 30);
	default:
		return is_gpu(device) ? gpu_value(metric, rng) : VALUE_MISSING;
	}
}

static int64_t made_run_value(const struct host *host, const struct fleet *fleet, int64_t tick, size_t metric,
	struct rng *rng)
{
	size_t n;
	if (metric_table(METRIC_RUN, &n)[metric].kind == METRIC_GAUGE)
		return INT64_C(1000000) * (int64_t)(metric + 1) + rng_below(rng, 1 << 20);
	return host->number + tick * (NS_PER_S / fleet->hz) * (int64_t)(metric + 1) / 4;
}

/* ---- rows ---- */

static void add_key(const struct host *host, const struct fleet *fleet, const struct host_column *column, int64_t tick,
	int64_t device, struct copy *out)
{
	switch (column->source) {
	case RUN_ID:
		copy_uuid(out, host->run_id);
		break;
	case TIME:
		copy_time(out, fleet->wall_start_ns + tick * (NS_PER_S / fleet->hz));
		break;
	case T_NS:
		copy_i64(out, column->type, host_t_ns(host, fleet, tick));
		break;
	case DEVICE:
		copy_i64(out, column->type, device);
		break;
	case LEVEL:
		copy_i64(out, column->type, level_of(host, fleet, tick));
		break;
	default:
		copy_null(out);
	}
}

static void add_metric(enum pg_type type, int64_t value, struct copy *out)
{
	if (value_ok(value))
		copy_i64(out, type, value);
	else
		copy_null(out);
}

int64_t host_samples(const struct host *host, const struct fleet *fleet, const struct host_table *table, int64_t from,
	int64_t to, struct copy *out)
{
	struct rng rng = rng_init((uint64_t)host->number, (uint64_t)from);
	for (int64_t tick = from; tick < to; tick++) {
		copy_row(out, table->n);
		for (const struct host_column *c = table->columns; c < table->columns + table->n; c++)
			if (c->source == METRIC)
				add_metric(c->type, made_run_value(host, fleet, tick, c->metric, &rng), out);
			else
				add_key(host, fleet, c, tick, 0, out);
	}
	return to - from;
}

int64_t host_device_samples(const struct host *host, const struct fleet *fleet, const struct host_table *table,
	int64_t from, int64_t to, struct copy *out)
{
	struct rng rng = rng_init((uint64_t)host->number, ~(uint64_t)from);
	for (int64_t tick = from; tick < to; tick++)
		for (int64_t device = 0; device < HOST_DEVICES; device++) {
			copy_row(out, table->n);
			for (const struct host_column *c = table->columns; c < table->columns + table->n; c++)
				if (c->source == METRIC)
					add_metric(c->type,
						made_device_value(host, fleet, device, tick, c->metric, &rng), out);
				else
					add_key(host, fleet, c, tick, device, out);
		}
	return (to - from) * HOST_DEVICES;
}

double host_job_j(const struct fleet *fleet, int64_t job)
{
	double sum_j = 0;
	for (int64_t number = job * HOST_JOB_RANKS; number < (job + 1) * HOST_JOB_RANKS && number < fleet->hosts;
		number++) {
		struct host host;
		host_init(&host, number);
		for (int64_t device = 0; device < HOST_DEVICES; device++)
			sum_j += (double)energy_uj(&host, fleet, device, fleet->seconds * fleet->hz - 1) * 1e-6;
	}
	return sum_j;
}

/* ---- the small tables ---- */

static void add_fact(struct jsonw *j, const char *key, const char *value)
{
	jsonw_begin_object(j);
	jsonw_key_string(j, "key", key);
	jsonw_key_string(j, "value", value);
	jsonw_end_object(j);
}

__attribute__((format(printf, 3, 4))) static void add_fact_of(struct jsonw *j, const char *key, const char *format, ...)
{
	char text[128];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	add_fact(j, key, text);
}

static int64_t ranks_of(const struct fleet *fleet, int64_t job)
{
	int64_t left = fleet->hosts - job * HOST_JOB_RANKS;
	return left < HOST_JOB_RANKS ? left : HOST_JOB_RANKS;
}

static void add_facts(const struct host *host, const struct fleet *fleet, struct jsonw *j)
{
	int64_t job = host->number / HOST_JOB_RANKS;
	jsonw_key(j, "run");
	jsonw_begin_array(j);
	add_fact(j, "id", host->run);
	add_fact_of(j, "host", "host-%04" PRId64, host->number);
	add_fact_of(j, "node", "host-%04" PRId64, host->number);
	add_fact_of(j, "machine", "simulated-%" PRId64, host->number);
	add_fact_of(j, "boot_id", "simulated-%" PRId64, host->number);
	add_fact_of(j, "interval_ns", "%" PRId64, NS_PER_S / fleet->hz);
	add_fact_of(j, "anchor_mono_ns", "%" PRId64, host->mono_ns);
	add_fact_of(j, "anchor_wall_ns", "%" PRId64, fleet->wall_start_ns);
	add_fact(j, "command", "[\"./train\"]");
	add_fact(j, "user", "simulated");
	add_fact(j, "n_cores", "128");
	add_fact(j, "expected_cores", "128");
	add_fact_of(j, "job_id", "job-%" PRId64, job);
	add_fact(j, "job_launcher", "slurm");
	add_fact_of(j, "rank", "%" PRId64, host->number % HOST_JOB_RANKS);
	add_fact(j, "local_rank", "0");
	add_fact_of(j, "world_size", "%" PRId64, ranks_of(fleet, job));
	add_fact_of(j, "n_nodes", "%" PRId64, ranks_of(fleet, job));
	jsonw_end_array(j);
}

static void add_device(const struct host *host, int64_t device, struct jsonw *j)
{
	static const struct {
		const char *kind, *device, *source;
		int64_t resolution_uj, update_period_ns;
	} kinds[] = {{"package", "intel-rapl", "powercap", 61, 1000000},
		{"dram", "intel-rapl", "powercap", 61, 1000000},
		{"gpu", "NVIDIA H100 80GB HBM3", "nvml", 1000, 100000000}};
	size_t kind = is_gpu(device) ? 2 : device >= HOST_SOCKETS;
	int64_t number = is_gpu(device) ? device - (int64_t)2 * HOST_SOCKETS : device % HOST_SOCKETS;
	char name[48], uuid[64];
	snprintf(name, sizeof(name), "%s-%" PRId64, kinds[kind].kind, number);
	snprintf(uuid, sizeof(uuid), "GPU-%.28s-%07" PRId64, host->run, number);
	jsonw_begin_object(j);
	jsonw_key_i64(j, "id", device);
	jsonw_key_string(j, "kind", kinds[kind].kind);
	jsonw_key_string(j, "name", name);
	jsonw_key_string(j, "uuid", is_gpu(device) ? uuid : NULL);
	jsonw_key_string(j, "device", kinds[kind].device);
	jsonw_key_i64(j, "idx", number);
	jsonw_key_string(j, "source", kinds[kind].source);
	jsonw_key_string(j, "provenance", "measured");
	jsonw_key_i64(j, "has_energy", 1);
	jsonw_key_i64(j, "resolution_uj", kinds[kind].resolution_uj);
	jsonw_key_i64(j, "update_period_ns", kinds[kind].update_period_ns);
	jsonw_end_object(j);
}

static void add_segment(const struct host *host, const struct fleet *fleet, bool complete, struct jsonw *j)
{
	int64_t samples = fleet->seconds * fleet->hz;
	jsonw_key(j, "segment");
	jsonw_begin_array(j);
	jsonw_begin_object(j);
	jsonw_key_i64(j, "id", 1);
	jsonw_key_i64(j, "start_ns", host->mono_ns);
	jsonw_key_i64(j, "wall_start_ns", fleet->wall_start_ns);
	jsonw_key_i64(j, "shift_ns", 0);
	jsonw_key_string(j, "command", "[\"./train\"]");
	jsonw_key_i64(j, "complete", complete);
	if (complete) {
		jsonw_key_i64(j, "end_ns", host_t_ns(host, fleet, samples - 1));
		jsonw_key_i64(j, "exit_code", 0);
		jsonw_key_i64(j, "samples", samples);
		jsonw_key_i64(j, "lost_samples", 0);
	}
	jsonw_end_object(j);
	jsonw_end_array(j);
}

static void add_time(struct jsonw *j, const char *key, int64_t wall_ns)
{
	time_t seconds = wall_ns / NS_PER_S;
	struct tm tm;
	char text[64];
	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	jsonw_key_string(j, key, text);
}

static void add_recording(const struct host *host, const struct fleet *fleet, bool complete, struct jsonw *j)
{
	int64_t job = host->number / HOST_JOB_RANKS;
	char text[64];
	jsonw_key(j, "recording");
	jsonw_begin_object(j);
	snprintf(text, sizeof(text), "host-%04" PRId64, host->number);
	jsonw_key_string(j, "host", text);
	jsonw_key_string(j, "node", text);
	snprintf(text, sizeof(text), "simulated-%" PRId64, host->number);
	jsonw_key_string(j, "machine", text);
	snprintf(text, sizeof(text), "job-%" PRId64, job);
	jsonw_key_string(j, "job_id", text);
	jsonw_key_string(j, "job_launcher", "slurm");
	jsonw_key_string(j, "user_name", "simulated");
	jsonw_key_i64(j, "rank", host->number % HOST_JOB_RANKS);
	jsonw_key_i64(j, "local_rank", 0);
	jsonw_key_i64(j, "world_size", ranks_of(fleet, job));
	jsonw_key_i64(j, "interval_ns", NS_PER_S / fleet->hz);
	jsonw_key_string(j, "command", "[\"./train\"]");
	add_time(j, "started", fleet->wall_start_ns);
	jsonw_key_bool(j, "complete", complete);
	if (complete) {
		add_time(j, "ended", fleet->wall_start_ns + fleet->seconds * NS_PER_S);
		jsonw_key_double(j, "duration_s", (double)fleet->seconds);
		jsonw_key_i64(j, "samples", fleet->seconds * fleet->hz);
		jsonw_key_i64(j, "segments", 1);
		jsonw_key_i64(j, "exit_code", 0);
	}
	jsonw_end_object(j);
}

void host_header(const struct host *host, const struct fleet *fleet, struct jsonw *j)
{
	jsonw_begin_object(j);
	add_facts(host, fleet, j);
	jsonw_key(j, "device");
	jsonw_begin_array(j);
	for (int64_t device = 0; device < HOST_DEVICES; device++)
		add_device(host, device, j);
	jsonw_end_array(j);
	add_segment(host, fleet, false, j);
	add_recording(host, fleet, false, j);
	jsonw_end_object(j);
}

void host_footer(const struct host *host, const struct fleet *fleet, struct jsonw *j)
{
	jsonw_begin_object(j);
	add_segment(host, fleet, true, j);
	add_recording(host, fleet, true, j);
	jsonw_end_object(j);
}
