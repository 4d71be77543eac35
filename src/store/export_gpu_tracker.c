#include "store/export.h"

#include "base/util.h"
#include "store/tracking.h"

#include <errno.h>
#include <string.h>

/* Replays the samples of a stored run as the original records, through the writer that a recording uses. */
struct replay {
	const struct run *run;
	struct tracking_writer writer;
	struct record *record; // scratch for a record of any scope; owned
	size_t *at;            // index of the next sample of each device; owned
};

static struct tracking_metadata metadata_of(const struct run *run)
{
	struct tracking_metadata facts = {
		.ram_unit = run_unit(run, "ram_unit"),
		.gpu_ram_unit = run_unit(run, "gpu_ram_unit"),
		.time_unit = run_unit(run, "time_unit"),
		.system_core_count = run_metadata_i64(run, "n_cores"),
		.n_expected_cores = run_metadata_i64(run, "expected_cores"),
		.system_gpu_count = run_metadata_i64(run, "n_gpus_system"),
		.n_expected_gpus = run_count_gpus(run),
	};
	tracking_metadata_capacity(&facts, run_metadata_double(run, "memory_total_bytes"), run_gpu_capacity_bytes(run));
	return facts;
}

static struct record *make_record(struct replay *p, enum metric_scope scope, int64_t t_ns, int64_t id,
	const struct run_device *device, size_t at)
{
	size_t n;
	metric_table(scope, &n);
	*p->record = (struct record){.t_ns = t_ns, .id = id, .scope = scope, .n_values = (uint32_t)n};
	for (size_t m = 0; m < n; m++)
		p->record->values[m] = device != NULL ? device_value(device, m, at) : run_value(p->run, m, at);
	return p->record;
}

static int feed_devices(struct replay *p, int64_t t_ns, struct wattle_error *reterr)
{
	int r = 0;
	for (size_t d = 0; r == 0 && d < p->run->n_devices; d++) {
		const struct run_device *device = &p->run->devices[d];
		while (p->at[d] < device->n && device->t_ns[p->at[d]] < t_ns)
			p->at[d]++;
		if (p->at[d] == device->n || device->t_ns[p->at[d]] != t_ns)
			continue;
		r = tracking_feed(&p->writer, make_record(p, METRIC_DEVICE, t_ns, (int64_t)d, device, p->at[d]),
			reterr);
	}
	return r;
}

// Samples [first, last) belong to one recording.
static int feed_recording(struct replay *p, size_t first, size_t last, int64_t start_ns, struct wattle_error *reterr)
{
	int64_t wall_ns = run_wall_ns(p->run, start_ns);
	tracking_start(&p->writer, start_ns, value_ok(wall_ns) ? wall_ns : 0);
	int r = 0;
	for (size_t i = first; r == 0 && i < last; i++) {
		int64_t t_ns = p->run->t_ns[i];
		r = tracking_feed(&p->writer, make_record(p, METRIC_RUN, t_ns, 0, NULL, i), reterr);
		if (r == 0)
			r = feed_devices(p, t_ns, reterr);
	}
	return r < 0 ? r : tracking_stop(&p->writer, reterr);
}

static int feed_all(struct replay *p, struct wattle_error *reterr)
{
	const struct run *run = p->run;
	size_t first = 0;
	int r = 0;
	for (size_t s = 0; r == 0 && s < run->n_segments; s++) {
		// The first sample may precede the target's start, and the last sample may follow the target's end.
		int64_t end_ns = run->segments[s].end_ns;
		int64_t limit_ns = s + 1 < run->n_segments ? end_ns + (run->segments[s + 1].start_ns - end_ns) / 2
							   : INT64_MAX;
		size_t last = first;
		while (last < run->n && run->t_ns[last] <= limit_ns)
			last++;
		r = feed_recording(p, first, last, run->segments[s].start_ns, reterr);
		first = last;
	}
	return r;
}

static int replay(struct replay *p, const char *path, struct wattle_error *reterr)
{
	const struct run *run = p->run;
	enum domain_kind *kinds = calloc_array(run->n_devices, sizeof(*kinds));
	if (kinds == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	for (size_t i = 0; i < run->n_devices; i++)
		kinds[i] = run->devices[i].kind;
	struct tracking_metadata facts = metadata_of(run);
	const struct store_open_options options = {.path = path, .overwrite = true};
	int r = tracking_open(&p->writer, &options, &facts, kinds, run->n_devices, reterr);
	free(kinds);
	if (r == 0)
		r = tracking_begin(&p->writer, reterr);
	if (r == 0)
		r = feed_all(p, reterr);
	if (r == 0)
		r = tracking_commit(&p->writer, reterr);
	tracking_close(&p->writer, r == 0, r < 0); // on failure: removes the export, restores the old file
	return r;
}

int export_gpu_tracker(const struct run *run, const char *path, bool overwrite, struct wattle_error *reterr)
{
	int r = export_check_free(path, overwrite, reterr);
	if (r < 0)
		return r;
	size_t values = RUN_COUNT > (size_t)DEVICE_COUNT ? RUN_COUNT : (size_t)DEVICE_COUNT;
	struct replay p = {
		.run = run,
		.record = malloc(sizeof(struct record) + values * sizeof(int64_t)),
		.at = calloc_array(run->n_devices, sizeof(*p.at)),
	};
	r = p.record != NULL && p.at != NULL ? replay(&p, path, reterr)
					     : error_set(reterr, -ENOMEM, "%s: out of memory", path);
	free(p.record);
	free(p.at);
	return r;
}
