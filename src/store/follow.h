/* Following a growing run file: its tables and its spool. */
#pragma once

#include "base/error.h"
#include "store/output_file.h"
#include "store/store.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The spool: the file FILE-spans beside a run file. The recorder appends spans to it that arrive too fast for SQLite; they
 * become rows after the run. Internal to src/store.
 *
 * The recorder reads it at the end of the run, readers read it during the run, and after a crash of the recorder the next
 * recorder that appends to the run file reads it. A spool belongs to one segment of one run. Layout: a spool_header, then
 * chunks. A chunk is a struct spool_chunk and its number of bytes of entries. Each entry is a multiple of 8 bytes and begins
 * with its enum spool_entry. A name precedes the entries that refer to it. Ids and times are those of the tables. An incomplete
 * last chunk of a killed recorder is ignored. */

enum {
	SPOOL_VERSION = 1,
	SPOOL_CHUNK_MAGIC = 0x4b435057, // "WPCK"
	SPOOL_CHUNK_BYTES = 256 * 1024,
	SPOOL_NAMES = 1 << 17, // exclusive upper limit of name numbers
};

struct spool_header {
	char magic[8]; // "WTLSPOOL"
	uint32_t version, reserved;
	int64_t segment; // segment id in the run file
	char run_id[40];
};

struct spool_chunk {
	uint32_t magic, bytes;
};

enum spool_entry { SPOOL_NAME = 1, SPOOL_SPAN, SPOOL_METRIC, SPOOL_MARK };

struct spool_name { // followed by the bytes of the name, padded
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
	int fd; // owned; -1: no spool
	char path[OUTPUT_FILE_PATH_SIZE + 8];
	int64_t size;         // bytes of complete chunks
	unsigned char *chunk; // owned, SPOOL_CHUNK_BYTES; NULL before the first chunk
	size_t used;
	uint8_t *is_named; // owned bit set: names already in the file
};

void spool_path(const char *run_path, char *out, size_t size);
// Creates an empty spool, replacing an existing file. -errno.
int spool_make(struct spool *spool, const char *run_path, const char *run_id, int64_t segment);
// Appends spans, with id_offset added to each id and shift_ns to each time. All or nothing; -ENOSPC …
int spool_append(struct spool *spool, const struct store_spans *spans, int64_t id_offset, int64_t shift_ns);
void spool_close(struct spool *spool, bool remove); // may be called repeatedly

/* ---- reading ---- */

struct spool_callbacks {                                                          // each callback may be NULL
	int (*name)(void *data, uint32_t name, const char *bytes, size_t length); // a negative return value ends the reading
	int (*span)(void *data, const struct spool_span *row);
	int (*metric)(void *data, const struct spool_metric *row);
	int (*mark)(void *data, const struct spool_mark *row);
	// End of a chunk; the next one starts at `offset`.
	int (*chunk)(void *data, int64_t offset);
	void *data;
};

/* The number of spool bytes that the tables already contain, from the value stored in the run file, clamped to 0 … spool size.
 * Protects against damaged or forged files. */
int64_t spool_bytes_done(int fd, int64_t stored);
/* Opens the spool of a run file for reading; *ret_header is checked. -ENOENT: no spool, a spool of another run, or one whose
 * owner may not write to the run file. */
int spool_open_reader(const char *run_path, const char *run_id, struct spool_header *ret_header);
/* Reports names from the beginning, and all other entries from byte `from` on. 0 at the end of the complete chunks, whatever
 * follows; the visitor's return value; -ENOMEM, -EIO. */
int spool_read(int fd, int64_t from, const struct spool_callbacks *callbacks);
/* Continues at *at (0: the beginning) and advances it past the last complete chunk, for a reader that keeps the names and reads
 * again as the spool grows. Returns as spool_read; visitors return 0 or a negative number. */
int spool_read_on(int fd, int64_t *at, const struct spool_callbacks *callbacks);

/* Merging the spool that a dead recorder left beside its run file. */

// Whether the file's recorder may still write to it. On file systems without locks, only a run marked complete is known to have
// ended.
bool spool_merge_is_writer_alive(const char *path);
/* Converts the spool to rows, as the next appending recorder would, so that the run file is complete by itself. No spool: does
 * nothing. Call it only if the recorder is known to be dead, or after spool_merge_is_writer_alive. -EBUSY: a recorder is running; -EACCES,
 * -EROFS: no write permission; -ENOSPC … */
int spool_merge_run_file(const char *path, struct wattle_error *reterr);

/* Shared by all readers of a growing run file: one read in one transaction, the last segment, and the spool. Used by
 * store/step_tail.c (steps) and store/span_tail.c (open spans). */

struct follow_segment {
	int64_t id;                  // 0: no segment yet
	int64_t start_ns, shift_ns;  // shift_ns: time in the file minus CLOCK_MONOTONIC of this machine
	int64_t pid;                 // root process; VALUE_MISSING: a cgroup, or unknown
	bool is_merging;             // the spool is being converted to rows
	bool is_over;                // is_merging, or the run is complete
	char boot_id[40], host[128]; // "" unknown
};

// Returns an SQLite result code; `data` is the caller's.
typedef int follow_reader(void *data, sqlite3 *db);

// Calls the reader in a transaction. -ENOENT, -EINVAL …: the file cannot be read, with a message; -EBUSY: try again.
int follow_read(const char *path, follow_reader *read, void *data, struct wattle_error *reterr);
int follow_last_segment(sqlite3 *db, struct follow_segment *ret_segment); // SQLite result code
// Reads the spool of this segment from *at on. Returns an SQLite result code: SQLITE_OK if there is no spool, the usual case.
int follow_spool(const char *path, sqlite3 *db, int64_t segment, int64_t *at, const struct spool_callbacks *callbacks);

/* Steps of a program, read from a run file during the recording: calls of one code block as they end, or reports of one metric.
 * Each update reads what was stored since the previous one, including the spool. */

struct tail_step {
	int64_t t_ns; // end of the block, or time of the metric report
	double value; // value of the metric; 1 for a block
};

struct step_tail {
	const char *path, *name; // borrowed
	bool is_metric;
	int64_t segment; // the current segment; 0: none yet
	int64_t last_id; // largest id of table span, of any name
	int64_t next_id; // table span: all spans below this id have been reported, or belong to an earlier segment
	int64_t *done;   // owned: reported ids at or above next_id, ascending
	size_t n_done, done_capacity;
	int64_t last_row; // last rowid read of table user_metric
	int64_t spool_at, shift_ns;
	int64_t newest_ns, known_ns; // latest reported step: in all segments; in earlier segments
	uint32_t spool_name;         // number of the name in the spool; SPOOL_NAMES: not seen yet
	struct tail_step *steps;     // owned: steps found and not yet forgotten, by time, on the clock of this machine
	size_t n_steps, steps_capacity;
	int64_t stored_ns; // all steps up to this time have been reported; VALUE_MISSING: none
	bool is_over;      // the spool is being converted to rows, which have been reported already
};

// is_metric: reports of the metric `name`; otherwise calls of the code block `name`. Steps of segments from before step_tail_init
// are not reported.
void step_tail_init(struct step_tail *tail, const char *path, const char *name, bool is_metric);
void step_tail_finish(struct step_tail *tail);
// -ENOENT: no file yet; -EBUSY: try again; other errors: the file cannot be read, with a message.
int step_tail_poll(struct step_tail *tail, struct wattle_error *reterr);
void step_tail_drop(struct step_tail *tail, int64_t before_ns); // drops steps before that time
// The names seen so far, "a, b, c", most frequent first; "" for none.
void step_tail_names(const char *path, bool of_metrics, char *out, size_t size);

/* Progress of a growing run file: the time of its last sample, and the spans that are open then. Covers the last segment only;
 * times are on the clock of this machine. */

enum { SPAN_TAIL_NAME_SIZE = 256, SPAN_TAIL_SPANS_MAX = 4096 };

struct tail_span {
	int64_t id, parent; // parent VALUE_MISSING: none
	int64_t begin_ns;
	int64_t pid, tid;
	char name[SPAN_TAIL_NAME_SIZE]; // truncated between characters
};

struct span_tail {
	const char *path; // borrowed
	struct follow_segment segment;
	int64_t stored_ns;        // time of the last sample; VALUE_MISSING: none yet
	struct tail_span *spans;  // owned, ascending by id; spans open at stored_ns
	size_t n_spans, capacity;
	int64_t more;    // number of open spans beyond SPAN_TAIL_SPANS_MAX; all have larger ids
	int64_t last_id; // `spans` has every open span up to this id
	int64_t spool_at;
};

void span_tail_init(struct span_tail *tail, const char *path);
void span_tail_finish(struct span_tail *tail);
// -ENOENT, -EINVAL …: the file cannot be read, with a message; -EBUSY: try again.
int span_tail_poll(struct span_tail *tail, struct wattle_error *reterr);
/* For readers that process samples in parts: the time of the n-th sample after t_ns, or of the last sample if there are fewer,
 * in times of the file; t_ns if there is none. */
int64_t span_tail_nth_sample(const struct span_tail *tail, int64_t t_ns, int64_t n);
