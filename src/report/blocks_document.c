#include "report/blocks_report.h"

#include "analysis/facts.h"
#include "base/jsonw.h"
#include "base/units.h"
#include "base/util.h"
#include "report/parts.h"
#include "report/stats_json.h"

static void overall(struct jsonw *j, const struct findings *f)
{
	jsonw_key(j, "overall");
	jsonw_begin_object(j);
	for (enum column c = 0; c < COLUMN_COUNT; c++)
		stats_json(j, column_name(c), &f->overall[c], column_factor(f->run, c));
	jsonw_end_object(j);
}

// A unit as the run was asked for it; gpu_tracker's default where it was not.
static const char *unit_name(const struct run *run, const char *fact, enum unit_kind kind, const char *usual)
{
	const char *name = run_fact(run, fact);
	return isnan(unit_size(kind, name)) ? usual : name;
}

static void static_data(struct jsonw *j, const struct findings *f)
{
	const struct resource_usage *usage = &f->usage;
	const char *ram = unit_name(f->run, FACT_RAM_UNIT, UNIT_MEMORY, "gigabytes");
	const char *gpu_ram = unit_name(f->run, FACT_GPU_RAM_UNIT, UNIT_MEMORY, "gigabytes");
	jsonw_key(j, "static_data");
	jsonw_begin_object(j);
	jsonw_key_string(j, "ram_unit", ram);
	jsonw_key_string(j, "gpu_ram_unit", gpu_ram);
	jsonw_key_string(j, "time_unit", unit_name(f->run, FACT_TIME_UNIT, UNIT_TIME, "hours"));
	jsonw_key_double(j, "ram_system_capacity", usage->ram_capacity_bytes / unit_size(UNIT_MEMORY, ram));
	jsonw_key_double(j, "gpu_ram_system_capacity", usage->gpu_ram_capacity_bytes / unit_size(UNIT_MEMORY, gpu_ram));
	jsonw_key_i64(j, "system_core_count", usage->system_core_count);
	jsonw_key_i64(j, "n_expected_cores", usage->expected_cores);
	jsonw_key_i64(j, "system_gpu_count", usage->system_gpu_count);
	jsonw_key_i64(j, "n_expected_gpus", usage->expected_gpus);
	jsonw_end_object(j);
}

// The run's own energy, so that saved documents can be compared as runs can.
static void energy(struct jsonw *j, const struct findings *f)
{
	jsonw_key(j, "energy");
	jsonw_begin_object(j);
	jsonw_key_double(j, "total_j", f->total_j);
	jsonw_key_double(j, "error_j", f->error_j);
	jsonw_key_double(j, "calibration_error_j", f->calibration_error_j);
	jsonw_key_double(j, "target_j", f->ledger.target_j);
	jsonw_key_double(j, "target_error_j", f->target_error_j);
	jsonw_end_object(j);
}

void blocks_document(const struct findings *findings, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, true);
	jsonw_begin_object(&j);
	overall(&j, findings);
	static_data(&j, findings);
	jsonw_key(&j, "code_block_results");
	blocks_json(&j, findings);
	energy(&j, findings);
	jsonw_end_object(&j);
}
