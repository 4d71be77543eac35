#include "store/run_write.h"

#include "base/buf.h"
#include "store/schema.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Facts */

struct metadata_writer {
	sqlite3_stmt *insert;
	struct buf text; // scratch
	int failed;      // first SQLite failure
};

static void put(struct metadata_writer *w, const char *key, const char *value)
{
	if (w->failed != SQLITE_OK || value == NULL)
		return;
	sql_bind_text(w->insert, 1, key);
	sql_bind_text(w->insert, 2, value);
	w->failed = sql_run(w->insert);
}

static void put_i64(struct metadata_writer *w, const char *key, int64_t value)
{
	if (!value_ok(value))
		return;
	buf_clear(&w->text);
	buf_i64(&w->text, value);
	put(w, key, w->text.data);
}

static void put_double(struct metadata_writer *w, const char *key, double value)
{
	if (isnan(value))
		return;
	buf_clear(&w->text);
	buf_double(&w->text, value);
	put(w, key, w->text.data);
}

// "KEY=VALUE" becomes key "meta.KEY".
static void put_meta(struct metadata_writer *w, const char *pair)
{
	const char *equals = strchr(pair, '=');
	if (equals == NULL)
		return;
	buf_clear(&w->text);
	buf_str(&w->text, "meta.");
	buf_add(&w->text, pair, (size_t)(equals - pair));
	put(w, w->text.data, equals + 1);
}

// The user's own texts, which a further segment may add or change.
static void put_text_list(struct metadata_writer *w, const struct store_header *header)
{
	put(w, "label", header->label);
	put(w, "step", header->step);
	for (size_t i = 0; header->meta != NULL && header->meta[i] != NULL; i++)
		put_meta(w, header->meta[i]);
}

static void put_metadata(struct metadata_writer *w, const struct store_header *header)
{
	const struct {
		const char *key, *value;
	} texts[] = {
		{"wattle_version", WATTLE_VERSION},
		{"id", header->run_id},
		{"complete", "false"},
		{"host", header->host},
		{"boot_id", header->boot_id},
		{"attached", header->attached ? "true" : "false"},
		{"cgroup", header->cgroup},
		{"ram_unit", header->ram_unit},
		{"gpu_ram_unit", header->gpu_ram_unit},
		{"time_unit", header->time_unit},
		{"attribution", header->attribution},
		{"carbon_region", header->carbon_region},
		{"carbon_source", header->carbon_source},
	};
	const struct {
		const char *key;
		int64_t value;
	} integers[] = {
		{"schema", SCHEMA_VERSION},
		{"interval_ns", header->interval_ns},
		{"anchor_mono_ns", header->anchor_mono_ns},
		{"anchor_wall_ns", header->anchor_wall_ns},
		{"memory_total_bytes", header->memory_total_bytes},
		{"n_cores", header->n_cores},
		{"expected_cores", header->expected_cores},
		{"n_gpus_system", header->n_gpus_system},
		{"gpu_memory_total_bytes", header->gpu_memory_total_bytes},
	};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		put(w, texts[i].key, texts[i].value);
	for (size_t i = 0; i < ARRAY_SIZE(integers); i++)
		put_i64(w, integers[i].key, integers[i].value);
	for (size_t i = 0; i < header->n_metadata; i++)
		put(w, header->facts[i].key, header->facts[i].value);
	put_double(w, "carbon_intensity_g_per_kwh", header->carbon_intensity_g_per_kwh);
	if (header->carbon_year != 0)
		put_i64(w, "carbon_year", header->carbon_year);
	put_double(w, "pue", header->pue);
	buf_clear(&w->text);
	run_header_command(&w->text, header->command);
	put(w, "command", w->text.data);
	put_text_list(w, header);
}

static int write_metadata(sqlite3 *db, const struct store_header *header,
	void (*facts)(struct metadata_writer *, const struct store_header *))
{
	struct metadata_writer w = {0};
	int r = sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO run (key, value) VALUES (?, ?)", -1, &w.insert, NULL);
	if (r != SQLITE_OK)
		return r;
	buf_init(&w.text, RUN_HEADER_TEXT_CEILING);
	facts(&w, header);
	r = w.text.failed != 0 ? SQLITE_NOMEM : w.failed;
	buf_finish(&w.text);
	sqlite3_finalize(w.insert);
	return r;
}

/* Table metric */

static int put_metric(sqlite3_stmt *insert, const char *const texts[6])
{
	for (int i = 0; i < 6; i++)
		sql_bind_name(insert, i + 1, texts[i]);
	return sql_run(insert);
}

static int write_metrics(sqlite3 *db)
{
	sqlite3_stmt *insert = NULL;
	int r = sqlite3_prepare_v2(db,
		"INSERT OR IGNORE INTO metric (table_name, name, unit, kind, meaning, source) VALUES (?, ?, ?, ?, ?, ?)",
		-1, &insert, NULL);
	size_t n;
	const struct schema_column *columns = schema_columns(&n);
	for (size_t i = 0; r == SQLITE_OK && i < n; i++)
		r = put_metric(insert,
			(const char *const[]){columns[i].table, columns[i].name, columns[i].unit, "fact",
				columns[i].meaning, NULL});
	for (enum metric_scope scope = METRIC_RUN; scope < METRIC_SCOPES; scope++) {
		const struct metric *metrics = metric_table(scope, &n);
		for (size_t i = 0; r == SQLITE_OK && i < n; i++)
			r = put_metric(insert,
				(const char *const[]){schema_sample_table(scope), metrics[i].name, metrics[i].unit,
					metric_kind_name(metrics[i].kind), metrics[i].meaning, metrics[i].source});
	}
	sqlite3_finalize(insert);
	return r;
}

int run_header_create(sqlite3 *db, const struct store_header *header)
{
	struct buf sql;
	buf_init(&sql, RUN_HEADER_TEXT_CEILING);
	schema_create(&sql);
	int r = sql.failed != 0 ? SQLITE_NOMEM : sql_exec(db, sql.data);
	buf_finish(&sql);
	if (r == SQLITE_OK)
		r = write_metrics(db);
	return r == SQLITE_OK ? write_metadata(db, header, put_metadata) : r;
}

/* A further segment */

static int add_missing_column(sqlite3 *db, const char *table, const char *name, const char *type)
{
	char sql[256];
	if (sqlite3_table_column_metadata(db, NULL, table, name, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK)
		return SQLITE_OK;
	snprintf(sql, sizeof(sql), "ALTER TABLE %s ADD COLUMN %s %s", table, name, type);
	return sql_exec(db, sql);
}

static int add_missing_metrics(sqlite3 *db, enum metric_scope scope)
{
	size_t n;
	const struct metric *metrics = metric_table(scope, &n);
	int r = SQLITE_OK;
	for (size_t i = 0; r == SQLITE_OK && i < n; i++)
		r = add_missing_column(db, schema_sample_table(scope), metrics[i].name, "INTEGER");
	return r;
}

static int add_missing_columns(sqlite3 *db)
{
	size_t n;
	const struct schema_column *columns = schema_columns(&n);
	int r = SQLITE_OK;
	for (size_t i = 0; r == SQLITE_OK && i < n; i++)
		r = add_missing_column(db, columns[i].table, columns[i].name, columns[i].type);
	for (enum metric_scope scope = METRIC_RUN; r == SQLITE_OK && scope < METRIC_SCOPES; scope++)
		r = add_missing_metrics(db, scope);
	return r;
}

int run_header_continue(sqlite3 *db, const struct store_header *header, int64_t *ret_shift_ns)
{
	int r = add_missing_columns(db);
	if (r == SQLITE_OK)
		r = write_metrics(db);
	if (r == SQLITE_OK)
		r = sql_exec(db,
			"UPDATE segment SET end_ns = "
			"max(start_ns, coalesce((SELECT max(t_ns) FROM sample), start_ns)) WHERE end_ns IS NULL");
	if (r == SQLITE_OK)
		r = write_metadata(db, header, put_text_list);
	if (r == SQLITE_OK)
		r = sql_exec(db, "UPDATE run SET value = 'false' WHERE key = 'complete'");
	*ret_shift_ns = r == SQLITE_OK ? run_header_shift_ns(db, header) : 0;
	return r;
}

/* Devices */

static int64_t none_if_zero(uint64_t value)
{
	return value != 0 && value <= INT64_MAX ? (int64_t)value : VALUE_MISSING;
}

struct device_row {
	int64_t id;
	const struct domain *domain;
	const char *source;
	const struct idle_power *idle; // NULL: none
	struct update_period period;
};

static void bind_gain(sqlite3_stmt *s, int first, const struct domain *d)
{
	bool known = domain_is_calibrated(d);
	sql_bind_double(s, first, known ? d->calibration->gain : (double)NAN);
	sql_bind_double(s, first + 1, known ? d->calibration->error : (double)NAN);
	sql_bind_name(s, first + 2, known ? d->calibration->source : "");
}

static void bind_idle(sqlite3_stmt *s, int first, const struct idle_power *idle)
{
	static const struct idle_power none = {0};
	bool known = idle != NULL && idle->power_w > 0;
	idle = known ? idle : &none;
	sql_bind_double(s, first, known ? idle->power_w : (double)NAN);
	sql_bind_double(s, first + 1, known ? idle->error_w : (double)NAN);
	sql_bind_double(s, first + 2, idle->temperature_c != 0 ? idle->temperature_c : (double)NAN);
	sql_bind_name(s, first + 3, idle->date);
}

static void bind_device(sqlite3_stmt *s, const void *data)
{
	const struct device_row *row = data;
	const struct domain *d = row->domain;
	sql_bind_i64(s, 1, row->id);
	sql_bind_text(s, 2, domain_kind_name(d->kind));
	sql_bind_text(s, 3, d->name);
	sql_bind_name(s, 4, d->uuid);
	sql_bind_name(s, 5, d->device);
	sql_bind_name(s, 6, d->inside);
	sql_bind_i64(s, 7, d->index >= 0 ? d->index : VALUE_MISSING);
	sql_bind_text(s, 8, row->source);
	sql_bind_text(s, 9, provenance_name(d->provenance));
	sql_bind_i64(s, 10, d->has_energy);
	sql_bind_i64(s, 11, none_if_zero(d->resolution_uj));
	sql_bind_i64(s, 12, none_if_zero(d->energy_range_uj));
	sql_bind_i64(s, 13, d->update_period_ns > 0 ? d->update_period_ns : VALUE_MISSING);
	sql_bind_double(s, 14, d->relative_error > 0 ? d->relative_error : (double)NAN);
	sql_bind_i64(s, 15, none_if_zero(d->memory_total_bytes));
	sql_bind_i64(s, 16, d->update_jitter_ns > 0 ? d->update_jitter_ns : VALUE_MISSING);
	bind_idle(s, 17, row->idle);
	bind_gain(s, 21, d);
}

static void bind_new_gain(sqlite3_stmt *s, const void *data)
{
	const struct device_row *row = data;
	sql_bind_i64(s, 1, row->id);
	bind_gain(s, 2, row->domain);
}

static int64_t find_device(sqlite3 *db, const struct domain *domain)
{
	sqlite3_stmt *s = NULL;
	int64_t id = -1;
	if (sqlite3_prepare_v2(db, "SELECT id FROM device WHERE kind = ? AND name = ? AND coalesce(uuid, '') = ?", -1,
		    &s, NULL) == SQLITE_OK) {
		sql_bind_text(s, 1, domain_kind_name(domain->kind));
		sql_bind_text(s, 2, domain->name);
		sql_bind_text(s, 3, domain->uuid);
		if (sqlite3_step(s) == SQLITE_ROW)
			id = sqlite3_column_int64(s, 0);
	}
	sqlite3_finalize(s);
	return id;
}

int run_header_devices(sqlite3 *db, const struct store_header *header, int64_t *ret_ids)
{
	int64_t next_id = sql_read_i64(db, "SELECT max(id) + 1 FROM device", 0);
	for (size_t i = 0; i < header->n_devices; i++) {
		ret_ids[i] = find_device(db, header->devices[i]);
		struct device_row row = {.id = ret_ids[i],
			.domain = header->devices[i],
			.source = header->sources[i],
			.idle = header->idle != NULL ? &header->idle[i] : NULL};
		int r = SQLITE_OK;
		if (ret_ids[i] >= 0 && domain_is_calibrated(header->devices[i])) // a newer calibration of the same sensor
			r = sql_once(db, "UPDATE device SET gain = ?2, gain_error = ?3, gain_source = ?4 WHERE id = ?1",
				bind_new_gain, &row);
		if (r != SQLITE_OK)
			return r;
		if (ret_ids[i] >= 0)
			continue;
		row.id = next_id++;
		r = sql_once(db,
			"INSERT INTO device (id, kind, name, uuid, device, inside, idx, source, provenance, has_energy, "
			"resolution_uj, energy_range_uj, update_period_ns, relative_error, memory_total_bytes, "
			"update_jitter_ns, idle_w, idle_error_w, idle_temperature_c, idle_date, "
			"gain, gain_error, gain_source) "
			"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			bind_device, &row);
		if (r != SQLITE_OK)
			return r;
		ret_ids[i] = row.id;
	}
	return SQLITE_OK;
}

static void bind_periods(sqlite3_stmt *s, const void *data)
{
	const struct device_row *row = data;
	sql_bind_i64(s, 1, row->id);
	sql_bind_i64(s, 2, row->period.period_ns > 0 ? row->period.period_ns : VALUE_MISSING);
	sql_bind_i64(s, 3, row->period.jitter_ns > 0 ? row->period.jitter_ns : VALUE_MISSING);
}

int run_header_periods(sqlite3 *db, const struct store_footer *footer, const int64_t *ids)
{
	int r = SQLITE_OK;
	for (size_t i = 0; r == SQLITE_OK && footer->periods != NULL && i < footer->n_devices; i++) {
		const struct device_row row = {.id = ids[i], .period = footer->periods[i]};
		r = sql_once(db, "UPDATE device SET update_period_ns = ?2, update_jitter_ns = ?3 WHERE id = ?1",
			bind_periods, &row);
	}
	return r;
}
