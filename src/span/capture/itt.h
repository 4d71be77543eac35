/* Shared by the files of the ITT capture. */
#pragma once

#include "span/capture/capture.h"
#include "span/capture/itt_abi.h"

#include <stdbool.h>
#include <stdint.h>

/* Calls handled by each file, names, and whether recording is on. */

struct itt_call {
	const char *name; // as in a program's table, such as "__itt_pause"; NULL ends a table
	itt_function function;
};
#define ITT_CALL(function) ((itt_function)(function))
extern const struct itt_call itt_control_calls[], itt_task_calls[], itt_range_calls[], itt_number_calls[];

enum itt_text { ITT_DOMAIN, ITT_STRING, ITT_COUNTER, ITT_EVENT_NAME };
extern struct text_table itt_texts;

// Between pause and resume no span begins, but open ones may end.
bool itt_is_recording(void);

struct itt_name {
	char text[SPAN_NAME_BYTES_MAX + 1];
};
const char *itt_or_unnamed(const char *name);
// Writes "domain/string" to *name.
const char *itt_name_of(struct itt_name *name, const struct itt_domain *domain, const struct itt_string *string);

/* Open ranges by the program's identifiers: a domain and an id (ITT's overlapped tasks, regions and frames). Lock-free,
 * bounded; ranges beyond the bound are not recorded. */

enum itt_range_kind { ITT_OVERLAPPED, ITT_REGION, ITT_FRAME, ITT_EVENT };

uint64_t itt_range_key(enum itt_range_kind kind, const void *domain, const struct itt_id *id);
void itt_range_begin(uint64_t key, const char *name);
void itt_range_end(uint64_t key); // no effect if the range is not open
