#include "base/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void suggest_begin(struct suggest *suggest, const char *word, size_t length)
{
	*suggest = (struct suggest){.word = word, .length = length};
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool is_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Counts missing, extra, wrong and transposed letters (optimal string alignment distance). Ignores case. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t rows[3][SUGGEST_WORD_MAX + 1], *before = rows[0], *last = rows[1], *now = rows[2];
	for (size_t j = 0; j <= m; j++)
		last[j] = j;
	for (size_t i = 1; i <= n; i++) {
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t wrong = last[j - 1] + !is_same(a[i - 1], b[j - 1]);
			now[j] = least(wrong, least(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]))
				now[j] = least(now[j], before[j - 2] + 1);
		}
		size_t *free_row = before;
		before = last;
		last = now;
		now = free_row;
	}
	return last[m];
}

// "blokcs" is near "code-blocks": one word of several counts one more than its own distance.
static size_t distance_of_part(const struct suggest *suggest, const char *candidate, size_t length)
{
	size_t nearest = SUGGEST_WORD_MAX;
	for (size_t begin = 0, end; begin < length; begin = end + 1) {
		for (end = begin; end < length && candidate[end] != '-';)
			end++;
		if (end - begin >= 4 && end - begin < length)
			nearest = least(nearest, 1 + distance(suggest->word, suggest->length, candidate + begin, end - begin));
	}
	return nearest;
}

void suggest_offer(struct suggest *suggest, const char *candidate, size_t length)
{
	if (suggest->length == 0 || suggest->length > SUGGEST_WORD_MAX || length == 0 || length > SUGGEST_WORD_MAX)
		return;
	bool is_beginning = suggest->length >= 3 && suggest->length < length &&
		strncasecmp(suggest->word, candidate, suggest->length) == 0;
	size_t off = is_beginning ? 1
				  : least(distance(suggest->word, suggest->length, candidate, length),
					    distance_of_part(suggest, candidate, length));
	size_t allowed = least(1 + suggest->length / 4, 3);
	if (off > allowed || off >= length || (suggest->best != NULL && off >= suggest->distance))
		return;
	suggest->best = candidate;
	suggest->best_length = length;
	suggest->distance = off;
}

void suggest_offer_choices(struct suggest *suggest, const char *choices)
{
	for (const char *at = choices; *at != '\0'; at += *at == '|') {
		size_t length = strcspn(at, "|");
		suggest_offer(suggest, at, length);
		at += length;
	}
}

const char *suggest_text(const struct suggest *suggest, const char *prefix, char out[SUGGEST_WORD_MAX + 32])
{
	out[0] = '\0';
	if (suggest->best != NULL)
		snprintf(out, SUGGEST_WORD_MAX + 32, " (did you mean '%s%.*s'?)", prefix, (int)suggest->best_length,
			suggest->best);
	return out;
}
