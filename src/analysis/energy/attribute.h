/* Windows: the intervals over which the energy of a run is divided among programs.
 *
 * /proc counts CPU time in ticks of 10 ms, which is mostly noise over one sample of a fast recording. Neighbouring
 * samples are therefore merged until a window is about 100 ms long. */
#pragma once

#include "analysis/findings.h"
#include "base/arena.h"
#include "energy/curve.h"
#include "energy/shares.h"
#include "store/run.h"

enum { WINDOW_TIMES = 4, WINDOW_ODD = 255 };
struct window {
	uint32_t segment;
	uint32_t first, last;     // the run's samples at the two ends; equal if the segment has fewer than two
	int64_t begin_ns, end_ns; // measured interval; the first sample can precede the target's start, the last one
				  // can follow its end
	int64_t from_ns, to_ns;   // interval that the window represents: the outer windows extend to the ends of their segment
	double target_ns, wattle_ns, busy_ns, idle_ns; // CPU times, ns; busy_ns includes target_ns and wattle_ns; NaN unknown
};

struct windows {
	const struct run *run;
	struct packed_window *rows; // ascending; at least one per segment
	size_t n;
	double *odd_ns; // CPU times that do not fit into their row
	size_t n_odd, odd_capacity;
	double max_cores; // largest number of cores that the target used in a window; at least 1
};

/* Compact form of a window: a day has 864,000. Its times are those of samples; CPU times are whole nanoseconds in 40
 * bits, below 18 minutes. */
struct packed_window {
	uint32_t segment, first, last;
	uint32_t low[WINDOW_TIMES];
	uint8_t high[WINDOW_TIMES]; // WINDOW_ODD: low is the index into odd_ns; UINT32_MAX: unknown
};

static inline int64_t windows_from_ns(const struct windows *windows, size_t index) // from_ns of a window
{
	const struct packed_window *row = &windows->rows[index];
	bool is_first = index == 0 || row[-1].segment != row->segment;
	return is_first ? slice_from_ns(windows->run, row->segment) : windows->run->t_ns[row->first];
}

static inline double windows__ns(const struct windows *windows, const struct packed_window *row, size_t i)
{
	if (row->high[i] != WINDOW_ODD)
		return (double)((uint64_t)row->high[i] << 32 | row->low[i]);
	return row->low[i] != UINT32_MAX ? windows->odd_ns[row->low[i]] : (double)NAN;
}

// A window without its CPU times.
static inline struct window windows_times_at(const struct windows *windows, size_t index)
{
	const struct run *run = windows->run;
	const struct packed_window *row = &windows->rows[index];
	const struct run_segment *segment = &run->segments[row->segment];
	bool is_last = index + 1 == windows->n || row[1].segment != row->segment;
	bool is_whole = row->first == row->last; // fewer than two samples: the window is the whole segment
	struct window window = {.segment = row->segment,
		.first = row->first,
		.last = row->last,
		.begin_ns = is_whole ? segment->start_ns : run->t_ns[row->first],
		.end_ns = is_whole ? segment->end_ns : run->t_ns[row->last],
		.from_ns = windows_from_ns(windows, index)};
	window.to_ns = is_last ? slice_to_ns(run, row->segment) : window.end_ns;
	return window;
}

static inline struct window windows_at(const struct windows *windows, size_t index)
{
	const struct packed_window *row = &windows->rows[index];
	struct window window = windows_times_at(windows, index);
	window.target_ns = windows__ns(windows, row, 0);
	window.wattle_ns = windows__ns(windows, row, 1);
	window.busy_ns = windows__ns(windows, row, 2);
	window.idle_ns = windows__ns(windows, row, 3);
	return window;
}

int windows_make(const struct run *run, struct arena *arena, struct windows *ret_windows); // -ENOMEM
// Index of the window that represents an instant. There must be at least one window.
size_t windows_find(const struct windows *windows, int64_t t_ns);

/* Attribution of a domain's energy to programs, window by window, so that the parts add up to the whole.
 *
 *   package, core, uncore, psys and other CPU-like domains: by share of busy CPU time
 *   dram: by share of memory in use, PSS where it is fresh, else RSS
 *   gpu: by MIG slices where the GPU is cut into instances; else by share of SM time, else of device memory, else by
 *        the processes present on it
 *   gpu-memory: as its GPU
 *
 * With --attribution active the idle power is subtracted first: the stored value, else the one seen in the run's quiet
 * windows. The energy of a window without usable data stays unattributed. */

/* Memory in use at successive samples of the run. Neither PSS nor the machine's memory is read at each sample. */
struct memory_walk {
	size_t next, segment; // next sample, and next segment to begin
	int64_t pss, rss_at_pss, system;
	bool pss_known;
};

enum baseline { // source of the domain's idle power for "active"
	BASELINE_NOT_ASKED,
	BASELINE_STORED, // measured before the run
	BASELINE_SEEN,   // lowest power in the run's own quiet windows
	BASELINE_UNKNOWN,
};

// The part of a window's shares that walks need.
struct __attribute__((packed)) kept_share {
	double target, uncertainty;
	uint8_t method;
};

struct attribution { // attribution of one domain
	const struct run *run;
	const struct run_device *device;
	const struct run_device *user; // device whose readings show the processes: the domain itself, or the GPU of a
				       // GPU's memory
	const struct curve *curve;
	const struct windows *windows;
	bool active;                     // --attribution active
	enum baseline baseline;
	double idle_w, idle_error_w; // NaN unknown
	const struct attribution_row *rows; // one per window; NULL: not kept
	const struct kept_share *kept;      // one per window; NULL: not kept, walks recompute them
	double uncertainty_j, target_j;     // attribution error and target's energy over the whole run
};

struct attribution_row { // one window
	struct shares shares;
	double before_j;        // domain's energy before the window
	double target_before_j; // target's energy before the window
	double uncertainty_before_j; // attribution error before the window
	double uncertainty;          // attribution error per joule in the window
};

/* The target's part of an energy, and the attribution error as half of a 95 % interval. Attribution errors of different
 * times, and of domains divided by the same method, add up linearly because they are systematic. */
struct part {
	double target_j, uncertainty_j;
};

/* Fills the rest of *attribution except the rows, and *ret_ledger. *ret_method: the method that divided most energy.
 * keep: room for the shares of all windows, or NULL. */
void attribute(struct attribution *attribution, struct kept_share *keep, struct ledger *ret_ledger,
	enum method *ret_method);
// Description of the method and the idle baseline, in arena memory. NULL: -ENOMEM.
const char *attribution_text(const struct attribution *attribution, enum method method, struct arena *arena);
// Stores the rows of all windows, for access in any order. -ENOMEM.
int attribution_store_rows(struct attribution *attribution, struct arena *arena);
// The target's part of the energy up to an instant. Needs the rows.
struct part attribution_at(const struct attribution *attribution, int64_t t_ns);
// Cumulative energy that was divided among programs (target or others), without idle energy.
struct attribution_used {
	struct attribution attribution; // including its rows
	double *before_j;               // cumulative energy before each window
};
int attribution_used_make(const struct attribution *attribution, struct arena *arena,
	struct attribution_used *ret_used); // -ENOMEM
double attribution_used_j(const struct attribution_used *used, int64_t t_ns);

/* The target's cumulative energy at many instants in ascending order, with the inputs of its error. Begin with
 * attribution_walk_begin. The rows of a domain would be 60 MB a day, so a walk recomputes them in order,
 * from the kept shares if there are any. */
struct attribution_walk {
	const struct attribution *attribution;
	size_t index;         // of the window
	struct window window; // CPU times only if no shares are kept
	struct attribution_row row;
	double *target_shares; // filled for each window that the walk passes; NULL: not wanted
	size_t imbalance_window;  // window of the imbalance, which is computed on demand; SIZE_MAX: none
	struct window_imbalance { // bounds of the target's load imbalance within the window; fits 0: evenly distributed
		double length_s, concurrent_j;
		double fits; // upper bound of (a part's fraction of the target's CPU time) / (that part's fraction of the window)
		double tick; // length of a tick relative to the target's CPU time
	} imbalance;
	struct attribution_pass { // pass over the windows; energies are cumulative up to the end of the latest window
		struct curve_walk curve;
		struct memory_walk memory;
		double energy_j, target_j, uncertainty_j;
	} pass;
	struct curve_walk curve;
	struct edge_walk edge;
};
struct attribution_point {
	struct part part;
	double share; // target's share of the power at the instant
	size_t window;
	double since_s; // elapsed time of the window at the instant, s
	struct window_imbalance imbalance;
	struct edge_point edge;
};
// target_shares: room for the target's share of each window, or NULL.
struct attribution_walk attribution_walk_begin(const struct attribution *attribution, double *target_shares);
// Fills *ret_point except the imbalance and the edge, which only errors need.
void attribution_walk_to(struct attribution_walk *walk, int64_t t_ns, struct attribution_point *ret_point);
void attribution_walk_edge(struct attribution_walk *walk, struct attribution_point *ret_point);
/* Bound of the change of the target's energy between two instants if the target did not compute evenly within the
 * windows that the instants cut. */
struct edge_uncertainty attribution_imbalance(const struct attribution_point *from, const struct attribution_point *to);

// Whether the domain's energy is divided by CPU time, where that is known.
bool attribution_by_cpu(const struct attribution *attribution);

/* The target's share of the busy power while it uses `target` cores and other programs use `others`. Power drawn while
 * no program computes goes to the target if hardly any other program runs, as in a window without other programs. */
static const double share_negligible_cores = 0.05; // cores
static inline double share_of_cores(double target, double others)
{
	return (target + share_negligible_cores) / (target + others + share_negligible_cores);
}
// Relative slope: derivative of ln(share_of_cores) with respect to the target's cores.
static inline double share_slope(double target, double others)
{
	return others / ((target + share_negligible_cores) * (target + others + share_negligible_cores));
}

struct shares shares_cpu(const struct attribution *attribution, const struct window *window);
// Windows come in ascending order.
struct shares shares_memory(const struct attribution *attribution, const struct window *window,
	struct memory_walk *walk);
struct shares shares_gpu(const struct attribution *attribution, const struct window *window);
// Determines the idle power for "active"; the shares of all windows must be known.
void baseline_make(struct attribution *attribution);
// Idle power's fraction of a window's energy. 0 without a baseline.
double baseline_share(const struct attribution *attribution, const struct window *window);
