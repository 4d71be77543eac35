#include "store/sub_tracking.h"

#include "base/util.h"
#include "store/output_file.h"
#include "store/run.h"
#include "store/sql.h"

#include <errno.h>
#include <sys/stat.h>

/* Converts Unix time to the run's clock: each segment has its own anchor. */
struct clock_window {
	int64_t start_ns, end_ns, wall_start_ns;
};

enum { WINDOWS_MAX = 4096 };
struct clock_windows {
	struct clock_window *rows; // owned; sorted by wall clock
	size_t n;
};

static const char windows_sql[] = "SELECT start_ns, coalesce(end_ns, (SELECT max(t_ns) FROM sample), start_ns), "
				  "wall_start_ns FROM segment WHERE wall_start_ns IS NOT NULL ORDER BY wall_start_ns";

static int read_windows(sqlite3 *db, struct clock_windows *windows)
{
	windows->rows = calloc_array(WINDOWS_MAX, sizeof(*windows->rows));
	if (windows->rows == NULL)
		return SQLITE_NOMEM;
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(db, windows_sql, -1, &s, NULL);
	while (r == SQLITE_OK && windows->n < WINDOWS_MAX && (r = sqlite3_step(s)) == SQLITE_ROW) {
		windows->rows[windows->n++] = (struct clock_window){sql_i64(s, 0), sql_i64(s, 1), sql_i64(s, 2)};
		r = SQLITE_OK;
	}
	sqlite3_finalize(s);
	return r == SQLITE_DONE ? SQLITE_OK : r;
}

// VALUE_MISSING outside all segments.
static int64_t to_run_ns(const struct clock_windows *windows, double unix_s)
{
	if (isnan(unix_s) || fabs(unix_s) > 9e9) // year 2255: limit of nanoseconds in 64 bits
		return VALUE_MISSING;
	double whole_s = floor(unix_s); // separate from the fraction, so that no bit of the time is rounded away
	int64_t wall_ns = (int64_t)whole_s * NS_PER_S + llround((unix_s - whole_s) * 1e9);
	for (size_t i = 0; i < windows->n; i++) {
		const struct clock_window *window = &windows->rows[i];
		int64_t since_ns, t_ns;
		bool is_time = !__builtin_sub_overflow(wall_ns, window->wall_start_ns, &since_ns) &&
			!__builtin_add_overflow(window->start_ns, since_ns, &t_ns);
		if (is_time && t_ns >= window->start_ns && t_ns <= window->end_ns)
			return t_ns;
	}
	return VALUE_MISSING;
}

// Inserts only new calls, so that a file may be imported again.
static const char insert_sql[] =
	"INSERT INTO span (pid, name, begin_ns, end_ns) SELECT ?1, ?2, ?3, ?4 "
	"WHERE NOT EXISTS (SELECT 1 FROM temp.known WHERE pid = ?1 AND name = ?2 AND begin_ns = ?3)";

// VALUE_MISSING: the call has no end, or its end is out of range.
static int64_t end_of(const struct sub_tracking_call *call, int64_t begin_ns)
{
	static const double longest_s = 9e9;
	int64_t end_ns;
	double duration_s = call->end_s - call->begin_s;
	if (!(fabs(duration_s) <= longest_s) ||
		__builtin_add_overflow(begin_ns, (int64_t)llround(duration_s * 1e9), &end_ns))
		return VALUE_MISSING;
	return end_ns;
}

static int insert_call(sqlite3_stmt *insert, const struct clock_windows *windows, const struct sub_tracking_call *call)
{
	int64_t begin_ns = to_run_ns(windows, call->begin_s);
	if (!value_ok(begin_ns))
		return SQLITE_OK;
	sql_bind_i64(insert, 1, call->pid);
	sql_bind_text(insert, 2, call->name);
	sql_bind_i64(insert, 3, begin_ns);
	sql_bind_i64(insert, 4, end_of(call, begin_ns));
	return sql_run(insert);
}

static int insert_all(sqlite3 *db, const struct sub_tracking_call *calls, size_t n, int64_t *ret_n_spans)
{
	struct clock_windows windows = {0};
	sqlite3_stmt *insert = NULL;
	int r = read_windows(db, &windows);
	int64_t before = sqlite3_total_changes64(db);
	if (r == SQLITE_OK)
		r = sqlite3_prepare_v2(db, insert_sql, -1, &insert, NULL);
	for (size_t i = 0; r == SQLITE_OK && i < n; i++)
		r = insert_call(insert, &windows, &calls[i]);
	*ret_n_spans = sqlite3_total_changes64(db) - before;
	sqlite3_finalize(insert);
	free(windows.rows);
	return r;
}

static int import(const char *run_path, const struct sub_tracking_call *calls, size_t n, int64_t *ret_n_spans,
	struct wattle_error *reterr)
{
	sqlite3 *db = NULL;
	int r = sql_open_writer(run_path, &db, reterr);
	if (r < 0)
		return r;
	int result = sql_exec(db,
		"CREATE TEMP TABLE known (pid, name, begin_ns, PRIMARY KEY (pid, name, begin_ns)) "
		"WITHOUT ROWID; BEGIN IMMEDIATE; "
		"INSERT OR IGNORE INTO temp.known SELECT coalesce(pid, 0), name, begin_ns FROM main.span");
	if (result == SQLITE_OK)
		result = insert_all(db, calls, n, ret_n_spans);
	if (result == SQLITE_OK)
		result = sql_exec(db, "COMMIT");
	if (result != SQLITE_OK) {
		r = sql_fail(db, run_path, reterr);
		sql_rollback(db);
	}
	sql_exec(db, "DROP TABLE IF EXISTS temp.known");
	sql_merge_log(db);
	sqlite3_close(db);
	return r;
}

int sub_tracking_import(const char *run_path, const char *sub_tracking_path, size_t *ret_n_spans,
	struct wattle_error *reterr)
{
	int r = file_type_check_run(run_path, reterr);
	if (r < 0)
		return r;
	// Opening a pipe would block forever if no process writes to it.
	struct stat st;
	if (stat(sub_tracking_path, &st) == 0 && !S_ISREG(st.st_mode))
		return error_set(reterr, -EINVAL,
			"%s is not a regular file; give the file to which the program writes its blocks",
			sub_tracking_path);
	struct arena *arena = arena_new();
	if (arena == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", sub_tracking_path);
	struct sub_tracking_call *calls;
	size_t n, n_orphans;
	int64_t n_spans = 0;
	r = sub_tracking_read(sub_tracking_path, arena, &calls, &n, &n_orphans, reterr);
	if (r == 0)
		r = import(run_path, calls, n, &n_spans, reterr);
	arena_free(arena);
	if (r == 0)
		*ret_n_spans = (size_t)n_spans;
	return r;
}
