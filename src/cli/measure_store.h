/* --store: what `wattle run` and `wattle attach` have to do with the sender. */
#pragma once

#include "cli/measure.h"

// --store was given: the sender is started. Before anything of the run is there.
int measure_store_open(struct measure *measure, struct wattle_error *reterr);
void measure_store_tend(void *data); // of struct measure
/* The run file is closed and as it will stay: the sender may send the rest. */
void measure_store_over(struct measure *measure);
/* Waits for that, and says what became of it. Writes the line that the summary ends with, "" if there is nothing to say: where the run
 * is now. A run file that nobody asked for goes, once everything is on the server. */
void measure_store_conclude(struct measure *measure, bool is_whole, char *ret_line, size_t size);
