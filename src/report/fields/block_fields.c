/* Fields of code blocks, and the document of `wattle blocks`. */
#include "report/fields/document.h"

#include "base/nan_sum.h"
#include "base/util.h"
#include "report/format_helpers.h"

// clang-format off

/* ---- statistics ---- */

#define V struct value_stats
static const struct field stats_fields[] = {
	FIELD(V, min, NULL, "smallest value"),
	FIELD(V, max, NULL, "largest value"),
	FIELD(V, mean, NULL, "mean"),
	FIELD(V, std, NULL, "standard deviation, of the population"),
};
const struct object_type stats_type = OBJECT_TYPE("stats", "Statistics of a value.", stats_fields);

static const struct field totals_fields[] = {
	FIELD_INLINE(&stats_type),
	FIELD(V, total, NULL, "sum"),
};
#undef V
const struct object_type totals_type = OBJECT_TYPE("totals", "Statistics of a value, with its sum.", totals_fields);

/* ---- gpu_tracker's columns, in the configured units ---- */

static size_t column_count(const struct object_at *at)
{
	return TRACKING_METRICS;
}

static const char *column_key(const struct object_at *at, size_t i)
{
	return tracking_columns[i].name;
}

static const void *block_column(const struct object_at *at, size_t i)
{
	return &((const struct block_finding *)at->data)->columns[i];
}

static const void *overall_column(const struct object_at *at, size_t i)
{
	return &findings_of(at)->overall[i];
}

#define SCALED(name, member)                                                                                           \
	static double name(const struct object_at *at)                                                                 \
	{                                                                                                              \
		return ((const struct value_stats *)at->data)->member *                                                \
			column_factor(document_of(at)->run, (enum tracking_column_id)at->index);                                   \
	}
SCALED(column_min, min)
SCALED(column_max, max)
SCALED(column_mean, mean)
SCALED(column_std, std)
#undef SCALED

static const struct field column_fields[] = {
	FIELD_NUMBER("min", column_min, NULL, "smallest value"),
	FIELD_NUMBER("max", column_max, NULL, "largest value"),
	FIELD_NUMBER("mean", column_mean, NULL, "mean"),
	FIELD_NUMBER("std", column_std, NULL, "standard deviation, of the population"),
};
static const struct object_type column_type =
	OBJECT_TYPE("column", "Statistics of one of gpu_tracker's columns, in the requested unit.", column_fields);

/* ---- energy ---- */

static const struct block_finding *block_of(const struct object_at *at)
{
	return at->data;
}

static double calibration_error_j(const struct object_at *at)
{
	return findings_block_calibration_j(findings_of(at), block_of(at));
}

static double mean_j(const struct object_at *at)
{
	return block_of(at)->calls > 0 ? block_of(at)->total_j / (double)block_of(at)->calls : (double)NAN;
}

static double mean_w(const struct object_at *at)
{
	return block_of(at)->active_s > 0 ? block_of(at)->total_j / block_of(at)->active_s : (double)NAN;
}

static const char *const methods[] = {"interpolated", "folded", NULL};

static const char *method(const struct object_at *at, struct buf *scratch)
{
	static const char *const names[] = {
		[BLOCK_INTERPOLATED] = "interpolated",
		[BLOCK_FOLDED] = "folded",
		[BLOCK_NO_ENERGY] = NULL,
	};
	return names[block_of(at)->method];
}

// In a job: names over all nodes, because each node has a package-0.
static size_t name_count(const struct object_at *at)
{
	return is_of_job(at) ? document_of(at)->n_names : findings_of(at)->n_domains;
}

static size_t named_domain(const struct object_at *at, size_t i)
{
	return is_of_job(at) ? document_of(at)->names[i] : i;
}

static const char *domain_name(const struct object_at *at, size_t i)
{
	return findings_of(at)->domains[named_domain(at, i)].device->name;
}

static double domain_j(const struct object_at *at)
{
	const struct findings *f = findings_of(at);
	size_t first = named_domain(at, at->index);
	double sum_j = block_of(at)->domain_j[first];
	for (size_t i = first + 1; is_of_job(at) && i < f->n_domains; i++)
		if (strcmp(f->domains[i].device->name, f->domains[first].device->name) == 0)
			sum_j = nan_sum(sum_j, block_of(at)->domain_j[i]);
	return sum_j;
}

static const struct field domain_field = FIELD_NUMBER("energy_j", domain_j, "J", "energy of this domain while the block ran");

// The i-th measured node; each has its own domains.
static size_t measured_node(const struct object_at *at, size_t i)
{
	const struct job_findings *job = document_of(at)->job;
	size_t n = 0;
	while (n < job->n_nodes && (job->nodes[n].findings == NULL || i-- > 0))
		n++;
	return n;
}

static size_t measured_nodes(const struct object_at *at)
{
	const struct job_findings *job = document_of(at)->job;
	size_t count = 0;
	for (size_t n = 0; n < job->n_nodes; n++)
		count += job->nodes[n].findings != NULL;
	return count;
}

static const char *measured_node_name(const struct object_at *at, size_t i)
{
	return document_of(at)->job->nodes[measured_node(at, i)].name;
}

static size_t node_domain_count(const struct object_at *at)
{
	const size_t *begins = document_of(at)->node_domains;
	size_t n = measured_node(at, at->index);
	return begins[n + 1] - begins[n];
}

static size_t node_domain(const struct object_at *at, size_t node, size_t i)
{
	return document_of(at)->domains[document_of(at)->node_domains[measured_node(at, node)] + i];
}

static const char *node_domain_name(const struct object_at *at, size_t i)
{
	return findings_of(at)->domains[node_domain(at, at->index, i)].device->name;
}

static double node_domain_j(const struct object_at *at)
{
	return block_of(at)->domain_j[node_domain(at, at->outer->index, at->index)];
}

static const struct field node_domain_field =
	FIELD_NUMBER("energy_j", node_domain_j, "J", "energy of this domain while the block ran");
static const struct field node_domains_field = FIELD_MAP("domains", &node_domain_field, node_domain_count, node_domain_name,
	"energy by domain");

#define B struct block_finding
static const struct field block_energy_fields[] = {
#define BLOCK_TIME(...)
#define BLOCK_ENERGY(member, column, RANKS, unit, title_, meaning) FIELD(B, member, unit, meaning, .title = title_),
#define BLOCK_DERIVED(getter, unit, meaning) FIELD_NUMBER(#getter, getter, unit, meaning),
#include "metric/blocks.def"
	FIELD_TEXT("method", method, NULL, "method of separating the energy: linear interpolation between two updates of the counter, or least squares over many calls (folded); null: no energy", .one_of = methods),
	FIELD(B, resolved, NULL, "whether the energy is larger than its error"),
	FIELD_MAP("domains", &domain_field, name_count, domain_name, "energy by domain"),
	FIELD_MAP("nodes", &node_domains_field, measured_nodes, measured_node_name, "energy by node and domain",
		.present = is_of_job),
};
static const struct object_type block_energy_type = OBJECT_TYPE("block_energy", "Energy of a code block.", block_energy_fields);

/* ---- units of work ---- */

FIELD_ARRAY_OF(unit, struct block_finding, units, n_units)

static const struct field unit_fields[] = {
	FIELD(struct block_unit, name, NULL, "name of the metric that counts it"),
	FIELD(struct block_unit, count, NULL, "number of reported values"),
	FIELD(struct block_unit, sum, NULL, "sum of the reported values"),
	FIELD(struct block_unit, j_per_unit, "J", "energy per unit; null: no unit of work, or no energy"),
	FIELD(struct block_unit, error_j_per_unit, "J", "half of the 95 % interval"),
};
static const struct object_type unit_type = OBJECT_TYPE("unit", "Work done by a block.", unit_fields);

/* ---- a block ---- */

static const struct job_block *job_block(const struct object_at *at)
{
	return &document_of(at)->job->blocks[at->index];
}

static bool waits(const struct object_at *at)
{
	return job_block(at)->waits;
}

static const void *rank_time(const struct object_at *at, size_t i)
{
	return &job_block(at)->time_s;
}

static const void *rank_energy(const struct object_at *at, size_t i)
{
	return &job_block(at)->energy_j;
}

static const struct field block_fields[] = {
	FIELD(B, name, NULL, "name of the block"),
#define BLOCK_COUNT(member, key, column, title_, meaning) FIELD_AS(B, key, member, NULL, meaning, .title = title_),
#include "metric/blocks.def"
	FIELD_OBJECT(B, "compute_time", compute_time_s, &totals_type, "time of the calls", .unit = "s"),
#define BLOCK_FIGURE(member, column, RANKS, unit, title_, meaning) FIELD(B, member, unit, meaning, .title = title_),
#define BLOCK_TIME(...)
#define BLOCK_ENERGY(...)
#include "metric/blocks.def"
	FIELD_BOOLEAN("waits", waits, NULL, "whether ranks wait for others in it", .present = is_of_job),
	FIELD_FOUND("rank_time_s", &spread_type, rank_time, "time per rank", .unit = "s", .known = true, .present = is_of_job),
	FIELD_FOUND("rank_energy_j", &spread_type, rank_energy, "energy per rank", .unit = "J", .known = true, .present = is_of_job),
	FIELD_OBJECT_MAP("resource_usage", &column_type, column_count, column_key, block_column,
		"gpu_tracker's columns over the samples inside the block"),
	FIELD_SELF("energy", &block_energy_type, "energy of the block"),
	FIELD_LIST("units", &unit_type, unit_count, unit_item, "work that the block did"),
};
#undef B
const struct object_type block_type = OBJECT_TYPE("block", "A code block over all its calls.", block_fields);

/* ---- the document of `wattle blocks` ---- */

static size_t block_count(const struct object_at *at)
{
	return findings_of(at)->n_blocks;
}

static const void *block_item(const struct object_at *at, size_t i)
{
	return &findings_of(at)->blocks[i];
}

static double run_mean_w(const struct object_at *at)
{
	return findings_mean_power(findings_of(at)).total_w;
}

#define F struct findings
static const struct field run_energy_fields[] = {
	FIELD(F, total_j, "J", "energy of all domains that do not overlap"),
	FIELD(F, error_j, "J", "half of the 95 % interval, without the calibration of the sensors"),
	FIELD(F, calibration_error_j, "J", "error that the calibration of the sensors adds"),
	FIELD_AS(F, "target_j", ledger.target_j, "J", "energy attributed to the measured program"),
	FIELD(F, target_error_j, "J", "half of the 95 % interval"),
	FIELD_NUMBER("mean_w", run_mean_w, "W", "mean power while the sensors were read"),
	FIELD(F, duration_s, "s", "measured time"),
};
#undef F
static const struct object_type run_energy_type =
	OBJECT_TYPE("run_energy", "Energy and duration of the run, so that saved documents compare as runs do.", run_energy_fields);

static const struct field blocks_document_fields[] = {
	FIELD_OBJECT_MAP("overall", &column_type, column_count, column_key, overall_column,
		"gpu_tracker's columns over all samples"),
	FIELD_SELF("static_data", &static_data_type, "static data, as in gpu_tracker"),
	FIELD_LIST("code_block_results", &block_type, block_count, block_item, "code blocks, by name"),
	FIELD_POINTER(struct document, "energy", findings, &run_energy_type, "energy of the run"),
};
const struct object_type blocks_document_type = OBJECT_TYPE("blocks", "Code blocks of a run.", blocks_document_fields);
