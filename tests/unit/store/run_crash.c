/* Failures that a run file survives: a kill at any moment, a full disk, a removed folder, readers, files of a dead
 * recorder. Children report through _exit: 0, or the line of the first failed check. */
#include "fixture.h"

#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { BATCH = 10, NOBODY = 65534 };
static const struct store_ops *const ops = &store_run_file;

#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			_exit(__LINE__ % 256 > 0 ? __LINE__ % 256 : 255);                                              \
	} while (0)

static void assert_child_succeeds(pid_t child)
{
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0); // otherwise the line (modulo 256) of the MUST that failed
}

static void *open_in_child(struct fixture *f, const struct store_open_options *options)
{
	void *store = calloc(1, ops->state_size);
	MUST(ops->open(store, options, &f->header, NULL) == 0);
	return store;
}

static void write_for_ever(struct fixture *f, _Atomic int64_t *committed)
{
	void *store = open_in_child(f, &(struct store_open_options){.path = f->path});
	*committed = 0;
	for (int64_t i = 0;; i += BATCH) {
		MUST(fixture_write(f, ops, store, i, BATCH, 0) == 0);
		*committed = i + BATCH;
	}
}

// Starts a recorder that writes endlessly and kills it after `after_us` of writing. Returns what it had committed.
static int64_t record_and_kill(struct fixture *f, int64_t after_us)
{
	_Atomic int64_t *committed = mmap(NULL, sizeof(*committed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		-1, 0);
	assert_true(committed != MAP_FAILED);
	*committed = -1;
	pid_t child = fork();
	if (child == 0)
		write_for_ever(f, committed);
	while (*committed < 0 && waitpid(child, NULL, WNOHANG) == 0)
		usleep(50);
	usleep((useconds_t)after_us);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	int64_t n = *committed;
	munmap((void *)(uintptr_t)committed, sizeof(*committed));
	return n;
}

static void assert_dead_run(const char *path, int64_t committed)
{
	struct run run;
	fixture_load(path, &run);
	assert_string_equal(run_metadata(&run, "complete"), "false");
	assert_true((int64_t)run.n >= committed); // no committed row is lost
	assert_int_equal(run.n % BATCH, 0);       // and no batch is incomplete
	assert_int_equal(run.devices[0].n, run.n);
	for (size_t i = 0; i < run.n; i++)
		assert_int_equal(run.t_ns[i], fixture_t_ns((int64_t)i));
	assert_int_equal(run.n_segments, 1);
	assert_false(run.segments[0].complete);
	assert_int_equal(run.segments[0].end_ns, run.n > 0 ? run.t_ns[run.n - 1] : fixture_mono_ns);
	assert_int_equal(run.segments[0].main_cpu_ns, VALUE_MISSING);
	run_finish(&run);
}

static void a_kill_loses_nothing(void **state)
{
	struct fixture *f = *state;
	srand(1);
	for (int i = 0; i < 25; i++) {
		int64_t committed = record_and_kill(f, rand() % 20000);
		assert_true(committed >= 0);
		assert_dead_run(f->path, committed);
		assert_dead_run(f->path, committed); // reading changed nothing
		nftw(f->folder, fixture_unlink, 8, FTW_DEPTH | FTW_PHYS);
		assert_int_equal(mkdir(f->folder, 0700), 0);
	}
}

static void a_dead_file_is_appended_to(void **state)
{
	struct fixture *f = *state;
	record_and_kill(f, 5000);
	struct run run;
	fixture_load(f->path, &run);
	int64_t n = (int64_t)run.n;
	run_finish(&run);
	int64_t later_ns = 3600 * NS_PER_S;
	f->header.anchor_mono_ns += later_ns;
	f->header.anchor_wall_ns += later_ns;
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path, .append = true}, &f->header);
	assert_int_equal(fixture_write(f, ops, store, 0, 2, later_ns), 0);
	struct store_footer footer = fixture_footer(2);
	footer.start_ns += later_ns;
	footer.end_ns += later_ns;
	assert_int_equal(ops->finish(store, &footer, NULL), 0);
	fixture_close(ops, store, false);
	fixture_load(f->path, &run);
	assert_int_equal(run.n, n + 2);
	assert_int_equal(run.n_segments, 2);
	assert_false(run.segments[0].complete);
	assert_int_equal(run.segments[0].end_ns, n > 0 ? fixture_t_ns(n - 1) : fixture_mono_ns);
	assert_true(run.segments[1].complete);
	assert_string_equal(run_metadata(&run, "complete"), "false"); // one of its segments is incomplete
	run_finish(&run);
	fixture_assert_only(f, "run.sqlite");
}

/* Full disk */

// Writes until the disk is full, frees room, continues: in a child, because lowered resource limits are permanent.
static void fill_then_go_on(struct fixture *f, void (*make_room)(void))
{
	void *store = open_in_child(f, &(struct store_open_options){.path = f->path});
	int64_t n = 0;
	while (n < 1000000 && fixture_write(f, ops, store, n, BATCH, 0) == 0)
		n += BATCH;
	MUST(n > 0 && n < 1000000);
	struct wattle_error error = {0};
	int r = ops->write(store, &(struct store_delivery){.batch = &f->batch}, &error);
	MUST(r == -ENOSPC || r == -EFBIG);
	MUST(error.code == r && strncmp(error.text, f->path, strlen(f->path)) == 0);
	struct run run;
	MUST(run_load(f->path, &run, NULL) == 0); // everything stored before is readable now
	MUST((int64_t)run.n == n);
	run_finish(&run);
	make_room();
	MUST(ops->write(store, &(struct store_delivery){.batch = &f->batch}, NULL) == 0); // the same batch again
	MUST(fixture_write(f, ops, store, n + BATCH, BATCH, 0) == 0);
	struct store_footer footer = fixture_footer(n + 2 * BATCH);
	MUST(ops->finish(store, &footer, NULL) == 0);
	ops->close(store, false);
	MUST(run_load(f->path, &run, NULL) == 0);
	MUST((int64_t)run.n == n + 2 * BATCH);
	MUST(strcmp(run_metadata(&run, "complete"), "true") == 0);
	_exit(0);
}

static void lift_limit(void)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = limit.rlim_max;
	MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void a_file_that_may_not_grow(void **state)
{
	struct fixture *f = *state;
	pid_t child = fork();
	if (child == 0) {
		signal(SIGXFSZ, SIG_IGN);
		struct rlimit limit;
		MUST(getrlimit(RLIMIT_FSIZE, &limit) == 0);
		limit.rlim_cur = 300000;
		MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
		fill_then_go_on(f, lift_limit);
	}
	assert_child_succeeds(child);
}

static void enlarge_disk(void)
{
	MUST(mount("none", "/mnt", "tmpfs", MS_REMOUNT, "size=64m") == 0);
}

static void a_full_disk(void **state)
{
	struct fixture *f = *state;
	pid_t child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
			mount("none", "/mnt", "tmpfs", 0, "size=1m") != 0)
			_exit(0); // only root can mount a disk; for other users the limit above tests the same
		snprintf(f->path, sizeof(f->path), "/mnt/run.sqlite");
		fill_then_go_on(f, enlarge_disk);
	}
	assert_child_succeeds(child);
}

static void a_disk_full_at_the_start(void **state)
{
	struct fixture *f = *state;
	pid_t child = fork();
	if (child == 0) {
		signal(SIGXFSZ, SIG_IGN);
		FILE *old = fopen(f->path, "w");
		MUST(old != NULL && fputs("a letter", old) >= 0 && fclose(old) == 0);
		struct rlimit limit = {.rlim_cur = 8192, .rlim_max = RLIM_INFINITY};
		MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
		struct wattle_error error = {0};
		void *store = calloc(1, ops->state_size);
		MUST(ops->open(store, &(struct store_open_options){.path = f->path, .overwrite = true}, &f->header,
			     &error) < 0);
		MUST(strncmp(error.text, f->path, strlen(f->path)) == 0);
		ops->close(store, true);
		_exit(0);
	}
	assert_child_succeeds(child);
	struct stat st;
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_size, 8); // the old file is untouched
	fixture_assert_only(f, "run.sqlite");
}

/* File removed by another process */

static void a_removed_folder_is_reported(void **state)
{
	struct fixture *f = *state;
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path}, &f->header);
	assert_int_equal(fixture_write(f, ops, store, 0, 3, 0), 0);
	nftw(f->folder, fixture_unlink, 8, FTW_DEPTH | FTW_PHYS);
	fixture_write(f, ops, store, 3, 3, 0); // may fail, must not crash
	struct store_footer footer = fixture_footer(6);
	struct wattle_error error = {0};
	assert_int_equal(ops->finish(store, &footer, &error), -ENOENT);
	assert_non_null(strstr(error.text, "run.sqlite was removed or replaced during the run"));
	fixture_close(ops, store, false);
	assert_false(fixture_exists(f->folder));
}

static void a_replaced_file_is_left_alone(void **state)
{
	struct fixture *f = *state;
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path}, &f->header);
	assert_int_equal(fixture_write(f, ops, store, 0, 3, 0), 0);
	assert_int_equal(unlink(f->path), 0);
	FILE *theirs = fopen(f->path, "w");
	fputs("a letter", theirs);
	fclose(theirs);
	struct store_footer footer = fixture_footer(3);
	assert_int_equal(ops->finish(store, &footer, NULL), -ENOENT);
	fixture_close(ops, store, true);
	struct stat st;
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_size, 8);
}

/* Readers */

static int64_t count_samples(const char *path)
{
	sqlite3 *db;
	sqlite3_stmt *s;
	MUST(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
	MUST(sqlite3_prepare_v2(db, "SELECT count(*) FROM sample", -1, &s, NULL) == SQLITE_OK);
	MUST(sqlite3_step(s) == SQLITE_ROW);
	int64_t n = sqlite3_column_int64(s, 0);
	sqlite3_finalize(s);
	sqlite3_close(db);
	return n;
}

static void readers_see_a_growing_file(void **state)
{
	struct fixture *f = *state;
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path}, &f->header);
	pid_t reader = fork();
	if (reader == 0) {
		int64_t n = 0;
		while (n < 500) {
			int64_t now = count_samples(f->path);
			MUST(now >= n && now % BATCH == 0);
			struct run run;
			MUST(run_load(f->path, &run, NULL) == 0);
			MUST((int64_t)run.n >= now && run.devices[0].n == run.n);
			run_finish(&run);
			n = now;
		}
		_exit(0);
	}
	for (int64_t i = 0; i < 500; i += BATCH) {
		assert_int_equal(fixture_write(f, ops, store, i, BATCH, 0), 0);
		usleep(1000);
	}
	assert_child_succeeds(reader);
	fixture_close(ops, store, false);
}

static void a_reader_does_not_spoil_the_end(void **state)
{
	struct fixture *f = *state;
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path}, &f->header);
	assert_int_equal(fixture_write(f, ops, store, 0, 3, 0), 0);
	int ready[2], go[2];
	assert_int_equal(pipe(ready) + pipe(go), 0);
	pid_t reader = fork();
	if (reader == 0) {
		sqlite3 *db;
		MUST(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
		MUST(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM sample", NULL, NULL, NULL) == SQLITE_OK);
		char byte = 0;
		MUST(write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1);
		MUST(sqlite3_close(db) == SQLITE_OK);
		_exit(0);
	}
	char byte = 0;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	struct store_footer footer = fixture_footer(3);
	assert_int_equal(ops->finish(store, &footer, NULL), 0);
	fixture_close(ops, store, false);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_child_succeeds(reader);
	struct run run;
	fixture_load(f->path, &run);
	assert_int_equal(run.n, 3);
	assert_string_equal(run_metadata(&run, "complete"), "true");
	run_finish(&run);
	for (size_t i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
}

/* Read-only folders, as an unprivileged user */

static void load_without_rights(struct fixture *f, int64_t n)
{
	pid_t child = fork();
	if (child == 0) {
		if (geteuid() == 0)
			MUST(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
		MUST(access(f->folder, W_OK) != 0);
		struct run run;
		MUST(run_load(f->path, &run, NULL) == 0);
		MUST((int64_t)run.n >= n);
		run_finish(&run);
		_exit(0);
	}
	assert_child_succeeds(child);
}

// Repeated, because SQLite's own recovery fails if the kill comes while the log's index is being changed.
static void a_dead_file_is_read_without_rights(void **state)
{
	struct fixture *f = *state;
	srand(2);
	for (int i = 0; i < 25; i++) {
		int64_t committed = record_and_kill(f, rand() % 10000);
		assert_int_equal(chmod(f->folder, 0555), 0);
		load_without_rights(f, committed);
		assert_int_equal(chmod(f->folder, 0755), 0);
		nftw(f->folder, fixture_unlink, 8, FTW_DEPTH | FTW_PHYS);
		assert_int_equal(mkdir(f->folder, 0755), 0);
	}
}

// A running recorder, whose file another user reads in a folder that only the recorder can write to.
static void a_growing_file_is_read_without_rights(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(chmod(f->folder, 0755), 0);
	void *store = fixture_open(ops, &(struct store_open_options){.path = f->path}, &f->header);
	assert_int_equal(fixture_write(f, ops, store, 0, 3, 0), 0);
	if (geteuid() == 0) // otherwise the test has its own folder
		load_without_rights(f, 3);
	fixture_close(ops, store, false);
}

static void a_copied_wal_file_is_read_without_rights(void **state)
{
	struct fixture *f = *state;
	fixture_record(f, ops, &(struct store_open_options){.path = f->path}, 3);
	sqlite3 *db; // in WAL mode, as a copy of a growing file is, without log and index
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	fixture_assert_only(f, "run.sqlite");
	assert_int_equal(chmod(f->folder, 0555), 0);
	load_without_rights(f, 3);
	assert_int_equal(chmod(f->folder, 0755), 0);
}

static void an_unwritable_folder_is_refused(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(chmod(f->folder, 0555), 0);
	pid_t child = fork();
	if (child == 0) {
		if (geteuid() == 0)
			MUST(setresuid(NOBODY, NOBODY, NOBODY) == 0);
		struct wattle_error error = {0};
		void *store = calloc(1, ops->state_size);
		MUST(ops->open(store, &(struct store_open_options){.path = f->path}, &f->header, &error) == -EACCES);
		MUST(strstr(error.text, f->folder) != NULL && strstr(error.text, "Permission denied") != NULL);
		ops->close(store, true);
		_exit(0);
	}
	assert_child_succeeds(child);
	assert_int_equal(chmod(f->folder, 0755), 0);
}

int main(void)
{
	struct rows rows = {0};
	fixture_add(&rows, "kill -9 at any moment loses nothing that was committed", a_kill_loses_nothing);
	fixture_add(&rows, "a dead recorder's file can be appended to", a_dead_file_is_appended_to);
	fixture_add(&rows, "file size limit: batch refused whole, stored later", a_file_that_may_not_grow);
	fixture_add(&rows, "full disk: batch refused whole, stored later", a_full_disk);
	fixture_add(&rows, "full disk at the start: the file to be replaced stays", a_disk_full_at_the_start);
	fixture_add(&rows, "a removed folder is reported at the end", a_removed_folder_is_reported);
	fixture_add(&rows, "a file put in our place is left alone", a_replaced_file_is_left_alone);
	fixture_add(&rows, "readers follow a growing file, whole batches at a time", readers_see_a_growing_file);
	fixture_add(&rows, "a reader that holds on does not spoil the end", a_reader_does_not_spoil_the_end);
	fixture_add(&rows, "a dead recorder's file in a read-only folder is read", a_dead_file_is_read_without_rights);
	fixture_add(&rows, "growing file in another user's folder: read", a_growing_file_is_read_without_rights);
	fixture_add(&rows, "a WAL-mode file on read-only media is read", a_copied_wal_file_is_read_without_rights);
	fixture_add(&rows, "a folder without write permission is named", an_unwritable_folder_is_refused);
	return rows_run(&rows, "run file in trouble");
}
