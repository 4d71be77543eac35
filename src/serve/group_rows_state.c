#include "serve/totals.h"

#include "base/util.h"

// Keys as in docs and metrics.
static const char *const keys[MONITOR_RESOURCES] =
	{[MONITOR_CPU] = "cpu_j", [MONITOR_DRAM] = "dram_j", [MONITOR_GPU] = "gpu_j"};

// clang-format off
#define COUNTERS(struct_, energy_j_, cpu_s_)                                                                           \
	FIELD_AS(struct_, "cpu_j", energy_j_[MONITOR_CPU], "J", "energy of CPU packages"),                                 \
	FIELD_AS(struct_, "dram_j", energy_j_[MONITOR_DRAM], "J", "energy of DRAM"),                                       \
	FIELD_AS(struct_, "gpu_j", energy_j_[MONITOR_GPU], "J", "energy of GPUs"),                                         \
	FIELD_AS(struct_, "cpu_s", cpu_s_, "s", "CPU time")

static bool has_row(const struct object_at *at)
{
	return ((const struct group_row *)at->data)->series.state != SERIES_NONE;
}

static const struct field row_fields[] = {
	FIELD(struct group_row, name, NULL, "ID of the job, path of the cgroup", .known = true),
	FIELD(struct group_row, user, NULL, "user of the job", .known = true),
	FIELD_BOOLEAN("is_shown", has_row, NULL, "whether it has its own metrics"),
	COUNTERS(struct group_row, energy_j, cpu_s),
};
static const struct object_type row_type = OBJECT_TYPE("group", "A job or a cgroup.", row_fields);

#define T struct group_rows
static const struct field other_fields[] = {COUNTERS(T, other_j, other_cpu_s)};
static const struct object_type other_type = OBJECT_TYPE("other", "Groups without their own metrics.", other_fields);
static const struct field rest_fields[] = {COUNTERS(T, rest_j, rest_cpu_s)};
static const struct object_type rest_type = OBJECT_TYPE("rest", "Processes in no group.", rest_fields);

static const struct field group_rows_fields[] = {
	FIELD_SELF("other", &other_type, "groups without their own metrics"),
	FIELD_SELF("rest", &rest_type, "processes in no group"),
	FIELD_ITEMS(T, "rows", items, n, &row_type, "groups"),
};
#undef T
const struct object_type group_rows_type = OBJECT_TYPE("groups", "Counters of groups.", group_rows_fields);
// clang-format on

/* ---- reading ---- */

// Invalid or negative numbers count from 0.
static double take_number(const json_t *object, const char *key)
{
	double value = json_number_value(json_object_get(object, key));
	return isfinite(value) && value > 0 ? value : 0;
}

static void read_counters(const json_t *object, double *energy_j, double *cpu_s)
{
	for (int r = 0; r < MONITOR_RESOURCES; r++)
		energy_j[r] = take_number(object, keys[r]);
	*cpu_s = take_number(object, "cpu_s");
}

// Adds the row to "other": the table was larger when the file was written, or the file was edited.
static void add_to_other(struct group_rows *table, const json_t *object)
{
	double energy_j[MONITOR_RESOURCES], cpu_s;
	read_counters(object, energy_j, &cpu_s);
	for (int r = 0; r < MONITOR_RESOURCES; r++)
		table->other_j[r] += energy_j[r];
	table->other_cpu_s += cpu_s;
}

bool totals_was_shown(const json_t *row)
{
	return json_is_true(json_object_get(row, "is_shown")) || json_is_true(json_object_get(row, "told"));
}

/* An exported row that is absent after the restart stays exported until it is scraped or its group is seen again. The
 * state does not record which scrapers have read it. */
static void read_row(struct group_rows *table, const json_t *object, size_t *capacity)
{
	const char *name = json_string_value(json_object_get(object, "name"));
	const char *user = json_string_value(json_object_get(object, "user"));
	bool was_shown = totals_was_shown(object);
	if (name == NULL || user == NULL || name[0] == '\0' || strlen(name) >= MONITOR_GROUP_SIZE)
		return;
	if (was_shown && *capacity == 0) {
		add_to_other(table, object);
		return;
	}
	*capacity -= was_shown;
	struct group_row *row = group_rows_add(table, name);
	if (row == NULL)
		return;
	read_counters(object, row->energy_j, &row->cpu_s);
	text_copy(row->user, sizeof(row->user), user);
	row->series.state = was_shown ? SERIES_LEAVING : SERIES_NONE;
}

void group_rows_read(struct group_rows *table, const json_t *object)
{
	size_t i, capacity = 2 * table->bounds.most; // for present and leaving groups
	const json_t *row;
	if (table->bounds.most == 0)
		return;
	read_counters(json_object_get(object, "other"), table->other_j, &table->other_cpu_s);
	read_counters(json_object_get(object, "rest"), table->rest_j, &table->rest_cpu_s);
	json_array_foreach(json_object_get(object, "rows"), i, row) read_row(table, row, &capacity);
}
