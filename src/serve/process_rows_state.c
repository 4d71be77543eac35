#include "serve/totals.h"

#include "base/redact.h"
#include "base/util.h"

static int64_t uid(const struct object_at *at)
{
	const struct process_row *row = at->data;
	return row->now.uid != (uid_t)-1 ? (int64_t)row->now.uid : VALUE_MISSING;
}

static bool has_row(const struct object_at *at)
{
	return ((const struct process_row *)at->data)->series.state != SERIES_NONE;
}

// clang-format off
#define P struct process_row
static const struct field row_fields[] = {
	FIELD_AS(P, "pid", now.pid, NULL, "process id"),
	FIELD_AS(P, "start_ticks", now.start_ticks, NULL, "when it started, in ticks since boot"),
	FIELD_AS(P, "command", now.command, NULL, "command line, or the name of the program", .known = true),
	FIELD_INTEGER("uid", uid, NULL, "user id"),
	FIELD_AS(P, "target", now.is_target, NULL, "whether it belongs to the watched program"),
	FIELD_BOOLEAN("is_shown", has_row, NULL, "whether it has its own metrics"),
	FIELD_AS(P, "ended", now.is_gone, NULL, "whether it has ended"),
	FIELD_AS(P, "energy_j", now.energy_j, "J", "energy attributed to it"),
	FIELD_AS(P, "cpu_ns", now.cpu_ns, "ns", "CPU time"),
};
#undef P
static const struct object_type row_type = OBJECT_TYPE("kept_process", "A process.", row_fields);

static const struct field process_rows_fields[] = {FIELD_ITEMS(struct process_rows, NULL, items, n, &row_type, "processes")};
const struct object_type process_rows_type = OBJECT_TYPE("kept_processes", "Processes.", process_rows_fields);
// clang-format on

/* ---- reading ---- */

static double take_joules(const json_t *object)
{
	const json_t *value = json_object_get(object, "energy_j");
	double energy_j = json_number_value(value);
	return json_is_number(value) && isfinite(energy_j) && energy_j >= 0 ? energy_j : (double)NAN;
}

static int64_t take_count(const json_t *object, const char *key, int64_t most)
{
	const json_t *value = json_object_get(object, key);
	json_int_t count = json_integer_value(value);
	return json_is_integer(value) && count >= 0 && count <= most ? count : VALUE_MISSING;
}

/* Applies the command-line detail of this server; the previous one may have shown more (a token, an earlier version). A
 * kernel thread has a bracketed name and no arguments to hide. */
static bool take_command(const struct process_rows *table, const json_t *object, struct monitor_process *process)
{
	const char *command = json_string_value(json_object_get(object, "command"));
	struct redactor redactor = {0};
	struct buf shown;
	if (command == NULL)
		return false;
	buf_init(&shown, sizeof(process->command) - 1);
	if (command[0] == '[')
		buf_str(&shown, command);
	else if (monitor_shows_arguments(table->arguments, process->uid))
		redact_word(&redactor, command, strlen(command), &shown);
	else
		redact_to_name(command, strlen(command), &shown);
	bool fits = shown.failed == 0 && shown.size > 0 &&
		text_copy(process->command, sizeof(process->command), shown.data);
	buf_finish(&shown);
	return fits;
}

static uid_t take_uid(const json_t *object)
{
	int64_t uid = take_count(object, "uid", UINT32_MAX);
	return value_ok(uid) ? (uid_t)uid : (uid_t)-1; // absent in files of earlier versions
}

/* An exported process stays exported until it is seen alive or has been scraped: it ended while no server was sampling. */
static void read_row(struct process_rows *table, const json_t *object, bool same_boot)
{
	const double none = (double)NAN;
	int64_t pid = take_count(object, "pid", INT32_MAX), start_ticks = take_count(object, "start_ticks", INT64_MAX);
	struct process_row row = {
		.now = {.pid = (pid_t)pid,
			.start_ticks = (uint64_t)start_ticks,
			.uid = take_uid(object),
			.is_target = json_is_true(json_object_get(object, "target")),
			.is_gone = !same_boot || json_is_true(json_object_get(object, "ended")),
			.cpu_cores = none,
			.cpu_ns = take_count(object, "cpu_ns", INT64_MAX),
			.rss_bytes = VALUE_MISSING,
			.gpu_percent = none,
			.gpu_memory_bytes = VALUE_MISSING,
			.power_w = none,
			.energy_j = take_joules(object)},
		.series.state = totals_was_shown(object) ? SERIES_LEAVING : SERIES_NONE,
	};
	if (pid <= 0 || !value_ok(pid) || !value_ok(start_ticks) || !take_command(table, object, &row.now) ||
		(row.now.is_gone && row.series.state == SERIES_NONE) ||
		process_rows_is_taken(table, NULL, row.now.pid, row.now.command))
		return;
	struct process_row *larger = array_reserve(table->items, table->n, &table->capacity, sizeof(*larger), 16);
	if (larger == NULL)
		return;
	table->items = larger;
	larger[table->n++] = row;
}

void process_rows_read(struct process_rows *table, const json_t *array, bool same_boot)
{
	size_t i;
	const json_t *row;
	json_array_foreach(array, i, row) if (table->n < table->bounds.most * (PROCESS_ROWS_REMEMBERED + 2))
		read_row(table, row, same_boot);
}

/* ---- processes whose counters continue ---- */

static int by_pid(const void *left, const void *right)
{
	const struct monitor_kept_process *a = left, *b = right;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

struct monitor_kept_process *process_rows_kept(const struct process_rows *table, size_t *ret_n)
{
	struct monitor_kept_process *kept = calloc_array(table->n, sizeof(*kept));
	size_t n = 0;
	for (size_t i = 0; kept != NULL && i < table->n; i++) {
		const struct monitor_process *now = &table->items[i].now;
		if (!now->is_gone && !isnan(now->energy_j))
			kept[n++] = (struct monitor_kept_process){now->pid, now->start_ticks, now->energy_j};
	}
	if (n > 1)
		qsort(kept, n, sizeof(*kept), by_pid);
	*ret_n = n;
	return kept;
}
