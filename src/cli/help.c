#include "cli/help.h"

#include "base/utf8.h"
#include "report/table.h"

#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_MAX = 100, COLUMNS_MIN = 50, OPTION_COLUMN = 30 };

size_t help_columns(void)
{
	struct winsize size;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_col > COLUMNS_MAX)
		return COLUMNS_MAX;
	return size.ws_col < COLUMNS_MIN ? COLUMNS_MIN : size.ws_col;
}

struct fill {
	struct buf *out;
	size_t line_start, indent, columns;
};

static void begin_line(struct fill *fill)
{
	fill->line_start = fill->out->size;
	buf_pad_to(fill->out, fill->line_start, fill->indent);
}

static void add_word(struct fill *fill, const char *word, size_t length)
{
	size_t used = utf8_text_columns(fill->out->data + fill->line_start, fill->out->size - fill->line_start);
	bool is_first = used <= fill->indent;
	if (!is_first && used + 1 + utf8_text_columns(word, length) > fill->columns) {
		buf_char(fill->out, '\n');
		begin_line(fill);
	} else if (!is_first) {
		buf_char(fill->out, ' ');
	}
	buf_add(fill->out, word, length);
}

// Appends the words of a line to the current paragraph.
static void add_words(struct fill *fill, const char *line, size_t length)
{
	const char *end = line + length;
	for (const char *word = line; word < end;) {
		const char *blank = memchr(word, ' ', (size_t)(end - word));
		size_t size = (size_t)((blank != NULL ? blank : end) - word);
		if (size > 0)
			add_word(fill, word, size);
		word += size + 1;
	}
}

void help_paragraphs(const char *text, size_t columns, struct buf *out)
{
	struct fill fill = {.out = out, .line_start = out->size, .columns = columns};
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");
		bool is_kept = length == 0 || text[0] == ' ';
		if (is_kept && out->size > fill.line_start)
			buf_char(out, '\n');
		if (is_kept) {
			buf_add(out, text, length);
			buf_char(out, '\n');
			fill.line_start = out->size;
		} else {
			add_words(&fill, text, length);
		}
		text += length + (text[length] == '\n');
	}
	if (out->size > fill.line_start)
		buf_char(out, '\n');
}

// Line breaks of the table are kept in lists and before a default.
static bool is_break(const char *help, const char *newline)
{
	return newline > help && (newline[-1] == ';' || newline[1] == '(');
}

static void add_help(const char *help, size_t columns, struct buf *out, size_t line_start)
{
	struct fill fill = {.out = out, .line_start = line_start, .indent = OPTION_COLUMN, .columns = columns};
	buf_pad_to(out, line_start, OPTION_COLUMN);
	for (const char *line = help; *line != '\0';) {
		size_t length = strcspn(line, "\n");
		if (line > help && is_break(help, line - 1)) {
			buf_char(out, '\n');
			begin_line(&fill);
		}
		add_words(&fill, line, length);
		line += length + (line[length] == '\n');
	}
	buf_char(out, '\n');
}

static void add_option(const struct option *option, size_t columns, struct buf *out)
{
	size_t start = out->size;
	buf_str(out, "  ");
	if (option->letter != 0)
		buf_printf(out, "-%c, ", option->letter);
	buf_printf(out, "--%s", option->name);
	if (option->argument != NULL)
		buf_printf(out, option->bare != NULL ? "[=%s]" : " %s", option->argument);
	if (utf8_text_columns(out->data + start, out->size - start) >= OPTION_COLUMN - 1) {
		buf_char(out, '\n');
		start = out->size;
	}
	add_help(option->help, columns, out, start);
}

void options_help(const struct option *options, size_t n_options, size_t columns, struct buf *out)
{
	for (size_t i = 0; i < n_options; i++)
		add_option(&options[i], columns, out);
}
