/* Suggestion for a mistyped word: the nearest valid one. Pure. */
#pragma once

#include <stddef.h>

enum { SUGGEST_WORD_MAX = 64 };

struct suggest {
	const char *word; // word given; borrowed, as are the candidates
	size_t length;
	const char *best; // nearest candidate so far; NULL: none is near
	size_t best_length, distance;
};

void suggest_begin(struct suggest *suggest, const char *word, size_t length);
void suggest_offer(struct suggest *suggest, const char *candidate, size_t length);
// Offers each choice of "a|b|c".
void suggest_offer_choices(struct suggest *suggest, const char *choices);
// Writes " (did you mean 'BEST'?)" with `prefix` before the word ("--"), or "" if no candidate is near. Returns out.
const char *suggest_text(const struct suggest *suggest, const char *prefix, char out[SUGGEST_WORD_MAX + 32]);
