/* `wattle store status --json`. */
#pragma once

#include "base/fields.h"

extern const struct object_type store_status_type; // data: struct pg_status
