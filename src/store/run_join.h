/* Spans that a program left beside its recording, put into the loaded run; the file is not touched. */
#pragma once

#include "store/run.h"

/* Those that began while something was recorded; *ret_n: how many. A span file's times are on the run's clock when both
 * come from one start of the machine, else they are brought there by the wall clock, as a sub-tracking file's always are.
 * As span_file_load and sub_tracking_read; after a failure the run is as it was. */
int run_join_span_file(struct run *run, const char *path, size_t *ret_n, struct wattle_error *reterr);
int run_join_sub_tracking(struct run *run, const char *path, size_t *ret_n, struct wattle_error *reterr);
