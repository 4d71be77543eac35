/* A simulated host, and the rows of its recorder: two packages with DRAM and eight GPUs of constant power each, so
 * that every sum is known beforehand. */
#pragma once

#include "base/jsonw.h"
#include "store/postgres/send.h"

#include <stddef.h>
#include <stdint.h>

enum {
	HOST_SOCKETS = 2,
	HOST_GPUS = 8,
	HOST_DEVICES = 2 * HOST_SOCKETS + HOST_GPUS, // packages, DRAM, GPUs
	HOST_JOB_RANKS = 64,                         // a rank on each host, this many hosts in a job
};

struct fleet { // shared by all hosts
	int64_t hosts, hz, seconds;
	int64_t wall_start_ns; // Unix time of all first samples
};

struct host {
	int64_t number;
	unsigned char run_id[16];
	char run[37];    // the same as text
	int64_t mono_ns; // the host's clock at the first sample, different on each host
};
void host_init(struct host *host, int64_t number);

/* The columns of a table of samples in the order in which they are sent, and their contents. */
struct host_table {
	const char *name;
	struct host_column {
		const char *name;
		enum pg_type type;
		int source;    // a key, a metric, or unknown
		size_t metric; // of the scope of its table
	} columns[LAYOUT_FIELDS_MAX];
	size_t n;
};
// `server` is borrowed.
void host_table_init(struct host_table *table, enum layout_table which, const struct layout_server *server);
void host_table_copy_sql(const struct host_table *table, struct buf *out);

// Rows of the samples `from` to `to` (excluded); returns their number.
int64_t host_samples(const struct host *host, const struct fleet *fleet, const struct host_table *table, int64_t from,
	int64_t to, struct copy *out);
int64_t host_device_samples(const struct host *host, const struct fleet *fleet, const struct host_table *table,
	int64_t from, int64_t to, struct copy *out);
int64_t host_t_ns(const struct host *host, const struct fleet *fleet, int64_t tick);

// The rows of the small tables, for wattle_put: before the first sample, and after the last.
void host_header(const struct host *host, const struct fleet *fleet, struct jsonw *j);
void host_footer(const struct host *host, const struct fleet *fleet, struct jsonw *j);
// Joules of a job's hosts over the whole run: packages, DRAM and GPUs.
double host_job_j(const struct fleet *fleet, int64_t job);
