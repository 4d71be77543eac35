/* What a mistyped word was meant to be: the nearest of those that are valid. Pure. */
#pragma once

#include <stddef.h>

enum { SUGGEST_WORD_MAX = 64 };

struct suggest {
	const char *word; // what was given; borrowed, as is the candidate
	size_t length;
	const char *best; // the nearest candidate so far; NULL: none is near
	size_t best_length, distance;
};

void suggest_begin(struct suggest *suggest, const char *word, size_t length);
void suggest_offer(struct suggest *suggest, const char *candidate, size_t length);
// Each of "a|b|c".
void suggest_offer_choices(struct suggest *suggest, const char *choices);
// " (did you mean 'BEST'?)" with `prefix` before the word ("--"), or "" where nothing is near. Returns out.
const char *suggest_text(const struct suggest *suggest, const char *prefix, char out[SUGGEST_WORD_MAX + 32]);
