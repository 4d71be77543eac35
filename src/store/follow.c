#include "store/follow.h"

#include "base/util.h"
#include "store/output_file.h"
#include "store/sql.h"

#include <errno.h>
#include <unistd.h>

int follow_read(const char *path, follow_reader *read, void *data, struct wattle_error *reterr)
{
	sqlite3 *db;
	int r = file_type_check_run(path, reterr);
	if (r < 0)
		return r;
	r = sql_open_reader(path, &db, reterr);
	if (r == 0) {
		int result = sql_exec(db, "BEGIN");
		if (result == SQLITE_OK)
			result = read(data, db);
		if (result == SQLITE_NOMEM)
			r = error_set(reterr, -ENOMEM, "out of memory");
		else if (result != SQLITE_OK)
			r = sql_fail(db, path, reterr);
	}
	sqlite3_close(db);
	return r;
}

int follow_last_segment(sqlite3 *db, struct follow_segment *ret_segment)
{
	static const char select[] =
		"SELECT id, start_ns, coalesce(shift_ns, 0), pid, complete, spool_bytes IS NOT NULL, boot_id, host "
		"FROM segment ORDER BY id DESC LIMIT 1";
	sqlite3_stmt *s = NULL;
	struct follow_segment segment = {.pid = VALUE_MISSING};
	int r = sqlite3_prepare_v2(db, select, -1, &s, NULL);
	if (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW) {
		segment.id = sql_i64(s, 0);
		segment.shift_ns = sql_i64(s, 2);
		segment.start_ns = sql_i64(s, 1) - segment.shift_ns;
		segment.pid = sql_i64(s, 3);
		segment.is_merging = sqlite3_column_int(s, 5) != 0;
		segment.is_over = segment.is_merging || sqlite3_column_int(s, 4) != 0;
		sql_copy_text(s, 6, segment.boot_id, sizeof(segment.boot_id));
		sql_copy_text(s, 7, segment.host, sizeof(segment.host));
	}
	sqlite3_finalize(s);
	if (r != SQLITE_ROW && r != SQLITE_DONE)
		return r;
	*ret_segment = segment;
	return SQLITE_OK;
}

int follow_spool(const char *path, sqlite3 *db, int64_t segment, int64_t *at, const struct spool_callbacks *callbacks)
{
	char run_id[40];
	struct spool_header header;
	sql_read_run_id(db, run_id, sizeof(run_id));
	int fd = spool_open_reader(path, run_id, &header);
	if (fd < 0)
		return SQLITE_OK;
	int r = header.segment == segment ? spool_read_on(fd, at, callbacks) : 0;
	close(fd);
	return r == -ENOMEM ? SQLITE_NOMEM : r < 0 ? SQLITE_IOERR : SQLITE_OK;
}
