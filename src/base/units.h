/* The units that results may be asked in, by gpu_tracker's names. Decimal: a gigabyte is 1e9 bytes. */
#pragma once

enum unit_kind { UNIT_MEMORY, UNIT_TIME };

// How many bytes or seconds one of the named unit is; NaN for a name that is none.
double unit_size(enum unit_kind kind, const char *name);
// The valid names, for messages and help: "bytes, kilobytes, …".
const char *unit_names(enum unit_kind kind);
