/* What `wattle serve` counts, and the rows of its metrics that come and go with jobs, cgroups and processes. Pure but for the state file. */
#pragma once

#include "base/buf.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fields.h"
#include "now/now.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* A bounded table of series (series.c): rows of metrics for those that use most, and for what has ended until all who scrape have got its
 * last values. Each new series costs a Prometheus server memory for hours, so new ones are rationed by the minute, and a row passes from
 * one to another rarely, and only to one that uses much more. */

enum { SERIES_NEW_LEAST = 20 }; // series that may be new in a minute, however few may be shown

enum series_state {
	SERIES_NONE, // has no row
	SERIES_SHOWN,
	SERIES_LEAVING // its row is still shown with its last values, until it has been scraped
};

struct series { // the first member of a row
	enum series_state state;
	double recent;      // what it used in the last minute or so: who uses much gets a row
	uint64_t left_look; // LEAVING: since which look, and when that was; 0: in an earlier life of ours
	int64_t left_ns;
};

struct series_list { // rows of any type that begins with a struct series
	void *rows;
	size_t n, row_size;
};
#define SERIES_OF(table) ((struct series_list){(table)->items, (table)->n, sizeof(*(table)->items)})

struct series_bounds {
	size_t most;       // rows that are shown; as many may be leaving. 0: none are wanted
	double new_left;   // series that may be new now
	size_t swaps_left; // rows that may pass to another at this look
	int64_t looked_ns, swapped_ns;
	bool has_begun;
};

size_t series_count(struct series_list list, enum series_state state);
struct series *series_weakest(struct series_list list); // shown, of the least recent use; NULL: none is shown
void series_leave(struct series *series, uint64_t look, int64_t t_ns);
// A look begins.
void series_begin_look(struct series_bounds *bounds, int64_t t_ns);
// Takes one of the new series of this minute. False: there are none left.
bool series_take_new(struct series_bounds *bounds);
// Whether one of that recent use may be shown; the weakest leaves for it if need be.
bool series_make_room(struct series_bounds *bounds, struct series_list list, double recent, uint64_t look, int64_t t_ns);

/* Series of the jobs, or of the cgroups, of this machine. Those without a row are summed up as "other", and what is in none of them is the
 * "rest", so each joule attributed to processes counts in one row. Counters begin at 0 with the job and never fall. */

enum { GROUP_USER_SIZE = 64 };

struct group_row {
	struct series series;
	char name[NOW_GROUP_SIZE];
	char user[GROUP_USER_SIZE]; // of a job; "": not known, or not yet
	bool is_here;                   // it has processes
	uint64_t last_look;             // the last at which it had
	int64_t looks;                  // at how many it had
	double energy_j[NOW_RESOURCES]; // counted while it was told
	double cpu_s;
	struct now_group now; // its gauges, while it is here
	uint32_t hash;
};

struct group_rows {
	enum now_grouping grouping;
	struct series_bounds bounds;
	struct group_row *items; // owned
	size_t n, room;
	double other_j[NOW_RESOURCES], other_cpu_s; // of those without a row
	double rest_j[NOW_RESOURCES], rest_cpu_s;   // of what is in none
};

// What everybody has got who is to get it: whatever was last told at this look, and before this time.
struct scraped {
	uint64_t look;
	int64_t t_ns;
};

// What was told in an earlier life of ours (look 0) has been seen by nobody in this one.
static inline bool was_scraped(const struct scraped *seen, uint64_t left_look, int64_t left_ns)
{
	return left_look > 0 && left_look <= seen->look && left_ns <= seen->t_ns;
}

void group_rows_init(struct group_rows *table, enum now_grouping grouping, size_t most);
void group_rows_finish(struct group_rows *table);
void group_rows_look(struct group_rows *table, const struct now *now, uint64_t look);
void group_rows_forget(struct group_rows *table, const struct scraped *seen);
// False: the row is not to be told (yet): a job of which it is not known whose it is.
bool group_row_is_shown(const struct group_rows *table, const struct group_row *row);

/* ---- over restarts (group_rows_state.c) ---- */

extern const struct object_type group_rows_type; // data: struct group_rows
void group_rows_read(struct group_rows *table, const json_t *object); // whatever of it can be used
struct group_row *group_rows_add(struct group_rows *table,
	const char *name); // the one of this name, made if need be; NULL: no memory

/* Series of processes. Counters go on over restarts. */

enum {
	PROCESS_ROWS_SPARE = 4
}; // so many times `most` are remembered that live and have no row any more, should they get one again

struct process_row {
	struct series series;   // recent: watts, or cores where nothing is metered; NONE: it lives, and its values are remembered
	struct now_process now; // as it was last seen; is_gone: it has ended
	int64_t worked_ns, named_ns;
};

struct process_rows {
	struct series_bounds bounds;
	enum now_arguments arguments;
	struct process_row *items; // owned
	size_t n, room;
};

void process_rows_init(struct process_rows *table, size_t most, enum now_arguments arguments);
void process_rows_finish(struct process_rows *table);
void process_rows_look(struct process_rows *table, const struct now *now, uint64_t look);
void process_rows_forget(struct process_rows *table, const struct scraped *seen);

/* ---- over restarts (process_rows_state.c) ---- */

extern const struct object_type process_rows_type; // data: struct process_rows
// Whether somebody's row would be the same series: a number came to another process like the one that has ended.
bool process_rows_is_taken(const struct process_rows *table, const struct process_row *but, pid_t pid, const char *command);
// same_boot: what lived then may live still.
void process_rows_read(struct process_rows *table, const json_t *array, bool same_boot);
// Whose counters go on, ascending by pid: owned by the caller. NULL: nobody's, or no memory.
struct now_kept_process *process_rows_kept(const struct process_rows *table, size_t *ret_n);

/* Who scrapes, and what they all have got: what has ended is told until then. A client is an address and the name of a program, so that
 * two Prometheus servers of a pair each get what the other has had, and somebody with curl takes nothing away from either. Behind one
 * address (a pair on one host, a NAT) each has a connection of its own, which it keeps: one that comes while all others of its kind are
 * connected is another client. Pure. */

enum {
	SCRAPERS_MAX = 32,
	SCRAPER_PATIENCE_S =
		300,           // who has not come for so long has gone: Prometheus itself forgets a series after that
	SCRAPER_RHYTHMS = 2,   // … unless its own rhythm is slower: then so many times that, and
	SCRAPER_RHYTHM_S = 900 // no slower one than this
};

struct scraper {
	uint32_t id;
	uint64_t line;  // the connection that it has; 0: it has hung up
	uint64_t look;  // the last that it has got, whole
	int64_t t_ns;   // … and when
	int64_t gap_ns; // time between the last two; 0: it came once
};

struct scrapers {
	struct scraper items[SCRAPERS_MAX];
	size_t n;
};

// address: without its port, which is another at each connection; NULL: a Unix socket. program: User-Agent, or NULL.
uint32_t scraper_id(const struct sockaddr *address, const char *program);
// line: a number of the connection that no other has had.
void scrapers_note(struct scrapers *scrapers, uint32_t id, uint64_t line, uint64_t look, int64_t t_ns);
void scrapers_hang_up(struct scrapers *scrapers, uint64_t line);
// What everybody has got who still comes; look 0: there is nobody.
struct scraped scrapers_seen(const struct scrapers *scrapers, int64_t t_ns);

/* Over restarts: who came is waited for, or the first who comes would take the last words of before from the others. An array, and back;
 * same_boot: its times are of our clock. */
extern const struct object_type scrapers_type; // data: struct scrapers
void scrapers_read(struct scrapers *scrapers, const json_t *array, bool same_boot, int64_t t_ns);

/* What counting came to since it began, over restarts too: energy by whose it is, jobs, cgroups, processes. What the metrics tell besides the last
 * look. */

struct tally {
	struct now_added sums[NOW_RESOURCES];
	struct group_rows groups[NOW_GROUPINGS];
	struct process_rows processes;
	struct scrapers scrapers; // who has been told
	int64_t since_wall_ns;    // Unix time; VALUE_MISSING: not known yet
};

struct tally_options {
	size_t most[NOW_GROUPINGS]; // rows; 0: none
	size_t most_processes;
	enum now_arguments arguments; // of kept processes: as the looks show them
};

void tally_init(struct tally *tally, const struct tally_options *options);
void tally_finish(struct tally *tally);
void tally_look(struct tally *tally, const struct now *now, uint64_t look);
void tally_forget(struct tally *tally, const struct scraped *seen);
// Parts of an object, and back; whatever can't be read counts from 0.
extern const struct object_type tally_type; // data: struct tally
void tally_read(struct tally *tally, const json_t *object, bool same_boot, int64_t t_ns);
// Over all resources.
struct now_added tally_sum(const struct tally *tally);

/* What wattle serve counts on from when it is started again: a file in the state folder (WATTLE_STATE).
 *
 * A counter that steps back a little reads, to Prometheus, like one that began anew and reached its old height at once: joules by the
 * million that nobody used. So the file is written before what it says is told to anybody; no power cut may bring back an older one: after
 * the machine has started anew it counts only if we had ended in order (it is then on disk), else all counters begin at 0, together. */

enum { STATE_DOMAINS_MAX = 256, STATE_CEILING = 1 << 24 };

struct state {
	const struct wattle_env *env; // borrowed
	int folder_fd;                // owned: the state folder; -1: nothing is kept
	char name[256];               // of the file in it
	int lock_fd;                  // owned; held as long as we are the one who writes it; -1
	char node[256];               // this machine's name
	char boot[128];               // this boot of it, and whose sensors these are
	struct buf text;
	uint64_t written_look;
	int failed; // why the last try to write failed: negative errno; 0: it did not
};

/* node: this machine's name, for folders that several machines share. key: what tells servers of one machine apart, as where they listen.
 * Negative errno, with a sentence: counters will begin at 0 at each start; all calls below do nothing then. */
int state_open(struct state *state, const struct wattle_env *env, const char *node, const char *key,
	struct wattle_error *reterr);
void state_close(struct state *state);

struct state_read { // what the file told
	struct now_kept domains[STATE_DOMAINS_MAX];
	size_t n_domains;
	bool same_boot;
	json_t *object; // owned; NULL: there is nothing to count on from
};
void state_read(struct state *state, struct state_read *ret_read);
void state_read_finish(struct state_read *read);

// Once a look at most. is_last: we end in order.
void state_write(struct state *state, const struct now_state *now, size_t n_domains, const struct tally *tally,
	uint64_t look, bool is_last);
