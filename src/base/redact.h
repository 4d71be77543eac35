/* Secrets in command lines. Whatever stores or shows the words of a command passes them through here first, once, where they are read.
 *
 * A value is a secret by the name that it is given: password, secret, token, key, credentials, auth and similar names, as the last word of an
 * option (--db-password X, --api-key=X, -Dtoken=X), a variable (DB_PASS=X, all of AWS_…=X), a field of a URL or of a connection string
 * (?token=X, Pwd=X;), a header (Authorization: X) or of JSON ("password":"X"). So are the password of a URL (scheme://user:X@host), a user of 16 or more characters without one (https://X@host) and
 * the short options of a few known programs (mysql -pX). Not secret are names that end otherwise (--key-file, --max-tokens, tokenizer),
 * that count or sort (--sort-key, --pad-token), and paths and switches as values of a key (--key server.pem, --auth true). Secrets that
 * stand alone are not recognised. Words within a word (sh -c '…') are treated like words.
 *
 * The value becomes "***". Pure. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum redact_next { REDACT_NOTHING, REDACT_VALUE, REDACT_WEAK_VALUE, REDACT_AFTER_COLON };

struct redactor {                             // of one command line; starts as zero
	enum redact_next next;                // what the next word is
	const struct redact_program *program; // whose options the words are; NULL: of none that has a row
	bool is_cut;                          // the words end in the middle of one
};

// The next word of the command line, appended to out.
void redact_word(struct redactor *redactor, const char *word, size_t length, struct buf *out);
// Words that end with a NUL each, as /proc/PID/cmdline has them; size: of all of them. So has out.
void redact_words(const char *words, size_t size, bool is_cut, struct buf *out);
/* The program's name alone, without folder and arguments. A program that wrote a title over its words has one word with blanks: its name
 * is what stands before them. */
void redact_to_name(const char *words, size_t size, struct buf *out);
// The same of an argv (NULL: none): one block, the words in it, for the caller to free. NULL: no memory.
char **redact_argv(const char *const *argv, bool name_only);

/* Which names of options, variables and fields stand for a secret, and which of their values are one. For redact.c alone. */

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
