#include "report/warnings.h"

#include "analysis/facts.h"
#include "base/buf.h"
#include "base/util.h"
#include "report/report.h"

enum { WARNING_CEILING = 4096, EVENTS_TOLD_MAX = 5 };

static const double short_run_s = 0.1; // some sensors update no faster

struct teller {
	const struct findings *findings;
	tell_warning tell;
	void *data;
	struct buf text; // scratch
};

static void tell(struct teller *t)
{
	if (t->text.failed == 0 && t->text.size > 0)
		t->tell(t->data, t->text.data);
	buf_clear(&t->text);
}

static void tell_text(struct teller *t, const char *text)
{
	buf_str(&t->text, text);
	tell(t);
}

static void incomplete(struct teller *t)
{
	if (!t->findings->complete)
		tell_text(t,
			"The recording was not finished: it is still running, or wattle was killed. "
			"The figures end with the last sample that was stored.");
}

static void no_energy(struct teller *t)
{
	if (t->findings->n_domains == 0)
		tell_text(t,
			"No energy: nothing on this machine that meters it could be read. "
			"`wattle sensors` says what there is and how to make it readable.");
}

static void estimated(struct teller *t)
{
	if (isnan(t->findings->total_j) || t->findings->provenance != PROVENANCE_ESTIMATED)
		return;
	buf_str(&t->text, "Energy is estimated, not measured:");
	const char *separator = " ";
	for (size_t i = 0; i < t->findings->n_domains; i++) {
		const struct domain_finding *d = &t->findings->domains[i];
		if (!d->in_total || d->provenance != PROVENANCE_ESTIMATED || isnan(d->energy_j))
			continue;
		buf_printf(&t->text, "%s%s", separator, d->device->name);
		separator = ", ";
	}
	buf_str(&t->text,
		" could not be read, so a model guesses the power from the load. "
		"`wattle sensors` says how to make it readable.");
	tell(t);
}

static void lost_samples(struct teller *t)
{
	int64_t lost = t->findings->lost_samples;
	if (!value_ok(lost) || lost <= 0)
		return;
	buf_printf(&t->text, "%lld of %lld samples were missed or could not be stored.", (long long)lost,
		(long long)(lost + (value_ok(t->findings->samples) ? t->findings->samples : 0)));
	tell(t);
}

static void gaps(struct teller *t)
{
	for (size_t i = 0; i < t->findings->n_domains; i++) {
		const struct domain_finding *d = &t->findings->domains[i];
		if (isnan(d->energy_j)) {
			buf_printf(&t->text, "%s (%s) gave no energy in this run%s.", d->device->name,
				d->device->source,
				t->findings->duration_s < short_run_s ? ", which was very short" : "");
			tell(t);
		} else if (d->gaps > 0) {
			buf_printf(&t->text,
				"%s could not be read for a while, %lld time%s; its error is wider for it.",
				d->device->name, (long long)d->gaps, d->gaps == 1 ? "" : "s");
			tell(t);
		}
	}
}

static void unattributed(struct teller *t)
{
	const struct findings *f = t->findings;
	if (!(f->ledger.unattributed_j > 0.01 * f->total_j))
		return;
	human_energy(&t->text, f->ledger.unattributed_j);
	buf_str(&t->text, " could not be divided among programs: nothing said who used it.");
	tell(t);
}

// What the recorder itself had to say. Wraps, gaps and resets are in the domains' figures already.
static void recorded(struct teller *t)
{
	static const char *const kinds[] = {"warning", "lost", "suspend"};
	size_t told = 0, left = 0;
	for (size_t i = 0; i < t->findings->run->n_events; i++) {
		const struct run_event *event = &t->findings->run->events[i];
		bool wanted = false;
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			wanted |= strcmp(event->kind, kinds[k]) == 0;
		if (!wanted || event->text == NULL)
			continue;
		if (told++ < EVENTS_TOLD_MAX)
			tell_text(t, event->text);
		else
			left++;
	}
	if (left == 0)
		return;
	buf_printf(&t->text, "… and %zu more of these in the run file, table event.", left);
	tell(t);
}

void report_warnings(const struct findings *findings, tell_warning tell_one, void *data)
{
	static void (*const all[])(
		struct teller *) = {incomplete, no_energy, estimated, lost_samples, gaps, unattributed, recorded};
	struct teller t = {.findings = findings, .tell = tell_one, .data = data};
	buf_init(&t.text, WARNING_CEILING);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		all[i](&t);
	buf_finish(&t.text);
}
