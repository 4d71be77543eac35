/* Fields of the energy of runs, domains and GPUs. */
#include "report/fields/document.h"

#include "analysis/energy/domains.h"
#include "analysis/metadata_keys.h"
#include "base/util.h"

// clang-format off

/* ---- ledger ---- */

static const struct field ledger_fields[] = {
	FIELD(struct ledger, target_j, "J", "energy attributed to the measured program"),
	FIELD(struct ledger, others_j, "J", "energy attributed to other programs"),
	FIELD(struct ledger, wattle_j, "J", "energy attributed to wattle itself"),
	FIELD(struct ledger, idle_j, "J", "idle energy; null where it is unknown"),
	FIELD(struct ledger, unattributed_j, "J", "energy that could not be attributed"),
};
const struct object_type ledger_type = OBJECT_TYPE("ledger", "Energy by owner: the known rows add up to the total.", ledger_fields);

/* ---- domains ---- */

static size_t domain_index(const struct object_at *at)
{
	return (size_t)((const struct domain_finding *)at->data - findings_of(at)->domains);
}

static const char *domain_node(const struct object_at *at, struct buf *scratch)
{
	const struct job_findings *job = document_of(at)->job;
	return job->nodes[job->domain_node[domain_index(at)]].name;
}

static const struct run_device *device_of(const struct object_at *at)
{
	return ((const struct domain_finding *)at->data)->device;
}

static const char *domain_kind_text(const struct object_at *at, struct buf *scratch)
{
	return domain_kind_name(device_of(at)->kind);
}

static double calibration_factor(const struct object_at *at)
{
	return device_of(at)->gain_error > 0 ? device_of(at)->gain : (double)NAN;
}

static double calibration_error_percent(const struct object_at *at)
{
	return 100 * calibration_error(device_of(at));
}

static const char *calibration_source(const struct object_at *at, struct buf *scratch)
{
	const struct run_device *device = device_of(at);
	return device->gain_error > 0 ? device->gain_source : isnan(calibration_error(device)) ? NULL : "uncalibrated";
}

#define D struct domain_finding
#define DEVICE(key, member, unit, meaning, ...) FIELD_BY(D, device, key, struct run_device, member, unit, meaning, ##__VA_ARGS__)
static const struct field domain_fields[] = {
	FIELD_TEXT("node", domain_node, NULL, "node of the job", .present = is_of_job, .title = "node"),
	DEVICE("domain", name, NULL, "name of the domain: package-0, dram-0, gpu-0 …"),
	FIELD_TEXT("kind", domain_kind_text, NULL, "kind of the domain", .one_of = domain_kind_names),
	DEVICE("device", device, NULL, "name of the hardware"),
	DEVICE("inside", inside, NULL, "domain that contains this one"),
	DEVICE("source", source, NULL, "sensor that was read", .title = "source"),
	FIELD(D, provenance, NULL, "provenance: measured, derived or estimated", .one_of = provenance_names),
	FIELD(D, energy_j, "J", "energy over the run", .title = "energy"),
	FIELD(D, error_j, "J", "half of the 95 % interval, without the calibration of the sensor"),
	FIELD(D, calibration_error_j, "J", "error that the calibration of the sensor adds; null: not stated", .title = "calibration"),
	FIELD_NUMBER("calibration_factor", calibration_factor, NULL, "factor by which the readings were multiplied; null: not calibrated"),
	FIELD_NUMBER("calibration_error_percent", calibration_error_percent, "%", "relative error of the calibration"),
	FIELD_TEXT("calibration_source", calibration_source, NULL, "source of the calibration"),
	FIELD(D, mean_w, "W", "mean power", .title = "mean"),
	FIELD(D, max_w, "W", "largest power between two readings", .title = "max"),
	FIELD_AS(D, "target_j", ledger.target_j, "J", "energy attributed to the measured program", .title = "program"),
	FIELD(D, target_error_j, "J", "half of the 95 % interval"),
	FIELD(D, attribution, NULL, "attribution method", .title = "divided by"),
	FIELD(D, integrated_j, "J", "energy by integrating the power readings, where a counter was read too"),
	FIELD(D, integrated_error_j, "J", "half of the 95 % interval"),
	FIELD(D, update_period_s, "s", "update period of the hardware's value", .title = "updated every"),
	FIELD(D, update_jitter_s, "s", "half of the spread of the update period"),
	FIELD(D, idle_w, "W", "idle power, subtracted if the attribution states it"),
#define DEVICE_MAX(id, member, unit, title, meaning) FIELD(D, member, unit, meaning),
#include "metric/metrics.def"
	FIELD(D, wraps, NULL, "number of wraps of the counter", .title = "wraps"),
	FIELD(D, gaps, NULL, "number of gaps in the readings of the counter", .title = "gaps"),
	FIELD(D, in_total, NULL, "whether this domain is part of energy.total_j"),
	FIELD_OBJECT(D, "ledger", ledger, &ledger_type, "energy by owner"),
};
#undef DEVICE
#undef D
const struct object_type domain_type = OBJECT_TYPE("domain", "Energy of one domain.", domain_fields);

/* ---- GPUs ---- */

static const char *gpu_node(const struct object_at *at, struct buf *scratch)
{
	const struct job_findings *job = document_of(at)->job;
	return job->nodes[job->gpu_node[(const struct gpu_finding *)at->data - job->total.gpus]].name;
}

static int64_t gpu_index(const struct object_at *at)
{
	const struct run_device *device = ((const struct gpu_finding *)at->data)->device;
	return device->index >= 0 ? device->index : VALUE_MISSING;
}

#define G struct gpu_finding
#define DEVICE(key, member, unit, meaning, ...) FIELD_BY(G, device, key, struct run_device, member, unit, meaning, ##__VA_ARGS__)
static const struct field gpu_fields[] = {
	FIELD_TEXT("node", gpu_node, NULL, "node of the job", .present = is_of_job, .title = "node"),
	FIELD_INTEGER("index", gpu_index, NULL, "NVML index, in PCI order"),
	DEVICE("uuid", uuid, NULL, "UUID"),
	DEVICE("name", device, NULL, "name of the product"),
	DEVICE("domain", name, NULL, "domain of its energy"),
	FIELD(G, energy_j, "J", "energy over the run", .title = "energy"),
	FIELD(G, error_j, "J", "half of the 95 % interval, without the calibration of the sensor"),
	FIELD(G, calibration_error_j, "J", "error that the calibration of the sensor adds"),
	FIELD(G, mean_w, "W", "mean power", .title = "mean"),
	FIELD(G, max_w, "W", "largest power between two readings", .title = "max"),
	DEVICE("memory_total_bytes", memory_total_bytes, "bytes", "memory of the GPU", .title = "memory size"),
	FIELD(G, max_memory_bytes, "bytes", "largest memory in use, without memory reserved by the driver", .title = "memory"),
	FIELD(G, target_max_memory_bytes, "bytes", "largest memory of the measured program", .title = "program"),
#define DEVICE_MEAN(id, member, unit, column, meaning) FIELD(G, member, unit, meaning, .title = column),
#define DEVICE_MAX(id, member, unit, column, meaning) FIELD(G, member, unit, meaning, .title = column),
#include "metric/metrics.def"
	FIELD(G, throttled_s, "s", "time in which clocks were throttled", .title = "throttled"),
	FIELD(G, cap_w, "W", "power limit", .title = "cap"),
};
#undef DEVICE
#undef G
const struct object_type gpu_type = OBJECT_TYPE("gpu", "A measured GPU.", gpu_fields);

/* ---- energy of the run ---- */

static const char *total_provenance(const struct object_at *at, struct buf *scratch)
{
	const struct findings *f = at->data;
	return isnan(f->total_j) ? NULL : provenance_name(f->provenance);
}

#define F struct findings
static const struct field sum_fields[] = {
	FIELD(F, total_j, "J", "energy of all domains that do not overlap"),
	FIELD(F, error_j, "J", "half of the 95 % interval, without the calibration of the sensors"),
	FIELD(F, calibration_error_j, "J", "error that the calibration of the sensors adds"),
	FIELD_TEXT("provenance", total_provenance, NULL, "weakest provenance of its parts", .one_of = provenance_names),
	FIELD_OBJECT(F, "ledger", ledger, &ledger_type, "energy by owner"),
	FIELD(F, target_error_j, "J", "half of the 95 % interval of ledger.target_j"),
	FIELD(F, target_calibration_error_j, "J", "error that the calibration adds to ledger.target_j"),
	FIELD(F, carbon_g, "g", "CO2 equivalent of facility_j; null without --carbon-region or --carbon-intensity"),
	FIELD(F, carbon_intensity_g_per_kwh, "g/kWh", "carbon intensity of the electricity"),
	FIELD_TEXT("carbon_region", document_metadata, NULL, "country that the carbon intensity is of, --carbon-region", .argument = META_KEY_CARBON_REGION),
	FIELD_INTEGER("carbon_year", document_metadata_number, NULL, "year of which the carbon intensity is the mean", .argument = META_KEY_CARBON_YEAR),
	FIELD_TEXT("carbon_source", document_metadata, NULL, "source of the carbon intensity; null: --carbon-intensity", .argument = META_KEY_CARBON_SOURCE),
	FIELD(F, pue, NULL, "power usage effectiveness, --pue"),
	FIELD(F, facility_j, "J", "total_j times pue"),
	FIELD_AS(F, "outside_blocks_j", outside_j, "J", "energy of the program while no code block was open"),
	FIELD_AS(F, "outside_blocks_error_j", outside_error_j, "J", "half of the 95 % interval"),
};
#undef F
static const struct object_type sums_type = OBJECT_TYPE("energy_sums", "Sums over the domains.", sum_fields);

static int64_t nodes_unknown(const struct object_at *at)
{
	return (int64_t)document_of(at)->job->n_nodes_unknown;
}

static size_t domain_count(const struct object_at *at)
{
	return findings_of(at)->n_domains;
}

static const void *domain_item(const struct object_at *at, size_t i)
{
	return &findings_of(at)->domains[is_of_job(at) ? document_of(at)->domains[i] : i];
}

static const struct field energy_fields[] = {
	FIELD_INLINE_OF(struct document, findings, &sums_type),
	FIELD_INTEGER("nodes_unknown", nodes_unknown, NULL, "nodes whose energy is not known", .present = is_of_job),
	FIELD_LIST("domains", &domain_type, domain_count, domain_item, "all domains, including those not in the total"),
};
const struct object_type energy_type = OBJECT_TYPE("energy", "Energy of the machine over the run.", energy_fields);
