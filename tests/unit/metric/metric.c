#include "metric/metric.h"

#include "rows.h"

#include <ctype.h>

static const struct scope_row {
	const char *teaches;
	enum metric_scope scope;
	const char *name;
	size_t count;
} scope_rows[] = {
	{"run metrics: unique names that end in their unit", METRIC_RUN, "run", RUN_COUNT},
	{"device metrics: unique names that end in their unit", METRIC_DEVICE, "device", DEVICE_COUNT},
	{"process metrics: unique names that end in their unit", METRIC_PROCESS, "process", PROCESS_COUNT},
};

static bool ends_in_unit(const char *name, const char *unit)
{
	size_t n = strlen(name), u = strlen(unit);
	if (n < u || strcmp(name + n - u, unit) != 0)
		return false;
	return n == u || name[n - u - 1] == '_';
}

// Names are used as SQL columns and JSON keys without quoting.
static bool is_identifier(const char *name)
{
	for (const char *c = name; *c != '\0'; c++)
		if (!islower((unsigned char)*c) && *c != '_' && !(isdigit((unsigned char)*c) && c > name))
			return false;
	return name[0] != '\0';
}

static void check_scope(void **state)
{
	const struct scope_row *row = *state;
	size_t count;
	const struct metric *table = metric_table(row->scope, &count);
	assert_int_equal(count, row->count);
	assert_string_equal(metric_scope_name(row->scope), row->name);
	for (size_t i = 0; i < count; i++) {
		if (!ends_in_unit(table[i].name, table[i].unit) || !is_identifier(table[i].name))
			fail_msg("%s does not end in its unit %s", table[i].name, table[i].unit);
		assert_true(strlen(table[i].source) > 0 && strlen(table[i].meaning) > 0);
		for (size_t other = 0; other < i; other++)
			if (strcmp(table[i].name, table[other].name) == 0)
				fail_msg("%s stands twice", table[i].name);
	}
}

static void rows_and_enum_agree(void **state)
{
	size_t count;
	assert_string_equal(metric_table(METRIC_RUN, &count)[RUN_MAIN_RSS].name, "main_rss_bytes");
	assert_string_equal(metric_table(METRIC_DEVICE, &count)[DEVICE_ENERGY].name, "energy_uj");
	assert_string_equal(metric_table(METRIC_PROCESS, &count)[PROCESS_CPU].name, "cpu_ns");
	assert_string_equal(metric_kind_name(METRIC_COUNTER), "counter");
	assert_string_equal(metric_kind_name(METRIC_GAUGE), "gauge");
}

static void what_goes_in_comes_out(void **state)
{
	static const struct {
		enum metric_scope scope;
		int64_t t_ns, id, start_ns;
		size_t n_values;
	} added[] = {
		{METRIC_RUN, 100, 0, 0, RUN_COUNT},
		{METRIC_DEVICE, 100, 1, 0, DEVICE_COUNT},
		{METRIC_PROCESS, 100, 4711, 50, PROCESS_COUNT},
		{METRIC_RUN, 200, 0, 0, RUN_COUNT},
	};
	struct batch batch;
	assert_int_equal(batch_init(&batch, 8192), 0);
	assert_null(batch_first(&batch));
	for (size_t i = 0; i < ARRAY_SIZE(added); i++) {
		struct record *r = batch_add(&batch, added[i].scope, added[i].t_ns, added[i].id, added[i].start_ns);
		assert_non_null(r);
		r->values[0] = (int64_t)i;
	}
	assert_int_equal(batch.n_samples, 2);
	size_t n = 0;
	for (const struct record *r = batch_first(&batch); r != NULL; r = batch_next(&batch, r), n++) {
		assert_int_equal(r->scope, added[n].scope);
		assert_int_equal(r->t_ns, added[n].t_ns);
		assert_int_equal(r->id, added[n].id);
		assert_int_equal(r->start_ns, added[n].start_ns);
		assert_int_equal(r->n_values, added[n].n_values);
		assert_int_equal(r->values[0], n);
		for (size_t v = 1; v < r->n_values; v++)
			assert_true(r->values[v] == VALUE_MISSING);
	}
	assert_int_equal(n, ARRAY_SIZE(added));
	batch_finish(&batch);
}

static void a_full_batch_counts_its_losses(void **state)
{
	size_t one = sizeof(struct record) + RUN_COUNT * sizeof(int64_t);
	struct batch batch;
	assert_int_equal(batch_init(&batch, 2 * one), 0);
	assert_non_null(batch_add(&batch, METRIC_RUN, 1, 0, 0));
	assert_non_null(batch_add(&batch, METRIC_RUN, 2, 0, 0));
	assert_null(batch_add(&batch, METRIC_RUN, 3, 0, 0));
	assert_null(batch_add(&batch, METRIC_PROCESS, 3, 1, 1));
	assert_int_equal(batch.n_samples, 2);
	assert_int_equal(batch.n_lost, 1);
	batch_clear(&batch);
	assert_int_equal(batch.n_lost, 0);
	assert_null(batch_first(&batch));
	assert_non_null(batch_add(&batch, METRIC_RUN, 4, 0, 0));
	assert_int_equal(batch_first(&batch)->t_ns, 4);
	batch_finish(&batch);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, scope_rows, check_scope);
	ROWS_ADD_ONE(&tests, "enum and table have the same length", rows_and_enum_agree);
	ROWS_ADD_ONE(&tests, "batch: records are returned in order, values preset to missing", what_goes_in_comes_out);
	ROWS_ADD_ONE(&tests, "batch: records that do not fit are refused and counted as lost",
		a_full_batch_counts_its_losses);
	return rows_run(&tests, "metric");
}
