/* Internal interfaces of deconvolve*.c and update_phase.c, which process one domain, segment by segment:
 *
 *   deconvolve_updates  times and energies of the counter's updates
 *   deconvolve_rows     the equations: time of each slot and energy between neighbouring updates
 *   update_phase   regular grids of update times that agree with the readings
 *   deconvolve_timing   the update times, as exactly as the equations determine them
 *   deconvolve_fit      least squares: powers and their errors
 *   deconvolve_cores    cores used by the target and by other programs in each slot
 *   deconvolve_distribute   division of each interval's energy among its slots and columns
 *
 * Columns of the timeline share slots if there are too many of them. Times are seconds since the segment's start. */
#pragma once

#include "analysis/block/deconvolve.h"

__attribute__((no_sanitize("address", "undefined"))) static inline void deconvolve_add_within(double *restrict sums,
	double weight, const double *restrict values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sums[i] += weight * values[i];
}

/* sums += weight * values: the innermost loop of the deconvolution. The last element is added here, under the sanitizers;
 * checking all elements would make them five times slower. */
static inline void deconvolve_add(double *restrict sums, double weight, const double *restrict values, size_t n)
{
	sums[n - 1] += weight * values[n - 1];
	deconvolve_add_within(sums, weight, values, n - 1);
}

// ret = a - factor * b, checked in the same way. ret may be a.
__attribute__((no_sanitize("address", "undefined"))) static inline void deconvolve_subtract_within(double *ret,
	const double *a, double factor, const double *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = a[i] - factor * b[i];
}

static inline void deconvolve_subtract(double *ret, const double *a, double factor, const double *b, size_t n)
{
	deconvolve_subtract_within(ret, a, factor, b, n - 1);
	ret[n - 1] = a[n - 1] - factor * b[n - 1];
}

enum { DECONVOLVE_SLOTS_MAX = 256 };

struct deconvolve_slots { // maps columns to unknowns of the equations
	size_t n;
	const uint32_t *of; // slot of each column
};

/* Energy that the equations explain: the target's; a constant part of the energy of all programs; or that part minus
 * the energy correlated with the other programs' CPU time. All have the same total. */
enum deconvolve_energy_kind { DECONVOLVE_OF_TARGET, DECONVOLVE_OF_ALL, DECONVOLVE_LESS_OTHERS, DECONVOLVE_ENERGIES };

struct deconvolve_updates { // updates of a counter in one segment, as in the curve
	size_t n;
	double *t_s, *within_s; // each update was at t_s ± within_s
	double *target_j;       // the target's energy since the segment's start, which is divided
	double *energies
		[DECONVOLVE_ENERGIES]; // candidates for the explained energy since then; NULL: same as another one, or unknown
	double *j;                     // the chosen one: see deconvolve_explain
	double even_share;             // constant ratio of j to the energy of all programs; 0: j is the target's own
	double target_share;           // even_share of the candidates that have one
	int64_t start_ns;
	double length_s; // length of the segment
};

/* Assumed update times. A regular counter updates at the instants of a grid: the last grid instant before the end of an
 * update's bracket. Otherwise each update is at the same position of its bracket: -1 begin, 0 middle, 1 end. */
struct deconvolve_timing {
	bool regular;
	double phase_s, period_s;
	double part;
	double blur_s; // maximum jitter of each update, independent of the others
};

struct deconvolve_sweep { // walk over the pieces: cumulative time of each slot in the segment
	const struct deconvolve_timeline *timeline;
	const struct deconvolve_slots *slots;
	int64_t start_ns;
	size_t at;
	double now_s;
	double *time_s;        // per slot, up to the first piece that has not ended
	double begin_s, end_s; // of the first piece that has not ended
};

// The first piece that ends after an instant.
size_t deconvolve_first_interval(const struct deconvolve_timeline *timeline, int64_t t_ns);
void deconvolve_sweep_init(struct deconvolve_sweep *sweep, const struct deconvolve_timeline *timeline,
	const struct deconvolve_slots *slots, int64_t start_ns, double *buffer);
// Adds `weight` × time of each slot up to t_s. t_s must not decrease.
void deconvolve_sweep_add(struct deconvolve_sweep *sweep, double t_s, double weight, double *sums);

// Times of the updates from … to - 1; earlier ones must be set. NaN: the update may have been one period earlier.
void deconvolve_times(const struct deconvolve_updates *updates, const struct deconvolve_timing *timing, size_t from,
	size_t to, double *t_s);

enum { DECONVOLVE_EQUATIONS_MIN = 16 }; // minimum number for a solution

struct deconvolve_segment { // equations of a segment
	struct deconvolve_updates updates;
	double *t_s; // times of the updates, not descending; NaN: left out
	double blur_s;
	double from_s;       // duration of the run before this segment
	size_t error_column; // first column for errors of the segment's update times; 0: none
};

/* Columns of the equations: the power of each slot; a slow drift of the total power; and for each segment an offset of
 * its update times, its growth towards the segment's end, and a spread. */
enum { DECONVOLVE_DRIFTS = 12, DECONVOLVE_ERROR_COLUMNS = 3 };

struct deconvolve_rows { // produces the equations in order
	const struct deconvolve_segment *segment;
	double run_s;
	size_t n_slots, n_columns;
	const double *power_w; // per slot, for the nuisance columns; NULL: unknown, they are 0
	struct deconvolve_sweep sweep;
	double *sums, *before, *low, *high; // per slot
	double late_w[2], wide_w[2];        // effect of a shift and of a spread of an update on the energy: previous
		// update and current one
	size_t before_now, now; // the two updates around the current equation
};

// room: deconvolve_rows_buffer_size doubles.
size_t deconvolve_rows_buffer_size(size_t n_slots);
void deconvolve_rows_begin(struct deconvolve_rows *rows, const struct deconvolve_segment *segment,
	const struct deconvolve_timeline *timeline, const struct deconvolve_slots *slots, double *buffer);
// Returns n_columns coefficients and the energy. false: no more equations.
bool deconvolve_rows_next(struct deconvolve_rows *rows, double *ret_row, double *ret_j);

struct deconvolve_noise {    // noise of the equations: residuals of an interval's energy
	double white_j2_s;   // variance per second, from differences between the calls of a block
	double update_j2;    // error of an update's time, which moves energy from one interval to the next
	double misplaced_j2; // part of it that counter steps and noise do not explain
};

enum { DECONVOLVE_RANK = 4 };     // number of equations that are added to the normal equations at once
enum { DECONVOLVE_BATCHES = 24 }; // contiguous batches of time for the jackknife

struct deconvolve_model { // model of one domain
	const struct deconvolve_timeline *timeline;
	struct deconvolve_slots slots;
	const struct deconvolve_segment *segments;
	size_t n_segments;
	size_t n_rows; // number of equations; 0: not counted yet
	size_t n_columns;
	double run_s, mean_w, quantum_j;
	struct deconvolve_noise noise;

	double *power_w; // per slot
	bool solved;     // power_w is known
	double *batches; // DECONVOLVE_BATCHES × slots: change of the powers when a batch is left out
	double *unknown; // slots × slots: variance that the equations do not determine
	// scratch
	double *row, *white, *rows_buffer, *normal, *right,
		*solution; // white: DECONVOLVE_RANK rows; right: one per energy
};

int deconvolve_model_init(struct deconvolve_model *model, struct arena *arena); // -ENOMEM
/* How badly the best powers fit the first equations: -2 log of the evidence, up to a constant. The model has one
 * segment; the energy with the best fit is used. */
double deconvolve_misfit(struct deconvolve_model *model, size_t rows_max, enum deconvolve_energy_kind *ret_energy);
void deconvolve_set_powers(struct deconvolve_model *model);                // from the last solution
int deconvolve_solve(struct deconvolve_model *model, struct arena *arena); // -ENOMEM

/* Candidate grids of a counter's updates, best first: they agree with the brackets of the updates and roughly with
 * their energy. Returns their number. */
enum { UPDATE_PHASE_CANDIDATES_MAX = 16, UPDATE_PHASE_UPDATES = 600 };
size_t update_phase_candidates(const struct deconvolve_updates *updates, double period_s,
	struct deconvolve_timing *ret_timings);
/* Determines the segment's update times, their blur, and the energy to explain. The model has this segment only.
 * Returns the timing used. Updates without a time are removed from the segment. */
struct deconvolve_timing deconvolve_time(struct deconvolve_model *model, struct deconvolve_segment *segment,
	const struct deconvolve_timing *update_phases, size_t n_update_phases);
/* As deconvolve_time, with a timing known from another run, without a search. false: the equations show that it is no better
 * than the middle of each bracket. */
bool deconvolve_time_known(struct deconvolve_model *model, struct deconvolve_segment *segment,
	const struct deconvolve_timing *known);

struct deconvolve_cores { // cores used by the target in each slot
	bool known;
	double *of, *variance; // slots; slots × slots
	double *other_cores; // per slot: cores of other programs at the time, relative to their mean; NULL: equal in all slots
};
// -ENOMEM
int deconvolve_cores_find(const struct run *run, const struct windows *windows,
	const struct deconvolve_timeline *timeline, const struct deconvolve_slots *slots, struct arena *arena,
	struct deconvolve_cores *ret_cores);

struct deconvolve_domain {
	struct deconvolve_slots slots;
	double *slot_s;     // time of each slot
	double *call_s;     // mean length of one piece
	double *column_j;   // per column
	double *variance;   // slots × slots, of energies
	double uncertainty; // relative error of the target's energy by attribution
	const struct domain_finding *finding;
};

struct deconvolve_job { // deconvolution of one domain
	const struct findings *findings;
	const struct metering_domain *metering;
	struct attribution_used used;
	const struct deconvolve_timeline *timeline;
	const struct deconvolve_cores *cores; // NULL: the domain is not divided by CPU time
	struct arena *arena;
	struct deconvolve_segment *segments;
	size_t n_segments;
	struct deconvolve_model model;
	struct deconvolve_domain *domain;
};

extern const double deconvolve_interval_95; // standard deviations in half of a 95 % interval
double deconvolve_target_j(const struct deconvolve_job *job, int64_t t_ns);
void deconvolve_explain(struct deconvolve_updates *updates, enum deconvolve_energy_kind energy);
// Updates of one segment; the equations explain the target's energy until deconvolve_time. -ENOMEM.
int deconvolve_list_updates(const struct deconvolve_job *job, size_t index, struct deconvolve_updates *ret_updates);
// Computes the energies of slots and columns, and their variance, from the powers. -ENOMEM.
int deconvolve_distribute(struct deconvolve_job *job);
