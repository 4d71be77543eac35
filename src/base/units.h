/* Units that can be requested for results, with gpu_tracker's names. Decimal: a gigabyte is 1e9 bytes. */
#pragma once

enum unit_kind { UNIT_MEMORY, UNIT_TIME };

// Number of bytes or seconds in a named unit; NaN for an unknown name.
double unit_size(enum unit_kind kind, const char *name);
// Valid names, for messages and help: "bytes, kilobytes, …".
const char *unit_names(enum unit_kind kind);
