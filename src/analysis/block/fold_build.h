/* How fold.c and the rest of fold_*.c make a fold together: of one domain, segment by segment.
 *
 *   fold_updates  when the counter showed what energy
 *   fold_rows     the equations: time of each slot and energy between neighbouring updates
 *   fold_rhythm   grids of time that the updates may keep to, by the readings
 *   fold_timing   when they were, as exactly as the equations themselves can tell
 *   fold_fit      least squares: powers and how wrong they are
 *   fold_cores    on how many cores the target and the others computed in each slot
 *   fold_deal     each interval's energy to its slots and columns
 *
 * Columns of the timeline share slots when there are too many of them. Times are seconds since the segment's start. */
#pragma once

#include "analysis/block/fold.h"

__attribute__((no_sanitize("address", "undefined"))) static inline void fold_add_within(double *restrict sums,
	double weight, const double *restrict values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sums[i] += weight * values[i];
}

/* sums += weight * values: most of what folding does. The far ends are added here, where sanitizers look; to look at all that
 * lies before would take them five times as long. */
static inline void fold_add(double *restrict sums, double weight, const double *restrict values, size_t n)
{
	sums[n - 1] += weight * values[n - 1];
	fold_add_within(sums, weight, values, n - 1);
}

enum { FOLD_SLOTS_MAX = 256 };

struct fold_slots { // columns as unknowns of the equations
	size_t n;
	const uint32_t *of; // slot of each column
};

/* What the equations may explain: the target's energy, an even part of what all programs used, or of that less what followed the
 * others' CPU time. All have the same total. */
enum fold_energy_kind { FOLD_OF_TARGET, FOLD_OF_ALL, FOLD_LESS_OTHERS, FOLD_ENERGIES };

struct fold_updates { // of a counter in one segment, as the curve has them
	size_t n;
	double *t_s, *within_s;          // each came within t_s ± within_s
	double *target_j;                // the target's energy since the segment's start: what is dealt out
	double *energies[FOLD_ENERGIES]; // what may be explained since then; NULL: it is as another one, or not known
	double *j;                       // the one that is: fold_explain
	double even_share;               // the part of all programs' energy that it is; 0: the target's own
	double target_share;             // the same for those that are such a part
	int64_t start_ns;
	double length_s; // of the segment
};

/* When the updates are taken to have been. A regular counter keeps to a grid: the last instant of it before the end of
 * an update's bracket. Otherwise at the same part of each bracket: -1 its begin, 0 its middle, 1 its end. */
struct fold_timing {
	bool regular;
	double phase_s, period_s;
	double part;
	double blur_s; // each update for itself is earlier or later by up to this
};

struct fold_sweep { // over the pieces in order: time of each slot since the segment's start
	const struct fold_timeline *timeline;
	const struct fold_slots *slots;
	int64_t start_ns;
	size_t at;
	double now_s;
	double *time_s; // of each slot up to the first piece that is not over
};

// The first piece that goes on after an instant.
size_t fold_first_piece(const struct fold_timeline *timeline, int64_t t_ns);
void fold_sweep_init(struct fold_sweep *sweep, const struct fold_timeline *timeline, const struct fold_slots *slots,
	int64_t start_ns, double *room);
// Adds `weight` × time of each slot up to t_s. t_s must not go back.
void fold_sweep_add(struct fold_sweep *sweep, double t_s, double weight, double *sums);

// Of the updates from … to - 1; those before must be there. NaN: it may as well have been a period earlier.
void fold_times(const struct fold_updates *updates, const struct fold_timing *timing, size_t from, size_t to,
	double *t_s);

enum { FOLD_EQUATIONS_MIN = 16 }; // fewer tell nothing

struct fold_segment { // a segment's equations
	struct fold_updates updates;
	double *t_s; // when the updates were, ascending or the same; NaN: it is left out
	double blur_s;
	double from_s;   // of the run's length, before this segment
	size_t nuisance; // its first column for what is wrong with its times; 0: it has none
};

/* Columns of the equations: power of each slot; slow drift of all power; and of each segment how its updates are later than
 * taken, more so towards its end, and further from each other's rhythm. */
enum { FOLD_DRIFTS = 12, FOLD_NUISANCES = 3 };

struct fold_rows { // one equation after the other
	const struct fold_segment *segment;
	double run_s;
	size_t n_slots, n_columns;
	const double *power_w; // of slots, for the nuisances; NULL: not known yet, they are 0
	struct fold_sweep sweep;
	double *sums, *before, *low, *high; // of slots
	double late_w[2], wide_w[2];        // what a shift and a spread of an update do to the energy; before and now
	size_t before_now, now;             // the updates that the present equation is between
};

// room: as many doubles as fold_rows_room tells.
size_t fold_rows_room(size_t n_slots);
void fold_rows_begin(struct fold_rows *rows, const struct fold_segment *segment, const struct fold_timeline *timeline,
	const struct fold_slots *slots, double *room);
// n_columns numbers, and the energy. false: there are no more.
bool fold_rows_next(struct fold_rows *rows, double *ret_row, double *ret_j);

struct fold_noise {          // of the equations: what is left of an interval's energy
	double white_j2_s;   // calls of a block differ: variance a second
	double update_j2;    // an update comes at another time than taken: moves energy from an interval to the next
	double misplaced_j2; // what of that is more than steps of the counter and chance explain
};

enum { FOLD_BATCHES = 24 }; // of time, each of them left out once

struct fold_model { // one domain's
	const struct fold_timeline *timeline;
	struct fold_slots slots;
	const struct fold_segment *segments;
	size_t n_segments;
	size_t n_rows; // equations; 0: not counted yet
	size_t n_columns;
	double run_s, mean_w, quantum_j;
	struct fold_noise noise;

	double *power_w; // of slots
	bool solved;     // power_w is known
	double *batches; // FOLD_BATCHES × slots: how the powers change when a batch is left out
	double *unknown; // slots × slots: variance that the equations leave open
	// scratch
	double *row, *white, *rows_room, *normal, *right, *solution; // right: one for each energy
};

int fold_model_init(struct fold_model *model, struct arena *arena); // -ENOMEM
/* How badly the best powers meet the first equations: -2 log of the evidence but for a constant. The model has one segment; of its energies
 * the one that is met best. */
double fold_misfit(struct fold_model *model, size_t rows_max, enum fold_energy_kind *ret_energy);
void fold_take_powers(struct fold_model *model);               // of the last solution
int fold_solve(struct fold_model *model, struct arena *arena); // -ENOMEM

/* Grids that a counter may keep to, best first: they agree with the brackets of its updates and roughly with their energy.
 * Returns how many. */
enum { RHYTHMS_MAX = 16, FOLD_RHYTHM_UPDATES = 600 };
size_t fold_rhythms(const struct fold_updates *updates, double period_s, struct fold_timing *ret_timings);
/* The segment's times and blur, and which energy is explained. The model has this segment only. Returns when its updates are taken to have
 * been. Updates without a time are taken out of the segment. */
struct fold_timing fold_time(struct fold_model *model, struct fold_segment *segment, const struct fold_timing *rhythms,
	size_t n_rhythms);
/* The same by what is known from elsewhere, without a search. false: the equations have it that this is no better than the middle of
 * each bracket. */
bool fold_time_known(struct fold_model *model, struct fold_segment *segment, const struct fold_timing *known);

struct fold_cores { // of the target, in each slot
	bool known;
	double *of, *variance; // slots; slots × slots
	double *beside; // slots: cores of others meanwhile, as a part of what they have on average; NULL: the same in all
};
// -ENOMEM
int fold_cores_find(const struct run *run, const struct windows *windows, const struct fold_timeline *timeline,
	const struct fold_slots *slots, struct arena *arena, struct fold_cores *ret_cores);

struct fold_domain {
	struct fold_slots slots;
	double *slot_s;   // time of each slot
	double *call_s;   // of it, in one piece
	double *column_j; // of each column
	double *variance; // slots × slots, of energies
	double doubt;     // of the target's joules, by attribution
	const struct domain_finding *finding;
};

struct fold_job { // one domain
	const struct findings *findings;
	const struct metering_domain *metering;
	struct attribution_used used;
	const struct fold_timeline *timeline;
	const struct fold_cores *cores; // NULL: the domain is not divided by CPU time
	struct arena *arena;
	struct fold_segment *segments;
	size_t n_segments;
	struct fold_model model;
	struct fold_domain *domain;
};

extern const double fold_interval_95; // deviations in half of an interval
double fold_target_j(const struct fold_job *job, int64_t t_ns);
void fold_explain(struct fold_updates *updates, enum fold_energy_kind energy);
// Of a segment; the equations explain the target's energy until more is known. -ENOMEM.
int fold_list_updates(const struct fold_job *job, size_t index, struct fold_updates *ret_updates);
// The energies of slots and columns, and their variance, once the powers are known. -ENOMEM.
int fold_deal(struct fold_job *job);
