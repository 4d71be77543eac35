#include "store/output_file.h"

#include "store/sql.h"

int run_set_metadata(const char *path, const char *key, const char *value, struct wattle_error *reterr)
{
	sqlite3 *db;
	sqlite3_stmt *s = NULL;
	int r = file_type_check_run(path, reterr);
	if (r == 0)
		r = sql_open_writer(path, &db, reterr);
	if (r < 0)
		return r;
	int result = sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO run (key, value) VALUES (?, ?)", -1, &s, NULL);
	if (result == SQLITE_OK) {
		sql_bind_text(s, 1, key);
		sql_bind_text(s, 2, value);
		result = sql_run(s);
	}
	sqlite3_finalize(s);
	r = result == SQLITE_OK ? 0 : sql_fail(db, path, reterr);
	if (r == 0)
		sql_merge_log(db);
	sqlite3_close(db);
	return r;
}
