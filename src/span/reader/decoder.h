/* From the records that a program wrote to rows of spans, metrics and marks. One decoder a stream: a ring, or the blocks of
 * one stream of a span file. Pure: no clock, no descriptor. A stream is not to be trusted: whatever it holds, the rows made of
 * it are whole (begin before end, names fit to be shown, parents that exist), they are rows of its own process, and the
 * memory used is bounded. What was wrong is counted. */
#pragma once

#include "span/reader/name_table.h"
#include "span/reader/ranges.h"
#include "span/ring.h"
#include "span/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Over all streams of a recording: spans and ranges that may be open at a time; spans for which streams may keep room.
enum { SPAN_OPEN_MOST = 1 << 18, SPAN_ROOM_MOST = 2 * SPAN_OPEN_MOST };

struct span_sink {                                            // takes rows; what they point to is valid during the call
	void (*span)(void *data, const struct span_row *row); // it has ended
	void (*metric)(void *data, const struct span_metric_row *row);
	void (*mark)(void *data, const struct span_mark_row *row);
	void *data;
};

struct span_counts {
	uint64_t bad_records; // no such kind, a length that can't be, a name that was never defined
	uint64_t strays;      // ends without a begin
	uint64_t clamped;     // times before the one before, before the stream's begin or in the future
	uint64_t unwound;     // spans that were closed by the end of an outer one
	uint64_t dropped;     // spans that found no room here
};

struct span_recording { // what all streams share
	struct name_table names;
	struct span_sink sink;
	int64_t last_id;
	size_t n_open; // at most SPAN_OPEN_MOST
	size_t n_room; // at most SPAN_ROOM_MOST
	struct span_counts counts;
};

int span_recording_init(struct span_recording *recording, const struct span_sink *sink); // -ENOMEM
void span_recording_finish(struct span_recording *recording);

struct span_decoder {
	struct span_recording *recording; // borrowed
	struct span_ranges *ranges;       // borrowed: of the process
	int32_t pid, tid;
	int64_t last_ns;                 // no time before this one
	uint32_t slots[SPAN_NAME_SLOTS]; // names by the stream's own numbers
	struct span_row *rows;           // owned, `room` of them; cpu_ns is the thread's at the begin
	uint16_t *open;                  // owned: the stack, as places in `rows`; behind n_open those that are free
	size_t n_open, room;
	size_t n_taken;  // of these, from the outermost on, span_decoder_take_open has told
	size_t n_unseen; // open spans on top of them that found no room: their ends are expected
};

// Times before floor_ns can't be. ranges: shared by the streams of a process.
void span_decoder_init(struct span_decoder *decoder, struct span_recording *recording, struct span_ranges *ranges,
	int32_t pid, int32_t tid, int64_t floor_ns);
void span_decoder_finish(struct span_decoder *decoder); // without closing what is open
/* Takes in whole events; returns how many records they were: the rest is the begin of an event whose end is not there yet. No
 * time after now_ns can be. `round`: see span_ranges_settle. The records must not change meanwhile. */
size_t span_decoder_feed(struct span_decoder *decoder, const struct span_record *records, size_t n, int64_t now_ns,
	uint32_t round);
// A new block of a file: names are defined anew.
void span_decoder_forget_names(struct span_decoder *decoder);
// Ends all but `depth` open nested spans.
void span_decoder_close(struct span_decoder *decoder, size_t depth, enum span_close how, int64_t t_ns);
/* Spans that are open and were not told of before, with end_ns missing; their later rows have `stored` set. Returns how
 * many; less than `room`: that is all. */
size_t span_decoder_take_open(struct span_decoder *decoder, struct span_row *rows, size_t room);

// Ends all open ranges of a process, counts ends that never met their begin, and releases.
void span_decoder_close_ranges(struct span_recording *recording, struct span_ranges *ranges, enum span_close how,
	int64_t t_ns);
