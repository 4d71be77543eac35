#include "report/cap_list.h"

#include "base/jsonw.h"
#include "base/util.h"

static void add_rights(const struct cap_device *device, struct jsonw *j)
{
	jsonw_key_string(j, "lease", text_or_null(device->lease));
	jsonw_key_bool(j, "stands", device->stands);
	jsonw_key_bool(j, "settable", device->settable);
	jsonw_key_string(j, "why", text_or_null(device->why));
	jsonw_key_string(j, "remedy", text_or_null(device->remedy));
	jsonw_key_string(j, "hint", text_or_null(device->hint));
}

static void add_clocks(const struct cap_row *row, struct jsonw *j)
{
	jsonw_key(j, "clocks");
	if (row->clocks == NULL) {
		jsonw_null(j);
		return;
	}
	jsonw_begin_object(j);
	jsonw_key_double(j, "min_mhz", row->clocks->min);
	jsonw_key_double(j, "max_mhz", row->clocks->max);
	add_rights(row->clocks, j);
	jsonw_end_object(j);
}

static void add_row(const struct cap_row *row, struct jsonw *j)
{
	static const struct cap_device unlimited = {.current = NAN,
		.default_ = NAN,
		.min = NAN,
		.max = NAN,
		.enforced = NAN,
		.before = NAN,
		.why = "it has no power limit"};
	const struct cap_device *named = row->power != NULL ? row->power : row->clocks;
	const struct cap_device *power = row->power != NULL ? row->power : &unlimited;
	jsonw_begin_object(j);
	jsonw_key_string(j, "device", named->name);
	jsonw_key_string(j, "name", named->label);
	jsonw_key_string(j, "id", text_or_null(named->id));
	jsonw_key_double(j, "current_w", power->current);
	jsonw_key_double(j, "default_w", power->default_);
	jsonw_key_double(j, "min_w", power->min);
	jsonw_key_double(j, "max_w", power->max);
	jsonw_key_double(j, "enforced_w", power->enforced);
	jsonw_key_double(j, "previous_w", power->before);
	add_rights(power, j);
	add_clocks(row, j);
	jsonw_end_object(j);
}

void cap_list_json(const struct cap_row *rows, size_t n, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, true);
	jsonw_begin_array(&j);
	for (size_t i = 0; i < n; i++)
		add_row(&rows[i], &j);
	jsonw_end_array(&j);
}

void cap_get_json(const struct cap_row *row, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, true);
	add_row(row, &j);
}
