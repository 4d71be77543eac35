/* Which names of options, variables and fields stand for a secret, and which of their values are one. For redact.c alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct word_part { // of a word of a command line
	const char *at;
	size_t n;
};

static inline struct word_part word_part(const char *begin, const char *end)
{
	return (struct word_part){begin, (size_t)(end - begin)};
}

// Weak: the value may as well be a path or a switch, and is no secret then.
enum redact_kind { REDACT_KIND_PLAIN, REDACT_KIND_WEAK, REDACT_KIND_STRONG };

enum redact_kind redact_kind_of(struct word_part name);
enum redact_kind redact_kind_of_option(struct word_part name); // also "-Dkey", "-eTOKEN"
bool redact_is_secret(enum redact_kind kind, struct word_part value);
bool redact_is_path(struct word_part value);
bool redact_is_option(struct word_part word);
bool redact_is_listed(const char *const *list, size_t n, struct word_part word); // without case
