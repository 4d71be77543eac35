/* Spans as the recorder's side has them: whole rows, made of records by the decoder, on their way to the store. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum span_kind {
	SPAN_NESTED, // begin and end in one thread, properly nested
	SPAN_RANGE,  // started and stopped by its number, maybe in different threads
	SPAN_KINDS
};

enum span_close { // how it ended; in files by span_close_name
	SPAN_ENDED,
	SPAN_OPEN,          // has not ended (yet); end_ns is VALUE_MISSING
	SPAN_UNWOUND,       // left without an end (longjmp), closed by the end of an outer one
	SPAN_AT_THREAD_END, // its thread ended first
	SPAN_AT_EXEC,       // its program was replaced
	SPAN_AT_DEATH,      // its process ended first
	SPAN_CLOSES
};
extern const char *const span_close_names[], *const span_kind_names[]; // in their order, NULL-terminated
const char *span_close_name(enum span_close close); // "ended", "open", "unwound", "thread end", "exec", "death"
int span_close_from_name(const char *name);         // -1: no such
const char *span_kind_name(enum span_kind kind);    // "nested", "range"
int span_kind_from_name(const char *name);

enum { SPAN_NO_NAME = UINT32_MAX };

struct span_row {
	int64_t id;               // unique in a recording, from 1, ascending with the time that the recorder learned of its begin
	int64_t parent;           // id of the span around it in the same thread; VALUE_MISSING: none
	int64_t begin_ns, end_ns; // CLOCK_MONOTONIC; end VALUE_MISSING: still open
	int64_t cpu_ns;           // CPU time of the thread in it; VALUE_MISSING: not asked for
	int32_t pid, tid;
	uint32_t name, category; // in the recording's names; SPAN_NO_NAME: no category
	uint8_t kind, close;     // enum span_kind, enum span_close
	uint8_t stored;          // the outbox's own: an earlier, still open state of it is in the run file
	uint8_t reserved[5];
};

struct span_metric_row {
	int64_t t_ns;
	int64_t span; // id of the innermost span open in its thread; VALUE_MISSING: none
	double value;
	int32_t pid, tid;
	uint32_t name;
	uint32_t reserved;
};

struct span_mark_row {
	int64_t t_ns;
	int32_t pid, tid;
	uint32_t name, category;
};
