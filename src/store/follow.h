/* Following a run file that grows: its tables, and the spool beside it. */
#pragma once

#include "base/error.h"
#include "store/place.h"
#include "store/store.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The spool: a file FILE-spans beside a run file, into which the recorder appends spans that come too fast for SQLite, and
 * from which they become rows after the run. Between room-mates.
 *
 * It is read by the recorder itself at the end, by readers meanwhile, and by the next one who appends to the run file when the
 * recorder died. It belongs to one segment of one run. A spool_header, then chunks: a struct spool_chunk and so many bytes of
 * entries, each a multiple of 8 bytes that begins with its enum spool_entry. Names come before what refers to them. Ids and
 * times are as the tables have them. What a killed recorder has left of its last chunk is not read. */

enum {
	SPOOL_VERSION = 1,
	SPOOL_CHUNK_MAGIC = 0x4b435057, // "WPCK"
	SPOOL_CHUNK_BYTES = 256 * 1024,
	SPOOL_NAMES = 1 << 17, // numbers of names are below this
};

struct spool_header {
	char magic[8]; // "WTLSPOOL"
	uint32_t version, reserved;
	int64_t segment; // of the run file
	char run_id[40];
};

struct spool_chunk {
	uint32_t magic, bytes;
};

enum spool_entry { SPOOL_NAME = 1, SPOOL_SPAN, SPOOL_METRIC, SPOOL_MARK };

struct spool_name { // the bytes follow, padded
	uint8_t entry, reserved;
	uint16_t length;
	uint32_t name;
};

struct spool_span {
	uint8_t entry, kind, close, reserved;
	uint32_t name, category;
	int32_t pid, tid;
	uint32_t reserved2;
	int64_t id, parent, begin_ns, end_ns, cpu_ns;
};

struct spool_metric {
	uint8_t entry, reserved[3];
	uint32_t name;
	int32_t pid, tid;
	int64_t t_ns, span;
	double value;
};

struct spool_mark {
	uint8_t entry, reserved[3];
	uint32_t name, category;
	int32_t pid, tid;
	uint32_t reserved2;
	int64_t t_ns;
};

/* ---- writing ---- */

struct spool {
	int fd; // owned; -1: there is none
	char path[PLACE_PATH_SIZE + 8];
	int64_t size;         // bytes that are whole
	unsigned char *chunk; // owned, SPOOL_CHUNK_BYTES; NULL until the first one
	size_t used;
	uint8_t *is_named; // owned bits: names that are in the file
};

void spool_path(const char *run_path, char *out, size_t size);
// Makes an empty one, over what stands there. -errno.
int spool_make(struct spool *spool, const char *run_path, const char *run_id, int64_t segment);
// Adds to each id and to each time. All or nothing; -ENOSPC …
int spool_append(struct spool *spool, const struct store_spans *spans, int64_t id_offset, int64_t shift_ns);
void spool_close(struct spool *spool, bool remove); // any number of times

/* ---- reading ---- */

struct spool_visitor { // each may be NULL: nobody wants to know
	int (*name)(void *data, uint32_t name, const char *bytes, size_t length); // a negative number ends the reading
	int (*span)(void *data, const struct spool_span *row);
	int (*metric)(void *data, const struct spool_metric *row);
	int (*mark)(void *data, const struct spool_mark *row);
	// A chunk is done; what follows it is at `offset`.
	int (*chunk)(void *data, int64_t offset);
	void *data;
};

/* How much of a spool is in the tables, as the run file says it: between 0 and what the spool is long. What a damaged or made file
 * says beyond that counts as nothing, or as all. */
int64_t spool_bytes_done(int fd, int64_t stored);
/* A descriptor of the spool of a run file, *ret_header checked; -ENOENT: there is none, it is not this run's, or its owner may not write to
 * the run file. */
int spool_open_reader(const char *run_path, const char *run_id, struct spool_header *ret_header);
/* Names are told from the begin on, all else from byte `from` on. 0 at the end of what is whole, whatever comes then; what a
 * visitor returned; -ENOMEM, -EIO. */
int spool_read(int fd, int64_t from, const struct spool_visitor *visitor);
/* Goes on at *at (0: the begin), which moves on behind the last whole chunk: for a reader who keeps the names that it was told
 * and comes again as the spool grows. Returns as spool_read; visitors return 0 or a negative number. */
int spool_read_on(int fd, int64_t *at, const struct spool_visitor *visitor);

/* What a dead recorder has left beside its run file. */

// Whether its recorder may still write to it. Where file systems have no locks, only a run that says it is complete is over.
bool settle_may_grow(const char *path);
/* Makes rows of the spool, as the next recorder to append would, so that the file is whole by itself. Nothing is done where there
 * is none. For who knows that the recorder is dead, or has asked settle_may_grow. -EBUSY: a recorder lives; -EACCES, -EROFS: the
 * file is not ours to write to; -ENOSPC … */
int settle_run_file(const char *path, struct wattle_error *reterr);

/* What all readers of a run file that grows have in common: one look at it in one transaction, its last segment, its spool. Between
 * store/live.c (steps) and store/watch.c (open spans). */

struct follow_segment {
	int64_t id;                  // 0: there is none yet
	int64_t start_ns, shift_ns;  // times in the file are later than on this machine by shift_ns
	int64_t pid;                 // of the root process; VALUE_MISSING: a cgroup, or unknown
	bool is_merging;             // its spool becomes rows
	bool is_over;                // that, or complete
	char boot_id[40], host[128]; // "" unknown
};

// An SQLite result; `data` is the caller's.
typedef int follow_reader(void *data, sqlite3 *db);

// Calls the reader in a transaction. -ENOENT, -EINVAL …: what keeps the file from being read, with a sentence; -EBUSY: look again.
int follow_look(const char *path, follow_reader *read, void *data, struct wattle_error *reterr);
int follow_last_segment(sqlite3 *db, struct follow_segment *ret_segment); // an SQLite result
// What the spool of this segment has from *at on. An SQLite result: SQLITE_OK where there is no spool, as usual.
int follow_spool(const char *path, sqlite3 *db, int64_t segment, int64_t *at, const struct spool_visitor *visitor);

/* Steps of a program, read out of a run file while a recorder writes it: calls of one code block as they end, or reports of
 * one metric. Each look tells what was stored since the one before, also out of the spool beside the file. */

struct live_step {
	int64_t t_ns; // when the block ended, when the metric was reported
	double value; // of the metric; 1 for a block
};

struct live {
	const char *path, *name; // borrowed
	bool is_metric;
	int64_t segment; // the one that is read; 0: none so far
	int64_t last_id; // of table span, whatever its name
	int64_t next_id; // of table span: lower ones are known, or of an earlier segment …
	int64_t *done;   // owned: … as are these above it, ascending
	size_t n_done, done_room;
	int64_t last_row; // of table user_metric
	int64_t spool_at, shift_ns;
	int64_t newest_ns, known_ns; // told so far; of it, in earlier segments, whose spools have become rows meanwhile
	uint32_t spool_name;         // SPOOL_NAMES: the name did not come yet
	struct live_step *
		steps; // owned: all that was found and not yet forgotten, in order of time, on the clock of this machine
	size_t n_steps, steps_room;
	int64_t stored_ns; // all that happened up to then has been told; VALUE_MISSING: nothing so far
	bool is_over;      // the spool becomes rows: those were told before
};

// is_metric: reports of a metric of that name, else calls of a code block. Of a file's earlier segments nothing is told.
void live_init(struct live *live, const char *path, const char *name, bool is_metric);
void live_finish(struct live *live);
// -ENOENT: there is no file yet; -EBUSY: look again; and what else keeps it from being read, with a sentence.
int live_look(struct live *live, struct wattle_error *reterr);
void live_forget(struct live *live, int64_t before_ns); // steps before that time
// The names that there are so far, "a, b, c", those called most first; "" for none.
void live_names(const char *path, bool of_metrics, char *out, size_t size);

/* A run file that grows, looked at again and again: how far it has come, and the spans that run now. What is looked at is the
 * last segment; times are on the clock of this machine. */

enum { WATCH_NAME_SIZE = 256, WATCH_SPANS_MOST = 4096 };

struct watch_span {
	int64_t id, parent; // parent VALUE_MISSING: none
	int64_t begin_ns;
	int64_t pid, tid;
	char name[WATCH_NAME_SIZE]; // cut where it is longer, not inside a character
};

struct watch {
	const char *path; // borrowed
	struct follow_segment segment;
	int64_t stored_ns;        // its last sample; VALUE_MISSING: none yet
	struct watch_span *spans; // owned, by id; running at that time, as far as is stored
	size_t n_spans, room;
	int64_t more;    // that run too, for which there is no room: begun after all of these
	int64_t last_id; // up to here none is missing from spans
	int64_t spool_at;
};

void watch_init(struct watch *watch, const char *path);
void watch_finish(struct watch *watch);
// -ENOENT, -EINVAL …: what keeps it from being read, with a sentence; -EBUSY: look again.
int watch_look(struct watch *watch, struct wattle_error *reterr);
/* For those who work through samples in parts: the time of the n-th sample after t_ns, or of the last one there is, in times of
 * the file; t_ns itself where none follows. */
int64_t watch_nth_sample(const struct watch *watch, int64_t t_ns, int64_t n);
