#include "report/phrases.h"

#include "analysis/energy/domains.h"
#include "analysis/metadata_keys.h"
#include "base/utf8.h"
#include "base/util.h"
#include "report/report.h"

#include <string.h>

void phrase_ending(struct buf *out, const struct run_segment *segment)
{
	if (segment == NULL || !value_ok(segment->exit_code))
		return;
	if (segment->exit_code > 128 && segment->exit_code <= 128 + 64)
		buf_printf(out, "signal %lld", (long long)segment->exit_code - 128);
	else
		buf_printf(out, "exit %lld", (long long)segment->exit_code);
}

void phrase_sources(struct buf *out, const struct findings *f)
{
	const char *seen[8];
	size_t n = 0;
	for (size_t i = 0; i < f->n_domains && n < ARRAY_SIZE(seen); i++) {
		const struct domain_finding *d = &f->domains[i];
		bool known = !d->in_total || isnan(d->energy_j);
		for (size_t k = 0; k < n; k++)
			known |= strcmp(seen[k], d->device->source) == 0;
		if (!known)
			seen[n++] = d->device->source;
	}
	buf_str(out, provenance_name(f->provenance));
	for (size_t k = 0; k < n; k++) {
		buf_str(out, k == 0 ? " by " : k + 1 < n ? ", " : " and ");
		buf_str(out, seen[k]);
	}
}

static void add_errors(struct buf *out, double energy_j, double error_j, const char *label, double calibration_j)
{
	human_error_of(out, energy_j, error_j);
	if (!(calibration_j > 0))
		return;
	buf_str(out, label);
	buf_char(out, ' ');
	human_error(out, calibration_j);
	buf_str(out, " (GPU calibration)");
}

void phrase_energy_error(struct buf *out, double energy_j, double error_j, double calibration_j)
{
	add_errors(out, energy_j, error_j, " (reading)", calibration_j);
}

void phrase_part_error(struct buf *out, double energy_j, double error_j, double calibration_j)
{
	add_errors(out, energy_j, error_j, "", calibration_j);
}

static void add_percent(struct buf *out, double relative)
{
	buf_str(out, "± ");
	human_number(out, 100 * relative, 2);
	buf_str(out, " %");
}

static bool is_calibrated(const struct domain_finding *d)
{
	return d->device->gain_error > 0;
}

void phrase_calibration(struct buf *out, const struct findings *f)
{
	bool any = false;
	double assumed = (double)NAN;
	for (size_t i = 0; i < f->n_domains; i++) {
		const struct domain_finding *d = &f->domains[i];
		if (isnan(d->calibration_error_j) || !is_calibrated(d)) {
			assumed = isnan(d->calibration_error_j) ? assumed : calibration_error(d->device);
			continue;
		}
		buf_printf(out, "%s%s ", any ? "; " : "GPU calibration: ", d->device->name);
		human_number(out, d->device->gain, 4);
		buf_char(out, ' ');
		add_percent(out, d->device->gain_error);
		buf_printf(out, " (%s)", d->device->gain_source);
		any = true;
	}
	if (!isnan(assumed)) {
		buf_printf(out, "%s", any ? "; other GPUs " : "GPU calibration: ");
		add_percent(out, assumed);
		buf_str(out, ", as published for uncalibrated power sensors (`wattle sensors --calibrate-gpu`)");
	}
	if (any || !isnan(assumed))
		buf_char(out, '.');
}

// Lists each method once, in the order of the domains.
void phrase_method(struct buf *out, const char *attribution)
{
	static const struct {
		const char *method, *text;
	} methods[] = {{"cpu time", "CPU time"}, {"sm time", "SM time"}, {"pss", "memory (PSS)"},
		{"rss", "memory (RSS)"}, {"mig slices", "MIG slices"}, {"gpu memory", "GPU memory"}};
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		size_t length = strlen(methods[i].method);
		if (strncmp(attribution, methods[i].method, length) != 0)
			continue;
		buf_str(out, methods[i].text);
		attribution += length;
		break;
	}
	buf_str(out, attribution);
}

static bool is_divided_alike(const struct domain_finding *a, const struct domain_finding *b)
{
	return a->in_total && !isnan(a->energy_j) && strcmp(a->attribution, b->attribution) == 0;
}

void phrase_attribution(struct buf *out, const struct findings *f)
{
	for (size_t i = 0; i < f->n_domains; i++) {
		const struct domain_finding *d = &f->domains[i];
		bool is_explained = !d->in_total || isnan(d->energy_j);
		for (size_t k = 0; k < i && !is_explained; k++)
			is_explained = f->domains[k].in_total && strcmp(f->domains[k].attribution, d->attribution) == 0;
		if (is_explained)
			continue;
		buf_str(out, out->size > 0 ? "; " : "Divided by ");
		phrase_method(out, d->attribution);
		buf_str(out, " for ");
		const char *separator = "";
		for (size_t k = i; k < f->n_domains; k++) {
			const struct domain_finding *same = &f->domains[k];
			if (!is_divided_alike(same, d))
				continue;
			bool listed = false; // in a job, each node has a domain of that name
			for (size_t m = i; m < k && !listed; m++)
				listed = is_divided_alike(&f->domains[m], d) &&
					strcmp(f->domains[m].device->name, same->device->name) == 0;
			if (listed)
				continue;
			buf_printf(out, "%s%s", separator, same->device->name);
			separator = ", ";
		}
	}
	if (out->size > 0)
		buf_char(out, '.');
}

size_t phrase_one_of(const char *name)
{
	size_t length = strlen(name);
	bool plural = length > 2 && name[length - 1] == 's' && name[length - 2] != 's';
	return plural ? length - 1 : length;
}

const struct block_finding *step_block(const struct findings *f)
{
	const char *name = run_metadata(f->run, META_KEY_STEP);
	uint32_t index = name != NULL ? findings_block(f, name) : UINT32_MAX;
	return index != UINT32_MAX && f->blocks[index].calls > 0 ? &f->blocks[index] : NULL;
}

struct gpu_sums gpu_sums(const struct findings *f)
{
	struct gpu_sums sums = {0};
	for (size_t i = 0; i < f->n_gpus; i++) {
		sums.energy_j += f->gpus[i].energy_j;
		sums.busy_percent += f->gpus[i].mean_utilization_percent / (double)f->n_gpus;
		sums.target_bytes += value_to_double(f->gpus[i].target_max_memory_bytes, 1);
	}
	return f->n_gpus > 0 ? sums : (struct gpu_sums){(double)NAN, (double)NAN, (double)NAN};
}

static bool is_seen(const char *name)
{
	for (size_t n; *name != '\0'; name += n) {
		n = utf8_length(name);
		if (n == 0 || utf8_is_seen(utf8_code(name, n))) // an invalid byte is written as U+FFFD
			return true;
	}
	return false;
}

bool phrase_unseen(struct buf *out, const char *name)
{
	enum { TOLD_MAX = 4 };
	if (name == NULL || name[0] == '\0') {
		buf_str(out, "(unnamed)");
		return true;
	}
	if (is_seen(name))
		return false;
	const char *separator = "(";
	size_t is_explained = 0;
	for (size_t n; *name != '\0' && is_explained < TOLD_MAX; name += n, is_explained++) {
		n = utf8_length(name);
		buf_printf(out, "%sU+%04X", separator, utf8_code(name, n));
		separator = " ";
	}
	buf_str(out, *name != '\0' ? " …)" : ")");
	return true;
}
