#include "serve/totals.h"

#include "base/util.h"

static const char *const resources[MONITOR_RESOURCES] =
	{[MONITOR_CPU] = "cpu", [MONITOR_DRAM] = "dram", [MONITOR_GPU] = "gpu"};
static const char *const groupings[MONITOR_GROUPINGS] = {[MONITOR_JOBS] = "jobs", [MONITOR_CGROUPS] = "cgroups"};

static const struct {
	const char *key;
	size_t offset;
} parts[] = {
	{"total_j", offsetof(struct monitor_added, total_j)},
	{"target_j", offsetof(struct monitor_added, target_j)},
	{"others_j", offsetof(struct monitor_added, others_j)},
	{"own_j", offsetof(struct monitor_added, own_j)},
	{"idle_j", offsetof(struct monitor_added, idle_j)},
	{"unattributed_j", offsetof(struct monitor_added, unattributed_j)},
};

static double *part(struct monitor_added *added, size_t p)
{
	return (double *)((char *)added + parts[p].offset);
}

void totals_init(struct totals *totals, const struct totals_options *options)
{
	*totals = (struct totals){.since_wall_ns = VALUE_MISSING};
	for (int k = 0; k < MONITOR_GROUPINGS; k++)
		group_rows_init(&totals->groups[k], (enum monitor_grouping)k, options->most[k]);
	process_rows_init(&totals->processes, options->max_processes, options->arguments);
}

void totals_finish(struct totals *totals)
{
	for (int k = 0; k < MONITOR_GROUPINGS; k++)
		group_rows_finish(&totals->groups[k]);
	process_rows_finish(&totals->processes);
}

void totals_update(struct totals *totals, const struct monitor_sample *now, uint64_t sample)
{
	for (int r = 0; r < MONITOR_RESOURCES; r++) {
		struct monitor_added added = now->added[r];
		for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
			*part(&totals->sums[r], p) += *part(&added, p);
	}
	for (int k = 0; k < MONITOR_GROUPINGS; k++)
		group_rows_update(&totals->groups[k], now, sample);
	process_rows_update(&totals->processes, now, sample);
	if (!value_ok(totals->since_wall_ns))
		totals->since_wall_ns = now->wall_ns;
}

void totals_drop_scraped(struct totals *totals, const struct scraped *seen)
{
	for (int k = 0; k < MONITOR_GROUPINGS; k++)
		group_rows_drop_scraped(&totals->groups[k], seen);
	process_rows_drop_scraped(&totals->processes, seen);
}

struct monitor_added totals_sum(const struct totals *totals)
{
	struct monitor_added sum = {0};
	for (int r = 0; r < MONITOR_RESOURCES; r++) {
		struct monitor_added added = totals->sums[r];
		for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
			*part(&sum, p) += *part(&added, p);
	}
	return sum;
}

/* ---- persistence ---- */

// clang-format off
#define A struct monitor_added
static const struct field added_fields[] = {
	FIELD(A, total_j, "J", "energy of the machine"),
	FIELD(A, target_j, "J", "energy attributed to the watched program"),
	FIELD(A, others_j, "J", "energy attributed to other programs"),
	FIELD(A, own_j, "J", "energy attributed to this server"),
	FIELD(A, idle_j, "J", "idle energy"),
	FIELD(A, unattributed_j, "J", "energy that could not be attributed"),
};
#undef A
static const struct object_type added_type = OBJECT_TYPE("sums", "Energy of a resource by owner.", added_fields);

static size_t resource_count(const struct object_at *at)
{
	return MONITOR_RESOURCES;
}

static const char *resource_name(const struct object_at *at, size_t i)
{
	return resources[i];
}

static const void *resource_item(const struct object_at *at, size_t i)
{
	return &((const struct totals *)at->data)->sums[i];
}

// The member is a group table with a nonzero row limit.
static bool has_groups(const struct object_at *at)
{
	return ((const struct group_rows *)((const char *)at->data + at->field->offset))->bounds.most > 0;
}

static bool has_processes(const struct object_at *at)
{
	return ((const struct totals *)at->data)->processes.bounds.most > 0;
}

#define T struct totals
static const struct field totals_fields[] = {
	FIELD_AS(T, "since_unix_ns", since_wall_ns, "ns", "when counting began, Unix time"),
	FIELD_OBJECT_MAP("energy", &added_type, resource_count, resource_name, resource_item, "energy by resource and owner"),
	FIELD_OBJECT(T, "jobs", groups[MONITOR_JOBS], &group_rows_type, "jobs", .present = has_groups),
	FIELD_OBJECT(T, "cgroups", groups[MONITOR_CGROUPS], &group_rows_type, "cgroups", .present = has_groups),
	FIELD_OBJECT(T, "scrapers", scrapers, &scrapers_type, "clients that scrape"),
	FIELD_OBJECT(T, "processes", processes, &process_rows_type, "processes", .present = has_processes),
};
#undef T
const struct object_type serve_totals_type = OBJECT_TYPE("tally", "Sums since counting began.", totals_fields);
// clang-format on

void totals_read(struct totals *totals, const json_t *object, bool same_boot, int64_t t_ns)
{
	const json_t *since = json_object_get(object, "since_unix_ns"), *energy = json_object_get(object, "energy");
	if (json_is_integer(since) && json_integer_value(since) > 0)
		totals->since_wall_ns = json_integer_value(since);
	for (int r = 0; r < MONITOR_RESOURCES; r++)
		for (size_t p = 0; p < ARRAY_SIZE(parts); p++) {
			const json_t *sums = json_object_get(energy, resources[r]);
			double value = json_number_value(json_object_get(sums, parts[p].key));
			*part(&totals->sums[r], p) = isfinite(value) && value > 0 ? value : 0;
		}
	for (int k = 0; k < MONITOR_GROUPINGS; k++)
		group_rows_read(&totals->groups[k], json_object_get(object, groupings[k]));
	scrapers_read(&totals->scrapers, json_object_get(object, "scrapers"), same_boot, t_ns);
	process_rows_read(&totals->processes, json_object_get(object, "processes"), same_boot);
}
