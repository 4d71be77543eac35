#include "store/tracking.h"

#include "fixture.h"

#define STATIC "ram_unit,gpu_ram_unit,time_unit,system_core_count,ram_system_capacity\nbytes,gigabytes,hours,12,\n"
#define NAMES                                                                                                             \
	"main_ram,descendants_ram,combined_ram,system_ram,main_gpu_ram,descendants_gpu_ram,combined_gpu_ram,"             \
	"system_gpu_ram,gpu_sum_utilization_percent,gpu_hardware_utilization_percent,main_n_threads,"                     \
	"descendants_n_threads,combined_n_threads,cpu_system_sum_utilization_percent,"                                    \
	"cpu_system_hardware_utilization_percent,cpu_main_sum_utilization_percent,cpu_main_hardware_utilization_percent," \
	"cpu_descendants_sum_utilization_percent,cpu_descendants_hardware_utilization_percent,"                           \
	"cpu_combined_sum_utilization_percent,cpu_combined_hardware_utilization_percent,timestamp\n"
#define ZEROS ",0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"

/* main_ram in order of time, "-" for unknown; or the error. */
static const struct row {
	const char *teaches, *text, *rams, *error;
} table[] = {
	{"rows in their order", STATIC NAMES "1" ZEROS "10\n2" ZEROS "11\n", "1 2 ", NULL},
	{"rows are sorted by time", STATIC NAMES "1" ZEROS "11\n2" ZEROS "10\n", "2 1 ", NULL},
	{"rows without a time are last", STATIC NAMES "1" ZEROS "\n2" ZEROS "10\n", "2 1 ", NULL},
	{"empty cell: unknown", STATIC NAMES ZEROS "10\n", "- ", NULL},
	{"pandas' missing value: unknown", STATIC NAMES "nan" ZEROS "10\nNaN" ZEROS "11\nNone" ZEROS "12\n", "- - - ",
		NULL},
	{"no rows: refused", STATIC NAMES, NULL, "it has no timepoint"},
	{"no header: refused", STATIC, NULL, "no column main_ram"},
	{"no static data: refused", "", NULL, "first two lines"},
	{"different static data: refused", "a,b\n1,2\n" NAMES, NULL, "first two lines"},
	{"static values missing: refused", "ram_unit,time_unit\nbytes\n" NAMES, NULL, "first two lines"},
	{"word in place of a number: refused", STATIC NAMES "one" ZEROS "10\n", NULL,
		"line 4: main_ram 'one' is not a number"},
	{"infinite number: refused", STATIC NAMES "inf" ZEROS "10\n", NULL, "main_ram 'inf' is not a number"},
	{"incomplete row: refused", STATIC NAMES "1,2\n", NULL, "line 4: 2 fields instead of 22"},
	{"row too long: refused", STATIC NAMES "1" ZEROS "10,11\n", NULL, "line 4: more than 22 fields"},
};

static void check(void **state)
{
	const struct row *row = *state;
	void *fixture = NULL;
	assert_int_equal(fixture_setup(&fixture), 0);
	char path[160], rams[80] = "";
	snprintf(path, sizeof(path), "%s/t.csv", ((struct fixture *)fixture)->folder);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(row->text, file);
	fclose(file);
	struct arena *arena = arena_new();
	struct tracking_table read;
	struct wattle_error error = {0};
	int r = tracking_table_read(path, arena, &read, &error);
	assert_int_equal(r, row->error != NULL ? -EINVAL : 0);
	for (size_t i = 0; r == 0 && i < read.n; i++)
		if (isnan(read.values[TRACKING_MAIN_RAM][i]))
			strcat(rams, "- ");
		else
			snprintf(rams + strlen(rams), sizeof(rams) - strlen(rams), "%g ",
				read.values[TRACKING_MAIN_RAM][i]);
	if (row->error != NULL) {
		assert_non_null(strstr(error.text, path));
		assert_non_null(strstr(error.text, row->error));
	} else {
		assert_string_equal(rams, row->rams);
		assert_int_equal(read.n_statics, 5);
		assert_string_equal(read.statics[0].text, "bytes");
		assert_true(read.statics[3].is_integer && read.statics[3].number == 12);
		assert_true(read.statics[4].text == NULL && isnan(read.statics[4].number));
	}
	arena_free(arena);
	fixture_teardown(&fixture);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, table, check);
	return rows_run(&rows, "tracking files");
}
