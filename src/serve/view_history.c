/* Fields of the chart columns. Times are Unix seconds: the wall-clock time of the last sample minus the monotonic age, so
 * clock steps don't change the distance between samples. */
#include "serve/view.h"

#include "base/util.h"

// clang-format off

enum { DIGITS = 5 }; // significant digits, as in report charts

static const struct view_document *document_of(const struct object_at *at)
{
	return object_document(at);
}

static size_t sample_count(const struct object_at *at)
{
	const struct view_document *document = document_of(at);
	return document->history->n - document->first;
}

// History index of a list item.
static size_t sample(const struct object_at *at)
{
	const struct view_document *document = document_of(at);
	return history_index(document->history, document->first + at->index);
}

static double time_s(const struct object_at *at)
{
	const struct view_document *document = document_of(at);
	int64_t ago_ns = document->now->t_ns - document->history->t_ns[sample(at)];
	return (double)((document->now->wall_ns - ago_ns) / NS_PER_MS) / 1e3;
}

// .offset of the list's field is the index of the column in the history.
static double value(const struct object_at *at)
{
	return (double)document_of(at)->history->columns[at->outer->field->offset][sample(at)];
}

static const float *domain_values(const struct object_at *at, size_t domain)
{
	return document_of(at)->history->domains[domain][at->field->offset];
}

static double domain_value(const struct object_at *at)
{
	return (double)domain_values(at->outer, at->outer->index)[sample(at)];
}

static const struct field time_field = FIELD_NUMBER("unix_s", time_s, "s", "when the sample was taken", .known = true);
static const struct field value_field = FIELD_NUMBER("value", value, NULL, "value at a sample", .digits = DIGITS);
static const struct field domain_value_field =
	FIELD_NUMBER("value", domain_value, NULL, "value of the domain at a sample", .digits = DIGITS);

/* ---- domains ---- */

// Omits columns without any value: most domains have no memory and no temperature.
static bool has_any(const struct object_at *at)
{
	const float *values = domain_values(at, at->index);
	for (size_t i = 0; i < document_of(at)->history->n; i++)
		if (!isnan(values[i]))
			return true;
	return false;
}

#define D struct monitor_domain
#define OF_SENSOR(key, member, meaning, ...) FIELD_BY(D, domain, key, struct domain, member, NULL, meaning, ##__VA_ARGS__)
#define COLUMN(key, column, unit_, meaning)                                                                            \
	FIELD_VALUES(key, &domain_value_field, sample_count, meaning, .unit = (unit_), .offset = (column), .present = has_any)
static const struct field domain_fields[] = {
	OF_SENSOR("domain", name, "name of the domain: package-0, dram-0, gpu-0 …", .known = true),
	OF_SENSOR("device", device, "name of the hardware", .known = true),
	OF_SENSOR("kind", kind, "kind of the domain", .one_of = domain_kind_names),
	OF_SENSOR("provenance", provenance, "provenance: measured, derived or estimated", .one_of = provenance_names),
	FIELD(D, in_total, NULL, "whether this domain is part of total_w"),
	COLUMN("power_w", HISTORY_POWER_W, "W", "power"),
#define DEVICE_LIVE(id, member, unit, format, tag, title, meaning) COLUMN(#member, HISTORY_##id, unit, meaning),
#include "metric/metrics.def"
};
#undef COLUMN
#undef OF_SENSOR
#undef D
static const struct object_type domain_type = OBJECT_TYPE("history_domain", "The last samples of a domain.", domain_fields);

static size_t domain_count(const struct object_at *at)
{
	return document_of(at)->history->n_domains;
}

static const void *domain_item(const struct object_at *at, size_t i)
{
	return &document_of(at)->now->domains[i];
}

/* ---- the machine ---- */

static bool has_target(const struct object_at *at)
{
	return document_of(at)->view->has_target;
}

#define COLUMN(key, column, unit_, meaning, ...)                                                                       \
	FIELD_VALUES(key, &value_field, sample_count, meaning, .unit = (unit_), .offset = (column), ##__VA_ARGS__)
static const struct field history_fields[] = {
	FIELD_VALUES("unix_s", &time_field, sample_count, "when the samples were taken, Unix time"),
	COLUMN("total_w", HISTORY_TOTAL_W, "W", "power of all domains that do not overlap"),
	COLUMN("target_w", HISTORY_TARGET_W, "W", "power attributed to the watched program", .present = has_target),
	COLUMN("others_w", HISTORY_OTHERS_W, "W", "power attributed to other programs"),
	COLUMN("wattle_w", HISTORY_OWN_W, "W", "power attributed to this server"),
	COLUMN("idle_w", HISTORY_IDLE_W, "W", "idle power"),
	COLUMN("unattributed_w", HISTORY_UNATTRIBUTED_W, "W", "power that could not be attributed"),
	COLUMN("busy_cores", HISTORY_BUSY_CORES, NULL, "cores that were busy"),
	COLUMN("memory_used_bytes", HISTORY_MEMORY_BYTES, "bytes", "memory in use"),
	FIELD_LIST("domains", &domain_type, domain_count, domain_item, "power of each domain"),
};
#undef COLUMN
const struct object_type history_type = OBJECT_TYPE("history", "The last samples, a list for each figure, oldest first.", history_fields);
