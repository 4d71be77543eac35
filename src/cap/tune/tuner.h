/* What a search knows: its limits, its windows, the round it is in. Of cap/tune alone. */
#pragma once

#include "base/dice.h"
#include "cap/tune/tune.h"

enum {
	TUNE_ROUNDS_MAX = 6,
	TUNE_WINDOWS_MIN = 4 // a limit's `seconds` are divided into so many at least
};

struct tune_limit {
	double limit;
	size_t index;   // what the caller knows it by: candidates come first, then limits in the order they were added
	double used_s;  // measured so far, windows in which nothing was learnt included
	size_t n_tried; // windows asked for and answered
	size_t n_windows; // of them those that count
	bool in_question;
};

struct tuner {
	struct tune_options options;
	struct tune_limit *limits; // owned; descending, [0] is the reference; room for twice the candidates
	size_t n_limits, n_candidates;
	struct tune_window *windows; // owned; those that count, in the order of at_s; `limit` is a place in limits
	size_t n_windows, windows_capacity;
	uint32_t *round; // owned; limits of this round in the order they are measured, room for all limits and one more
	size_t n_round, at;
	size_t n_rounds; // finished
	double progress; // never falls, though limits may be added
	bool is_finished;
	struct dice dice;
};

// Which limits need no further window, at the end of a round: `in_question` is cleared for them.
void tune_judge(struct tuner *tuner);

/* time.c */
size_t tune_rounds_planned(const struct tuner *tuner);
double tune_window_s(const struct tuner *tuner); // as long as windows are asked for
double tune_expected_s(const struct tuner *tuner, size_t limit); // as long as its next one may last; NaN unknown
double tune_left_s(const struct tuner *tuner, size_t limit);
bool tune_has_time(const struct tuner *tuner, size_t limit);
// Is there time, of what all candidates together may take, to measure one more limit in the rounds to come?
bool tune_has_time_for_another(const struct tuner *tuner);

double tune_time_exponent(enum tune_goal goal); // k of E·T^k
