#include "report/cap_report.h"

#include "base/fields.h"
#include "base/util.h"

// clang-format off

static const struct cap_row *row_of(const struct object_at *at)
{
	return at->data;
}

static const void *named(const struct object_at *at, size_t i)
{
	return row_of(at)->power != NULL ? row_of(at)->power : row_of(at)->clocks;
}

static const void *power(const struct object_at *at, size_t i)
{
	static const struct cap_device unlimited = {
		.current = NAN, .default_ = NAN, .min = NAN, .max = NAN, .enforced = NAN, .before = NAN,
		.why = "it has no power limit",
	};
	return row_of(at)->power != NULL ? row_of(at)->power : &unlimited;
}

static const void *clocks(const struct object_at *at, size_t i)
{
	return row_of(at)->clocks;
}

#define D struct cap_device
static const struct field name_fields[] = {
	FIELD_AS(D, "device", name, NULL, "name of the device", .known = true, .title = "device"),
	FIELD_AS(D, "name", label, NULL, "model of the device", .known = true),
	FIELD(D, id, NULL, "id of the device, stable across reboots"),
};
static const struct object_type name_type = OBJECT_TYPE("cap_name", "Names of a device.", name_fields);

static const struct field rights_fields[] = {
	FIELD(D, lease, NULL, "owner of the lease; null: none"),
	FIELD(D, is_persistent, NULL, "whether wattle set a persistent limit", .old_key = "stands"),
	FIELD(D, settable, NULL, "whether this process may change the limit"),
	FIELD(D, why, NULL, "reason why the limit can't be changed"),
	FIELD(D, remedy, NULL, "command that grants access"),
	FIELD(D, hint, NULL, "advice before a change"),
};
static const struct object_type rights_type = OBJECT_TYPE("cap_rights", "Whether a limit can be changed.", rights_fields);

static const struct field power_fields[] = {
	FIELD_AS(D, "current_w", current, "W", "power limit in force", .title = "limit"),
	FIELD_AS(D, "default_w", default_, "W", "default limit of the device", .title = "default"),
	FIELD_AS(D, "min_w", min, "W", "lowest limit"),
	FIELD_AS(D, "max_w", max, "W", "highest limit"),
	FIELD_AS(D, "enforced_w", enforced, "W", "limit in effect after all limiters"),
	FIELD_AS(D, "previous_w", before, "W", "limit that `wattle cap reset` restores"),
	FIELD_INLINE(&rights_type),
};
static const struct object_type power_type = OBJECT_TYPE("cap_power", "The power limit.", power_fields);

static const struct field clocks_fields[] = {
	FIELD_AS(D, "min_mhz", min, "MHz", "lowest limit"),
	FIELD_AS(D, "max_mhz", max, "MHz", "highest limit"),
	FIELD_INLINE(&rights_type),
};
static const struct object_type clocks_type = OBJECT_TYPE("cap_clocks", "The limit of the graphics clock.", clocks_fields);
#undef D

static const struct field row_fields[] = {
	FIELD_INLINE_FOUND(&name_type, named),
	FIELD_INLINE_FOUND(&power_type, power),
	FIELD_FOUND("clocks", &clocks_type, clocks, "limit of the graphics clock; null: none"),
};
const struct object_type cap_row_type = OBJECT_TYPE("cap", "Limits of a device.", row_fields);

static const struct field list_fields[] = {
	FIELD_ITEMS(struct cap_list, NULL, rows, n, &cap_row_type, "the devices"),
};
const struct object_type cap_list_type = OBJECT_TYPE("cap_list", "Devices whose power or clocks can be limited.", list_fields);

void cap_list_json(const struct cap_row *rows, size_t n, struct buf *out)
{
	document_json(out, &cap_list_type, &(struct cap_list){rows, n}, true);
}

void cap_get_json(const struct cap_row *row, struct buf *out)
{
	document_json(out, &cap_row_type, row, true);
}
