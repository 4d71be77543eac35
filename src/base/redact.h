/* Redaction of secrets in command lines. All code that stores or shows the words of a command passes them through here first,
 * once, where they are read.
 *
 * The name of a value decides whether it is a secret: password, secret, token, key, credentials, auth and similar names. They
 * must be the last word of an option (--db-password X, --api-key=X, -Dtoken=X), a variable (DB_PASS=X, all of AWS_…=X), a
 * field of a URL or of a connection string (?token=X, Pwd=X;), a header (Authorization: X) or of JSON ("password":"X").
 * Secrets are also the password of a URL (scheme://user:X@host), a user of 16 or more characters without one
 * (https://X@host), and the short options of some known programs (mysql -pX). Not secret are names that end otherwise
 * (--key-file, --max-tokens, tokenizer), names that count or sort (--sort-key, --pad-token), and paths and switches as values
 * of a key (--key server.pem, --auth true). Secrets without a name are not recognised. Words within a word (sh -c '…') are
 * treated as words.
 *
 * The value becomes "***". Pure. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum redact_next { REDACT_NOTHING, REDACT_VALUE, REDACT_WEAK_VALUE, REDACT_AFTER_COLON };

struct redactor {                             // state for one command line; initialise with zero
	enum redact_next next;                // kind of the next word
	const struct redact_program *program; // program whose options the words are; NULL: not in the table
	bool is_cut;                          // the words are truncated within a word
};

// Appends the next word of the command line to out, redacted.
void redact_word(struct redactor *redactor, const char *word, size_t length, struct buf *out);
// NUL-terminated words, as in /proc/PID/cmdline; size: of all of them. The words in out are NUL-terminated too.
void redact_words(const char *words, size_t size, bool is_cut, struct buf *out);
/* The program's name without folder and arguments. A program that overwrote its words with a title has one word with blanks:
 * its name is the part before them. */
void redact_to_name(const char *words, size_t size, struct buf *out);
// The same for an argv (NULL: none). Returns one block with pointers and words, freed by the caller; NULL: no memory.
char **redact_argv(const char *const *argv, bool name_only);

/* Classification of option, variable and field names, and of their values. For redact.c only. */

struct word_part { // part of a word of a command line
	const char *at;
	size_t n;
};

static inline struct word_part word_part(const char *begin, const char *end)
{
	return (struct word_part){begin, (size_t)(end - begin)};
}

// Weak: if the value could be a path or a switch, it is not a secret.
enum redact_kind { REDACT_KIND_PLAIN, REDACT_KIND_WEAK, REDACT_KIND_STRONG };

enum redact_kind redact_kind_of(struct word_part name);
enum redact_kind redact_kind_of_option(struct word_part name); // also "-Dkey", "-eTOKEN"
bool redact_is_secret(enum redact_kind kind, struct word_part value);
bool redact_is_path(struct word_part value);
bool redact_is_option(struct word_part word);
bool redact_is_listed(const char *const *list, size_t n, struct word_part word); // ignores case
