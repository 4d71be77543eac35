// Bands (intervals with throttling or without readings) and marks (events).
#include "analysis/chart/builder.h"

#include "base/util.h"
#include "metric/metric.h"

#include <errno.h>

enum { BANDS_ACROSS = 2000, MARKS_ACROSS = 500 }; // items closer together than this fraction of the axis are merged

/* ---- bands ---- */

struct band_list {
	struct chart_work *work;
	size_t capacity;
	double nearest_s;
};

static int add_band(struct band_list *list, const struct chart_band *band)
{
	struct charts *charts = list->work->charts;
	if (charts->n_bands == list->capacity) {
		size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
		struct chart_band *more = arena_alloc(list->work->arena, capacity, sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		if (charts->n_bands > 0)
			memcpy(more, charts->bands, charts->n_bands * sizeof(*more));
		charts->bands = more;
		list->capacity = capacity;
	}
	charts->bands[charts->n_bands++] = *band;
	return 0;
}

struct throttle {
	double from_s, to_s, covered_s;
	int64_t bits; // 0: none
};

static int end_throttle(struct band_list *list, const struct run_device *device, struct throttle *held)
{
	if (held->bits == 0)
		return 0;
	char words[THROTTLE_PHRASE_SIZE];
	throttle_phrase(held->bits, words);
	struct chart_band band = {.from_s = held->from_s,
		.to_s = held->to_s,
		.covered_s = held->covered_s,
		.device = device,
		.kind = "throttle",
		.text = arena_text(list->work->arena, words)};
	held->bits = 0;
	return band.text != NULL ? add_band(list, &band) : -ENOMEM;
}

static int add_throttle(struct band_list *list, const struct run_device *device, struct throttle *held,
	const struct throttle *next)
{
	bool joins = held->bits != 0 && next->from_s - held->to_s <= list->nearest_s &&
		(held->bits == next->bits || held->to_s - held->from_s < list->nearest_s);
	if (!joins && end_throttle(list, device, held) < 0)
		return -ENOMEM;
	if (!joins)
		held->from_s = next->from_s;
	held->covered_s = (joins ? held->covered_s : 0) + next->to_s - next->from_s;
	held->to_s = next->to_s;
	held->bits |= next->bits;
	return 0;
}

// A reading represents the time since the previous one, unless that is a hole: the same rule as for throttled_s in the
// report.
static int throttle_bands(struct band_list *list, const struct run_device *device)
{
	const struct chart_work *work = list->work;
	const struct chart_axis *axis = &work->charts->axis;
	struct run_values reasons = device_column(device, DEVICE_THROTTLE_REASONS);
	struct throttle held = {0};
	for (size_t s = 0; s < work->run->n_segments && values_any(reasons); s++) {
		struct slice rows = slice_of(work->run, s, device->t_ns, device->n);
		int64_t before_ns = rows.begin < rows.end ? device->t_ns[rows.begin] : 0;
		for (size_t i = rows.begin + 1; i < rows.end; i++) {
			if (slice_is_poll(device, i))
				continue;
			int64_t from_ns = before_ns, to_ns = device->t_ns[i];
			int64_t bits = throttle_held_back(values_at(reasons, i));
			before_ns = to_ns;
			if (bits == 0 || to_ns - from_ns > work->hole_ns)
				continue;
			struct throttle next = {.from_s = chart_axis_s(axis, from_ns),
				.to_s = chart_axis_s(axis, to_ns),
				.bits = bits};
			if (add_throttle(list, device, &held, &next) < 0)
				return -ENOMEM;
		}
	}
	return end_throttle(list, device, &held);
}

/* ---- gaps ---- */

struct gaps {
	struct band_list *list;
	const struct run_device *device; // NULL: the run's samples
	struct chart_band last;          // text NULL: none yet
};

static int end_gap(struct gaps *gaps)
{
	int r = gaps->last.text != NULL ? add_band(gaps->list, &gaps->last) : 0;
	gaps->last.text = NULL;
	return r;
}

static int add_gap(struct gaps *gaps, int64_t from_ns, int64_t to_ns)
{
	const struct chart_work *work = gaps->list->work;
	const struct run *run = work->run;
	if (to_ns - from_ns <= work->hole_ns)
		return 0;
	if (gaps->device != NULL) { // gaps without any sample are in the run's own band
		struct slice between = slice_after(run->t_ns, run->n, from_ns, to_ns - 1);
		if (between.begin == between.end)
			return 0;
	}
	struct chart_band band = {.from_s = chart_axis_s(&work->charts->axis, from_ns),
		.to_s = chart_axis_s(&work->charts->axis, to_ns),
		.device = gaps->device,
		.kind = "gap",
		.text = gaps->device != NULL ? "could not be read" : "no samples"};
	band.covered_s = band.to_s - band.from_s;
	if (!(band.covered_s > 0))
		return 0;
	if (gaps->last.text != NULL && band.from_s - gaps->last.to_s <= gaps->list->nearest_s) {
		gaps->last.to_s = band.to_s;
		gaps->last.covered_s += band.covered_s;
		return 0;
	}
	int r = end_gap(gaps);
	gaps->last = band;
	return r;
}

static int64_t within(int64_t t_ns, const struct run_segment *segment)
{
	t_ns = t_ns > segment->start_ns ? t_ns : segment->start_ns;
	return t_ns < segment->end_ns ? t_ns : segment->end_ns;
}

static int gap_bands(struct band_list *list, const struct run_device *device)
{
	const struct run *run = list->work->run;
	const int64_t *t_ns = device != NULL ? device->t_ns : run->t_ns;
	size_t n = device != NULL ? device->n : run->n;
	struct gaps gaps = {.list = list, .device = device};
	for (size_t s = 0; s < run->n_segments; s++) {
		const struct run_segment *segment = &run->segments[s];
		struct slice rows = slice_of(run, s, t_ns, n);
		int64_t before_ns = segment->start_ns;
		bool any = false;
		for (size_t i = rows.begin; i < rows.end; i++) {
			if (device != NULL && !device_is_metered(device, i))
				continue;
			int64_t now_ns = within(t_ns[i], segment);
			if (add_gap(&gaps, before_ns, now_ns) < 0)
				return -ENOMEM;
			before_ns = now_ns;
			any = true;
		}
		// A device that appears in a later segment is not missing in earlier ones.
		if ((any || device == NULL) && add_gap(&gaps, before_ns, segment->end_ns) < 0)
			return -ENOMEM;
	}
	return end_gap(&gaps);
}

int chart_bands(struct chart_work *work)
{
	const struct findings *f = work->findings;
	struct band_list list = {.work = work, .nearest_s = work->charts->axis.length_s / BANDS_ACROSS};
	if (gap_bands(&list, NULL) < 0)
		return -ENOMEM;
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct run_device *device = f->domains[d].device;
		if (throttle_bands(&list, device) < 0 ||
			(!isnan(f->domains[d].energy_j) && gap_bands(&list, device) < 0))
			return -ENOMEM;
	}
	return 0;
}

/* ---- marks ---- */

// Events that are not marked: throttling is shown as bands, and counter wraps are irrelevant to the reader.
static bool is_shown_elsewhere(enum event_kind kind)
{
	return kind == EVENT_KIND_THROTTLE || kind == EVENT_KIND_THROTTLE_END || kind == EVENT_KIND_WRAP;
}

static bool is_near_another(const struct charts *charts, const struct chart_mark *mark, double nearest_s)
{
	for (size_t i = charts->n_marks; i > 0; i--) {
		const struct chart_mark *before = &charts->marks[i - 1];
		if (mark->at_s - before->at_s > nearest_s)
			return false;
		if (strcmp(before->kind, mark->kind) == 0)
			return true;
	}
	return false;
}

int chart_marks(struct chart_work *work)
{
	const struct run *run = work->run;
	struct charts *charts = work->charts;
	double nearest_s = charts->axis.length_s / MARKS_ACROSS;
	charts->marks = arena_alloc(work->arena, run->n_events, sizeof(*charts->marks));
	if (charts->marks == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_events; i++) {
		const struct event *event = &run->events[i];
		if (is_shown_elsewhere(event->kind))
			continue;
		const struct chart_mark mark = {chart_axis_s(&charts->axis, event->t_ns), event->t_ns, event->kind_name,
			event->text != NULL ? event->text : ""};
		bool is_dense = charts->n_marks >= MARKS_ACROSS;
		if (!is_dense || !is_near_another(charts, &mark, nearest_s))
			charts->marks[charts->n_marks++] = mark;
	}
	return 0;
}
