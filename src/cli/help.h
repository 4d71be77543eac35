/* What --help says, in lines that fit. */
#pragma once

#include "base/buf.h"
#include "cli/option.h"

#include <stddef.h>

// Columns of the terminal on standard output, at most those of an easily read line; these elsewhere.
size_t help_columns(void);
// Words filled into lines of `columns`. An empty line begins a paragraph, a line that begins with a blank stands as it is.
void help_paragraphs(const char *text, size_t columns, struct buf *out);
void options_help(const struct option *options, size_t n_options, size_t columns, struct buf *out);
