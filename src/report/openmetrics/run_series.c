// Series of timestamped samples with a minimum distance.
#include "report/openmetrics/internal.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"

static void write(struct om_run *w, int64_t wall_ms, double value)
{
	w->last_ms = wall_ms;
	w->has_held = false;
	om_value_at(&w->om, w->labels, w->n_labels, value, wall_ms);
	w->more(w->data);
}

void om_run_end_series(struct om_run *w)
{
	if (w->has_held)
		write(w, w->held_ms, w->held);
}

void om_run_family(struct om_run *w, const struct om_family *family)
{
	om_run_end_series(w);
	om_family(&w->om, family);
}

void om_run_series(struct om_run *w, const char *name, const char *value)
{
	om_run_end_series(w);
	w->labels[0] = (struct om_label){"run", run_metadata(w->run, META_KEY_RUN_ID)};
	w->n_labels = 1;
	w->last_ms = -1;
	if (name != NULL)
		om_run_label(w, name, value);
}

void om_run_label(struct om_run *w, const char *name, const char *value)
{
	w->labels[w->n_labels++] = (struct om_label){name, value};
}

void om_run_put(struct om_run *w, int64_t t_ns, double value)
{
	int64_t wall_ns = run_wall_ns(w->run, t_ns);
	int64_t wall_ms = wall_ns / NS_PER_MS;
	if (isnan(value) || wall_ns < 0 || wall_ms <= w->last_ms) // also skips VALUE_MISSING, which is INT64_MIN
		return;
	if (w->last_ms < 0 || wall_ms - w->last_ms >= w->every_ms) {
		write(w, wall_ms, value);
		return;
	}
	w->has_held = true;
	w->held_ms = wall_ms;
	w->held = value;
}

static int64_t end_ns(const struct run *run)
{
	int64_t end_ns = VALUE_MISSING; // INT64_MIN, below all times
	for (size_t i = 0; i < run->n_segments; i++)
		end_ns = run->segments[i].end_ns > end_ns ? run->segments[i].end_ns : end_ns;
	return end_ns;
}

void om_run_put_end(struct om_run *w, double value)
{
	if (value_ok(end_ns(w->run)))
		om_run_put(w, end_ns(w->run), value);
}

void om_run_one(struct om_run *w, enum om_id id, double value)
{
	om_run_family(w, &om_families[id]);
	om_run_series(w, NULL, NULL);
	om_run_put_end(w, value);
}
