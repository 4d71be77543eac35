/* Signals that ask for the end of a recording (SIGINT, SIGTERM, SIGHUP), and the time that finishing may take after them.
 * The command gets them too, and may go on: a daemon that reloads on SIGHUP, an interpreter that survives Ctrl-C. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct end_request {
	int64_t asked_ns;     // time of the signal; 0: none
	int64_t finishing_ns; // start of finishing; 0: the recording goes on
};

// While the recording goes on the last signal counts; while it is finished the first, so that repeating it grants no time.
void end_request_signal(struct end_request *request, int64_t now_ns);

// The command has ended. A signal long before that did not ask for this end, and is dropped.
void end_request_finish(struct end_request *request, int64_t now_ns);

// Whether finishing has used its time, counted from the signal or the start of finishing, whichever is later.
bool end_request_is_overdue(const struct end_request *request, int64_t now_ns, int64_t patience_ns);
