/* The intervals over which a run is divided among programs.
 *
 * /proc counts CPU time in ticks of 10 ms. Over one sample of a fast recording that is all noise, so neighbouring
 * samples are merged until a window is about 100 ms long. */
#pragma once

#include "analysis/findings.h"
#include "base/arena.h"
#include "energy/curve.h"
#include "energy/shares.h"
#include "store/run.h"

enum { WINDOW_TIMES = 4, WINDOW_ODD = 255 };
struct window {
	uint32_t segment;
	uint32_t first, last;     // the run's samples at its ends; equal if there are no two
	int64_t begin_ns, end_ns; // what its figures were measured between; the first sample may be taken just before
				  // the target starts, the last one just after it has ended
	int64_t from_ns, to_ns;   // what it speaks for: the outer windows of a segment reach to the segment's ends
	double target_ns, wattle_ns, busy_ns, idle_ns; // CPU time in it, busy includes the other two; NaN unknown
};

struct windows {
	const struct run *run;
	struct kept_window *rows; // ascending; each segment has at least one
	size_t n;
	double *odd_ns; // CPU times that do not fit into their row
	size_t n_odd, odd_room;
	double most_cores; // that the target had at once, as far as windows show it; at least 1
};

/* A window as it is kept: of a day there are 864,000. Its times are those of samples; CPU times are whole nanoseconds below 18 minutes
 * in 40 bits. */
struct kept_window {
	uint32_t segment, first, last;
	uint32_t low[WINDOW_TIMES];
	uint8_t high[WINDOW_TIMES]; // WINDOW_ODD: low is the place in odd_ns; UINT32_MAX: unknown
};

static inline int64_t windows_from_ns(const struct windows *windows, size_t index) // from_ns of it
{
	const struct kept_window *row = &windows->rows[index];
	bool is_first = index == 0 || row[-1].segment != row->segment;
	return is_first ? slice_from_ns(windows->run, row->segment) : windows->run->t_ns[row->first];
}

static inline double windows__ns(const struct windows *windows, const struct kept_window *row, size_t i)
{
	if (row->high[i] != WINDOW_ODD)
		return (double)((uint64_t)row->high[i] << 32 | row->low[i]);
	return row->low[i] != UINT32_MAX ? windows->odd_ns[row->low[i]] : (double)NAN;
}

static inline struct window windows_at(const struct windows *windows, size_t index)
{
	const struct run *run = windows->run;
	const struct kept_window *row = &windows->rows[index];
	const struct run_segment *segment = &run->segments[row->segment];
	bool is_last = index + 1 == windows->n || row[1].segment != row->segment;
	bool is_whole = row->first == row->last; // nothing was sampled twice: all of the segment
	struct window window = {.segment = row->segment,
		.first = row->first,
		.last = row->last,
		.begin_ns = is_whole ? segment->start_ns : run->t_ns[row->first],
		.end_ns = is_whole ? segment->end_ns : run->t_ns[row->last],
		.from_ns = windows_from_ns(windows, index),
		.target_ns = windows__ns(windows, row, 0),
		.wattle_ns = windows__ns(windows, row, 1),
		.busy_ns = windows__ns(windows, row, 2),
		.idle_ns = windows__ns(windows, row, 3)};
	window.to_ns = is_last ? slice_to_ns(run, row->segment) : window.end_ns;
	return window;
}

int windows_make(const struct run *run, struct arena *arena, struct windows *ret_windows); // -ENOMEM
// The window that speaks for an instant, by its index. There must be one at least.
size_t windows_find(const struct windows *windows, int64_t t_ns);

/* Who used the energy of a domain: divided window by window, so that the parts add up to the whole.
 *
 *   package, core, uncore, psys and other CPU-like domains: by share of busy CPU time
 *   dram: by share of memory in use, PSS where it is fresh, else RSS
 *   gpu: by MIG slices where the GPU is cut into instances; else by share of SM time, else of device memory, else by
 *        who is on it at all
 *   gpu-memory: as its GPU
 *
 * With --attribution active the idle power is taken off first: the stored one, else what the run itself saw in its quiet
 * windows. A window in which nothing is known leaves its energy unattributed. */

/* The parts of the memory in use, at one sample of the run after the other. Neither PSS nor the machine's memory is read at each. */
struct memory_walk {
	size_t next, segment; // the next sample, and the next segment to begin
	int64_t pss, rss_then, system;
	bool pss_known;
};

enum baseline { // "active": the domain's idle power
	BASELINE_NOT_ASKED,
	BASELINE_STORED, // measured beforehand
	BASELINE_SEEN,   // lowest of the run's own quiet windows
	BASELINE_UNKNOWN,
};

struct attribution { // one domain's
	const struct run *run;
	const struct run_device *device;
	const struct run_device *user; // its readings show which processes used it: itself; for a GPU's memory the GPU
	const struct curve *curve;
	const struct windows *windows;
	bool active;                     // --attribution active
	enum baseline baseline;
	double idle_w, idle_error_w; // NaN unknown
	const struct attribution_row *rows; // of each window; NULL: not kept, only walks know them
	double doubt_j, target_j;           // over the whole run
};

struct attribution_row { // of a window
	struct shares shares;
	double before_j;        // the domain's energy before it
	double target_before_j; // the target's
	double doubt_before_j;  // the error of its attribution
	double doubt;           // that error of a joule
};

/* The target's part of an energy, and half of a 95 % interval of its being the target's. Doubts of different times and
 * of domains that were divided alike add up: what the method misses, it misses always. */
struct part {
	double target_j, doubt_j;
};

// Fills the rest of *attribution, but for the rows, and *ret_ledger; *ret_method is the one that divided most joules.
void attribute(struct attribution *attribution, struct ledger *ret_ledger, enum method *ret_method);
// The method and the idle baseline in words, in arena memory. NULL: -ENOMEM.
const char *attribution_text(const struct attribution *attribution, enum method method, struct arena *arena);
// Keeps the rows of all windows, for those who look at them in any order. -ENOMEM.
int attribution_keep_rows(struct attribution *attribution, struct arena *arena);
// The target's part of the energy up to an instant. Needs the rows.
struct part attribution_at(const struct attribution *attribution, int64_t t_ns);
// The energy up to an instant that was divided among programs, the target or others: all but what was idle.
struct attribution_used {
	struct attribution attribution; // with its rows
	double *before_j;               // of each window
};
int attribution_used_make(const struct attribution *attribution, struct arena *arena,
	struct attribution_used *ret_used); // -ENOMEM
double attribution_used_j(const struct attribution_used *used, int64_t t_ns);

/* The same at very many instants in ascending order, with what its error needs. Begin with attribution_walk_begin. The rows of a
 * domain would be 60 MB a day: a walk makes them again, one after the other. */
struct attribution_walk {
	const struct attribution *attribution;
	size_t index; // of the window
	struct window window;
	struct attribution_row row;
	struct window_uneven { // how unevenly the target may have computed in it; fits 0: not at all
		double length_s, beside_j;
		double fits; // what part of the target's time fits into a part of the window, at most
		double tick; // the time of a tick to the target's
	} uneven;
	struct attribution_pass { // over the windows; the energies are those up to the latest window's end
		struct curve_walk curve;
		struct memory_walk memory;
		double energy_j, target_j, doubt_j;
	} pass;
	struct curve_walk curve;
	struct edge_walk edge;
};
struct attribution_point {
	struct part part;
	double share; // of the power at the instant
	size_t window;
	struct window_uneven uneven;
	double since_s; // of the window that has passed
	struct edge_point edge;
};
struct attribution_walk attribution_walk_begin(const struct attribution *attribution);
// All but the edge, which only errors need.
void attribution_walk_to(struct attribution_walk *walk, int64_t t_ns, struct attribution_point *ret_point);
void attribution_walk_edge(struct attribution_walk *walk, struct attribution_point *ret_point);
/* How much more or less of the target's energy may lie between two instants, because it did not compute evenly within the windows that
 * they cut. */
struct edge_doubt attribution_uneven(const struct attribution_point *from, const struct attribution_point *to);

// Whether its energy is divided by CPU time, where that is known.
bool attribution_by_cpu(const struct attribution *attribution);

/* Of the power while the target computes on so many cores and others on so many: its part of the busy ones. What is used while nobody
 * computes goes to the target where there is hardly anybody else, as in a window with nobody beside it. */
static const double share_hardly = 0.05; // of a core
static inline double share_of_cores(double target, double others)
{
	return (target + share_hardly) / (target + others + share_hardly);
}
// How it changes with the target's cores, of itself.
static inline double share_slope(double target, double others)
{
	return others / ((target + share_hardly) * (target + others + share_hardly));
}

struct shares shares_cpu(const struct attribution *attribution, const struct window *window);
// Windows come in ascending order.
struct shares shares_memory(const struct attribution *attribution, const struct window *window,
	struct memory_walk *walk);
struct shares shares_gpu(const struct attribution *attribution, const struct window *window);
// Settles the idle power of "active", once the shares of all windows are known.
void baseline_make(struct attribution *attribution);
// The part of a window's energy that was idle power. 0 without a baseline.
double baseline_share(const struct attribution *attribution, const struct window *window);
