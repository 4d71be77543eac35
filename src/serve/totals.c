#include "serve/totals.h"

#include "base/util.h"

static const char *const resources[NOW_RESOURCES] = {[NOW_CPU] = "cpu", [NOW_DRAM] = "dram", [NOW_GPU] = "gpu"};
static const char *const groupings[NOW_GROUPINGS] = {[NOW_JOBS] = "jobs", [NOW_CGROUPS] = "cgroups"};

static const struct {
	const char *key;
	size_t offset;
} parts[] = {
	{"total_j", offsetof(struct now_added, total_j)},
	{"target_j", offsetof(struct now_added, target_j)},
	{"others_j", offsetof(struct now_added, others_j)},
	{"own_j", offsetof(struct now_added, own_j)},
	{"idle_j", offsetof(struct now_added, idle_j)},
	{"unattributed_j", offsetof(struct now_added, unattributed_j)},
};

static double *part(struct now_added *added, size_t p)
{
	return (double *)((char *)added + parts[p].offset);
}

void tally_init(struct tally *tally, const struct tally_options *options)
{
	*tally = (struct tally){.since_wall_ns = VALUE_MISSING};
	for (int k = 0; k < NOW_GROUPINGS; k++)
		group_rows_init(&tally->groups[k], (enum now_grouping)k, options->most[k]);
	process_rows_init(&tally->processes, options->most_processes, options->arguments);
}

void tally_finish(struct tally *tally)
{
	for (int k = 0; k < NOW_GROUPINGS; k++)
		group_rows_finish(&tally->groups[k]);
	process_rows_finish(&tally->processes);
}

void tally_look(struct tally *tally, const struct now *now, uint64_t look)
{
	for (int r = 0; r < NOW_RESOURCES; r++) {
		struct now_added added = now->added[r];
		for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
			*part(&tally->sums[r], p) += *part(&added, p);
	}
	for (int k = 0; k < NOW_GROUPINGS; k++)
		group_rows_look(&tally->groups[k], now, look);
	process_rows_look(&tally->processes, now, look);
	if (!value_ok(tally->since_wall_ns))
		tally->since_wall_ns = now->wall_ns;
}

void tally_forget(struct tally *tally, const struct scraped *seen)
{
	for (int k = 0; k < NOW_GROUPINGS; k++)
		group_rows_forget(&tally->groups[k], seen);
	process_rows_forget(&tally->processes, seen);
}

struct now_added tally_sum(const struct tally *tally)
{
	struct now_added sum = {0};
	for (int r = 0; r < NOW_RESOURCES; r++) {
		struct now_added added = tally->sums[r];
		for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
			*part(&sum, p) += *part(&added, p);
	}
	return sum;
}

/* ---- persistence ---- */

// clang-format off
#define A struct now_added
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
	return NOW_RESOURCES;
}

static const char *resource_name(const struct object_at *at, size_t i)
{
	return resources[i];
}

static const void *resource_item(const struct object_at *at, size_t i)
{
	return &((const struct tally *)at->data)->sums[i];
}

// The member is a group table with a nonzero row limit.
static bool has_groups(const struct object_at *at)
{
	return ((const struct group_rows *)((const char *)at->data + at->field->offset))->bounds.most > 0;
}

static bool has_processes(const struct object_at *at)
{
	return ((const struct tally *)at->data)->processes.bounds.most > 0;
}

#define T struct tally
static const struct field tally_fields[] = {
	FIELD_AS(T, "since_unix_ns", since_wall_ns, "ns", "when counting began, Unix time"),
	FIELD_OBJECT_MAP("energy", &added_type, resource_count, resource_name, resource_item, "energy by resource and owner"),
	FIELD_OBJECT(T, "jobs", groups[NOW_JOBS], &group_rows_type, "jobs", .present = has_groups),
	FIELD_OBJECT(T, "cgroups", groups[NOW_CGROUPS], &group_rows_type, "cgroups", .present = has_groups),
	FIELD_OBJECT(T, "scrapers", scrapers, &scrapers_type, "clients that scrape"),
	FIELD_OBJECT(T, "processes", processes, &process_rows_type, "processes", .present = has_processes),
};
#undef T
const struct object_type tally_type = OBJECT_TYPE("tally", "Sums since counting began.", tally_fields);
// clang-format on

void tally_read(struct tally *tally, const json_t *object, bool same_boot, int64_t t_ns)
{
	const json_t *since = json_object_get(object, "since_unix_ns"), *energy = json_object_get(object, "energy");
	if (json_is_integer(since) && json_integer_value(since) > 0)
		tally->since_wall_ns = json_integer_value(since);
	for (int r = 0; r < NOW_RESOURCES; r++)
		for (size_t p = 0; p < ARRAY_SIZE(parts); p++) {
			const json_t *sums = json_object_get(energy, resources[r]);
			double value = json_number_value(json_object_get(sums, parts[p].key));
			*part(&tally->sums[r], p) = isfinite(value) && value > 0 ? value : 0;
		}
	for (int k = 0; k < NOW_GROUPINGS; k++)
		group_rows_read(&tally->groups[k], json_object_get(object, groupings[k]));
	scrapers_read(&tally->scrapers, json_object_get(object, "scrapers"), same_boot, t_ns);
	process_rows_read(&tally->processes, json_object_get(object, "processes"), same_boot);
}
