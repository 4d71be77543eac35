#include "report/documents.h"

#include "base/fields.h"

// clang-format off

static const struct comparison *comparison_of(const struct object_at *at)
{
	return object_document(at);
}

/* ---- one quantity of all sessions ---- */

static const struct compare_row *row_of(const struct object_at *at)
{
	return at->data;
}

static size_t session_count(const struct object_at *at)
{
	return comparison_of(at)->n_sessions;
}

static const char *session_name(const struct object_at *at, size_t i)
{
	return row_of(at)->values[i].session;
}

static double value(const struct object_at *at)
{
	return row_of(at)->values[at->index].value;
}

static double error(const struct object_at *at)
{
	return row_of(at)->values[at->index].error;
}

static const struct field value_field = FIELD_NUMBER("value", value, NULL, "value of one session");
static const struct field error_field = FIELD_NUMBER("error", error, NULL, "error of the value of one session");
static const struct field values_fields[] = {FIELD_MAP(NULL, &value_field, session_count, session_name, NULL)};
static const struct field errors_fields[] = {FIELD_MAP(NULL, &error_field, session_count, session_name, NULL)};
static const struct object_type values_type = OBJECT_TYPE("values", "One value per session, ascending.", values_fields);
static const struct object_type errors_type = OBJECT_TYPE("errors", "Errors of these values, in the same order.", errors_fields);

/* ---- maps of quantities ---- */

static size_t block_count(const struct object_at *at)
{
	return comparison_of(at)->n_blocks;
}

static size_t metric_count(const struct object_at *at)
{
	return comparison_of(at)->n_metrics;
}

static size_t used_metric_count(const struct object_at *at)
{
	return block_count(at) > 0 ? metric_count(at) : 0;
}

static const char *metric_name(const struct object_at *at, size_t i)
{
	return comparison_of(at)->overall[i].name;
}

static const void *overall(const struct object_at *at, size_t i)
{
	return &comparison_of(at)->overall[i];
}

static const void *usage(const struct object_at *at, size_t i)
{
	return &comparison_of(at)->usage[at->index * block_count(at) + i];
}

static const char *usage_name(const struct object_at *at, size_t i)
{
	return ((const struct compare_row *)usage(at, i))->name;
}

static const void *compute_time(const struct object_at *at, size_t i)
{
	return &comparison_of(at)->compute_time[i];
}

static const char *compute_time_name(const struct object_at *at, size_t i)
{
	return comparison_of(at)->compute_time[i].name;
}

static const void *energy(const struct object_at *at, size_t i)
{
	return &comparison_of(at)->energy;
}

static const void *duration(const struct object_at *at, size_t i)
{
	return &comparison_of(at)->duration;
}

static const void *power(const struct object_at *at, size_t i)
{
	return &comparison_of(at)->power;
}

static const void *block_energy(const struct object_at *at, size_t i)
{
	return &comparison_of(at)->block_energy[i];
}

static const char *block_energy_name(const struct object_at *at, size_t i)
{
	return comparison_of(at)->block_energy[i].name;
}

/* ---- document ---- */

static bool has_energy(const struct object_at *at)
{
	return comparison_of(at)->has_energy;
}

static const struct field usage_field =
	FIELD_OBJECT_MAP("blocks", &values_type, block_count, usage_name, usage, "values by code block");

static const struct field energy_fields[] = {
	FIELD_FOUND("total_j", &values_type, energy, "energy of the sessions in joules", .known = true),
	FIELD_FOUND("error_j", &errors_type, energy, "errors of these values", .known = true),
	FIELD_OBJECT_MAP("blocks", &values_type, block_count, block_energy_name, block_energy, "energy by code block in joules"),
	FIELD_OBJECT_MAP("block_errors", &errors_type, block_count, block_energy_name, block_energy, "errors of these values"),
	FIELD_FOUND("mean_w", &values_type, power, "mean power while the sensors were read, in watts", .known = true),
	FIELD_FOUND("mean_error_w", &errors_type, power, "errors of these values", .known = true),
	FIELD_FOUND("duration_s", &values_type, duration, "measured time in seconds", .known = true),
};
static const struct object_type energy_type = OBJECT_TYPE("compared_energy", "Energy of the sessions.", energy_fields);

static const struct field compare_fields[] = {
	FIELD_OBJECT_MAP("overall_resource_usage", &values_type, metric_count, metric_name, overall, "values by metric"),
	FIELD_MAP("code_block_resource_usage", &usage_field, used_metric_count, metric_name, "values by metric and code block"),
	FIELD_OBJECT_MAP("code_block_compute_time", &values_type, block_count, compute_time_name, compute_time,
		"time per call by code block"),
	FIELD_SELF("energy", &energy_type, "energy, if a session is a run", .present = has_energy),
};
const struct object_type compare_type = OBJECT_TYPE("compare", "Several sessions compared.", compare_fields);

void compare_json(const struct comparison *comparison, struct buf *out)
{
	document_json(out, &compare_type, comparison, true);
}
