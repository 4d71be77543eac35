#include "report/parts.h"

#include "base/util.h"

static void four_stats(struct jsonw *j, const struct value_stats *stats, double factor)
{
	jsonw_key_double(j, "min", stats->min * factor);
	jsonw_key_double(j, "max", stats->max * factor);
	jsonw_key_double(j, "mean", stats->mean * factor);
	jsonw_key_double(j, "std", stats->std * factor);
}

void value_stats_json(struct jsonw *j, const struct value_stats *stats)
{
	jsonw_begin_object(j);
	four_stats(j, stats, 1);
	jsonw_key_double(j, "total", stats->total);
	jsonw_end_object(j);
}

void block_usage_json(struct jsonw *j, const struct run *run, const struct block_finding *block)
{
	jsonw_key(j, "resource_usage");
	jsonw_begin_object(j);
	for (enum column c = 0; c < COLUMN_COUNT; c++) {
		jsonw_key(j, column_name(c));
		jsonw_begin_object(j);
		four_stats(j, &block->columns[c], column_factor(run, c));
		jsonw_end_object(j);
	}
	jsonw_end_object(j);
}

static const char *const method_names[] = {
	[BLOCK_INTERPOLATED] = "interpolated",
	[BLOCK_FOLDED] = "folded",
	[BLOCK_NO_ENERGY] = NULL,
};

void block_energy_json(struct jsonw *j, const struct findings *findings, const struct block_finding *block)
{
	jsonw_key_double(j, "total_j", block->total_j);
	jsonw_key_double(j, "error_j", block->error_j);
	jsonw_key_double(j, "calibration_error_j", findings_block_calibration_j(findings, block));
	jsonw_key_double(j, "mean_j", block->calls > 0 ? block->total_j / (double)block->calls : (double)NAN);
	jsonw_key_double(j, "mean_w", block->active_s > 0 ? block->total_j / block->active_s : (double)NAN);
	jsonw_key_double(j, "self_j", block->self_j);
	jsonw_key_double(j, "self_error_j", block->self_error_j);
	jsonw_key_string(j, "method", method_names[block->method]);
	jsonw_key_bool(j, "resolved", block->resolved);
}

static void energy(struct jsonw *j, const struct findings *findings, const struct block_finding *block)
{
	jsonw_key(j, "energy");
	jsonw_begin_object(j);
	block_energy_json(j, findings, block);
	jsonw_key(j, "domains");
	jsonw_begin_object(j);
	for (size_t d = 0; d < findings->n_domains; d++)
		jsonw_key_double(j, findings->domains[d].device->name, block->domain_j[d]);
	jsonw_end_object(j);
	jsonw_end_object(j);
}

void block_units_json(struct jsonw *j, const struct block_finding *block)
{
	jsonw_key(j, "units");
	jsonw_begin_array(j);
	for (size_t i = 0; i < block->n_units; i++) {
		const struct block_unit *unit = &block->units[i];
		jsonw_begin_object(j);
		jsonw_key_string(j, "name", unit->name);
		jsonw_key_i64(j, "count", unit->count);
		jsonw_key_double(j, "sum", unit->sum);
		jsonw_key_double(j, "j_per_unit", unit->j_per_unit);
		jsonw_key_double(j, "error_j_per_unit", unit->error_j_per_unit);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

void block_times_json(struct jsonw *j, const struct block_finding *block)
{
	jsonw_key_string(j, "name", block->name);
	jsonw_key_i64(j, "num_timepoints", block->timepoints);
	jsonw_key_i64(j, "num_calls", block->calls);
	jsonw_key_i64(j, "num_non_empty_calls", block->non_empty_calls);
	jsonw_key_i64(j, "unwound", block->unwound);
	jsonw_key_i64(j, "cut", block->cut);
	jsonw_key(j, "compute_time");
	value_stats_json(j, &block->compute_time_s);
	jsonw_key_double(j, "active_s", block->active_s);
	jsonw_key_double(j, "self_time_s", block->self_time_s);
	jsonw_key_double(j, "cpu_s", block->cpu_s);
	jsonw_key_double(j, "thread_cpu_s", block->thread_cpu_s);
}

void blocks_json(struct jsonw *j, const struct findings *findings)
{
	jsonw_begin_array(j);
	for (size_t i = 0; i < findings->n_blocks; i++) {
		const struct block_finding *block = &findings->blocks[i];
		jsonw_begin_object(j);
		block_times_json(j, block);
		block_usage_json(j, findings->run, block);
		energy(j, findings, block);
		block_units_json(j, block);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}
