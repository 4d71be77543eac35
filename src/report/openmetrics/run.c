#include "report/openmetrics.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "report/openmetrics/internal.h"
#include "report/phrases.h"

#include <errno.h>

static void write_info(struct om_run *w, const char *command)
{
	const struct run *run = w->run;
	const struct om_label labels[] = {
		{"run", run_metadata(run, META_KEY_RUN_ID)},
		{"host", run_metadata(run, META_KEY_HOST)},
		{"label", run_metadata(run, META_KEY_LABEL)},
		{"command", command},
		{"attribution", run_metadata(run, META_KEY_ATTRIBUTION)},
	};
	om_run_family(w, &om_families[FAMILY_RUN]);
	om_value_at(&w->om, labels, ARRAY_SIZE(labels), 1, run_wall_ns(run, run->segments[0].start_ns) / NS_PER_MS);
}

static void write_run(struct om_run *w)
{
	struct buf words;
	buf_init(&words, 1 << 20);
	const char *json = w->run->segments[0].command_json;
	bool known = json != NULL && command_quoted(json, &words) == 0 && words.failed == 0;
	for (size_t i = 0; known && i + 1 < words.size; i++)
		if (words.data[i] == '\0')
			words.data[i] = ' ';
	write_info(w, known ? words.data : NULL);
	buf_finish(&words);
	om_run_one(w, FAMILY_RUN_DURATION, w->findings->duration_s);
}

bool openmetrics_run_can(const struct run *run)
{
	return run->n_segments > 0 &&
		run_wall_ns(run, run->segments[0].start_ns) >= 0; // false for VALUE_MISSING, which is INT64_MIN
}

int openmetrics_run(const struct findings *findings, int64_t every_ns, struct buf *out, void (*more)(void *data),
	void *data)
{
	struct om_run w = {.findings = findings, .run = findings->run, .more = more, .data = data};
	w.every_ms = every_ns > NS_PER_MS ? every_ns / NS_PER_MS : 1;
	w.arena = arena_new();
	if (w.arena == NULL || timeline_of(findings, w.arena, &w.timeline) < 0) {
		arena_free(w.arena);
		return -ENOMEM;
	}
	om_begin(&w.om, out, OM_OPENMETRICS);
	write_run(&w);
	int r = om_run_energy(&w);
	om_run_gauges(&w);
	if (r == 0)
		r = om_run_custom_metrics(&w);
	om_run_end_series(&w);
	om_end(&w.om);
	arena_free(w.arena);
	return r;
}
