#include "report/table.h"

#include "base/utf8.h"
#include "base/util.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_CEILING = 1 << 28, TABLE_INDENT = 2, TABLE_GAP = 2, TABLE_COLUMN_MIN = 8 };

const struct style *style_for(bool colour)
{
	static const struct style plain = {"", "", "", "", "", ""};
	static const struct style coloured = {"\033[1m", "\033[2m", "\033[32m", "\033[33m", "\033[31m", "\033[0m"};
	return colour ? &coloured : &plain;
}

void text_add_printable(struct buf *out, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		bool obeyed = (unsigned char)text[i] < 0x20 || text[i] == 0x7f;
		bool blank = text[i] == '\n' || text[i] == '\t';
		buf_char(out, blank ? ' ' : obeyed ? '?' : text[i]);
	}
}

// Writes characters up to that many columns; returns those that follow.
static const char *add_head(struct buf *out, const char *text, size_t columns)
{
	for (size_t at = 0, length, width; *text != '\0'; text += length, at += width) {
		length = utf8_character(text, &width);
		if (at + width > columns)
			break;
		text_add_printable(out, text, length);
	}
	return text;
}

// Writes the last characters, at most that many columns.
static void add_tail(struct buf *out, const char *text, size_t columns)
{
	for (size_t left = utf8_text_columns(text, strlen(text)), width; left > columns; left -= width)
		text += utf8_character(text, &width);
	text_add_printable(out, text, strlen(text));
}

void text_fit(struct buf *out, const char *text, size_t columns, bool keep_end)
{
	if (utf8_text_columns(text, strlen(text)) <= columns) {
		text_add_printable(out, text, strlen(text));
	} else if (keep_end) {
		buf_str(out, "…");
		add_tail(out, text, columns - 1);
	} else {
		add_head(out, text, columns - 1);
		buf_str(out, "…");
	}
}

void text_fit_middle(struct buf *out, const char *text, size_t columns)
{
	if (utf8_text_columns(text, strlen(text)) <= columns || columns < 3) {
		text_fit(out, text, columns, true);
		return;
	}
	text = add_head(out, text, columns / 2);
	buf_str(out, "…");
	add_tail(out, text, columns - columns / 2 - 1);
}

static void add_word(struct buf *out, const char *word, size_t length, size_t columns)
{
	char *copy = utf8_text_columns(word, length) > columns ? strndup(word, length) : NULL;
	if (copy != NULL)
		text_fit_middle(out, copy, columns);
	else
		text_add_printable(out, word, length);
	free(copy);
}

void text_wrap(struct buf *out, size_t line_start, size_t indent, const char *text)
{
	for (const char *word = text; *word != '\0';) {
		size_t length = strcspn(word, " ");
		size_t used = utf8_text_columns(out->data + line_start, out->size - line_start);
		bool first = used <= indent;
		if (!first && used + 1 + utf8_text_columns(word, length) > TEXT_WIDTH) {
			buf_char(out, '\n');
			line_start = out->size;
			first = true;
		}
		if (first)
			buf_pad_to(out, line_start, indent);
		else
			buf_char(out, ' ');
		add_word(out, word, length, TEXT_WIDTH - indent);
		word += length;
		word += strspn(word, " ");
	}
}

void table_init(struct table *table, const struct table_column *columns, size_t n_columns)
{
	assert(n_columns <= TABLE_COLUMNS_MAX);
	*table = (struct table){.columns = columns, .n_columns = n_columns};
	buf_init(&table->cells, TABLE_CEILING);
}

void table_finish(struct table *table)
{
	buf_finish(&table->cells);
}

struct buf *table_cell(struct table *table, bool faint)
{
	if (table->n_cells++ > 0)
		buf_char(&table->cells, '\0');
	buf_char(&table->cells, faint ? 'f' : 'n');
	return &table->cells;
}

static size_t columns_of(const char *text)
{
	return utf8_text_columns(text, strlen(text));
}

// The widest of the columns that may be truncated; NULL: truncating gains nothing.
static size_t *widest(const struct table *table, size_t *widths)
{
	size_t *found = NULL;
	for (size_t c = 0; c < table->n_columns; c++) {
		size_t least = columns_of(table->columns[c].title);
		least = least > TABLE_COLUMN_MIN ? least : TABLE_COLUMN_MIN;
		bool yields = (c == 0 || table->columns[c].middle) && widths[c] > least;
		if (yields && (found == NULL || widths[c] > *found))
			found = &widths[c];
	}
	return found;
}

static void measure(const struct table *table, size_t *widths)
{
	size_t all = TABLE_INDENT;
	for (size_t c = 0; c < table->n_columns; c++)
		widths[c] = table->is_plain ? 0 : columns_of(table->columns[c].title);
	const char *cell = table->cells.data;
	for (size_t i = 0; i < table->n_cells; i++, cell += strlen(cell) + 1) {
		size_t width = columns_of(cell + 1), c = i % table->n_columns;
		widths[c] = width > widths[c] ? width : widths[c];
	}
	for (size_t c = 0; c < table->n_columns; c++)
		all += widths[c] + (c > 0 ? TABLE_GAP : 0);
	size_t *wide;
	for (; !table->is_plain && all > TEXT_WIDTH && (wide = widest(table, widths)) != NULL; all--)
		(*wide)--;
}

static void blanks(struct buf *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_char(out, ' ');
}

static void print_cell(const struct table *table, const size_t *widths, size_t c, const char *text, struct buf *out)
{
	size_t width = columns_of(text);
	size_t capacity = widths[c] > width ? widths[c] - width : 0;
	blanks(out, c > 0 ? TABLE_GAP : table->is_plain ? 0 : TABLE_INDENT);
	if (table->columns[c].right)
		blanks(out, capacity);
	if (table->columns[c].middle)
		text_fit_middle(out, text, widths[c]);
	else
		text_fit(out, text, widths[c], true);
	if (!table->columns[c].right)
		blanks(out, capacity);
}

// Removes trailing blanks, also those of empty cells.
static void trim(struct buf *out)
{
	while (out->size > 0 && out->data[out->size - 1] == ' ')
		out->data[--out->size] = '\0';
}

static void print_titles(const struct table *table, const size_t *widths, struct buf *out, const struct style *style)
{
	buf_str(out, style->faint);
	for (size_t c = 0; c < table->n_columns; c++)
		print_cell(table, widths, c, table->columns[c].title, out);
	trim(out);
	buf_str(out, style->off);
	buf_char(out, '\n');
}

void table_print(struct table *table, struct buf *out, const struct style *style)
{
	size_t widths[TABLE_COLUMNS_MAX];
	if (table->cells.failed != 0 || table->n_cells == 0)
		return;
	measure(table, widths);
	if (!table->is_plain)
		print_titles(table, widths, out, style);
	const char *cell = table->cells.data;
	for (size_t i = 0; i < table->n_cells; i++, cell += strlen(cell) + 1) {
		bool last = i % table->n_columns + 1 == table->n_columns, faint = cell[0] == 'f';
		if (faint)
			buf_str(out, style->faint);
		print_cell(table, widths, i % table->n_columns, cell + 1, out);
		if (last)
			trim(out);
		if (faint)
			buf_str(out, style->off);
		if (last)
			buf_char(out, '\n');
	}
}
