/* The wall-clock times of a run file's rows, and their levels for reports. */
#include "store/postgres/send.h"

#include <errno.h>

/* ---- segments and sleeps ---- */

static int read_segment(struct source *source, sqlite3_stmt *s)
{
	struct run *run = &source->clocks;
	struct run_segment *larger = realloc_array(run->segments, run->n_segments + 1, sizeof(*larger));
	if (larger == NULL)
		return SQLITE_NOMEM;
	run->segments = larger;
	larger[run->n_segments++] = (struct run_segment){
		.id = sql_i64(s, 0),
		.start_ns = sql_i64(s, 1),
		.wall_start_ns = sql_i64(s, 2),
	};
	return SQLITE_OK;
}

// Calls `row` for every row of a query. SQLite result code.
static int each_row(struct source *source, const char *sql, int64_t from, int (*row)(struct source *, sqlite3_stmt *))
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(source->db, sql, -1, &s, NULL);
	if (r == SQLITE_OK && sqlite3_bind_parameter_count(s) > 0)
		sqlite3_bind_int64(s, 1, from);
	while (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW)
		r = row(source, s);
	sqlite3_finalize(s);
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

static int read_sleep(struct source *source, sqlite3_stmt *s)
{
	struct run *run = &source->clocks;
	struct run_sleep *larger = realloc_array(run->sleeps, run->n_sleeps + 1, sizeof(*larger));
	if (larger == NULL)
		return SQLITE_NOMEM;
	run->sleeps = larger;
	larger[run->n_sleeps++] = (struct run_sleep){.t_ns = sql_i64(s, 0), .slept_ns = sql_i64(s, 1)};
	source->last_sleep_row = sql_i64(s, 2);
	return SQLITE_OK;
}

// Events are in row order, so events read earlier are not read again.
static int read_sleeps(struct source *source)
{
	if (sqlite3_table_column_metadata(source->db, NULL, "event", "slept_ns", NULL, NULL, NULL, NULL, NULL) !=
		SQLITE_OK)
		return SQLITE_OK;
	int64_t newest = sql_read_i64(source->db, "SELECT max(rowid) FROM event", 0);
	int r = each_row(source,
		"SELECT t_ns, slept_ns, rowid FROM event WHERE rowid > ? AND slept_ns IS NOT NULL ORDER BY rowid",
		source->last_sleep_row, read_sleep);
	if (r == SQLITE_OK)
		source->last_sleep_row = newest;
	return r;
}

static int64_t read_metadata_value(struct source *source, const char *sql)
{
	return sql_read_i64(source->db, sql, VALUE_MISSING);
}

static int64_t last_tick_before(struct source *source, int64_t t_ns)
{
	sqlite3_stmt *s = NULL;
	int64_t last_ns = VALUE_MISSING;
	if (sqlite3_prepare_v2(source->db, "SELECT max(t_ns) FROM sample WHERE t_ns < ?", -1, &s, NULL) == SQLITE_OK) {
		sqlite3_bind_int64(s, 1, t_ns);
		last_ns = sqlite3_step(s) == SQLITE_ROW ? sql_i64(s, 0) : VALUE_MISSING;
	}
	sqlite3_finalize(s);
	return last_ns;
}

// Finds the end of each recording, and the time up to which a running one is final.
static int find_ends(struct source *source)
{
	const struct run *run = &source->clocks;
	int64_t *larger = realloc_array(source->last_ns, run->n_segments, sizeof(*larger));
	if (larger == NULL)
		return SQLITE_NOMEM;
	source->last_ns = larger;
	for (size_t i = 0; i < run->n_segments; i++) {
		bool is_last = i + 1 == run->n_segments;
		larger[i] = last_tick_before(source, is_last ? INT64_MAX : run->segments[i + 1].start_ns);
		if (is_last && source->is_live) {
			source->before_ns = larger[i] > run->segments[i].start_ns ? larger[i]
										  : run->segments[i].start_ns;
			larger[i] = INT64_MAX;
		}
	}
	return SQLITE_OK;
}

int source_read_clocks(struct source *source)
{
	source->clocks.n_segments = 0;
	source->clocks.anchor_mono_ns = read_metadata_value(source,
		"SELECT CAST(value AS INTEGER) FROM run WHERE key = 'anchor_mono_ns'");
	source->clocks.anchor_wall_ns = read_metadata_value(source,
		"SELECT CAST(value AS INTEGER) FROM run WHERE key = 'anchor_wall_ns'");
	source->wall_from_ns = source->wall_to_ns = 0;
	source->before_ns = source->is_live ? INT64_MIN : INT64_MAX;
	int r = each_row(source, "SELECT id, start_ns, wall_start_ns FROM segment ORDER BY id", 0, read_segment);
	if (r == SQLITE_OK)
		r = read_sleeps(source);
	return r == SQLITE_OK ? find_ends(source) : r;
}

/* ---- the wall clock ---- */

// The offset between the clocks is constant until the next segment or suspend.
static void renew_offset(struct source *source, int64_t t_ns)
{
	const struct run *run = &source->clocks;
	source->wall_from_ns = t_ns;
	source->wall_to_ns = INT64_MAX;
	for (size_t i = 0; i < run->n_segments; i++)
		if (run->segments[i].start_ns > t_ns && run->segments[i].start_ns < source->wall_to_ns)
			source->wall_to_ns = run->segments[i].start_ns;
	for (size_t i = 0; i < run->n_sleeps; i++)
		if (run->sleeps[i].t_ns > t_ns && run->sleeps[i].t_ns < source->wall_to_ns)
			source->wall_to_ns = run->sleeps[i].t_ns;
	int64_t wall_ns = run_wall_ns(run, t_ns);
	if (!value_ok(wall_ns) || __builtin_sub_overflow(wall_ns, t_ns, &source->wall_offset_ns))
		source->wall_from_ns = source->wall_to_ns = 0;
}

int64_t source_wall_ns(struct source *source, int64_t t_ns)
{
	if (t_ns < source->wall_from_ns || t_ns >= source->wall_to_ns)
		renew_offset(source, t_ns);
	int64_t wall_ns;
	bool is_known = source->wall_from_ns < source->wall_to_ns &&
		!__builtin_add_overflow(t_ns, source->wall_offset_ns, &wall_ns);
	return is_known ? wall_ns : VALUE_MISSING;
}

/* ---- levels ---- */

static size_t segment_of(const struct run *run, int64_t t_ns)
{
	size_t i = 0;
	while (i + 1 < run->n_segments && run->segments[i + 1].start_ns <= t_ns)
		i++;
	return i;
}

static int64_t find_previous(struct source *source, enum layout_table table, int64_t device)
{
	if (!value_ok(source->previous_mark))
		return VALUE_MISSING;
	if (table == LAYOUT_SAMPLE)
		return source->previous_mark;
	sqlite3_stmt *s = NULL;
	int64_t t_ns = VALUE_MISSING;
	if (sqlite3_prepare_v2(source->db,
		    "SELECT t_ns FROM device_sample WHERE device = ?1 AND t_ns <= ?2 ORDER BY t_ns DESC LIMIT 1", -1,
		    &s, NULL) == SQLITE_OK) {
		sqlite3_bind_int64(s, 1, device);
		sqlite3_bind_int64(s, 2, source->previous_mark);
		t_ns = sqlite3_step(s) == SQLITE_ROW ? sql_i64(s, 0) : VALUE_MISSING;
	}
	sqlite3_finalize(s);
	return t_ns;
}

// Where the time of a device's previous row is stored; NULL: nowhere.
static int64_t *previous_of(struct source *source, int64_t device)
{
	enum { DEVICES_MAX = 1 << 16 };
	static const int64_t unknown = INT64_MAX;
	if (device < 0 || device >= DEVICES_MAX)
		return NULL;
	if ((size_t)device >= source->n_previous) {
		size_t n = (size_t)device + 16;
		int64_t *larger = realloc_array(source->previous_ns, n, sizeof(*larger));
		if (larger == NULL)
			return NULL;
		for (size_t i = source->n_previous; i < n; i++)
			larger[i] = unknown;
		source->previous_ns = larger;
		source->n_previous = n;
	}
	return &source->previous_ns[device];
}

void source_begin_levels(struct source *source, int64_t mark)
{
	source->previous_mark = mark;
	source->n_previous = 0;
}

enum pg_level source_level(struct source *source, enum layout_table table, int64_t device, int64_t t_ns, bool has_raw)
{
	int64_t *previous_ns = previous_of(source, device);
	if (previous_ns == NULL)
		return PG_LEVEL_MINUTE;
	if (*previous_ns == INT64_MAX)
		*previous_ns = find_previous(source, table, device);
	int64_t before_ns = *previous_ns;
	*previous_ns = t_ns;
	const struct run *run = &source->clocks;
	size_t segment = segment_of(run, t_ns);
	bool is_first = !value_ok(before_ns) ||
		(segment < run->n_segments && before_ns < run->segments[segment].start_ns);
	bool is_end = segment < run->n_segments && t_ns >= source->last_ns[segment];
	if (has_raw || is_first || is_end || before_ns / (60 * NS_PER_S) != t_ns / (60 * NS_PER_S))
		return PG_LEVEL_MINUTE;
	return before_ns / NS_PER_S != t_ns / NS_PER_S ? PG_LEVEL_SECOND : PG_LEVEL_REST;
}
