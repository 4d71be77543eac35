/* `wattle list --json`. */
#pragma once

#include "base/fields.h"

extern const struct object_type list_type;
