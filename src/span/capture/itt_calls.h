/* What the files of the ITT capture share: the calls that each takes, names, and whether anything is recorded. */
#pragma once

#include "span/capture/itt_abi.h"
#include "span/capture/texts.h"

#include <stdbool.h>

struct itt_call {
	const char *name; // as in a program's list, "__itt_pause"; NULL ends a table
	itt_function function;
};
#define ITT_CALL(function) ((itt_function)(function))
extern const struct itt_call itt_control_calls[], itt_task_calls[], itt_range_calls[], itt_number_calls[];

enum itt_text { ITT_DOMAIN, ITT_STRING, ITT_COUNTER, ITT_EVENT_NAME };
extern struct text_table itt_texts;

// Between pause and resume nothing begins; what is open ends.
bool itt_is_recording(void);

struct itt_name {
	char text[SPAN_NAME_BYTES_MAX + 1];
};
const char *itt_or_unnamed(const char *name);
// "domain/string" in *name.
const char *itt_name_of(struct itt_name *name, const struct itt_domain *domain, const struct itt_string *string);
