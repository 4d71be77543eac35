/* Reading tables into arrays of the arena. Between room-mates. */
#pragma once

#include "store/run.h"
#include "store/spool.h"
#include "store/sql.h"

struct run_reader {
	sqlite3 *db; // inside one read transaction: a writer may go on, we see one instant
	struct arena *arena;
	int spool_fd; // opened before the transaction began: what became rows meanwhile is told by segment.spool_bytes; -1: none
	struct spool_header spool;
	int64_t from_ns, to_ns; // samples of this time are read, both ends included
	int64_t *missing;       // the column of all metrics that were never read, n_missing long
	size_t n_missing;
};

bool run_has_column(struct run_reader *reader, const char *table, const char *column);

// All return SQLite result codes.
int run_read_facts(struct run_reader *reader, struct run *run);
int run_read_segments(struct run_reader *reader, struct run *run); // after the samples
int run_read_devices(struct run_reader *reader, struct run *run);  // without their samples
int run_read_processes(struct run_reader *reader, struct run *run);
int run_read_events(struct run_reader *reader, struct run *run);
int run_read_spans(struct run_reader *reader, struct run *run); // and metrics, and more events; after the events

int run_read_samples(struct run_reader *reader, struct run *run);
int run_read_device_samples(struct run_reader *reader, struct run *run); // after the devices
int run_read_process_samples(struct run_reader *reader, struct run *run);
