#include "serve/tally.h"

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
		told_init(&tally->groups[k], (enum now_grouping)k, options->most[k]);
	pids_init(&tally->processes, options->most_processes, options->arguments);
}

void tally_finish(struct tally *tally)
{
	for (int k = 0; k < NOW_GROUPINGS; k++)
		told_finish(&tally->groups[k]);
	pids_finish(&tally->processes);
}

void tally_look(struct tally *tally, const struct now *now, uint64_t look)
{
	for (int r = 0; r < NOW_RESOURCES; r++) {
		struct now_added added = now->added[r];
		for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
			*part(&tally->sums[r], p) += *part(&added, p);
	}
	for (int k = 0; k < NOW_GROUPINGS; k++)
		told_look(&tally->groups[k], now, look);
	pids_look(&tally->processes, now, look);
	if (!value_ok(tally->since_wall_ns))
		tally->since_wall_ns = now->wall_ns;
}

void tally_forget(struct tally *tally, const struct told_seen *seen)
{
	for (int k = 0; k < NOW_GROUPINGS; k++)
		told_forget(&tally->groups[k], seen);
	pids_forget(&tally->processes, seen);
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

/* ---- over restarts ---- */

void tally_write(const struct tally *tally, struct jsonw *j)
{
	jsonw_key_i64(j, "since_unix_ns", tally->since_wall_ns);
	jsonw_key(j, "energy");
	jsonw_begin_object(j);
	for (int r = 0; r < NOW_RESOURCES; r++) {
		struct now_added sums = tally->sums[r];
		jsonw_key(j, resources[r]);
		jsonw_begin_object(j);
		for (size_t p = 0; p < ARRAY_SIZE(parts); p++)
			jsonw_key_double(j, parts[p].key, *part(&sums, p));
		jsonw_end_object(j);
	}
	jsonw_end_object(j);
	for (int k = 0; k < NOW_GROUPINGS; k++) {
		if (tally->groups[k].most == 0)
			continue;
		jsonw_key(j, groupings[k]);
		told_write(&tally->groups[k], j);
	}
	jsonw_key(j, "scrapers");
	scrapers_write(&tally->scrapers, j);
	if (tally->processes.most > 0) {
		jsonw_key(j, "processes");
		pids_write(&tally->processes, j);
	}
}

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
		told_read(&tally->groups[k], json_object_get(object, groupings[k]));
	scrapers_read(&tally->scrapers, json_object_get(object, "scrapers"), same_boot, t_ns);
	pids_read(&tally->processes, json_object_get(object, "processes"), same_boot);
}
