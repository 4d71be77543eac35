#include "cli/sensors.h"

#include "base/util.h"
#include "report/report.h"

/* The consequences for a run on this machine, as sentences. */

enum part { PART_TOTAL, PART_BESIDE, PART_DERIVED, PART_ESTIMATED, PART_LACKING, PARTS };

// Whether the domain exists, would be in the total, and cannot be read. (For a GPU without a driver not even that is known.)
static bool is_lacking(const struct sensors_report *report, const struct domain *domain)
{
	if (domain->readable || !domain_kind_adds_up(domain->kind) || domain->device[0] == '\0' ||
		(domain->kind == DOMAIN_GPU && domain->uuid[0] == '\0'))
		return false;
	for (size_t i = 0; i < report->set.n_devices; i++)
		if (strcmp(report->set.devices[i]->name, domain->name) == 0)
			return false;
	return true;
}

static bool belongs(const struct sensors_report *report, const struct domain *domain, enum part part)
{
	bool in_total = sensors_report_in_total(report, domain);
	switch (part) {
	case PART_TOTAL:
		return in_total && domain->provenance == PROVENANCE_MEASURED;
	case PART_DERIVED:
		return in_total && domain->provenance == PROVENANCE_DERIVED;
	case PART_ESTIMATED:
		return domain->used && domain->provenance == PROVENANCE_ESTIMATED;
	case PART_BESIDE:
		return domain->used && !in_total && domain->provenance != PROVENANCE_ESTIMATED;
	case PART_LACKING:
		return is_lacking(report, domain);
	case PARTS:
		break;
	}
	return false;
}

static size_t count(const struct sensors_report *report, enum part part)
{
	size_t n = 0;
	for (size_t i = 0; i < report->n_rows; i++)
		n += belongs(report, report->rows[i].domain, part);
	return n;
}

// Writes "a, b and c" followed by the text for one or for several domains; nothing if there are none.
static void put_sentence(const struct sensors_report *report, enum part part, const char *one, const char *several,
	struct buf *out)
{
	size_t n = count(report, part), at = 0;
	if (n > 0 && out->size > 0)
		buf_char(out, ' ');
	for (size_t i = 0; i < report->n_rows; i++) {
		if (!belongs(report, report->rows[i].domain, part))
			continue;
		if (at > 0)
			buf_str(out, at + 1 == n ? " and " : ", ");
		buf_str(out, report->rows[i].domain->name);
		at++;
	}
	if (n > 0)
		buf_str(out, n == 1 ? one : several);
}

// Whether one of the commands above would make an estimated package measured.
static bool can_be_enabled(const struct sensors_report *report)
{
	bool guessed = false, mendable = false;
	for (size_t i = 0; i < report->n_rows; i++) {
		const struct domain *domain = report->rows[i].domain;
		bool is_package = domain->kind == DOMAIN_PACKAGE;
		guessed = guessed || (is_package && belongs(report, domain, PART_ESTIMATED));
		mendable = mendable || (is_package && !domain->readable && domain->remedy[0] != '\0');
	}
	return guessed && mendable;
}

void sensors_report_verdict(const struct sensors_report *report, struct buf *text)
{
	if (!sensors_report_measures(report))
		buf_str(text, "Nothing on this machine measures energy.");
	put_sentence(report, PART_TOTAL, " is measured.", " are measured.", text);
	put_sentence(report, PART_DERIVED, " is derived from integrated power readings.",
		" are derived from integrated power readings.", text);
	put_sentence(report, PART_BESIDE, " is shown beside the total, not included in it.",
		" are shown beside the total, not included in it.", text);
	put_sentence(report, PART_ESTIMATED,
		" is estimated from load, with a large error, and makes a run's total `estimated`.",
		" are estimated from load, with a large error, and make a run's total `estimated`.", text);
	if (can_be_enabled(report))
		buf_str(text, " Run the command above to measure it.");
	put_sentence(report, PART_LACKING, " can't be read and is missing from the total.",
		" can't be read and are missing from the total.", text);
	if (report->set.n_devices == 0)
		buf_str(text, " The CPU's energy can't be estimated either: runs will have no energy.");
}

// With a no-break space.
static void put_power(double power_w, struct buf *out)
{
	struct buf text;
	buf_init(&text, 64);
	human_power(&text, power_w);
	for (const char *at = text.data != NULL ? text.data : ""; *at != '\0'; at++)
		if (*at == ' ')
			buf_str(out, "\u00a0");
		else
			buf_char(out, *at);
	buf_finish(&text);
}

void sensors_report_calibration(const struct sensors_report *report, struct buf *text)
{
	const struct domain *uncalibrated = NULL;
	for (size_t i = 0; i < report->set.n_devices; i++) {
		const struct domain *domain = report->set.devices[i];
		if (domain->kind != DOMAIN_GPU)
			continue;
		if (!domain_is_calibrated(domain)) {
			uncalibrated = domain;
			continue;
		}
		buf_printf(text, "%s%s factor ", text->size == 0 ? "GPU calibration: " : ", ", domain->name);
		human_number(text, domain->calibration->gain, 4);
		buf_str(text, "\u00a0±\u00a0");
		human_number(text, 100 * domain->calibration->error, 2);
		buf_str(text, "\u00a0%");
	}
	if (text->size > 0)
		buf_char(text, '.');
	if (report->set.gain_message[0] != '\0')
		buf_printf(text, "%s%s.", text->size > 0 ? " " : "", report->set.gain_message);
	else if (uncalibrated != NULL)
		buf_printf(text,
			"%s%s is not calibrated (± 10 %%): calibrate it with `wattle sensors --calibrate-gpu "
			"%d` and a wall meter.",
			text->size > 0 ? " " : "", uncalibrated->name, uncalibrated->index);
}

void sensors_report_idle_power(const struct sensors_report *report, struct buf *text)
{
	for (size_t i = 0; i < report->set.n_devices; i++) {
		const struct domain *domain = report->set.devices[i];
		const struct idle_power *idle = &report->idle[i];
		if (!(idle->power_w > 0))
			continue;
		if (text->size == 0)
			buf_printf(text, "Idle power, measured %.10s: %s ", idle->date, domain->name);
		else
			buf_printf(text, ", %s ", domain->name);
		put_power(idle->power_w, text);
	}
	if (text->size > 0)
		buf_char(text, '.');
	else if (report->baseline_note[0] != '\0')
		buf_str(text, report->baseline_note);
	else if (sensors_report_measures(report))
		buf_str(text,
			"Idle power is unknown: run `wattle sensors --calibrate-idle` while the machine is idle.");
}
