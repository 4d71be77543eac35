/* The rows of a loaded run as objects (base/fields.h): JSON Lines and the package for Python show them by these. Keys and their
 * meaning are those of the tables of the run file (schema.c). */
#pragma once

#include "base/fields.h"

extern const struct object_type run_device_type, run_process_type, run_event_type, run_span_type, run_user_metric_type;
