/* What a search knows: its limits, its windows, the round it is in. Of cap/tune alone. */
#pragma once

#include "base/dice.h"
#include "cap/tune/tune.h"

enum {
	TUNE_ROUNDS_MAX = 6,
	TUNE_WINDOWS_MIN = 3 // a limit's `seconds` are divided into so many at least
};

struct tune_limit {
	double limit;
	double used_s;    // measured so far, windows in which nothing was learnt included
	size_t n_tried;   // windows asked for and answered
	size_t n_windows; // of them those that count
	bool in_question;
};

struct tuner {
	struct tune_options options;
	struct tune_limit *limits; // owned; [0] is the reference
	size_t n_limits;
	struct tune_window *windows; // owned; those that count, in the order of at_s
	size_t n_windows, windows_capacity;
	uint32_t *round; // owned; limits of this round in the order they are measured, room for n_limits + 1
	size_t n_round, at;
	size_t n_rounds; // finished
	bool is_finished;
	struct dice dice;
};

// Which limits need no further window, at the end of a round: `in_question` is cleared for them.
void tune_judge(struct tuner *tuner);

double tune_time_exponent(enum tune_goal goal); // k of E·T^k
