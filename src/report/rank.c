#include "report/phrases.h"

#include "base/util.h"
#include "energy/slice.h"
#include "report/report.h"

#include <string.h>

bool rank_in_job(const struct run *run)
{
	return run_metadata(run, META_KEY_JOB_ID) != NULL || run_metadata(run, META_KEY_RANK) != NULL;
}

void rank_phrase(struct buf *out, const struct run *run)
{
	int64_t rank = run_metadata_i64(run, META_KEY_RANK), size = run_metadata_i64(run, META_KEY_WORLD_SIZE);
	int64_t restart = run_metadata_i64(run, META_KEY_RESTART);
	const char *node = run_metadata(run, META_KEY_NODE), *step = run_metadata(run, META_KEY_JOB_STEP);
	const char *separator = "";
	if (value_ok(rank)) {
		buf_printf(out, "rank %lld", (long long)rank);
		if (value_ok(size))
			buf_printf(out, " of %lld", (long long)size);
		separator = ", ";
	}
	if (node != NULL) {
		buf_printf(out, "%son %s", separator, node);
		separator = ", ";
	}
	if (step != NULL) {
		buf_printf(out, "%sstep %s", separator, step);
		separator = ", ";
	}
	if (restart > 0)
		buf_printf(out, "%sstarted again %lld time%s", separator, (long long)restart, restart == 1 ? "" : "s");
}

/* ---- sensors ---- */

static void where_to_look(struct buf *out, const struct run *run)
{
	const char *id = run_metadata(run, META_KEY_JOB_ID);
	buf_str(out, " `wattle report DIR");
	if (id != NULL)
		buf_printf(out, " --job %s", id);
	buf_str(out, "`, for the folder with the run files of all ranks, counts each machine once.");
}

void rank_elsewhere_phrase(struct buf *out, const struct run *run, const struct event *event,
	const struct run_device *device)
{
	const struct event *takeover = sensor_owner_takeover(run, device);
	bool is_one = strchr(event->device, ' ') == NULL;
	const char *their = is_one ? "its" : "their";
	event_device_names(out, event);
	buf_printf(out, " %s read by ", is_one ? "was" : "were");
	event_reader(out, event);
	buf_str(out, sensor_owner_has_changed(run, event, device) ? " and others" : "");
	if (takeover == NULL || run->n_segments == 0) {
		buf_printf(out, ": %s energy is not included in this report.", their);
	} else {
		buf_str(out, " for the first ");
		human_time(out, (double)(takeover->t_ns - run->segments[0].start_ns) / 1e9);
		buf_printf(out, ": %s energy until then is not included in this report.", their);
	}
	where_to_look(out, run);
}
