#include "store/schema.h"

#include "base/util.h"
#include "store/run.h"
#include "store/store.h"

#include <assert.h>
#include <string.h>

#define FIGURE(column_, footer_, ...)                                                                                  \
	{                                                                                                              \
		.column = #column_, .in_footer = offsetof(struct store_footer, footer_),                               \
		.in_segment = offsetof(struct run_segment, column_), __VA_ARGS__                                       \
	}
static const struct schema_figure figures[] = {
	FIGURE(start_ns, start_ns, .is_time = true),
	FIGURE(end_ns, end_ns, .is_time = true),
	FIGURE(pid, pid),
	FIGURE(exit_code, exit_code),
	FIGURE(samples, n_samples),
	FIGURE(lost_samples, n_lost),
	FIGURE(main_cpu_ns, main_cpu_ns),
	FIGURE(descendants_cpu_ns, descendants_cpu_ns),
	FIGURE(referee_cpu_ns, referee_cpu_ns),
	FIGURE(processes_seen, processes_seen),
	FIGURE(processes_sampled, processes_sampled),
	FIGURE(peak_rss_bytes, peak_rss_bytes),
	FIGURE(main_peak_rss_bytes, main_peak_rss_bytes),
	FIGURE(read_bytes, read_bytes),
	FIGURE(written_bytes, written_bytes),
	FIGURE(major_faults, major_faults),
	FIGURE(minor_faults, minor_faults),
	FIGURE(voluntary_switches, voluntary_switches),
	FIGURE(involuntary_switches, involuntary_switches),
	FIGURE(self_cpu_ns, self_cpu_ns),
	FIGURE(self_max_rss_bytes, self_max_rss_bytes),
	FIGURE(self_wakeups, self_wakeups),
	FIGURE(lost_spans, lost_spans),
	FIGURE(unwound_spans, unwound_spans),
};
#undef FIGURE

// clang-format off
/* Rows of one table are contiguous, in the order of its columns. */
static const struct schema_column columns[] = {
	{"run", "key", "TEXT PRIMARY KEY NOT NULL", "", "name of a property of the run; the names are in docs/run-file.md"},
	{"run", "value", "TEXT", "", "value of the property, as text"},

	{"metric", "table_name", "TEXT NOT NULL", "", "table of the column"},
	{"metric", "name", "TEXT NOT NULL", "", "name of the column"},
	{"metric", "unit", "TEXT", "", "its unit"},
	{"metric", "kind", "TEXT", "", "counter: only differences are meaningful; gauge: the value at that instant; fact"},
	{"metric", "meaning", "TEXT", "", "meaning of the column"},
	{"metric", "source", "TEXT", "", "source of the value"},

	{"sample", "t_ns", "INTEGER PRIMARY KEY NOT NULL", "ns", "time of the sample, CLOCK_MONOTONIC"},

	{"device", "id", "INTEGER PRIMARY KEY NOT NULL", "", "number of the device in this file"},
	{"device", "kind", "TEXT NOT NULL", "", "package, core, uncore, dram, psys, gpu, node, module, battery, wall or gpu-memory"},
	{"device", "name", "TEXT NOT NULL", "", "name of the domain: package-0, dram-0, gpu-0 ..."},
	{"device", "uuid", "TEXT", "", "UUID of a GPU"},
	{"device", "device", "TEXT", "", "name of the hardware: intel-rapl:0, NVIDIA H100 80GB HBM3 ..."},
	{"device", "inside", "TEXT", "", "name of the domain that contains this one"},
	{"device", "idx", "INTEGER", "", "NVML's index of a GPU, else number of the socket or node"},
	{"device", "source", "TEXT NOT NULL", "", "sensor: powercap, nvml, model ..."},
	{"device", "provenance", "TEXT NOT NULL", "", "measured, derived or estimated"},
	{"device", "has_energy", "INTEGER NOT NULL", "", "1: energy_uj is an energy counter; 0: power_mw is to be integrated"},
	{"device", "resolution_uj", "INTEGER", "uj", "smallest step of the counter"},
	{"device", "energy_range_uj", "INTEGER", "uj", "the hardware counter wraps at this value; wattle extends it"},
	{"device", "update_period_ns", "INTEGER", "ns", "how often the hardware updates its value"},
	{"device", "update_jitter_ns", "INTEGER", "ns", "half of the spread of update_period_ns"},
	{"device", "idle_w", "REAL", "w", "idle power, measured before the run (wattle sensors --calibrate-idle)"},
	{"device", "idle_error_w", "REAL", "w", "error of idle_w, half of a 95 percent interval"},
	{"device", "idle_temperature_c", "REAL", "c", "temperature at which idle_w was measured"},
	{"device", "idle_date", "TEXT", "", "when idle_w was measured, RFC 3339"},
	{"device", "gain", "REAL", "", "calibration of a GPU's power sensor: factor by which stored readings are multiplied; null: not calibrated"},
	{"device", "gain_error", "REAL", "", "relative error of gain, half of a 95 percent interval"},
	{"device", "gain_source", "TEXT", "", "source of gain: an option, or a calibration and its date"},
	{"device", "relative_error", "REAL", "", "relative error of a reading, 0.01 is 1 percent"},
	{"device", "memory_total_bytes", "INTEGER", "bytes", "memory of a GPU"},

	{"device_sample", "t_ns", "INTEGER NOT NULL", "ns", "time of the sample, CLOCK_MONOTONIC"},
	{"device_sample", "device", "INTEGER NOT NULL", "", "device.id"},

	{"process", "pid", "INTEGER NOT NULL", "", "process id"},
	{"process", "start_ns", "INTEGER NOT NULL", "ns", "when it started; identifies the process together with the pid"},
	{"process", "end_ns", "INTEGER", "ns", "when it ended; null: alive when recording ended"},
	{"process", "ppid", "INTEGER", "", "process id of its parent"},
	{"process", "command", "TEXT", "", "its command"},
	{"process", "cpu_ns", "INTEGER", "ns", "its own CPU time, user and system, without children"},
	{"process", "max_rss_bytes", "INTEGER", "bytes", "its largest resident memory"},
	{"process", "is_main", "INTEGER NOT NULL", "", "1: the root of the target"},
	{"process", "sampled", "INTEGER NOT NULL", "", "1: it was alive at one or more samples"},

	{"process_sample", "t_ns", "INTEGER NOT NULL", "ns", "time of the sample, CLOCK_MONOTONIC"},
	{"process_sample", "pid", "INTEGER NOT NULL", "", "process.pid"},
	{"process_sample", "start_ns", "INTEGER NOT NULL", "ns", "process.start_ns"},

	{"span", "id", "INTEGER PRIMARY KEY", "", "number of the span"},
	{"span", "parent", "INTEGER", "", "span.id of the span around it in the same thread"},
	{"span", "pid", "INTEGER", "", "process id"},
	{"span", "tid", "INTEGER", "", "thread id"},
	{"span", "name", "TEXT NOT NULL", "", "name of the code block"},
	{"span", "begin_ns", "INTEGER NOT NULL", "ns", "when it began"},
	{"span", "end_ns", "INTEGER", "ns", "when it ended; null: never, or still open"},
	{"span", "cpu_ns", "INTEGER", "ns", "CPU time of its thread during the span, with --span-cpu"},
	{"span", "category", "TEXT", "", "category set by the program"},
	{"span", "kind", "TEXT", "", "nested: begins and ends in one thread; range: started and stopped by a number, may overlap"},
	{"span", "close", "TEXT", "", "how it ended: ended, open, unwound (by the end of an outer one), thread end, exec, death"},

	{"user_metric", "t_ns", "INTEGER NOT NULL", "ns", "when the program reported the value"},
	{"user_metric", "name", "TEXT NOT NULL", "", "name set by the program: accuracy, tokens ..."},
	{"user_metric", "value", "REAL", "", "the value"},
	{"user_metric", "span", "INTEGER", "", "span.id of the innermost span open in its thread"},
	{"user_metric", "pid", "INTEGER", "", "process id"},
	{"user_metric", "tid", "INTEGER", "", "thread id"},

	{"event", "t_ns", "INTEGER NOT NULL", "ns", "when it happened"},
	{"event", "kind", "TEXT NOT NULL", "", "gap, wrap, reset, suspend, throttle, cap, sensors, segment, note, mark (of the program), warning, lost ..."},
	{"event", "reason", "TEXT", "", "name of the event within its kind; null: recorded by wattle before 1.0"},
	{"event", "device", "TEXT", "", "names of the affected domains, separated by blanks"},
	{"event", "sensor", "TEXT", "", "sensor that should read them"},
	{"event", "pid", "INTEGER", "", "sensors: process id of the other recorder"},
	{"event", "rank", "INTEGER", "", "sensors: its rank in the job"},
	{"event", "count", "INTEGER", "", "number of counted items"},
	{"event", "duration_ns", "INTEGER", "ns", "duration of the event"},
	{"event", "old_value", "INTEGER", "", "cap: the limit before, mW"},
	{"event", "new_value", "INTEGER", "", "cap: the limit now, mW; throttle: bits as throttle_reasons_bits; cgroup-peak-memory: bytes"},
	{"event", "detail", "TEXT", "", "message of the sensor or the system; mark: the name set by the program"},
	{"event", "text", "TEXT", "", "the event as a sentence, generated from the other columns"},
	{"event", "slept_ns", "INTEGER", "ns", "suspend: how long CLOCK_MONOTONIC stood still before t_ns"},

	{"segment", "id", "INTEGER PRIMARY KEY NOT NULL", "", "number of the recording in this file, from 1"},
	{"segment", "start_ns", "INTEGER NOT NULL", "ns", "when the target started"},
	{"segment", "end_ns", "INTEGER", "ns", "when it ended; null: still running, or the recorder died"},
	{"segment", "wall_start_ns", "INTEGER", "ns", "start_ns as Unix time"},
	{"segment", "boot_start_ns", "INTEGER", "ns", "start_ns on CLOCK_BOOTTIME; null: unknown, or a clock other than the file's"},
	{"segment", "shift_ns", "INTEGER NOT NULL", "ns", "offset added to this recording's clock so that times keep increasing"},
	{"segment", "boot_id", "TEXT", "", "boot ID of the machine"},
	{"segment", "host", "TEXT", "", "name of the machine"},
	{"segment", "pid", "INTEGER", "", "process id of the root process"},
	{"segment", "command", "TEXT", "", "the command, a JSON array"},
	{"segment", "exit_code", "INTEGER", "", "exit status returned by wattle: 128+N if signal N ended the command"},
	{"segment", "complete", "INTEGER NOT NULL", "", "0: the recorder is still running or has died"},
	{"segment", "cpu_method", "TEXT", "", "method by which the target's CPU time was measured"},
	{"segment", "samples", "INTEGER", "", "samples taken"},
	{"segment", "lost_samples", "INTEGER", "", "samples missed or not stored"},
	{"segment", "main_cpu_ns", "INTEGER", "ns", "CPU time of the root process"},
	{"segment", "descendants_cpu_ns", "INTEGER", "ns", "CPU time of all its descendants"},
	{"segment", "referee_cpu_ns", "INTEGER", "ns", "CPU time of the target by a second method"},
	{"segment", "processes_seen", "INTEGER", "", "processes of the target"},
	{"segment", "processes_sampled", "INTEGER", "", "processes that were alive at one or more samples"},
	{"segment", "peak_rss_bytes", "INTEGER", "bytes", "largest sum of resident memory over the target"},
	{"segment", "main_peak_rss_bytes", "INTEGER", "bytes", "VmHWM of the root process"},
	{"segment", "read_bytes", "INTEGER", "bytes", "read from storage"},
	{"segment", "written_bytes", "INTEGER", "bytes", "written to storage"},
	{"segment", "major_faults", "INTEGER", "", "page faults that read from storage"},
	{"segment", "minor_faults", "INTEGER", "", "page faults that did not read from storage"},
	{"segment", "voluntary_switches", "INTEGER", "", "context switches because a thread waited"},
	{"segment", "involuntary_switches", "INTEGER", "", "context switches because a thread was preempted"},
	{"segment", "self_cpu_ns", "INTEGER", "ns", "CPU time of wattle itself"},
	{"segment", "self_max_rss_bytes", "INTEGER", "bytes", "largest resident memory of wattle itself"},
	{"segment", "self_wakeups", "INTEGER", "", "wakeups of wattle"},
	{"segment", "lost_spans", "INTEGER", "", "spans, metrics and marks lost for lack of space"},
	{"segment", "unwound_spans", "INTEGER", "", "spans ended by the end of an outer span"},
	{"segment", "spool_bytes", "INTEGER", "bytes", "bytes of the spool file that are stored in the tables"},
};

/* Further properties of a table. A sample table is clustered by time: rows arrive in that order and are read in it. */
static const struct table {
	const char *name;
	int scope; // scope of the metrics that are its further columns; -1: none
	const char *primary_key, *options;
} tables[] = {
	{"run", -1, NULL, ""},
	{"metric", -1, "table_name, name", " WITHOUT ROWID"},
	{"sample", METRIC_RUN, NULL, ""},
	{"device", -1, NULL, ""},
	{"device_sample", METRIC_DEVICE, "t_ns, device", " WITHOUT ROWID"},
	{"process", -1, "pid, start_ns", " WITHOUT ROWID"},
	{"process_sample", METRIC_PROCESS, "t_ns, pid, start_ns", " WITHOUT ROWID"},
	{"span", -1, NULL, ""},
	{"user_metric", -1, NULL, ""},
	{"event", -1, NULL, ""},
	{"segment", -1, NULL, ""},
};
// clang-format on

const struct schema_figure *schema_figures(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(figures);
	return figures;
}

const struct schema_column *schema_columns(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(columns);
	return columns;
}

static const struct table *sample_table(enum metric_scope scope)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (tables[i].scope == (int)scope)
			return &tables[i];
	assert(!"every scope has a table");
	return NULL;
}

const char *schema_sample_table(enum metric_scope scope)
{
	return sample_table(scope)->name;
}

static void begin_table(struct buf *out, const struct table *table)
{
	buf_printf(out, "CREATE TABLE %s (", table->name);
	const char *comma = "";
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (strcmp(columns[i].table, table->name) != 0)
			continue;
		buf_printf(out, "%s%s %s", comma, columns[i].name, columns[i].type);
		comma = ", ";
	}
}

static void end_table(struct buf *out, const struct table *table)
{
	if (table->primary_key != NULL)
		buf_printf(out, ", PRIMARY KEY (%s)", table->primary_key);
	buf_printf(out, ")%s", table->options);
}

static void create_table(struct buf *out, const struct table *table)
{
	begin_table(out, table);
	size_t n = 0;
	const struct metric *metrics = table->scope >= 0 ? metric_table((enum metric_scope)table->scope, &n) : NULL;
	for (size_t i = 0; i < n; i++)
		buf_printf(out, ", %s INTEGER", metrics[i].name);
	end_table(out, table);
	buf_str(out, ";\n");
}

// Splits "NAME TYPE …, NAME TYPE …" up to `end`; columns after the keys must be plain integers.
static bool split_columns(const char *at, const char *end, size_t n_keys, struct schema_stored *stored)
{
	static const char integer[] = " INTEGER";
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	while (at < end) {
		const char *comma = memmem(at, (size_t)(end - at), ", ", 2);
		const char *next = comma != NULL ? comma : end;
		const char *name_end = at + strspn(at, letters);
		bool is_plain = (size_t)(next - name_end) == sizeof(integer) - 1 &&
			memcmp(name_end, integer, sizeof(integer) - 1) == 0;
		if (stored->n == SCHEMA_STORED_COLUMNS || name_end == at || (stored->n >= n_keys && !is_plain))
			return false;
		stored->names[stored->n++] = at;
		at = comma != NULL ? comma + 2 : end;
	}
	return true;
}

bool schema_stored_columns(enum metric_scope scope, const char *sql, struct schema_stored *ret_stored)
{
	const struct table *table = sample_table(scope);
	struct buf begin, end;
	buf_init(&begin, 4096);
	buf_init(&end, 4096);
	begin_table(&begin, table);
	end_table(&end, table);
	*ret_stored = (struct schema_stored){0};
	size_t size = sql != NULL ? strlen(sql) : 0;
	bool is_ours = begin.failed == 0 && end.failed == 0 && size >= begin.size + end.size &&
		memcmp(sql, begin.data, begin.size) == 0 && strchr(",)", sql[begin.size]) != NULL &&
		memcmp(sql + size - end.size, end.data, end.size) == 0 &&
		split_columns(strchr(sql, '(') + 1, sql + size - end.size, (size_t)schema_key_count(scope), ret_stored);
	buf_finish(&begin);
	buf_finish(&end);
	return is_ours;
}

void schema_create(struct buf *out)
{
	buf_printf(out, "PRAGMA application_id=%d; PRAGMA user_version=%d;\n", SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		create_table(out, &tables[i]);
}

int schema_key_count(enum metric_scope scope)
{
	const char *table = schema_sample_table(scope);
	int count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		count += strcmp(columns[i].table, table) == 0;
	return count;
}

void schema_insert_samples(struct buf *out, enum metric_scope scope, size_t n_metrics, size_t n_rows)
{
	const char *table = schema_sample_table(scope);
	size_t n;
	const struct metric *metrics = metric_table(scope, &n);
	// OR REPLACE: repeating a batch after a failure of unknown extent must not fail forever.
	buf_printf(out, "INSERT OR REPLACE INTO %s (", table);
	const char *comma = "";
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		if (strcmp(columns[i].table, table) != 0)
			continue;
		buf_printf(out, "%s%s", comma, columns[i].name);
		comma = ", ";
	}
	for (size_t i = 0; i < n_metrics && i < n; i++)
		buf_printf(out, ", %s", metrics[i].name);
	for (size_t row = 0; row < n_rows; row++) {
		buf_str(out, row == 0 ? ") VALUES (?" : ", (?");
		for (size_t i = 1; i < n_metrics + (size_t)schema_key_count(scope); i++)
			buf_str(out, ", ?");
		buf_str(out, ")");
	}
}

void schema_update_figures(struct buf *out)
{
	buf_str(out, "UPDATE segment SET ");
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++)
		buf_printf(out, "%s%s = coalesce(?, %s)", i > 0 ? ", " : "", figures[i].column, figures[i].column);
	buf_str(out, " WHERE id = ?");
}
