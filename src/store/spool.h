/* The spool: a file FILE-spans beside a run file, into which the recorder appends spans that come too fast for SQLite, and
 * from which they become rows after the run. Between room-mates.
 *
 * It is read by the recorder itself at the end, by readers meanwhile, and by the next one who appends to the run file when the
 * recorder died. It belongs to one segment of one run. A spool_header, then chunks: a struct spool_chunk and so many bytes of
 * entries, each a multiple of 8 bytes that begins with its enum spool_entry. Names come before what refers to them. Ids and
 * times are as the tables have them. What a killed recorder has left of its last chunk is not read. */
#pragma once

#include "base/error.h"
#include "store/place.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
