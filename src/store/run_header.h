/* What a run file says before the first sample: facts, devices, a segment. Between room-mates. */
#pragma once

#include "base/buf.h"
#include "store/sql.h"
#include "store/store.h"

enum { RUN_HEADER_TEXT_CEILING = 1 << 22 }; // a command line can't be longer than 2 MB

// Tables, metric rows and the facts of table run, into an empty database; inside the caller's transaction.
int run_header_create(sqlite3 *db, const struct store_header *header);
/* Makes an existing run file ready for one more recording: columns of metrics that it lacks, its dead segments closed
 * at their last sample; says by how much our clock is to be shifted. SQLite result codes. */
int run_header_continue(sqlite3 *db, const struct store_header *header, int64_t *ret_shift_ns);
// Finds or makes the rows of the devices; ret_ids has room for header->n_devices.
int run_header_devices(sqlite3 *db, const struct store_header *header, int64_t *ret_ids);
// The update periods that were seen, at the end of a recording; ids as run_header_devices gave them.
int run_header_periods(sqlite3 *db, const struct store_footer *footer, const int64_t *ids);

/* In run_segment.c. By how much our clock is behind that of a file which exists already: */
int64_t run_header_shift_ns(sqlite3 *db, const struct store_header *header);
void run_header_command(struct buf *out, const char *const *command); // as a JSON array; NULL: an empty one
int run_header_segment(sqlite3 *db, const struct store_header *header, int64_t shift_ns, int64_t *ret_id);
// 'complete' in table run: true only if every segment is.
int run_header_settle_complete(sqlite3 *db);
