/* What of a run file has not been sent yet, as rows for COPY. The file may grow meanwhile: it is open only while rows are read, from
 * one instant of it into memory, so that a slow server never holds up its recorder.
 *
 * What is final is told apart from what is not: while the recorder lives, spans that have not ended are left for later, and so are
 * samples from the newest tick on (looks between ticks may still add rows behind it, and the last sample of a recording is kept by
 * readers who thin them out). Once the recorder is gone everything is final. */
#pragma once

#include "store/postgres/calls.h"
#include "store/postgres/layout.h"
#include "store/postgres/ranges.h"
#include "store/run.h"

struct source_mark { // of one table: how far it has been sent
	int64_t mark; // LAYOUT_BY_TIME, _BY_ROWID; VALUE_MISSING: nothing so far
	int64_t n;    // rows
};

struct source_marks {
	struct source_mark tables[LAYOUT_TABLES];
	struct ranges spans;
};

struct source_table {
	bool is_made; // the three below
	struct layout layout;
	struct buf select, copy_sql;
	struct copy rows;
};

enum { SOURCE_DAYS_MOST = 8 };

struct source {
	const char *path; // borrowed
	char run_id[40];
	unsigned char uuid[16];
	sqlite3 *db; // NULL: the file is not open now
	bool is_live;

	struct run clocks; // segments, sleeps and the anchor: all that run_wall_ns asks for. Owned, no arena
	int64_t *last_ns;  // owned, of each segment: its last tick; INT64_MAX: it goes on
	int64_t last_sleep_row;
	int64_t before_ns; // samples from then on are not final

	struct source_table tables[LAYOUT_TABLES];
	struct source_marks next; // as it will be when these rows have been sent
	bool is_more;             // there was more than goes into one batch
	int32_t days[SOURCE_DAYS_MOST]; // of UTC since 1970, in which there are rows now
	size_t n_days;

	int64_t wall_from_ns, wall_to_ns, wall_offset_ns; // the wall clock is that much ahead from .. to
	int64_t *previous_ns; // owned: of each device, its row before
	size_t n_previous;
	int64_t previous_mark; // they are those up to this mark
};

void source_init(struct source *source, const char *path);
void source_finish(struct source *source);
/* Opens the file at one instant. is_live: its recorder may go on. -ENOENT, -EINVAL (no run file), -EBUSY (look again) … */
int source_open(struct source *source, bool is_live, struct wattle_error *reterr);
void source_close(struct source *source);
// The columns that go into COPY; the file is open.
int source_lay_out(struct source *source, const struct layout_server servers[LAYOUT_TABLES], struct wattle_error *reterr);
// Reads what lies behind the marks, a batch of it; the file is open. Returns the number of rows.
int64_t source_read(struct source *source, const struct source_marks *marks, struct wattle_error *reterr);
/* Rows that a file has of a table, all of them: to be compared with what was sent. */
int64_t source_count(struct source *source, enum layout_table table);
/* Of those that lie up to the marks there must be just as many as were sent, or it is another file: an older copy, or one that was
 * recorded further elsewhere. -EPROTO says so. */
int source_check(struct source *source, const struct source_marks *marks, struct wattle_error *reterr);
int64_t source_wall_ns(struct source *source, int64_t t_ns); // VALUE_MISSING: it has no clock

int source_marks_copy(const struct source_marks *from, struct source_marks *ret_to); // -ENOMEM
void source_marks_finish(struct source_marks *marks);
