/* What a reader of the figures must know, in plain sentences: gaps, losses, estimates. */
#pragma once

#include "analysis/findings.h"

typedef void (*tell_warning)(void *data, const char *text);

// Calls tell once for each, the most important first. The text is valid during the call.
void report_warnings(const struct findings *findings, tell_warning tell, void *data);
// The same of the sums over a job's runs, which has words of its own for what is not finished and for what the recorders said.
void report_warnings_of_sums(const struct findings *findings, tell_warning tell, void *data);
