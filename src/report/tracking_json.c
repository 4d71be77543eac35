#include "report/blocks_report.h"

#include "base/jsonw.h"
#include "base/util.h"
#include "report/stats_json.h"

static void metrics(struct jsonw *j, const char *key, const struct value_stats *stats)
{
	jsonw_key(j, key);
	jsonw_begin_object(j);
	for (size_t c = 0; c < TRACKING_METRICS; c++)
		stats_json(j, tracking_columns[c].name, &stats[c], 1);
	jsonw_end_object(j);
}

static void static_data(struct jsonw *j, const struct tracking_table *table)
{
	jsonw_key(j, "static_data");
	jsonw_begin_object(j);
	for (size_t i = 0; table != NULL && i < table->n_statics; i++) {
		const struct tracking_field *field = &table->statics[i];
		bool fits = field->is_integer && fabs(field->number) < 9e15; // what a double holds without rounding
		if (field->text != NULL)
			jsonw_key_string(j, field->name, field->text);
		else if (fits)
			jsonw_key_i64(j, field->name, (int64_t)field->number);
		else
			jsonw_key_double(j, field->name, field->number);
	}
	jsonw_end_object(j);
}

static void compute_time(struct jsonw *j, const struct value_stats *stats)
{
	jsonw_key(j, "compute_time");
	jsonw_begin_object(j);
	jsonw_key_double(j, "min", stats->min);
	jsonw_key_double(j, "max", stats->max);
	jsonw_key_double(j, "mean", stats->mean);
	jsonw_key_double(j, "std", stats->std);
	jsonw_key_double(j, "total", stats->total);
	jsonw_end_object(j);
}

static void one_block(struct jsonw *j, const struct tracking_block *block)
{
	jsonw_begin_object(j);
	jsonw_key_string(j, "name", block->name);
	jsonw_key_i64(j, "num_timepoints", block->timepoints);
	jsonw_key_i64(j, "num_calls", block->calls);
	jsonw_key_i64(j, "num_non_empty_calls", block->non_empty_calls);
	compute_time(j, &block->compute_time_s);
	metrics(j, "resource_usage", block->metrics);
	jsonw_end_object(j);
}

void tracking_blocks_json(const struct tracking_findings *findings, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, true);
	jsonw_begin_object(&j);
	metrics(&j, "overall", findings->overall);
	static_data(&j, findings->table);
	jsonw_key(&j, "code_block_results");
	jsonw_begin_array(&j);
	for (size_t i = 0; i < findings->n_blocks; i++)
		one_block(&j, &findings->blocks[i]);
	jsonw_end_array(&j);
	jsonw_end_object(&j);
}
