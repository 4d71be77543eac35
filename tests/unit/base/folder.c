#include "base/folder.h"

#include "base/util.h"

#include "rows.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

// A folder with these entries, created for each test and removed after it.
static const char *const inside[] = {"hwmon10", "hwmon2", "power", ".hidden",
	"a-name-that-is-longer-than-any-device-of-sysfs-has-ever-had-in-its-life"};
enum { INSIDE = ARRAY_SIZE(inside) };

struct made {
	char path[64];
	int fd;
};

static int setup(void **state)
{
	static struct made made;
	strcpy(made.path, "/tmp/wattle-folder-XXXXXX");
	assert_non_null(mkdtemp(made.path));
	made.fd = open(made.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &made;
	for (size_t i = 0; i < INSIDE; i++)
		assert_int_equal(mkdirat(made.fd, inside[i], 0755), 0);
	return 0;
}

static int teardown(void **state)
{
	struct made *made = *state;
	for (size_t i = 0; i < INSIDE; i++)
		unlinkat(made->fd, inside[i], AT_REMOVEDIR);
	close(made->fd);
	assert_int_equal(rmdir(made->path), 0);
	return 0;
}

struct row {
	const char *name;
	const char *path, *prefix;
	const char *names[4]; // in this order, NULL-terminated
};

static void lists(void **state)
{
	static const struct row rows[] = {
		{"list: 2 is before 10; hidden and overlong names are left out", ".", "",
			{"hwmon2", "hwmon10", "power"}},
		{"list with a prefix: only names that begin with it", ".", "hwmon", {"hwmon2", "hwmon10"}},
		{"list of a missing folder: empty", "nowhere", "", {NULL}},
	};
	const struct made *made = *state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct folder folder;
		assert_int_equal(folder_list(made->fd, rows[i].path, rows[i].prefix, &folder), 0);
		for (size_t k = 0; k < folder.n || rows[i].names[k] != NULL; k++) {
			if (k >= folder.n || rows[i].names[k] == NULL)
				fail_msg("%s: %zu names", rows[i].name, folder.n);
			assert_string_equal(folder.names[k], rows[i].names[k]);
		}
		folder_finish(&folder);
	}
}

// The buffer holds two or three entries, so that several reads are needed; then again over the same descriptor.
static void walks(void **state)
{
	const struct made *made = *state;
	char text[128] __attribute__((aligned(8)));
	for (int round = 0; round < 2; round++) {
		struct folder_walk walk = folder_walk_begin(made->fd, text, sizeof(text));
		unsigned int seen = 0;
		unsigned char type;
		for (const char *name; (name = folder_walk_next(&walk, &type)) != NULL;) {
			size_t i = 0;
			while (i < INSIDE && strcmp(inside[i], name) != 0)
				i++;
			assert_true(i < INSIDE); // neither "." nor ".."
			assert_true(type == DT_DIR || type == DT_UNKNOWN);
			seen |= 1U << i;
		}
		assert_int_equal(seen, (1U << INSIDE) - 1);
		assert_null(folder_walk_next(&walk, NULL));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{"list: names with numbers are in numeric order", lists, setup, teardown, NULL},
		{"walk: meets every entry; a second walk starts again", walks, setup, teardown, NULL},
	};
	return cmocka_run_group_tests_name("base/folder", tests, NULL, NULL);
}
