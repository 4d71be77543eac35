/* Results of several sessions side by side, by gpu_tracker's matching rules: code blocks match by name;
 * names that differ only in the line number after their last colon ("train.py:12") match in order of the line. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "store/saved_blocks.h"

struct compare_session {
	const char *name; // unique among the sessions
	const struct saved_blocks *results;
};

struct compare_value {
	const char *session;
	double value, error; // NaN unknown
};

struct compare_row { // one figure of all sessions: ascending, unknown values last, equal values in the order of the sessions
	const char *name;
	struct compare_value *values; // n_sessions
};

struct comparison {
	const char **sessions; // names in the order given: changes are relative to the first
	size_t n_sessions, n_metrics, n_blocks;
	struct compare_row *overall;      // n_metrics
	struct compare_row *usage;        // n_blocks per metric, grouped by metric
	struct compare_row *compute_time; // n_blocks
	bool has_energy;                  // at least one session is a run
	struct compare_row energy, duration, power; // of the whole run; power is the mean
	struct compare_row *block_energy; // n_blocks
	const char **warnings;            // sentences
	size_t n_warnings;
};

/* The metrics are those of the session whose name is first in alphabetical order. -EINVAL with a message that names the
 * two sessions and the mismatch; -ENOMEM. The arena owns the result, which borrows from the sessions. */
int compare_make(const struct compare_session *sessions, size_t n_sessions, struct arena *arena,
	struct comparison *ret_comparison, struct wattle_error *reterr);

/* Values and changes relative to the first session. */

struct compare_figure {
	double value, error; // error: half of the 95 % interval; NaN: unknown
};
// Value of one session; NaN: unknown.
struct compare_figure compare_figure_of(const struct comparison *comparison, const struct compare_row *row,
	const char *session);

enum compare_verdict {
	COMPARE_UNKNOWN,   // a value is unknown
	COMPARE_UNDECIDED, // the values differ, but their errors are unknown
	COMPARE_EQUAL,     // the values are equal, but their errors are unknown
	COMPARE_NO_CHANGE, // the intervals overlap
	COMPARE_LESS,
	COMPARE_MORE
};

struct compare_change { // change relative to the first run
	double percent, error_percent;
	enum compare_verdict verdict;
};
struct compare_change compare_change(struct compare_figure first, struct compare_figure other);
