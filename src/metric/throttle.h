/* Why a GPU's clocks are held back: NVML's reasons, into which the sensors of other makers put theirs
 * (metric throttle_reasons_bits). */
#pragma once

#include "metric/metric.h"

enum { THROTTLE_REASONS = 6 };
struct throttle_reason {
	int64_t bit;
	const char *key;   // as NVML calls it, for machines
	const char *words; // for people
};
extern const struct throttle_reason throttle_reasons[THROTTLE_REASONS];

// The bits that hold a busy GPU back; 0: none, or unknown.
int64_t throttle_held_back(int64_t bits);
enum { THROTTLE_WORDS_SIZE = 160 };
void throttle_words(int64_t bits,
	char words[THROTTLE_WORDS_SIZE]); // "power limit, thermal slowdown"; "" where nothing does
