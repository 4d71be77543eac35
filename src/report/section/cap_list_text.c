#include "report/cap_report.h"

#include "base/util.h"
#include "report/section/grid.h"

// Uses the resolution of device registers: "650", "321.5".
static void add_number(struct buf *out, double value)
{
	if (isnan(value))
		buf_str(out, "n/a");
	else
		buf_double(out, round(value * 1000) / 1000);
}

static void add_value(struct buf *out, double value, const char *unit)
{
	add_number(out, value);
	if (!isnan(value))
		buf_printf(out, " %s", unit);
}

static void add_range(struct buf *out, const struct cap_device *device)
{
	if (device == NULL || (isnan(device->min) && isnan(device->max))) {
		buf_str(out, "n/a");
		return;
	}
	add_number(out, device->min);
	buf_str(out, " to ");
	add_value(out, device->max, cap_kind_unit(device->what));
}

static const struct cap_device *named(const struct cap_row *row)
{
	return row->power != NULL ? row->power : row->clocks;
}

/* ---- the list ---- */

static void watts(struct buf *out, double value)
{
	add_value(out, value, "W");
}

static void power_range(struct buf *out, const struct object_at *row, bool is_page)
{
	add_range(out, ((const struct cap_row *)row->data)->power);
}

static void clock_range(struct buf *out, const struct object_at *row, bool is_page)
{
	add_range(out, ((const struct cap_row *)row->data)->clocks);
}

static bool is_faint(const struct object_at *row)
{
	return !named(row->data)->settable;
}

static const struct column columns[] = {
	{"device", .kind = COLUMN_NAME},
	{"current_w", .print = watts},
	{"default_w", .print = watts},
	{NULL, "range", COLUMN_TEXT, .write = power_range},
	{NULL, "clocks", COLUMN_TEXT, .write = clock_range},
	{"name", "", COLUMN_TEXT, .is_middle = true},
};
static const struct grid devices_grid = GRID(NULL, columns, .is_faint = is_faint);

static void add_holder(const struct cap_device *device, const char *what, struct buf *out)
{
	if (device == NULL || device->lease[0] == '\0')
		return;
	buf_printf(out, "%s%s: held by ", device->name, what);
	text_add_printable(out, device->lease, strlen(device->lease));
	buf_char(out, '\n');
}

static void add_way_back(const struct cap_device *device, struct buf *out)
{
	buf_printf(out, "persistent; `wattle cap reset %s` restores ", device->name);
	if (isnan(device->before))
		buf_str(out, "no limit");
	else
		add_value(out, device->before, cap_kind_unit(device->what));
	buf_char(out, '\n');
}

static void add_persistent(const struct cap_device *device, const char *what, struct buf *out)
{
	if (device == NULL || !device->is_persistent)
		return;
	buf_printf(out, "%s%s: ", device->name, what);
	add_way_back(device, out);
}

static const char *why_not(const struct cap_row *row)
{
	return named(row)->why;
}

static const char *hint(const struct cap_row *row)
{
	return row->power != NULL && row->power->settable ? row->power->hint : "";
}

// Writes one line for all devices with the same note.
static void add_notes(const struct cap_row *rows, size_t n, const char *(*note)(const struct cap_row *row),
	struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = note(&rows[i]);
		bool is_written = text[0] == '\0';
		for (size_t before = 0; before < i && !is_written; before++)
			is_written = strcmp(note(&rows[before]), text) == 0;
		if (is_written)
			continue;
		size_t start = out->size;
		for (size_t k = i; k < n; k++)
			if (strcmp(note(&rows[k]), text) == 0)
				buf_printf(out, "%s%s", k > i ? ", " : "", named(&rows[k])->name);
		buf_char(out, ':');
		text_wrap(out, start, 2, text);
		buf_char(out, '\n');
		if (note == why_not && named(&rows[i])->remedy[0] != '\0')
			buf_printf(out, "  %s\n", named(&rows[i])->remedy);
	}
}

static void add_absent(const char *absent, size_t n, struct buf *out)
{
	if (n == 0)
		buf_str(out, "This machine has no device with a settable limit.\n");
	if (absent[0] == '\0')
		return;
	size_t start = out->size;
	text_wrap(out, start, 0, absent);
	buf_char(out, '\n');
}

void cap_list_text(const struct cap_row *rows, size_t n, const char *absent, bool colour, struct buf *out)
{
	const struct object_at document = {.type = &cap_list_type, .data = &(struct cap_list){rows, n}};
	grid_list(&devices_grid, &document, NULL, out, style_for(colour));
	for (size_t i = 0; i < n; i++) {
		add_persistent(rows[i].power, "", out);
		add_persistent(rows[i].clocks, "'s clocks", out);
		add_holder(rows[i].power, "", out);
		add_holder(rows[i].clocks, "'s clocks", out);
	}
	add_notes(rows, n, why_not, out);
	add_notes(rows, n, hint, out);
	add_absent(absent, n, out);
}

/* ---- one device ---- */

static void add_rights(const struct cap_device *device, struct buf *out)
{
	if (device->is_persistent) {
		buf_str(out, "            ");
		add_way_back(device, out);
	}
	if (!device->settable)
		buf_printf(out, "            can't be set: %s\n", device->why);
	if (!device->settable && device->remedy[0] != '\0')
		buf_printf(out, "            %s\n", device->remedy);
	if (device->settable && device->hint[0] != '\0') {
		size_t start = out->size;
		buf_str(out, "            ");
		text_wrap(out, start, 12, device->hint);
		buf_char(out, '\n');
	}
}

static void add_power(const struct cap_device *power, struct buf *out)
{
	buf_str(out, "  limit     ");
	add_value(out, power->current, "W");
	if (power->enforced < power->current) {
		buf_str(out, ", but another limiter enforces ");
		add_value(out, power->enforced, "W");
	}
	buf_str(out, "\n  default   ");
	add_value(out, power->default_, "W");
	buf_str(out, "\n  range     ");
	add_range(out, power);
	buf_printf(out, "%s\n  lease     ",
		power->min_is_ours ? " (the minimum is wattle's own: the device reports none)" : "");
	const char *holder = power->lease[0] != '\0' ? power->lease : "none";
	text_add_printable(out, holder, strlen(holder));
	buf_char(out, '\n');
	add_rights(power, out);
}

static void add_clocks(const struct cap_device *clocks, struct buf *out)
{
	buf_str(out, "  clocks    ");
	add_range(out, clocks);
	buf_str(out, " as upper bound (--clocks)\n");
	if (clocks->lease[0] != '\0') {
		buf_str(out, "            held by ");
		text_add_printable(out, clocks->lease, strlen(clocks->lease));
		buf_char(out, '\n');
	}
	add_rights(clocks, out);
}

void cap_get_text(const struct cap_row *row, struct buf *out)
{
	const struct cap_device *device = named(row);
	buf_printf(out, "%s  ", device->name);
	text_add_printable(out, device->label, strlen(device->label));
	if (device->id[0] != '\0' && strcmp(device->id, device->name) != 0)
		buf_printf(out, "  %s", device->id);
	buf_char(out, '\n');
	if (row->power != NULL)
		add_power(row->power, out);
	if (row->clocks != NULL)
		add_clocks(row->clocks, out);
}
