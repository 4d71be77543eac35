#include "base/dl.h"

#include "rows.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

// Every machine has libm; none of these functions is linked into this program.
struct functions {
	double (*cube_root)(double);
	double (*absent)(double);
};

#define AT(member) offsetof(struct functions, member)
static const char *const libraries[] = {"libwattle-is-not-there.so.9", "libm.so.6", NULL};

static void falls_back(void **state)
{
	static const struct dl_symbol symbols[] = {
		{{"wattle_cbrt_v9", "cbrt"}, AT(cube_root), DL_REQUIRED},
		{{"wattle_absent"}, AT(absent), DL_OPTIONAL},
	};
	struct functions table = {.absent = NULL};
	void *handle = NULL;
	assert_int_equal(dl_open(libraries, symbols, 2, &table, &handle, NULL), 0);
	assert_non_null(table.cube_root);
	assert_true(table.cube_root(27) > 2.9 && table.cube_root(27) < 3.1);
	assert_null(table.absent);
	dlclose(handle);
}

static void names_what_is_missing(void **state)
{
	static const struct dl_symbol symbols[] = {{{"wattle_absent"}, AT(absent), DL_REQUIRED}};
	struct functions table = {0};
	struct wattle_error error = {0};
	void *handle = NULL;
	assert_int_equal(dl_open(libraries, symbols, 1, &table, &handle, &error), -ENOSYS);
	assert_string_equal(error.text, "libm.so.6 has no wattle_absent");
	assert_null(handle);
}

static void no_library(void **state)
{
	static const char *const none[] = {"libwattle-is-not-there.so.9", NULL};
	struct functions table = {0};
	struct wattle_error error = {0};
	void *handle = NULL;
	assert_int_equal(dl_open(none, NULL, 0, &table, &handle, &error), -ENOENT);
	assert_non_null(strstr(error.text, "libwattle-is-not-there.so.9"));
	assert_null(handle);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "the next library and the older symbol name are tried; OPTIONAL symbols stay NULL",
		falls_back);
	ROWS_ADD_ONE(&tests, "a missing REQUIRED symbol: the error names the symbol and the library that was loaded",
		names_what_is_missing);
	ROWS_ADD_ONE(&tests, "no library found: ENOENT with the library's name", no_library);
	return rows_run(&tests, "dl");
}
