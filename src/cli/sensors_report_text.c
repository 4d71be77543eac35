#include "cli/sensors.h"

#include "base/util.h"
#include "proto/client.h"
#include "report/report.h"

#include <errno.h>
#include <stdio.h>

/* For a terminal of 80 columns. Commands to copy are on a line of their own and are never wrapped. */

enum { WIDTH = 80, DOMAIN_AT = 2, SENSOR_AT = 19, LAST_AT = 30, PERIOD_AT = 40, STEP_AT = 53, DEVICE_AT = 62 };

static size_t columns(const char *text, size_t length)
{
	size_t n = 0;
	for (size_t i = 0; i < length; i++)
		n += (text[i] & 0xc0) != 0x80; // UTF-8 continuation bytes have no width
	return n;
}

// Wraps at blanks; the first line begins at column `at`, and so do the others.
static void put_wrapped(struct buf *out, size_t at, const char *text)
{
	size_t column = at;
	while (*text != '\0') {
		size_t length = strcspn(text, " ");
		size_t width = columns(text, length);
		if (column > at && column + 1 + width > WIDTH) {
			buf_printf(out, "\n%*s", (int)at, "");
			column = at;
		} else if (column > at) {
			buf_char(out, ' ');
			column++;
		}
		buf_add(out, text, length);
		column += width;
		text += length + strspn(text + length, " ");
	}
	buf_char(out, '\n');
}

static void put_names(const struct sensors_report_row *row, size_t start, struct buf *out)
{
	buf_pad_to(out, start, DOMAIN_AT);
	buf_str(out, row->domain->name);
	buf_pad_to(out, start, SENSOR_AT);
	buf_str(out, row->sensor);
}

/* ---- sensors in use ---- */

static void put_period(struct update_period period, struct buf *out)
{
	double period_ms = (double)period.period_ns * 1e-6, jitter_ms = (double)period.jitter_ns * 1e-6;
	if (!(period_ms > 0)) {
		buf_char(out, '-');
		return;
	}
	human_number(out, period_ms, 2);
	if (jitter_ms > 0) {
		buf_str(out, " ± ");
		human_number(out, jitter_ms, 1);
	}
	buf_str(out, " ms");
}

static void put_last(const struct sensors_report_row *row, struct buf *out)
{
	if (row->last_unit == NULL)
		buf_str(out, "-");
	else if (strcmp(row->last_unit, "J") == 0)
		human_energy(out, row->last);
	else
		human_power(out, row->last);
}

// A note of a run may repeat why a better sensor is missing, which has its own row here.
static bool is_mentioned_elsewhere(const struct sensors_report *report, const char *note)
{
	for (size_t i = 0; i < report->n_rows; i++) {
		const char *why = report->rows[i].domain->why;
		if (why[0] != '\0' && strncmp(note, why, strlen(why)) == 0)
			return true;
	}
	return false;
}

static void put_used_row(const struct sensors_report *report, const struct sensors_report_row *row, struct buf *out)
{
	const struct domain *domain = row->domain;
	size_t start = out->size;
	put_names(row, start, out);
	buf_pad_to(out, start, LAST_AT);
	put_last(row, out);
	buf_pad_to(out, start, PERIOD_AT);
	put_period(row->period, out);
	buf_pad_to(out, start, STEP_AT);
	if (domain->resolution_uj > 0)
		human_energy(out, (double)domain->resolution_uj * 1e-6);
	else
		buf_str(out, "-");
	if (columns(domain->device, strlen(domain->device)) > WIDTH - DEVICE_AT) {
		buf_char(out, '\n');
		start = out->size;
		buf_pad_to(out, start, SENSOR_AT);
	} else if (domain->device[0] != '\0') {
		buf_pad_to(out, start, DEVICE_AT);
	}
	buf_str(out, domain->device);
	buf_char(out, '\n');
	if (domain->note[0] != '\0' && !is_mentioned_elsewhere(report, domain->note)) {
		start = out->size;
		buf_pad_to(out, start, SENSOR_AT);
		put_wrapped(out, SENSOR_AT, domain->note);
	}
}

static void put_used(const struct sensors_report *report, enum provenance provenance, struct buf *out)
{
	static const char *const titles[] = {
		[PROVENANCE_MEASURED] = "Measured by energy counters",
		[PROVENANCE_DERIVED] = "Derived: integrated power readings",
		[PROVENANCE_ESTIMATED] = "Estimated from load",
	};
	bool any = false;
	for (size_t i = 0; i < report->n_rows; i++) {
		const struct domain *domain = report->rows[i].domain;
		if (!domain->used || domain->provenance != provenance)
			continue;
		if (!any) {
			buf_printf(out, "%s\n", titles[provenance]);
			size_t start = out->size;
			buf_pad_to(out, start, DOMAIN_AT);
			buf_str(out, "domain           sensor     last      update       step     device\n");
		}
		any = true;
		put_used_row(report, &report->rows[i], out);
	}
	if (any)
		buf_char(out, '\n');
}

/* ---- sensors not in use or unreadable ---- */

static void put_left_out(const struct sensors_report *report, enum sensors_report_state state, const char *title,
	struct buf *out)
{
	bool any = false;
	for (size_t i = 0; i < report->n_rows; i++) {
		const struct sensors_report_row *row = &report->rows[i];
		if (doctor_state(row->domain) != state)
			continue;
		if (!any)
			buf_printf(out, "%s\n", title);
		any = true;
		size_t start = out->size;
		put_names(row, start, out);
		buf_pad_to(out, start, LAST_AT);
		char text[sizeof(row->domain->device) + sizeof(row->domain->why) + 2];
		snprintf(text, sizeof(text), "%s%s%s", row->domain->device, row->domain->device[0] != '\0' ? ": " : "",
			row->domain->why[0] != '\0' ? row->domain->why : "unknown reason");
		put_wrapped(out, LAST_AT, text);
	}
	if (any)
		buf_char(out, '\n');
}

/* ---- remedies ---- */

static const char chmod_prefix[] = "sudo chmod a+r ";

static bool is_chmod(const char *remedy)
{
	return strncmp(remedy, chmod_prefix, strlen(chmod_prefix)) == 0;
}

static bool is_repeated(const struct sensors_report *report, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (strcmp(report->rows[i].domain->remedy, report->rows[row].domain->remedy) == 0)
			return true;
	return false;
}

// One command for all files that are unreadable only because of their mode.
static const char *put_chmod(const struct sensors_report *report, struct buf *out)
{
	const char *lasting = NULL;
	bool any = false;
	for (size_t i = 0; i < report->n_rows; i++) {
		const char *remedy = report->rows[i].domain->remedy;
		if (!is_chmod(remedy) || is_repeated(report, i))
			continue;
		buf_printf(out, any ? " %s" : "    sudo chmod a+r %s", remedy + strlen(chmod_prefix));
		lasting = lasting != NULL ? lasting : sensors_report_permanent_remedy(&report->rows[i]);
		any = true;
	}
	if (any)
		buf_char(out, '\n');
	return lasting;
}

static bool any_remedy(const struct sensors_report *report, const char *remedy)
{
	for (size_t i = 0; i < report->n_rows; i++)
		if (strcmp(report->rows[i].domain->remedy, remedy) == 0)
			return true;
	return false;
}

static bool is_helper(const char *remedy)
{
	return strcmp(remedy, proto_client_remedy(-ENOENT)) == 0 || strcmp(remedy, proto_client_remedy(-EPERM)) == 0;
}

// Shows both ways to start the helper, whatever this machine has: the reader may be about to install it.
static void put_helper(const struct sensors_report *report, struct buf *out)
{
	bool is_missing = any_remedy(report, proto_client_remedy(-ENOENT));
	bool refuses = any_remedy(report, proto_client_remedy(-EPERM));
	if (is_missing)
		buf_str(out,
			"  start wattle's helper, which reads for members of group wattle; with systemd:\n   "
			" sudo systemctl enable --now wattled.socket\n  without systemd:\n    sudo wattled\n");
	if (is_missing || refuses)
		buf_printf(out, "  to become %s:\n    %s\n",
			is_missing ? "a member of that group" : "a member of group wattle, which the helper serves",
			proto_client_remedy(-EPERM));
}

static void put_remedies(const struct sensors_report *report, struct buf *out)
{
	bool any = false, any_chmod = false;
	for (size_t i = 0; i < report->n_rows; i++) {
		any = any || report->rows[i].domain->remedy[0] != '\0';
		any_chmod = any_chmod || is_chmod(report->rows[i].domain->remedy);
	}
	if (!any)
		return;
	buf_str(out, "How to enable them\n");
	if (any_chmod) {
		buf_str(out, "  until the next boot:\n");
		const char *lasting = put_chmod(report, out);
		if (lasting != NULL)
			buf_printf(out,
				"  permanently (but power traces can leak keys to other users):\n    %s\n",
				lasting);
	}
	put_helper(report, out);
	for (size_t i = 0; i < report->n_rows; i++) {
		const struct domain *domain = report->rows[i].domain;
		bool is_mentioned = is_chmod(domain->remedy) || is_helper(domain->remedy) || is_repeated(report, i);
		if (domain->remedy[0] != '\0' && !is_mentioned)
			buf_printf(out, "  %s by %s:\n    %s\n", domain->name, report->rows[i].sensor, domain->remedy);
	}
	buf_char(out, '\n');
}

static void put_paragraph(const struct sensors_report *report,
	void (*print)(const struct sensors_report *, struct buf *), struct buf *out)
{
	struct buf text;
	buf_init(&text, 1 << 16);
	print(report, &text);
	if (text.size > 0) {
		buf_printf(out, "%*s", DOMAIN_AT, "");
		put_wrapped(out, DOMAIN_AT, text.data);
	}
	buf_finish(&text);
}

void sensors_report_text(const struct sensors_report *report, struct buf *out)
{
	for (enum provenance provenance = 0; provenance < PROVENANCE_KINDS; provenance++)
		put_used(report, provenance, out);
	put_left_out(report, SENSORS_REPORT_NOT_USED, "Readable, but not used", out);
	put_left_out(report, SENSORS_REPORT_UNREADABLE, "Unavailable", out);
	put_remedies(report, out);
	buf_str(out, "What a run on this machine reports\n");
	put_paragraph(report, sensors_report_verdict, out);
	put_paragraph(report, sensors_report_idle_power, out);
	put_paragraph(report, sensors_report_calibration, out);
}
