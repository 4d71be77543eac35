#include "store/list.h"

#include "fixture.h"

static void record(struct fixture *f, const char *name, int64_t start_s, bool finished)
{
	char path[160];
	snprintf(path, sizeof(path), "%s/%s", f->folder, name);
	f->header.anchor_mono_ns = fixture_mono_ns + start_s * NS_PER_S;
	f->header.anchor_wall_ns = fixture_wall_ns + start_s * NS_PER_S;
	f->header.run_id = name;
	void *store = fixture_open(&store_run_file, &(struct store_open_options){.path = path}, &f->header);
	assert_int_equal(fixture_write(f, &store_run_file, store, 0, 5, start_s * NS_PER_S), 0);
	struct store_footer footer = fixture_footer(5);
	footer.start_ns = f->header.anchor_mono_ns;
	footer.end_ns += start_s * NS_PER_S;
	if (finished)
		assert_int_equal(store_run_file.finish(store, &footer, NULL), 0);
	fixture_close(&store_run_file, store, false);
}

static void write_text(struct fixture *f, const char *name, const char *text)
{
	char path[160];
	snprintf(path, sizeof(path), "%s/%s", f->folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void patch(struct fixture *f, const char *name, long at, char byte)
{
	char path[160];
	snprintf(path, sizeof(path), "%s/%s", f->folder, name);
	int fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void a_folder(void **state)
{
	struct fixture *f = *state;
	record(f, "later.db", 3600, true);
	record(f, "earlier", 60, true); // no suffix needed
	record(f, "dead.sqlite", 7200, false);
	record(f, "newer.sqlite", 0, true);
	patch(f, "newer.sqlite", 63, 9); // user_version
	record(f, "torn.sqlite", 1, true);
	patch(f, "torn.sqlite", 100, 99); // the first table's page
	write_text(f, "notes.sqlite", "SQLite format 3 is what I use");
	write_text(f, "empty", "");
	char pipe[160];
	snprintf(pipe, sizeof(pipe), "%s/pipe", f->folder);
	assert_int_equal(mkfifo(pipe, 0600), 0);

	struct arena *arena = arena_new();
	struct run_listing *runs;
	size_t n;
	assert_int_equal(list_runs(f->folder, arena, &runs, &n, NULL), 0);
	assert_int_equal(n, 5);
	assert_string_equal(runs[0].id, "earlier");
	assert_int_equal(runs[0].wall_start_ns, fixture_wall_ns + 60 * NS_PER_S);
	assert_true(fabs(runs[0].duration_s - 0.5) < 1e-9);
	assert_true(runs[0].complete);
	assert_int_equal(runs[0].samples, 5);
	assert_int_equal(runs[0].segments, 1);
	assert_int_equal(runs[0].exit_code, 130);
	assert_string_equal(runs[0].label, "first try");
	assert_string_equal(runs[0].host, "node-1");
	assert_non_null(strstr(runs[0].command_json, "train.py"));
	assert_null(runs[0].problem);
	assert_string_equal(runs[1].id, "later.db");
	assert_string_equal(runs[2].id, "dead.sqlite");
	assert_false(runs[2].complete);
	assert_true(fabs(runs[2].duration_s - 0.4) < 1e-9); // up to its last sample
	assert_int_equal(runs[2].exit_code, VALUE_MISSING);
	// Unreadable files are last, with the reason.
	assert_non_null(strstr(runs[3].problem, "newer wattle (schema 9"));
	assert_non_null(strstr(runs[4].path, "/torn.sqlite"));
	assert_non_null(runs[4].problem);
	assert_true(isnan(runs[4].duration_s));
	arena_free(arena);
}

static void no_folder(void **state)
{
	struct fixture *f = *state;
	struct arena *arena = arena_new();
	struct run_listing *runs;
	size_t n;
	struct wattle_error error = {0};
	assert_int_equal(list_runs(f->folder, arena, &runs, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_int_equal(list_runs(f->path, arena, &runs, &n, &error), -ENOENT);
	assert_non_null(strstr(error.text, f->path));
	write_text(f, "file", "x");
	snprintf(f->path, sizeof(f->path), "%s/file", f->folder);
	assert_int_equal(list_runs(f->path, arena, &runs, &n, &error), -ENOTDIR);
	arena_free(arena);
}

int main(void)
{
	struct rows rows = {0};
	fixture_add(&rows, "run files of any name in order of start, damaged ones last", a_folder);
	fixture_add(&rows, "an empty folder, none, and a file", no_folder);
	return rows_run(&rows, "list");
}
