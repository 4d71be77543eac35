#include "store/run.h"

#include "base/arena.h"
#include "store/probe.h"
#include "store/run_read.h"
#include "store/sql.h"

#include <errno.h>

static int read_all(struct run_reader *reader, struct run *run)
{
	static int (*const steps[])(struct run_reader *, struct run *) = {
		run_read_facts,
		run_read_devices,
		run_read_samples,
		run_read_device_samples,
		run_read_process_samples,
		run_read_segments,
		run_read_processes,
		run_read_events,
		run_read_spans,
		run_read_user_metrics,
	};
	int r = sql_exec(reader->db, "BEGIN");
	for (size_t i = 0; r == SQLITE_OK && i < ARRAY_SIZE(steps); i++)
		r = steps[i](reader, run);
	return r;
}

static int fail(const struct run_reader *reader, int result, const char *path, struct wattle_error *reterr)
{
	if (result == SQLITE_NOMEM)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	int code = sql_fail(reader->db, path, NULL);
	return error_set(reterr, code == -EBUSY ? -EBUSY : -EINVAL, "%s is damaged: %s", path,
		sqlite3_errmsg(reader->db));
}

int run_load(const char *path, struct run *ret_run, struct wattle_error *reterr)
{
	int r = probe_run_file(path, reterr);
	if (r < 0)
		return r;
	struct run_reader reader = {.arena = arena_new()};
	struct run run = {.arena = reader.arena};
	if (reader.arena == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	r = sql_open_reader(path, &reader.db, reterr);
	if (r == 0) {
		int result = read_all(&reader, &run);
		r = result == SQLITE_OK ? 0 : fail(&reader, result, path, reterr);
	}
	sqlite3_close(reader.db);
	if (r < 0) {
		run_finish(&run);
		return r;
	}
	run.anchor_mono_ns = run_fact_i64(&run, "anchor_mono_ns");
	run.anchor_wall_ns = run_fact_i64(&run, "anchor_wall_ns");
	*ret_run = run;
	return 0;
}
