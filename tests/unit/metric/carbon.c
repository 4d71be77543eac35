#include "metric/carbon.h"

#include "rows.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

static const struct find_row {
	const char *teaches, *wanted, *code; // code NULL: refused
	const char *message;                 // part of it
} find_rows[] = {
	{"alpha-2 code", "DE", "DE", NULL},
	{"alpha-3 code in lower case", "deu", "DE", NULL},
	{"name in any case", "UNITED states", "US", NULL},
	{"UK: the code in common use of GB", "uk", "GB", NULL},
	{"EL: the European Union's code of GR", "EL", "GR", NULL},
	{"misspelt name: the nearest one", "Swedn", NULL, "(did you mean 'Sweden'?)"},
	{"misspelt code: a near one", "DEQ", NULL, "(did you mean 'DE"},
	{"nothing near: no suggestion", "the whole world", NULL, "for it; give an ISO 3166 code"},
	{"empty", "", NULL, "test '': no carbon intensity is known"},
	{"long text: cut in the message", "0123456789012345678901234567890123456789012345678901234567890123456789",
		NULL, "test '0123456789012345678901234567890123456789012345678901234567890123':"},
};

static void check_find(void **state)
{
	const struct find_row *row = *state;
	const struct carbon_region *region = NULL;
	struct wattle_error error;
	int r = carbon_region_find("test", row->wanted, &region, &error);
	assert_int_equal(r, row->code != NULL ? 0 : -EINVAL);
	if (row->code != NULL)
		assert_string_equal(region->code, row->code);
	else
		assert_non_null(strstr(error.text, row->message));
}

static bool is_code(const char *code, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isupper((unsigned char)code[i]))
			return false;
	return strlen(code) == length;
}

static void table_is_valid(void **state)
{
	assert_true(n_carbon_regions > 200);
	for (size_t i = 0; i < n_carbon_regions; i++) {
		const struct carbon_region *region = &carbon_regions[i], *found[3];
		assert_true(is_code(region->code, 2) && is_code(region->code3, 3) && region->name[0] != '\0');
		assert_true(region->g_per_kwh > 0 && region->g_per_kwh < 1500);
		assert_true(region->year >= 2020 && region->year < 2030);
		assert_true(i == 0 || strcmp(region->code, carbon_regions[i - 1].code) > 0);
		assert_int_equal(carbon_region_find("", region->code, &found[0], NULL), 0);
		assert_int_equal(carbon_region_find("", region->code3, &found[1], NULL), 0);
		assert_int_equal(carbon_region_find("", region->name, &found[2], NULL), 0);
		assert_true(found[0] == region && found[1] == region && found[2] == region);
	}
	assert_non_null(strstr(carbon_source, "CC BY 4.0"));
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, find_rows, check_find);
	ROWS_ADD_ONE(&tests, "table: by code; codes and names are unique, figures and years plausible", table_is_valid);
	return rows_run(&tests, "carbon");
}
