/* A segment of a run file: its row, and its offset on the file's clock. */
#include "store/run_read.h"
#include "store/run_write.h"

#include "base/jsonw.h"

static bool metadata_is(sqlite3 *db, const char *key, const char *value)
{
	sqlite3_stmt *statement = NULL;
	bool is = false;
	if (sqlite3_prepare_v2(db, "SELECT value = ?2 FROM run WHERE key = ?1", -1, &statement, NULL) == SQLITE_OK) {
		sql_bind_text(statement, 1, key);
		sql_bind_text(statement, 2, value);
		is = sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) == 1;
	}
	sqlite3_finalize(statement);
	return is;
}

/* Within one boot of one machine CLOCK_MONOTONIC is continuous. Otherwise the wall clock gives the offset; if the wall clock
 * was set back, at least the order is kept. */
int64_t run_header_shift_ns(sqlite3 *db, const struct store_header *header)
{
	int64_t shift_ns = 0;
	bool same_clock = header->boot_id[0] != '\0' && metadata_is(db, "boot_id", header->boot_id) &&
		metadata_is(db, "host", header->host);
	if (!same_clock) {
		int64_t mono_ns = sql_read_i64(db,
			"SELECT CAST(value AS INTEGER) FROM run WHERE key = 'anchor_mono_ns'", 0);
		int64_t wall_ns = sql_read_i64(db,
			"SELECT CAST(value AS INTEGER) FROM run WHERE key = 'anchor_wall_ns'", 0);
		// Clamped so that sums of these values cannot overflow, whatever the file contains.
		wall_ns = wall_ns >= 0 && wall_ns <= 4 * RUN_CLOCK_MAX_NS ? wall_ns : header->anchor_wall_ns;
		shift_ns = (header->anchor_wall_ns - wall_ns + run_clock_ns(mono_ns)) - header->anchor_mono_ns;
	}
	int64_t last_ns = sql_read_i64(db,
		"SELECT max(coalesce((SELECT max(t_ns) FROM sample), 0), coalesce((SELECT max(end_ns) FROM segment), 0))",
		0);
	if (header->anchor_mono_ns + shift_ns <= last_ns)
		shift_ns = last_ns + 1 - header->anchor_mono_ns;
	return shift_ns;
}

void run_header_command(struct buf *out, const char *const *command)
{
	struct jsonw j;
	jsonw_init(&j, out, false);
	jsonw_begin_array(&j);
	for (size_t i = 0; command != NULL && command[i] != NULL; i++)
		jsonw_string(&j, command[i]);
	jsonw_end_array(&j);
}

struct segment_row {
	const struct store_header *header;
	int64_t shift_ns;
	const char *command;
};

// After a reboot CLOCK_BOOTTIME restarts and is unrelated to the file's clock.
static int64_t boot_start_ns(const struct segment_row *row)
{
	bool known = row->header->anchor_boot_ns != 0 && row->shift_ns == 0;
	return known ? row->header->anchor_boot_ns : VALUE_MISSING;
}

static void bind_segment(sqlite3_stmt *s, const void *data)
{
	const struct segment_row *row = data;
	sql_bind_i64(s, 1, row->header->anchor_mono_ns + row->shift_ns);
	sql_bind_i64(s, 2, row->header->anchor_wall_ns);
	sql_bind_i64(s, 3, boot_start_ns(row));
	sql_bind_i64(s, 4, row->shift_ns);
	sql_bind_name(s, 5, row->header->boot_id);
	sql_bind_name(s, 6, row->header->host);
	sql_bind_text(s, 7, row->command);
}

static void bind_pid(sqlite3_stmt *s, const void *data)
{
	const struct store_header *header = data;
	sql_bind_i64(s, 1, header->pid);
}

int run_header_segment(sqlite3 *db, const struct store_header *header, int64_t shift_ns, int64_t *ret_id)
{
	struct buf command;
	buf_init(&command, RUN_HEADER_TEXT_CEILING);
	run_header_command(&command, header->command);
	struct segment_row row = {header, shift_ns, command.data};
	int r = command.failed != 0
		? SQLITE_NOMEM
		: sql_once(db,
			  "INSERT INTO segment (start_ns, wall_start_ns, boot_start_ns, shift_ns, boot_id, host, "
			  "command, complete) VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
			  bind_segment, &row);
	buf_finish(&command);
	*ret_id = r == SQLITE_OK ? sqlite3_last_insert_rowid(db) : 0;
	if (r == SQLITE_OK && header->pid > 0) // for readers of a run in progress
		r = sql_once(db, "UPDATE segment SET pid = ?1 WHERE id = last_insert_rowid()", bind_pid, header);
	return r;
}

int run_header_update_complete(sqlite3 *db)
{
	return sql_exec(db,
		"UPDATE run SET value = CASE WHEN (SELECT min(complete) FROM segment) = 1 "
		"THEN 'true' ELSE 'false' END WHERE key = 'complete'");
}
