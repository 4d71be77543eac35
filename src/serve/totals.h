/* The counters of `wattle serve`, and the series of jobs, cgroups and processes in its metrics. Pure except for the state
 * file. */
#pragma once

#include "base/buf.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fields.h"
#include "monitor/monitor.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* A bounded table of series (series.c). It holds the largest consumers, and ended ones until every scraper has read their
 * last values. Each new series costs a Prometheus server memory for hours. New series are therefore limited per minute,
 * and a row passes to another consumer rarely and only if that one uses much more. */

enum { SERIES_NEW_MIN = 20 }; // minimum limit of new series per minute

enum series_state {
	SERIES_NONE, // no row
	SERIES_SHOWN,
	SERIES_LEAVING // ended or replaced; exported with its last values until scraped
};

struct series { // first member of each row type
	enum series_state state;
	double recent;      // use over about the last minute; ranks the rows
	uint64_t left_sample; // LEAVING: sample number and time when it left; 0: before the last restart
	int64_t left_ns;
};

struct series_list { // array of any row type that begins with a struct series
	void *rows;
	size_t n, row_size;
};
#define SERIES_OF(table) ((struct series_list){(table)->items, (table)->n, sizeof(*(table)->items)})

struct series_bounds {
	size_t most;       // limit of shown rows, and of leaving rows; 0: none
	double new_left;   // new series still allowed now
	size_t swaps_left; // rows that may still be reassigned at this sample
	int64_t sampled_ns, swapped_ns;
	bool has_begun;
};

size_t series_count(struct series_list list, enum series_state state);
struct series *series_weakest(struct series_list list); // the shown row with the least recent use; NULL: none is shown
void series_leave(struct series *series, uint64_t sample, int64_t t_ns);
// Starts a sample.
void series_begin_sample(struct series_bounds *bounds, int64_t t_ns);
// Uses one of this minute's new series. False: none left.
bool series_take_new(struct series_bounds *bounds);
// True if a consumer with that recent use may get a row. Removes the weakest row if necessary.
bool series_make_room(struct series_bounds *bounds, struct series_list list, double recent, uint64_t sample,
	int64_t t_ns);

/* Series of the jobs or of the cgroups of this machine. Groups without a row are summed in "other", and processes outside
 * all groups in "rest", so each joule attributed to processes is counted in one row. Counters start at 0 with the job and
 * never decrease. */

enum { GROUP_USER_SIZE = 64 };

struct group_row {
	struct series series;
	char name[MONITOR_GROUP_SIZE];
	char user[GROUP_USER_SIZE]; // of a job; "": unknown or not yet looked up
	bool is_here;                   // has processes
	uint64_t last_sample;           // number of the last sample in which it had processes
	int64_t n_samples;              // number of samples in which it had processes
	double energy_j[MONITOR_RESOURCES]; // counted while it has a row
	double cpu_s;
	struct monitor_group now; // gauges, valid while is_here
	uint32_t hash;
};

struct group_rows {
	enum monitor_grouping grouping;
	struct series_bounds bounds;
	struct group_row *items; // owned
	size_t n, capacity;
	double other_j[MONITOR_RESOURCES], other_cpu_s; // groups without a row
	double rest_j[MONITOR_RESOURCES], rest_cpu_s;   // processes outside all groups
};

// What every active scraper has received: all values exported at or before this sample and time.
struct scraped {
	uint64_t sample;
	int64_t t_ns;
};

// False for rows that left before a restart (left_sample 0): no scraper has read them since.
static inline bool was_scraped(const struct scraped *seen, uint64_t left_sample, int64_t left_ns)
{
	return left_sample > 0 && left_sample <= seen->sample && left_ns <= seen->t_ns;
}

void group_rows_init(struct group_rows *table, enum monitor_grouping grouping, size_t most);
void group_rows_finish(struct group_rows *table);
void group_rows_update(struct group_rows *table, const struct monitor_sample *now, uint64_t sample);
void group_rows_drop_scraped(struct group_rows *table, const struct scraped *seen);
// False: not exported (yet), because the owner of the job is unknown.
bool group_row_is_shown(const struct group_rows *table, const struct group_row *row);

/* ---- persistence (group_rows_state.c) ---- */

extern const struct object_type group_rows_type; // data: struct group_rows
void group_rows_read(struct group_rows *table, const json_t *object); // skips unusable entries
// Whether a row of a state file had its own metrics: "is_shown", in earlier files "told".
bool totals_was_shown(const json_t *row);
struct group_row *group_rows_add(struct group_rows *table,
	const char *name); // finds or creates the row of this name; NULL: no memory

/* Series of processes. Counters continue across restarts. */

enum {
	PROCESS_ROWS_REMEMBERED = 4
}; // `most` times this many live processes without a row are remembered, in case they get one again

struct process_row {
	struct series series;   // recent: W, or cores if no power is measured; NONE: alive, values remembered
	struct monitor_process now; // last sampled values; is_gone: ended
	int64_t worked_ns, named_ns;
};

struct process_rows {
	struct series_bounds bounds;
	enum monitor_arguments arguments;
	struct process_row *items; // owned
	size_t n, capacity;
};

void process_rows_init(struct process_rows *table, size_t most, enum monitor_arguments arguments);
void process_rows_finish(struct process_rows *table);
void process_rows_update(struct process_rows *table, const struct monitor_sample *now, uint64_t sample);
void process_rows_drop_scraped(struct process_rows *table, const struct scraped *seen);

/* ---- persistence (process_rows_state.c) ---- */

extern const struct object_type process_rows_type; // data: struct process_rows
// True if another row has the same labels: the pid was reused by a process with the same command.
bool process_rows_is_taken(const struct process_rows *table, const struct process_row *but, pid_t pid,
	const char *command);
// same_boot: saved processes may still be alive.
void process_rows_read(struct process_rows *table, const json_t *array, bool same_boot);
// Processes whose counters continue, ascending by pid; owned by the caller. NULL: none, or no memory.
struct monitor_kept_process *process_rows_kept(const struct process_rows *table, size_t *ret_n);

/* Scrapers, and the samples that all of them have received; values of ended processes are exported until then. A client is
 * identified by its address and User-Agent. Both Prometheus servers of a pair therefore receive the last values, and a
 * manual curl does not consume them. Clients behind one address (a pair on one host, a NAT) are distinguished by their
 * persistent connections: a request that arrives while all known clients of its kind are connected is a new client. Pure. */

enum {
	SCRAPERS_MAX = 32,
	SCRAPER_TIMEOUT_S = 300, // s without a request until a client is inactive; Prometheus then drops a series too
	SCRAPER_INTERVALS = 2,   // for slower clients: this multiple of their own interval …
	SCRAPER_INTERVAL_MAX_S = 900 // … with the interval limited to this, s
};

struct scraper {
	uint32_t id;
	uint64_t line;  // number of its connection; 0: disconnected
	uint64_t sample; // number of the last sample it received completely
	int64_t t_ns;   // time of that
	int64_t gap_ns; // time between its last two requests; 0: only one so far
};

struct scrapers {
	struct scraper items[SCRAPERS_MAX];
	size_t n;
};

// address: used without the port, which differs per connection; NULL: a Unix socket. program: User-Agent, or NULL.
uint32_t scraper_id(const struct sockaddr *address, const char *program);
// line: unique connection number.
void scrapers_note(struct scrapers *scrapers, uint32_t id, uint64_t line, uint64_t sample, int64_t t_ns);
void scrapers_hang_up(struct scrapers *scrapers, uint64_t line);
// The sample that every active client has received; look 0: no client is active.
struct scraped scrapers_seen(const struct scrapers *scrapers, int64_t t_ns);

/* Persistence: after a restart, the server waits for known clients, so that the first client to come back does not consume
 * the last values. Stored as an array. same_boot: its times are on the current clock. */
extern const struct object_type scrapers_type; // data: struct scrapers
void scrapers_read(struct scrapers *scrapers, const json_t *array, bool same_boot, int64_t t_ns);

/* Counters since counting began, across restarts: energy by consumer, jobs, cgroups, processes. Metrics combine them with
 * the last sample. */

struct totals {
	struct monitor_added sums[MONITOR_RESOURCES];
	struct group_rows groups[MONITOR_GROUPINGS];
	struct process_rows processes;
	struct scrapers scrapers; // clients and what they have received
	int64_t since_wall_ns;    // Unix time; VALUE_MISSING: unknown
};

struct totals_options {
	size_t most[MONITOR_GROUPINGS]; // rows; 0: none
	size_t max_processes;
	enum monitor_arguments arguments; // detail of restored command lines, as in samples
};

void totals_init(struct totals *totals, const struct totals_options *options);
void totals_finish(struct totals *totals);
void totals_update(struct totals *totals, const struct monitor_sample *now, uint64_t sample);
void totals_drop_scraped(struct totals *totals, const struct scraped *seen);
// Members of a JSON object. Unreadable values count from 0.
extern const struct object_type serve_totals_type; // data: struct totals
void totals_read(struct totals *totals, const json_t *object, bool same_boot, int64_t t_ns);
// Sum over all resources.
struct monitor_added totals_sum(const struct totals *totals);

/* Counter values that survive a restart: a file in the state folder (WATTLE_STATE).
 *
 * Prometheus takes a counter that decreases slightly for one that was reset and reached its old height at once, which adds
 * millions of joules that nobody used. The file is therefore written before its values are exported. A power failure must
 * not restore an older file: after a reboot the file counts only if the server had ended in order (the file is then synced
 * to disk); otherwise all counters restart at 0 together. */

enum { STATE_DOMAINS_MAX = 256, STATE_CEILING = 1 << 24 };

struct state {
	const struct wattle_env *env; // borrowed
	int folder_fd;                // owned: the state folder; -1: no persistence
	char name[256];               // file name in the folder
	int lock_fd;                  // owned; lock held by the writing server; -1: none
	char node[256];               // name of this machine
	char boot[128];               // boot id and sensor root
	struct buf text;
	uint64_t written_sample;
	int failed; // negative errno of the last failed write; 0: it succeeded
};

/* node: name of this machine, for folders that several machines share. key: distinguishes servers on one machine, such as
 * the listening address. Negative errno with *reterr set: counters start at 0 at each start, and all calls below do
 * nothing. */
int state_open(struct state *state, const struct wattle_env *env, const char *node, const char *key,
	struct wattle_error *reterr);
void state_close(struct state *state);

struct state_read { // content of the file
	struct monitor_kept domains[STATE_DOMAINS_MAX];
	size_t n_domains;
	bool same_boot;
	json_t *object; // owned; NULL: no state to continue from
};
void state_read(struct state *state, struct state_read *ret_read);
void state_read_finish(struct state_read *read);

// Writes at most once per sample. is_last: the server ends in order.
void state_write(struct state *state, const struct monitor *now, size_t n_domains, const struct totals *totals,
	uint64_t sample, bool is_last);
