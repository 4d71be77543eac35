#include "store/follow.h"

#include "store/output_file.h"
#include "store/run_write.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static bool has_spool(const char *path)
{
	char spool[OUTPUT_FILE_PATH_SIZE + 8];
	spool_path(path, spool, sizeof(spool));
	return access(spool, F_OK) == 0;
}

static bool is_marked_complete(const char *path)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *s = NULL;
	struct wattle_error ignored = {0};
	bool complete = false;
	if (sql_open_reader(path, &db, &ignored) == 0 &&
		sqlite3_prepare_v2(db, "SELECT 1 FROM run WHERE key = 'complete' AND value = 'true'", -1, &s, NULL) ==
			SQLITE_OK)
		complete = sqlite3_step(s) == SQLITE_ROW;
	sqlite3_finalize(s);
	sqlite3_close(db);
	return complete;
}

bool spool_merge_is_writer_alive(const char *path)
{
	enum output_file_recorder recorder = output_file_recorder(path);
	return recorder == OUTPUT_FILE_RECORDER_LIVES ||
		(recorder == OUTPUT_FILE_RECORDER_UNKNOWN && !is_marked_complete(path));
}

// This process writes no rows of its own: segment 0 does not exist.
static int gather(const char *path, struct wattle_error *reterr)
{
	sqlite3 *db = NULL;
	int r = sql_open_writer(path, &db, reterr);
	if (r < 0)
		return r;
	struct run_spans spans;
	if (run_spans_open(&spans, db, path, 0, 0) != SQLITE_OK)
		r = sql_fail(db, path, reterr);
	run_spans_close(&spans);
	if (r == 0)
		sql_merge_log(db);
	sqlite3_close(db);
	return r;
}

int spool_merge_run_file(const char *path, struct wattle_error *reterr)
{
	if (!has_spool(path))
		return 0;
	int r = file_type_check_run(path, reterr);
	if (r < 0)
		return r;
	struct output_file output;
	const struct store_open_options options = {.path = path, .append = true};
	r = output_file_open(&output, &options, "run file", reterr);
	if (r == 0)
		r = gather(output.path, reterr);
	output_file_close(&output, false);
	return r;
}
