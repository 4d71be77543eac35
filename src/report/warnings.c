#include "report/phrases.h"

#include "analysis/metadata_keys.h"
#include "base/buf.h"
#include "base/suggest.h"
#include "base/util.h"
#include "energy/slice.h"
#include "report/report.h"

enum { WARNING_CEILING = 4096, EVENTS_LISTED_MAX = 5 };

static const double short_run_s = 0.1; // s; update interval of some sensors

struct warning_writer {
	const struct findings *findings;
	warning_writer write;
	void *data;
	struct buf text; // scratch
};

static void write(struct warning_writer *t)
{
	if (t->text.failed == 0 && t->text.size > 0)
		t->write(t->data, t->text.data);
	buf_clear(&t->text);
}

static void write_text(struct warning_writer *t, const char *text)
{
	buf_str(&t->text, text);
	write(t);
}

static void incomplete(struct warning_writer *t)
{
	if (!t->findings->complete)
		write_text(t,
			"Incomplete recording: it is still running, or wattle was killed. "
			"The figures end with the last stored sample.");
}

static void no_energy(struct warning_writer *t)
{
	if (t->findings->n_domains == 0)
		write_text(t,
			"No energy: no energy sensor on this machine could be read. "
			"`wattle sensors` lists the sensors and how to enable them.");
}

static bool is_estimated(const struct domain_finding *d)
{
	return d->in_total && d->provenance == PROVENANCE_ESTIMATED && !isnan(d->energy_j);
}

// Names repeat: each node of a job has a package-0.
static bool was_named(const struct findings *f, size_t domain)
{
	for (size_t i = 0; i < domain; i++)
		if (is_estimated(&f->domains[i]) &&
			strcmp(f->domains[i].device->name, f->domains[domain].device->name) == 0)
			return true;
	return false;
}

static void estimated(struct warning_writer *t)
{
	if (isnan(t->findings->total_j) || t->findings->provenance != PROVENANCE_ESTIMATED)
		return;
	buf_str(&t->text, "Energy is estimated, not measured:");
	const char *separator = " ";
	for (size_t i = 0; i < t->findings->n_domains; i++) {
		const struct domain_finding *d = &t->findings->domains[i];
		if (!is_estimated(d) || was_named(t->findings, i))
			continue;
		buf_printf(&t->text, "%s%s", separator, d->device->name);
		separator = ", ";
	}
	buf_str(&t->text,
		" could not be read, so a model estimates the power from the load. "
		"`wattle sensors` shows how to enable measurement.");
	write(t);
}

static void lost_samples(struct warning_writer *t)
{
	int64_t lost = t->findings->lost_samples;
	if (!value_ok(lost) || lost <= 0)
		return;
	double all = (double)lost + (value_ok(t->findings->samples) ? (double)t->findings->samples : 0);
	buf_printf(&t->text, "%lld of %.0f samples were missed or could not be stored.", (long long)lost, all);
	write(t);
}

static void pruned(struct warning_writer *t)
{
	const struct run *run = t->findings->run;
	if (run == NULL || run->n_gone <= 0)
		return;
	buf_printf(&t->text,
		"%lld of %lld samples were pruned from the store: energy and blocks cover the remaining samples.",
		(long long)run->n_gone, (long long)run->n_gone + (long long)run->n);
	write(t);
}

static const double stalled_min_s = 1; // s; shorter stalls can be normal for slow counters

// A stalled counter is worse than an unreadable one, because its values look valid.
static bool stalled(struct warning_writer *t, const struct domain_finding *d)
{
	if (!(d->stalled_s >= stalled_min_s))
		return false;
	if (isnan(d->energy_j) && !d->in_total)
		return true; // psys is unconnected on many boards; no warning needed
	buf_printf(&t->text, "The energy counter of %s (%s) did not change for ", d->device->name, d->device->source);
	human_time(&t->text, d->stalled_s);
	if (isnan(d->energy_j))
		buf_str(&t->text, ", the whole run: its energy is unknown.");
	else if (d->provenance != PROVENANCE_MEASURED)
		buf_str(&t->text, "; the energy is integrated from its power readings instead.");
	else
		buf_str(&t->text,
			", until the end: the total excludes the energy of that time, and the error is larger.");
	write(t);
	return true;
}

static void disagrees(struct warning_writer *t, const struct domain_finding *d)
{
	if (!d->disagrees)
		return;
	buf_printf(&t->text, "Two measurements of %s disagree: its energy counter reports ", d->device->name);
	human_energy(&t->text, d->energy_j);
	buf_char(&t->text, ' ');
	human_error(&t->text, d->error_j);
	buf_str(&t->text, ", its power readings add up to ");
	human_energy(&t->text, d->integrated_j);
	buf_char(&t->text, ' ');
	human_error(&t->text, d->integrated_error_j);
	buf_str(&t->text, ". wattle uses the counter.");
	write(t);
}

static void too_short(struct warning_writer *t, const struct domain_finding *d)
{
	if (!d->unseen)
		return;
	buf_printf(&t->text, "The energy counter of %s (%s) did not update: the run was too short.",
		d->device->name, d->device->source);
	write(t);
}

static void gaps(struct warning_writer *t)
{
	for (size_t i = 0; i < t->findings->n_domains; i++) {
		const struct domain_finding *d = &t->findings->domains[i];
		disagrees(t, d);
		too_short(t, d);
		if (stalled(t, d))
			continue;
		if (isnan(d->energy_j) && sensor_owner_first_other(t->findings->run, d->device) != NULL)
			continue; // reported once for all domains
		if (isnan(d->energy_j)) {
			buf_printf(&t->text, "%s (%s) reported no energy in this run%s.", d->device->name,
				d->device->source,
				t->findings->duration_s < short_run_s ? ", which was very short" : "");
			write(t);
		} else if (d->gaps > 0) {
			buf_printf(&t->text,
				"%s could not be read %lld time%s, so its error is larger.",
				d->device->name, (long long)d->gaps, d->gaps == 1 ? "" : "s");
			write(t);
		}
	}
}

// Sensors read by another rank of this job, throughout or until this rank took over.
static void elsewhere(struct warning_writer *t)
{
	const struct run *run = t->findings->run;
	const struct event *latest = NULL;
	for (size_t i = 0; i < t->findings->n_domains; i++) {
		const struct run_device *device = t->findings->domains[i].device;
		const struct event *event = sensor_owner_first_other(run, device);
		if (event == NULL || event == latest)
			continue;
		latest = event;
		rank_elsewhere_phrase(&t->text, run, event, device);
		write(t);
	}
}

static void unattributed(struct warning_writer *t)
{
	const struct findings *f = t->findings;
	if (!(f->ledger.unattributed_j > 0.01 * f->total_j))
		return;
	human_energy(&t->text, f->ledger.unattributed_j);
	buf_str(&t->text, " could not be attributed to a program: its use is unknown.");
	write(t);
}

// True if an earlier event has the same text: a sensor that disconnects repeatedly reports the same each time.
static bool was_reported(const struct run *run, size_t event)
{
	for (size_t i = 0; i < event; i++)
		if (run->events[i].kind == run->events[event].kind && run->events[i].text != NULL &&
			strcmp(run->events[i].text, run->events[event].text) == 0)
			return true;
	return false;
}

// Warnings of the recorder. Wraps, gaps and resets are reported with the domains.
static void recorded(struct warning_writer *t)
{
	static const enum event_kind kinds[] = {EVENT_KIND_WARNING, EVENT_KIND_LOST, EVENT_KIND_SUSPEND,
		EVENT_KIND_NOTE};
	size_t latest = 0, left = 0;
	for (size_t i = 0; i < t->findings->run->n_events; i++) {
		const struct event *event = &t->findings->run->events[i];
		bool wanted = false;
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			wanted |= event->kind == kinds[k];
		if (!wanted || event->text == NULL || was_reported(t->findings->run, i))
			continue;
		if (latest++ < EVENTS_LISTED_MAX)
			write_text(t, event->text);
		else
			left++;
	}
	if (left == 0)
		return;
	buf_printf(&t->text, "… and %zu more in table event of the run file.", left);
	write(t);
}

static bool names_before(const struct findings *f, size_t block)
{
	for (size_t i = 0; i < block; i++)
		if (strcmp(f->blocks[i].name, f->blocks[block].name) == 0)
			return true;
	return false;
}

// --step names a code block without calls: a mistyped name, or a program that marks no blocks.
static void step_unseen(struct warning_writer *t)
{
	enum { NAMES_MAX = 12 };
	const struct findings *f = t->findings;
	const char *step = run_metadata(f->run, META_KEY_STEP);
	size_t n = 0;
	if (step == NULL || step_block(f) != NULL || f->run->has_left_out_spans)
		return;
	struct suggest suggest;
	char meant[SUGGEST_WORD_MAX + 32];
	suggest_begin(&suggest, step, strlen(step));
	for (size_t i = 0; i < f->n_blocks; i++)
		suggest_offer(&suggest, f->blocks[i].name, strlen(f->blocks[i].name));
	buf_printf(&t->text, "--step: no call of code block '%s' was recorded%s; ", step,
		suggest_text(&suggest, "", meant));
	for (size_t i = 0; i < f->n_blocks && n < NAMES_MAX; i++)
		if (!names_before(f, i))
			buf_printf(&t->text, "%s%s", n++ > 0 ? ", " : "recorded code blocks: ", f->blocks[i].name);
	if (n == 0)
		buf_str(&t->text, "the program marked no code blocks (use wattle.h, NVTX or the Python package)");
	write(t);
}

typedef void (*part)(struct warning_writer *);

static void write_parts(const part *parts, size_t n, const struct findings *findings, warning_writer write_one,
	void *data)
{
	struct warning_writer t = {.findings = findings, .write = write_one, .data = data};
	buf_init(&t.text, WARNING_CEILING);
	for (size_t i = 0; i < n; i++)
		parts[i](&t);
	buf_finish(&t.text);
}

void report_warnings(const struct findings *findings, warning_writer write_one, void *data)
{
	static const part parts[] = {incomplete, pruned, no_energy, elsewhere, estimated, lost_samples, gaps,
		unattributed, step_unseen, recorded};
	write_parts(parts, ARRAY_SIZE(parts), findings, write_one, data);
}

void report_warnings_of_totals(const struct findings *findings, warning_writer write_one, void *data)
{
	static const part parts[] = {no_energy, estimated, lost_samples, unattributed};
	write_parts(parts, ARRAY_SIZE(parts), findings, write_one, data);
}
