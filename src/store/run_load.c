#include "store/run.h"

#include "base/arena.h"
#include "store/job_runs.h"
#include "store/output_file.h"
#include "store/run_read.h"
#include "store/sql.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int read_table(struct run_reader *reader, struct run *run);

// clang-format off
static read_table *const all_tables[] = {run_read_metadata, run_read_devices, run_read_samples, run_read_device_samples,
	run_read_process_samples, run_read_segments, run_read_processes, run_read_events, run_read_spans, NULL};
static read_table *const device_tables[] = {run_read_metadata, run_read_devices, run_read_samples, run_read_device_samples,
	run_read_segments, run_read_events, NULL};
static read_table *const thin_tables[] = {run_read_metadata, run_read_devices, run_read_samples, run_read_device_samples,
	run_read_segments, run_read_processes, run_read_events, run_read_spans, NULL};
static read_table *const no_spans_tables[] = {run_read_metadata, run_read_devices, run_read_samples, run_read_device_samples,
	run_read_segments, run_read_processes, run_read_events, NULL};
// clang-format on

// The parts of a run to load.
struct part {
	read_table *const *tables;
	struct run_range range;
	int64_t every_ns; // 0: every sample of the range
};

static int read_tables(struct run_reader *reader, const struct part *part, struct run *run)
{
	int r = sql_exec(reader->db, "BEGIN");
	if (r == SQLITE_OK && part->every_ns > 0)
		r = run_thin(reader, part->every_ns);
	for (read_table *const *tables = part->tables; r == SQLITE_OK && *tables != NULL; tables++)
		r = (*tables)(reader, run);
	return r;
}

static int fail(const struct run_reader *reader, int result, const char *path, struct wattle_error *reterr)
{
	if (result == SQLITE_NOMEM && arena_bytes(reader->arena) > reader->max_bytes)
		return error_set(reterr, -EINVAL, "%s: its rows need more memory than is plausible for a file of this size",
			path);
	if (result == SQLITE_NOMEM)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	int last = sqlite3_errcode(reader->db); // error of a page read without SQLite
	bool is_sql = last != SQLITE_OK && last != SQLITE_ROW && last != SQLITE_DONE;
	int code = is_sql ? sql_fail(reader->db, path, NULL) : -EINVAL;
	return error_set(reterr, code == -EBUSY ? -EBUSY : -EINVAL, "%s is damaged: %s", path,
		is_sql ? sql_reason(reader->db) : sqlite3_errstr(result));
}

// Reads the run's id before the transaction begins: the id never changes.
static void open_spool(struct run_reader *reader, const char *path)
{
	char run_id[40] = "";
	sqlite3_stmt *s = NULL;
	if (sqlite3_prepare_v2(reader->db, "SELECT value FROM run WHERE key = 'id'", -1, &s, NULL) == SQLITE_OK &&
		sqlite3_step(s) == SQLITE_ROW)
		sql_copy_text(s, 0, run_id, sizeof(run_id));
	sqlite3_finalize(s);
	reader->spool_fd = run_id[0] != '\0' ? spool_open_reader(path, run_id, &reader->spool) : -1;
}

/* Worst case per row: 64 bytes in a file of 60 columns without a value, and 480 bytes here, thus 8 bytes per file byte. Arrays
 * that double leave the smaller ones in the arena: up to 4 times that. The constant part is for files of a few pages. */
static size_t max_bytes(const struct run_reader *reader, const char *path)
{
	enum { BASE = 64 << 20, PER_BYTE = 32 };
	struct stat st;
	int64_t bytes = sql_guard_file_bytes(path);
	if (reader->spool_fd >= 0 && fstat(reader->spool_fd, &st) == 0)
		bytes += sql_guard_stored_bytes(&st);
	return BASE + (size_t)bytes * PER_BYTE;
}

static int load(const char *path, const struct part *part, struct run *ret_run, struct wattle_error *reterr)
{
	int r = file_type_check_run(path, reterr);
	if (r < 0)
		return r;
	struct run_reader reader = {.source = &run_source_file,
		.arena = arena_new(),
		.spool_fd = -1,
		.ranges = &part->range,
		.n_ranges = 1};
	struct run run = {.arena = reader.arena};
	if (reader.arena == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	r = sql_open_reader(path, &reader.db, reterr);
	if (r == 0) {
		open_spool(&reader, path);
		reader.max_bytes = max_bytes(&reader, path);
		int result = read_tables(&reader, part, &run);
		r = result == SQLITE_OK ? 0 : fail(&reader, result, path, reterr);
	}
	sqlite3_close(reader.db);
	if (reader.spool_fd >= 0)
		close(reader.spool_fd);
	if (r < 0) {
		run_finish(&run);
		return r;
	}
	run.anchor_mono_ns = run_metadata_i64(&run, "anchor_mono_ns");
	run.anchor_wall_ns = run_metadata_i64(&run, "anchor_wall_ns");
	*ret_run = run;
	return 0;
}

int run_load(const char *path, struct run *ret_run, struct wattle_error *reterr)
{
	const struct part part = {all_tables, {INT64_MIN, INT64_MAX}, 0};
	return load(path, &part, ret_run, reterr);
}

int run_load_devices(const char *path, int64_t from_ns, int64_t to_ns, struct run *ret_run, struct wattle_error *reterr)
{
	const struct part part = {device_tables, {from_ns, to_ns}, 0};
	return load(path, &part, ret_run, reterr);
}

int run_load_extent(const char *path, const struct run_extent *extent, struct run *ret_run, struct wattle_error *reterr)
{
	read_table *const *tables = extent->no_spans ? no_spans_tables
		: extent->every_ns > 0               ? thin_tables
						     : all_tables;
	const struct part part = {tables, {INT64_MIN, INT64_MAX}, extent->every_ns};
	int r = load(path, &part, ret_run, reterr);
	if (r == 0)
		ret_run->has_left_out_spans = extent->no_spans;
	return r;
}
