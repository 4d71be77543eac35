/* Spans in the recorder: complete rows that the decoder makes from records and passes on for storage. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum span_kind {
	SPAN_NESTED, // begin and end in one thread, properly nested
	SPAN_RANGE,  // begun and ended by a number, possibly in different threads
	SPAN_KINDS
};

enum span_close { // end of a span; in files as span_close_name
	SPAN_ENDED,
	SPAN_OPEN,          // not ended (yet); end_ns is VALUE_MISSING
	SPAN_UNWOUND,       // without its own end (longjmp), closed by the end of an outer one
	SPAN_AT_THREAD_END, // its thread ended first
	SPAN_AT_EXEC,       // its program was replaced by exec
	SPAN_AT_DEATH,      // its process ended first
	SPAN_CLOSES
};
extern const char *const span_close_names[], *const span_kind_names[]; // in enum order, NULL-terminated
const char *span_close_name(enum span_close close); // "ended", "open", "unwound", "thread end", "exec", "death"
int span_close_from_name(const char *name);         // -1: no such name
const char *span_kind_name(enum span_kind kind);    // "nested", "range"
int span_kind_from_name(const char *name);

enum { SPAN_NO_NAME = UINT32_MAX };

struct span_row {
	int64_t id;               // unique in a recording, from 1, in the order in which the recorder read the begins
	int64_t parent;           // id of the enclosing span in the same thread; VALUE_MISSING: none
	int64_t begin_ns, end_ns; // CLOCK_MONOTONIC; end VALUE_MISSING: still open
	int64_t cpu_ns;           // CPU time of the thread in the span; VALUE_MISSING: not requested
	int32_t pid, tid;
	uint32_t name, category; // numbers in the recording's names; SPAN_NO_NAME: no category
	uint8_t kind, close;     // enum span_kind, enum span_close
	uint8_t stored;          // used by the outbox: the run file has an earlier row of this span, still open
	uint8_t reserved[5];
};

struct span_metric_row {
	int64_t t_ns;
	int64_t span; // id of the innermost open span in its thread; VALUE_MISSING: none
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
