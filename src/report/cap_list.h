/* What can be limited, for people and as JSON. */
#pragma once

#include "base/buf.h"
#include "cap/device.h"

struct object_type; // base/fields.h

// One name of a device with all that can be limited of it.
struct cap_row {
	const struct cap_device *power, *clocks; // one of them may be NULL
};

// absent: cap_devices::absent.
void cap_list_text(const struct cap_row *rows, size_t n, const char *absent, bool colour, struct buf *out);
extern const struct object_type cap_list_type, cap_row_type; // cap_row_type: struct cap_row
void cap_list_json(const struct cap_row *rows, size_t n, struct buf *out);
// One of them, in full.
void cap_get_text(const struct cap_row *row, struct buf *out);
void cap_get_json(const struct cap_row *row, struct buf *out);
