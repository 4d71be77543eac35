#include "base/units.h"

#include "base/util.h"

#include "rows.h"

static const struct row {
	const char *teaches;
	enum unit_kind kind;
	const char *name;
	double size; // NAN: not a unit of this kind
} rows[] = {
	{"a gigabyte is decimal", UNIT_MEMORY, "gigabytes", 1e9},
	{"bytes", UNIT_MEMORY, "bytes", 1},
	{"binary units are refused", UNIT_TIME, "days", 86400},
	{"no singular", UNIT_MEMORY, "gigabyte", NAN},
	{"a unit of time is refused for memory", UNIT_MEMORY, "gibibytes", NAN},
	{"an empty name is refused", UNIT_MEMORY, "hours", NAN},
	{"no name at all", UNIT_TIME, NULL, NAN},
};

static void check(void **state)
{
	const struct row *row = *state;
	double size = unit_size(row->kind, row->name);
	assert_true(isnan(row->size) ? isnan(size) : size == row->size);
}

static void names_are_valid(void **state)
{
	for (enum unit_kind kind = UNIT_MEMORY; kind <= UNIT_TIME; kind++) {
		char names[200];
		text_copy(names, sizeof(names), unit_names(kind));
		for (char *name = strtok(names, ", "); name != NULL; name = strtok(NULL, ", "))
			assert_false(isnan(unit_size(kind, name)));
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "every name that a message offers is accepted", names_are_valid);
	return rows_run(&tests, "units");
}
