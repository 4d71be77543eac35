#include "report/documents.h"

#include "base/fields.h"
#include "base/util.h"
#include "report/fields/document.h"

// clang-format off

static const struct tracking_findings *found(const struct object_at *at)
{
	return object_document(at);
}

/* ---- columns ---- */

static size_t metric_count(const struct object_at *at)
{
	return TRACKING_METRICS;
}

static const char *metric_name(const struct object_at *at, size_t i)
{
	return tracking_columns[i].name;
}

static const void *overall(const struct object_at *at, size_t i)
{
	return &found(at)->overall[i];
}

static const void *block_metric(const struct object_at *at, size_t i)
{
	return &((const struct tracking_block *)at->data)->metrics[i];
}

/* ---- static data, as in the file ---- */

static size_t static_count(const struct object_at *at)
{
	return found(at)->table != NULL ? found(at)->table->n_statics : 0;
}

static const char *static_name(const struct object_at *at, size_t i)
{
	return found(at)->table->statics[i].name;
}

static struct field_value static_value(const struct object_at *at)
{
	const struct tracking_field *field = &found(at)->table->statics[at->index];
	if (field->text != NULL)
		return (struct field_value){.type = FIELD_IS_TEXT, .known = true, .text = field->text};
	if (field->is_integer && fabs(field->number) < 9e15) // exactly representable as a double
		return (struct field_value){.type = FIELD_IS_INTEGER, .known = true, .integer = (int64_t)field->number};
	return (struct field_value){.type = FIELD_IS_NUMBER, .known = isfinite(field->number), .number = field->number};
}

static const struct field static_field = FIELD_GETTER(FIELD_IS_ANY, any, "value", static_value, NULL, "a text or a number");

/* ---- blocks ---- */

#define B struct tracking_block
static const struct field block_fields[] = {
	FIELD(B, name, NULL, "name of the block"),
	FIELD_AS(B, "num_timepoints", timepoints, NULL, "timepoints inside the block"),
	FIELD_AS(B, "num_calls", calls, NULL, "calls"),
	FIELD_AS(B, "num_non_empty_calls", non_empty_calls, NULL, "calls with at least one timepoint inside"),
	FIELD_OBJECT(B, "compute_time", compute_time_s, &totals_type, "time of the calls, in seconds"),
	FIELD_OBJECT_MAP("resource_usage", &stats_type, metric_count, metric_name, block_metric,
		"columns over the timepoints inside the block"),
};
#undef B
const struct object_type tracking_block_type = OBJECT_TYPE("tracking_block", "A code block over all its calls.", block_fields);

static const struct field tracking_fields[] = {
	FIELD_OBJECT_MAP("overall", &stats_type, metric_count, metric_name, overall, "columns over all timepoints"),
	FIELD_MAP("static_data", &static_field, static_count, static_name, "static data of the tracking file"),
	FIELD_ITEMS(struct tracking_findings, "code_block_results", blocks, n_blocks, &tracking_block_type, "code blocks, by name"),
};
const struct object_type tracking_type = OBJECT_TYPE("tracking", "Code blocks from files of gpu_tracker.", tracking_fields);

void tracking_blocks_json(const struct tracking_findings *findings, struct buf *out)
{
	document_json(out, &tracking_type, findings, true);
}
