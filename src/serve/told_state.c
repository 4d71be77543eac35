#include "serve/told.h"

#include "base/util.h"

// As docs and metrics name them.
static const char *const keys[NOW_RESOURCES] = {[NOW_CPU] = "cpu_j", [NOW_DRAM] = "dram_j", [NOW_GPU] = "gpu_j"};

static void write_counters(struct jsonw *j, const double *energy_j, double cpu_s)
{
	for (int r = 0; r < NOW_RESOURCES; r++)
		jsonw_key_double(j, keys[r], energy_j[r]);
	jsonw_key_double(j, "cpu_s", cpu_s);
}

void told_write(const struct told_table *table, struct jsonw *j)
{
	jsonw_begin_object(j);
	jsonw_key(j, "other");
	jsonw_begin_object(j);
	write_counters(j, table->other_j, table->other_cpu_s);
	jsonw_end_object(j);
	jsonw_key(j, "rest");
	jsonw_begin_object(j);
	write_counters(j, table->rest_j, table->rest_cpu_s);
	jsonw_end_object(j);
	jsonw_key(j, "rows");
	jsonw_begin_array(j);
	for (size_t i = 0; i < table->n; i++) {
		const struct told_row *row = &table->items[i];
		jsonw_begin_object(j);
		jsonw_key_string(j, "name", row->name);
		jsonw_key_string(j, "user", row->user);
		jsonw_key_bool(j, "told", row->state != TOLD_NOT);
		write_counters(j, row->energy_j, row->cpu_s);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
	jsonw_end_object(j);
}

/* ---- reading ---- */

// What is no sensible number counts from 0.
static double take_number(const json_t *object, const char *key)
{
	double value = json_number_value(json_object_get(object, key));
	return isfinite(value) && value > 0 ? value : 0;
}

static void read_counters(const json_t *object, double *energy_j, double *cpu_s)
{
	for (int r = 0; r < NOW_RESOURCES; r++)
		energy_j[r] = take_number(object, keys[r]);
	*cpu_s = take_number(object, "cpu_s");
}

// There were more rows then, or the file is not ours.
static void add_to_other(struct told_table *table, const json_t *object)
{
	double energy_j[NOW_RESOURCES], cpu_s;
	read_counters(object, energy_j, &cpu_s);
	for (int r = 0; r < NOW_RESOURCES; r++)
		table->other_j[r] += energy_j[r];
	table->other_cpu_s += cpu_s;
}

/* What was told is told on, until it has been scraped again or is seen to be here: it left before anybody looked. Who scraped it last
 * is not known. */
static void read_row(struct told_table *table, const json_t *object, size_t *room)
{
	const char *name = json_string_value(json_object_get(object, "name"));
	const char *user = json_string_value(json_object_get(object, "user"));
	bool was_told = json_is_true(json_object_get(object, "told"));
	if (name == NULL || user == NULL || name[0] == '\0' || strlen(name) >= NOW_GROUP_SIZE)
		return;
	if (was_told && *room == 0) {
		add_to_other(table, object);
		return;
	}
	*room -= was_told;
	struct told_row *row = told_add(table, name);
	if (row == NULL)
		return;
	read_counters(object, row->energy_j, &row->cpu_s);
	text_copy(row->user, sizeof(row->user), user);
	row->state = was_told ? TOLD_LEAVING : TOLD_NOT;
}

void told_read(struct told_table *table, const json_t *object)
{
	size_t i, room = 2 * table->most; // of those that were here, and that were leaving
	const json_t *row;
	if (table->most == 0)
		return;
	read_counters(json_object_get(object, "other"), table->other_j, &table->other_cpu_s);
	read_counters(json_object_get(object, "rest"), table->rest_j, &table->rest_cpu_s);
	json_array_foreach(json_object_get(object, "rows"), i, row) read_row(table, row, &room);
}
