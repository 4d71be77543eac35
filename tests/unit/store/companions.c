#include "store/companions.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "companions");
}
