#include "store/sql.h"

#include "base/util.h"
#include "rows.h"
#include "store/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool hides_log; // as if another user removed the log at every check

int lstat(const char *path, struct stat *ret_st)
{
	if (hides_log && strstr(path, "db-wal") != NULL) {
		errno = ENOENT;
		return -1;
	}
	return fstatat(AT_FDCWD, path, ret_st, AT_SYMLINK_NOFOLLOW);
}

static const struct row {
	const char *teaches;
	const char *endings[3];
	int expected;
} rows[] = {
	{"log and index exist: accepted", {"", "-wal", "-shm"}, 0},
	{"index was removed: refused", {"", "-wal"}, -EPERM},
	{"log was removed: refused", {"", "-shm"}, -EPERM},
};

static void make_name(char out[64], const char *folder, const char *ending)
{
	snprintf(out, 64, "%s/db%s", folder, ending);
}

static void check(void **state)
{
	const struct row *row = *state;
	char folder[] = "/tmp/companions.XXXXXX", name[64];
	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < ARRAY_SIZE(row->endings) && row->endings[i] != NULL; i++) {
		make_name(name, folder, row->endings[i]);
		FILE *file = fopen(name, "w");
		assert_non_null(file);
		fclose(file);
	}
	struct wattle_error why = {0};
	make_name(name, folder, "");
	int r = companions_check_log(name, &why);
	for (size_t i = 0; i < ARRAY_SIZE(row->endings) && row->endings[i] != NULL; i++) {
		make_name(name, folder, row->endings[i]);
		unlink(name);
	}
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(r, row->expected);
	assert_int_equal(why.text[0] != 0, r < 0);
}

static void vanished_log(void **state)
{
	char folder[] = "/tmp/companions.XXXXXX", name[64];
	struct wattle_error why = {0};
	sqlite3 *db = NULL;
	assert_non_null(mkdtemp(folder));
	make_name(name, folder, "");
	assert_int_equal(sql_open_builder(name, &db, NULL), 0);
	assert_int_equal(sql_exec(db, "CREATE TABLE t (x)"), SQLITE_OK);
	sqlite3_close(db);
	hides_log = true;
	int r = sql_open_writer(name, &db, &why);
	hides_log = false;
	if (r == 0)
		sqlite3_close(db);
	unlink(name);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(r, -EPERM);
	assert_non_null(strstr(why.text, "db-wal"));
}

// A spool beside a run file, or left by one that was removed.
static const struct spool_row {
	const char *teaches;
	bool has_run_file, is_anothers, is_accepted;
} spools[] = {
	{"own spool: read", true, false, true},
	{"own spool of a removed run file: read", false, false, true},
	{"spool of another user: not read", true, true, false},
	{"spool of another user, the run file was removed: not read", false, true, false},
};

static void check_spool(void **state)
{
	enum { SOMEBODY = 65534 };
	const struct spool_row *row = *state;
	char folder[] = "/tmp/companions.XXXXXX", name[64], spool_name[80];
	struct spool spool;
	struct spool_header header;
	if (geteuid() != 0)
		SKIP_BECAUSE("giving files to another user needs root");
	assert_non_null(mkdtemp(folder));
	make_name(name, folder, "");
	close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(spool_make(&spool, name, "run", 1), 0);
	spool_close(&spool, false);
	spool_path(name, spool_name, sizeof(spool_name));
	if (row->is_anothers)
		assert_int_equal(chown(spool_name, SOMEBODY, SOMEBODY), 0);
	if (!row->has_run_file)
		unlink(name);
	int fd = spool_open_reader(name, "run", &header);
	if (fd >= 0)
		close(fd);
	unlink(name);
	unlink(spool_name);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(fd >= 0, row->is_accepted);
}

static const struct cut_row {
	const char *teaches;
	uid_t uid, index_uid;
	mode_t mode, index_mode;
	bool expected;
} cut_rows[] = {
	{"own database and index: the index is safe", 0, 0, 0644, 0644, false},
	{"database of another user: the index is not safe", 65534, 0, 0644, 0644, true},
	{"index of another user: not safe", 0, 65534, 0644, 0644, true},
	{"index that a group can write: not safe", 0, 0, 0644, 0664, true},
	{"database that everybody can write: not safe", 0, 0, 0666, 0644, true},
};

static void check_cut(void **state)
{
	const struct cut_row *row = *state;
	char folder[] = "/tmp/companions.XXXXXX", database[64], index[64];
	if (geteuid() != 0)
		SKIP_BECAUSE("another user's file needs root");
	assert_non_null(mkdtemp(folder));
	make_name(database, folder, "");
	make_name(index, folder, "-shm");
	const char *const names[] = {database, index};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int fd = open(names[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		assert_int_equal(fchmod(fd, i == 0 ? row->mode : row->index_mode), 0);
		assert_int_equal(fchown(fd, i == 0 ? row->uid : row->index_uid, (gid_t)-1), 0);
		close(fd);
	}
	bool found = companions_can_be_cut(database);
	unlink(database);
	unlink(index);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(found, row->expected);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD(&tests, spools, check_spool);
	ROWS_ADD_ONE(&tests, "log that vanishes while a recorder opens the file: refused", vanished_log);
	ROWS_ADD(&tests, cut_rows, check_cut);
	return rows_run(&tests, "companions");
}
