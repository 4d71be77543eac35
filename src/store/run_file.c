#include "store/store.h"

#include "base/buf.h"
#include "store/output_file.h"
#include "store/run_write.h"
#include "store/schema.h"
#include "store/sql.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum statement {
	STATEMENT_BEGIN,
	STATEMENT_COMMIT,
	STATEMENT_SAMPLE, // + enum metric_scope: sample, device_sample, process_sample
	STATEMENT_PROCESS = STATEMENT_SAMPLE + METRIC_SCOPES,
	STATEMENT_EVENT,
	STATEMENTS
};

/* In a fast sampling most rows are short: no metric has a value beyond the first ones. Several of them in one
 * statement take two thirds of the time that they take one by one. They wait until there are enough. */
enum { SHORT_METRICS = 3, SHORT_ROWS = 24 };
struct short_rows {
	sqlite3_stmt *insert;
	const struct record *rows[SHORT_ROWS];
	size_t n;
};

struct state {
	struct output_file output;
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS]; // compiled once
	struct short_rows short_rows[METRIC_SCOPES];
	int64_t *device_ids; // of the recorder's devices; owned
	size_t n_devices;
	int64_t segment;  // row of this recording
	int64_t shift_ns; // added to every time: an appended segment may have another clock
	struct run_spans spans;
	struct run_profile profile;
	bool finished;
};

static int fail(const struct state *s, struct wattle_error *reterr)
{
	return sql_fail(s->db, s->output.path, reterr);
}

static int64_t shifted(const struct state *s, int64_t t_ns)
{
	return value_ok(t_ns) ? t_ns + s->shift_ns : VALUE_MISSING;
}

/* Opening */

static int write_header(struct state *s, sqlite3 *db, const struct store_header *header)
{
	int r = sql_exec(db, "BEGIN IMMEDIATE");
	if (r == SQLITE_OK)
		r = s->output.is_new ? run_header_create(db, header) : run_header_continue(db, header, &s->shift_ns);
	if (r == SQLITE_OK)
		r = run_header_devices(db, header, s->device_ids);
	if (r == SQLITE_OK)
		r = run_header_segment(db, header, s->shift_ns, &s->segment);
	return r == SQLITE_OK ? sql_exec(db, "COMMIT") : r;
}

// The whole header into a file that has no name yet, then the name.
static int make_file(struct state *s, const struct store_header *header, struct wattle_error *reterr)
{
	sqlite3 *db;
	int r = sql_open_builder(s->output.temporary_path, &db, reterr);
	if (r < 0)
		return r;
	if (write_header(s, db, header) != SQLITE_OK)
		r = sql_fail(db, s->output.path, reterr);
	sqlite3_close(db);
	return r < 0 ? r : output_file_publish(&s->output, reterr);
}

static int prepare(struct state *s, enum statement which, const char *sql)
{
	return sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->statements[which], NULL);
}

static int prepare_samples(struct state *s, enum metric_scope scope, size_t n_metrics, size_t n_rows,
	sqlite3_stmt **ret)
{
	struct buf sql;
	buf_init(&sql, 65536);
	schema_insert_samples(&sql, scope, n_metrics, n_rows);
	int r = sql.failed != 0 ? SQLITE_NOMEM
				: sqlite3_prepare_v3(s->db, sql.data, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
	buf_finish(&sql);
	return r;
}

static int prepare_all(struct state *s)
{
	int r = prepare(s, STATEMENT_BEGIN, "BEGIN IMMEDIATE");
	if (r == SQLITE_OK)
		r = prepare(s, STATEMENT_COMMIT, "COMMIT");
	for (enum metric_scope scope = METRIC_RUN; r == SQLITE_OK && scope < METRIC_SCOPES; scope++) {
		size_t n;
		metric_table(scope, &n);
		r = prepare_samples(s, scope, n, 1, &s->statements[STATEMENT_SAMPLE + scope]);
		if (r == SQLITE_OK && scope != METRIC_PROCESS)
			r = prepare_samples(s, scope, SHORT_METRICS, SHORT_ROWS, &s->short_rows[scope].insert);
	}
	if (r == SQLITE_OK)
		r = prepare(s, STATEMENT_PROCESS,
			"INSERT OR REPLACE INTO process (pid, start_ns, end_ns, ppid, command, "
			"cpu_ns, max_rss_bytes, is_main, sampled) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
	if (r == SQLITE_OK)
		r = prepare(s, STATEMENT_EVENT,
			"INSERT INTO event (t_ns, kind, reason, device, sensor, pid, rank, count, duration_ns, old_value, "
			"new_value, detail, text, slept_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
	return r;
}

static int open_file(struct state *s, const struct store_header *header, struct wattle_error *reterr)
{
	int r = s->output.is_new ? make_file(s, header, reterr) : file_type_check_run(s->output.path, reterr);
	if (r < 0)
		return r;
	r = sql_open_writer(s->output.path, &s->db, reterr);
	if (r < 0)
		return r;
	if (!s->output.is_new && write_header(s, s->db, header) != SQLITE_OK) {
		r = fail(s, reterr);
		sql_rollback(s->db);
		return r;
	}
	r = prepare_all(s);
	if (r == SQLITE_OK)
		r = run_spans_open(&s->spans, s->db, s->output.path, s->segment, s->shift_ns);
	if (r != SQLITE_OK)
		return fail(s, reterr);
	sql_guard_lift_limit(s->db);
	return 0;
}

static int run_file_open(void *state, const struct store_open_options *options, const struct store_header *header,
	struct wattle_error *reterr)
{
	struct state *s = state;
	*s = (struct state){.n_devices = header->n_devices};
	s->output.fd = s->spans.spool.fd = -1;
	s->device_ids = calloc_array(header->n_devices, sizeof(*s->device_ids));
	if (s->device_ids == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", options->path);
	int r = output_file_open(&s->output, options, "run file", reterr);
	return r < 0 ? r : open_file(s, header, reterr);
}

/* Writing */

// The only metric that is a time on the run's clock.
static bool is_time(const struct record *record, uint32_t metric)
{
	return record->scope == METRIC_DEVICE && metric == DEVICE_ENERGY_TIME;
}

// From parameter `column` on; *column is then the one after the last.
static void bind_record(struct state *s, sqlite3_stmt *insert, const struct record *record, size_t n_metrics,
	int *column)
{
	sql_bind_i64(insert, (*column)++, shifted(s, record->t_ns));
	if (record->scope == METRIC_DEVICE)
		sql_bind_i64(insert, (*column)++, s->device_ids[record->id]);
	if (record->scope == METRIC_PROCESS) {
		sql_bind_i64(insert, (*column)++, record->id);
		sql_bind_i64(insert, (*column)++, shifted(s, record->start_ns));
	}
	for (uint32_t i = 0; i < n_metrics; i++, ++*column)
		if (value_ok(record->values[i]))
			sqlite3_bind_int64(insert, *column,
				is_time(record, i) ? shifted(s, record->values[i]) : record->values[i]);
}

static int insert_records(struct state *s, sqlite3_stmt *insert, const struct record *const *records, size_t n,
	size_t n_metrics)
{
	int column = 1;
	sqlite3_clear_bindings(insert); // all NULL: in a fast sampling most values are missing
	for (size_t i = 0; i < n; i++)
		bind_record(s, insert, records[i], n_metrics, &column);
	return sql_run(insert);
}

static int insert_alone(struct state *s, const struct record *record)
{
	return insert_records(s, s->statements[STATEMENT_SAMPLE + record->scope], &record, 1, record->n_values);
}

// Rows that wait for others.
static int insert_waiting(struct state *s, struct short_rows *waiting)
{
	int r = SQLITE_OK;
	for (size_t i = 0; r == SQLITE_OK && i < waiting->n; i++)
		r = insert_alone(s, waiting->rows[i]);
	waiting->n = 0;
	return r;
}

static bool is_short(const struct record *record)
{
	for (uint32_t i = SHORT_METRICS; i < record->n_values; i++)
		if (value_ok(record->values[i]))
			return false;
	return record->scope != METRIC_PROCESS;
}

static int write_record(struct state *s, const struct record *record)
{
	if (record->scope == METRIC_DEVICE && (record->id < 0 || (size_t)record->id >= s->n_devices))
		return SQLITE_OK; // not one of the known devices
	struct short_rows *waiting = &s->short_rows[record->scope];
	if (!is_short(record)) { // rows in order of time only go to the last page of their table
		int r = insert_waiting(s, waiting);
		return r == SQLITE_OK ? insert_alone(s, record) : r;
	}
	waiting->rows[waiting->n++] = record;
	if (waiting->n < SHORT_ROWS)
		return SQLITE_OK;
	waiting->n = 0;
	return insert_records(s, waiting->insert, waiting->rows, SHORT_ROWS, SHORT_METRICS);
}

static int write_batch(struct state *s, const struct batch *batch)
{
	int r = SQLITE_OK;
	for (size_t i = 0; i < METRIC_SCOPES; i++)
		s->short_rows[i].n = 0;
	for (const struct record *record = batch_first(batch); r == SQLITE_OK && record != NULL;
		record = batch_next(batch, record))
		r = write_record(s, record);
	for (size_t i = 0; r == SQLITE_OK && i < METRIC_SCOPES; i++)
		r = insert_waiting(s, &s->short_rows[i]);
	return r;
}

static int write_process(struct state *s, const struct store_process *process)
{
	sqlite3_stmt *insert = s->statements[STATEMENT_PROCESS];
	sql_bind_i64(insert, 1, process->pid);
	sql_bind_i64(insert, 2, shifted(s, process->start_ns));
	sql_bind_i64(insert, 3, shifted(s, process->end_ns));
	sql_bind_i64(insert, 4, process->ppid);
	sql_bind_text(insert, 5, process->command);
	sql_bind_i64(insert, 6, process->cpu_ns);
	sql_bind_i64(insert, 7, process->max_rss_bytes);
	sql_bind_i64(insert, 8, process->is_main);
	sql_bind_i64(insert, 9, process->sampled);
	return sql_run(insert);
}

static int write_event(struct state *s, const struct store_event *stored)
{
	sqlite3_stmt *insert = s->statements[STATEMENT_EVENT];
	const struct event event = store_event_get(stored);
	struct buf sentence;
	buf_init(&sentence, 4096);
	event_sentence(&sentence, &event);
	sql_bind_i64(insert, 1, shifted(s, event.t_ns));
	sql_bind_text(insert, 2, event_kind_name(event.kind));
	sql_bind_text(insert, 3, event_type_reason(event.type));
	sql_bind_text(insert, 4, event.device);
	sql_bind_text(insert, 5, event.sensor);
	sql_bind_i64(insert, 6, event.pid);
	sql_bind_i64(insert, 7, event.rank);
	sql_bind_i64(insert, 8, event.count);
	sql_bind_i64(insert, 9, event.duration_ns);
	sql_bind_i64(insert, 10, event.old_value);
	sql_bind_i64(insert, 11, event.new_value);
	sql_bind_text(insert, 12, event.detail);
	sql_bind_text(insert, 13, sentence.data);
	sql_bind_i64(insert, 14, event.kind == EVENT_KIND_SUSPEND ? event.duration_ns : VALUE_MISSING);
	int r = sql_run(insert);
	buf_finish(&sentence);
	return r;
}

static int write_rows(struct state *s, const struct store_delivery *delivery)
{
	int r = sql_run(s->statements[STATEMENT_BEGIN]);
	if (r == SQLITE_OK && delivery->batch != NULL)
		r = write_batch(s, delivery->batch);
	for (size_t i = 0; r == SQLITE_OK && i < delivery->n_processes; i++)
		r = write_process(s, &delivery->processes[i]);
	for (size_t i = 0; r == SQLITE_OK && i < delivery->n_events; i++)
		r = write_event(s, &delivery->events[i]);
	if (r == SQLITE_OK)
		r = run_spans_write(&s->spans, &delivery->spans);
	if (r == SQLITE_OK && delivery->profile.event != NULL)
		r = run_profile_write(&s->profile, s->db, s->segment, s->shift_ns, &delivery->profile);
	return r == SQLITE_OK ? sql_run(s->statements[STATEMENT_COMMIT]) : r;
}

static int run_file_write(void *state, const struct store_delivery *delivery, struct wattle_error *reterr)
{
	struct state *s = state;
	output_file_discard_old(&s->output);
	if (write_rows(s, delivery) == SQLITE_OK)
		return 0;
	int r = fail(s, reterr);
	sql_rollback(s->db);
	return r;
}

static int run_file_spill(void *state, const struct store_spans *spans, struct wattle_error *reterr)
{
	struct state *s = state;
	int r = run_spans_spill(&s->spans, spans);
	return r < 0 ? error_set(reterr, r, "%s-spans: %s", s->output.path, strerror(-r)) : 0;
}

/* The end */

static int write_figures(struct state *s, const struct store_footer *footer)
{
	struct buf sql;
	buf_init(&sql, 65536);
	schema_update_figures(&sql);
	sqlite3_stmt *update = NULL;
	int r = sql.failed != 0 ? SQLITE_NOMEM : sqlite3_prepare_v2(s->db, sql.data, -1, &update, NULL);
	buf_finish(&sql);
	if (r != SQLITE_OK)
		return r;
	size_t n;
	const struct schema_figure *figures = schema_figures(&n);
	for (size_t i = 0; i < n; i++) {
		int64_t value;
		memcpy(&value, (const unsigned char *)footer + figures[i].in_footer, sizeof(value));
		sql_bind_i64(update, (int)i + 1, figures[i].is_time ? shifted(s, value) : value);
	}
	sql_bind_i64(update, (int)n + 1, s->segment);
	r = sql_run(update);
	sqlite3_finalize(update);
	return r;
}

static int mark_complete(struct state *s, const struct store_footer *footer)
{
	sqlite3_stmt *update = NULL;
	// The anchor is the start assumed so far; the other clocks follow the correction.
	int r = sqlite3_prepare_v2(s->db,
		"UPDATE segment SET complete = 1, cpu_method = ?2, "
		"wall_start_ns = wall_start_ns + coalesce(?3 - start_ns, 0), "
		"boot_start_ns = boot_start_ns + coalesce(?3 - start_ns, 0) WHERE id = ?1",
		-1, &update, NULL);
	if (r != SQLITE_OK)
		return r;
	sql_bind_i64(update, 1, s->segment);
	sql_bind_text(update, 2, footer->cpu_method);
	sql_bind_i64(update, 3, shifted(s, footer->start_ns));
	r = sql_run(update);
	sqlite3_finalize(update);
	return r;
}

static int write_end(struct state *s, const struct store_footer *footer)
{
	int r = sql_run(s->statements[STATEMENT_BEGIN]);
	if (r == SQLITE_OK)
		r = mark_complete(s, footer);
	if (r == SQLITE_OK)
		r = write_figures(s, footer);
	if (r == SQLITE_OK)
		r = run_header_periods(s->db, footer, s->device_ids);
	if (r == SQLITE_OK)
		r = run_header_update_complete(s->db);
	return r == SQLITE_OK ? sql_run(s->statements[STATEMENT_COMMIT]) : r;
}

static void release_statements(struct state *s)
{
	for (size_t i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(s->statements[i]);
	for (size_t i = 0; i < METRIC_SCOPES; i++)
		sqlite3_finalize(s->short_rows[i].insert);
	run_profile_close(&s->profile);
	memset(s->statements, 0, sizeof(s->statements));
	memset(s->short_rows, 0, sizeof(s->short_rows));
}

static int run_file_finish(void *state, const struct store_footer *footer, struct wattle_error *reterr)
{
	struct state *s = state;
	output_file_discard_old(&s->output);
	if (write_end(s, footer) != SQLITE_OK) {
		int r = fail(s, reterr);
		sql_rollback(s->db);
		return r;
	}
	s->finished = true;
	// If that fails the spool is kept, and is read as well.
	int gathered = run_spans_merge_spool(&s->spans, footer);
	int r = gathered == SQLITE_OK ? 0 : fail(s, reterr);
	run_spans_close(&s->spans);
	release_statements(s);
	if (r < 0)
		return r;
	if (!output_file_is_ours(&s->output))
		return error_set(reterr, -ENOENT, "%s was removed or replaced during the run", s->output.path);
	sql_merge_log(s->db);
	return 0;
}

// A file without a name is still readable through the open database.
static int run_file_save_partial(void *state, const char *path, struct wattle_error *reterr)
{
	struct state *s = state;
	if (output_file_is_ours(&s->output))
		return 0;
	sqlite3_stmt *copy = NULL;
	int r = sqlite3_prepare_v2(s->db, "VACUUM INTO ?1", -1, &copy, NULL);
	if (r == SQLITE_OK) {
		sql_bind_text(copy, 1, path);
		r = sql_run(copy);
	}
	sqlite3_finalize(copy);
	struct stat ours; // SQLite creates the copy with the umask's mode
	if (r == SQLITE_OK && fstat(s->output.fd, &ours) == 0)
		chmod(path, ours.st_mode & 0666);
	return r == SQLITE_OK ? 1 : sql_fail(s->db, path, reterr);
}

// The command never started: in an appended-to file only the own segment is removed.
static void take_back_segment(struct state *s)
{
	sqlite3_stmt *statement = NULL;
	if (sql_exec(s->db, "BEGIN IMMEDIATE") != SQLITE_OK)
		return;
	int r = sqlite3_prepare_v2(s->db, "DELETE FROM segment WHERE id = ?", -1, &statement, NULL);
	if (r == SQLITE_OK) {
		sql_bind_i64(statement, 1, s->segment);
		r = sql_run(statement);
	}
	sqlite3_finalize(statement);
	if (r == SQLITE_OK)
		r = run_header_update_complete(s->db);
	if (r == SQLITE_OK)
		r = sql_exec(s->db, "COMMIT");
	sql_rollback(s->db);
	if (r == SQLITE_OK)
		sql_merge_log(s->db);
}

static void run_file_close(void *state, bool discard)
{
	struct state *s = state;
	run_spans_close(&s->spans);
	release_statements(s);
	if (discard && s->db != NULL && s->segment != 0 && !s->output.is_new && !s->finished)
		take_back_segment(s);
	sqlite3_close(s->db);
	s->db = NULL;
	output_file_close(&s->output, discard);
	free(s->device_ids);
	s->device_ids = NULL;
}

const struct store_ops store_run_file = {
	.name = "run file",
	.state_size = sizeof(struct state),
	.open = run_file_open,
	.write = run_file_write,
	.spill = run_file_spill,
	.finish = run_file_finish,
	.rescue = run_file_save_partial,
	.close = run_file_close,
};
