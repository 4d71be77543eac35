/* A span file (WATTLE_SPANS, span_file_format.h) read back: its streams through the decoder, one after the other. The file
 * may be torn, still grow, or have been written by somebody who means harm. */
#pragma once

#include "base/error.h"
#include "span/reader/decoder.h"

struct span_file_facts {
	int64_t anchor_mono_ns, anchor_wall_ns; // the clock that all times are on: of the first start of the machine
	uint64_t n_blocks, n_damaged;           // blocks read, and those that are none
	uint64_t n_processes;                   // program images
	uint64_t lost, unwound;                 // as the programs count them
};

// Whether it begins as a span file does.
bool span_file_probe(const char *path);
/* Hands all rows to the recording's sink. What was open at the end of a process ends with the last thing known of it. Times
 * of other starts of the machine are moved by the wall clock. -ENOENT, -EINVAL (no span file), -ENOTSUP (another version),
 * -ENOMEM, with a sentence. */
int span_file_read(const char *path, struct span_recording *recording, struct span_file_facts *ret_facts,
	struct wattle_error *reterr);
