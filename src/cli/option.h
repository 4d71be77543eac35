/* Command-line options from one table: parsing, --config files, --help (help.h) and the manual all read it. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
	OPTION_FLAG,     // bool
	OPTION_TEXT,     // const char *
	OPTION_LIST,     // struct option_list: may be given several times
	OPTION_DURATION, // int64_t nanoseconds: 100ms, 2s
	OPTION_NUMBER,   // double
	OPTION_INTEGER,  // int64_t
	OPTION_CHOICE,   // const char *, one of `choices`
};

enum { OPTION_LIST_MAX = 64 };
struct option_list {
	const char *items[OPTION_LIST_MAX + 1]; // NULL-terminated
	size_t n;
};

struct option {
	const char *name;     // without the dashes
	char letter;          // 0: none
	const char *argument; // as shown in help; NULL for flags
	const char *help;
	enum option_kind kind;
	size_t offset;       // of the value in the caller's struct
	double least, most;  // NUMBER, INTEGER; DURATION in nanoseconds; both 0: no bounds
	const char *range;   // the bounds in words
	const char *choices; // CHOICE: "a|b|c"
};

/* Fills `values` (defaults are there already). Stops at the first word that is no option, or after "--"; its index is
 * *ret_first. -EINVAL with a sentence that names the option and says what would be right. `config` (may be NULL) is the
 * option that names a JSON file with any of the others: it is read first, so that the command line wins. What was read
 * from it lives as long as *ret_config, which the caller passes to option_config_free. */
int options_parse(const struct option *options, size_t n_options, const char *command, int argc, char **argv,
	void *values, int *ret_first, void **ret_config, struct wattle_error *reterr);
void option_config_free(void *config);
// Whether --help or -h is among the options; not where it is the value of one, or a word of the command behind them.
bool options_ask_help(const struct option *options, size_t n_options, int argc, char **argv);
