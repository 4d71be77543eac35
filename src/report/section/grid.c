#include "report/section/grid.h"

#include "base/util.h"
#include "report/report.h"
#include "report/section/html_section.h"

#include <errno.h>
#include <stdlib.h>

enum { DEPTH_MAX = 6, CELL_CEILING = 1 << 20 };

/* ---- values by key ---- */

// A field and its enclosing objects, the innermost last.
struct place {
	struct object_at at[DEPTH_MAX];
	size_t n;
	const struct field *field;
};

static bool find(struct place *p, const char *key)
{
	const struct object_at *at = &p->at[p->n - 1];
	size_t length = strcspn(key, ".");
	for (size_t i = 0; i < at->type->n_fields; i++) {
		const struct field *field = &at->type->fields[i];
		bool is_inline = field->type == FIELD_IS_INLINE;
		if (!is_inline &&
			(field->key == NULL || strncmp(field->key, key, length) != 0 || field->key[length] != '\0'))
			continue;
		if (!field_present(field, at))
			return false;
		p->field = field;
		if (!is_inline && key[length] == '\0')
			return true;
		const void *data = is_inline || field->type == FIELD_IS_OBJECT ? field_object(field, at) : NULL;
		if (data == NULL || p->n == DEPTH_MAX)
			return false;
		bool is_same = is_inline && !field->by_pointer;
		p->at[p->n - 1].field = field;
		p->at[p->n++] = (struct object_at){field->object, data, is_same ? at->outer : at,
			is_inline ? at->index : 0, NULL};
		if (find(p, is_inline ? key : key + length + 1))
			return true;
		p->n--;
		if (!is_inline)
			return false;
	}
	return false;
}

// Finds the field of a key; false: not found.
static bool find_in(struct place *ret_place, const struct object_at *row, const struct object_type *more,
	const char *key)
{
	*ret_place = (struct place){.at = {*row}, .n = 1};
	if (find(ret_place, key))
		return true;
	*ret_place = (struct place){.at = {*row}, .n = 1};
	ret_place->at[0].type = more;
	return more != NULL && find(ret_place, key);
}

static struct field_value value_in(const struct place *place, struct buf *scratch)
{
	return field_value(place->field, &place->at[place->n - 1], scratch);
}

static double number_of(struct field_value value)
{
	if (!value.known)
		return (double)NAN;
	return value.type == FIELD_IS_NUMBER    ? value.number
		: value.type == FIELD_IS_INTEGER  ? (double)value.integer
		: value.type == FIELD_IS_UNSIGNED ? (double)value.unsigned_number
						  : (double)NAN;
}

static double number_in(const struct place *place)
{
	struct buf scratch;
	buf_init(&scratch, CELL_CEILING);
	double number = number_of(value_in(place, &scratch));
	buf_finish(&scratch);
	return number;
}

double row_number(const struct object_at *row, const struct object_type *more, const char *key)
{
	struct place place;
	return find_in(&place, row, more, key) ? number_in(&place) : (double)NAN;
}

const char *row_text(const struct object_at *row, const struct object_type *more, const char *key, struct buf *scratch)
{
	struct place place;
	if (!find_in(&place, row, more, key))
		return NULL;
	struct field_value value = value_in(&place, scratch);
	return value.known && value.type == FIELD_IS_TEXT ? value.text : NULL;
}

// The unit of a statistic is that of its quantity.
static const char *unit_in(const struct place *place)
{
	const char *unit = place->field->unit;
	for (const struct object_at *at = &place->at[place->n - 1]; unit == NULL && at != NULL && at->type != NULL;
		at = at->outer)
		unit = at->outer != NULL && at->outer->field != NULL ? at->outer->field->unit : NULL;
	return unit;
}

/* ---- rows ---- */

int rows_of(const struct object_at *document, const char *list, struct arena *arena, struct rows *ret_rows)
{
	struct place *place = arena_alloc(arena, 1, sizeof(*place));
	*ret_rows = (struct rows){0};
	if (place == NULL)
		return -ENOMEM;
	*place = (struct place){.at = {*document}, .n = 1};
	if (list == NULL)
		place->field = object_as_list(document->type);
	else if (!find(place, list) || (place->field->type != FIELD_IS_LIST && place->field->type != FIELD_IS_MAP))
		return 0;
	struct object_at *outer = &place->at[place->n - 1];
	outer->field = place->field;
	size_t n = field_count(place->field, outer);
	ret_rows->at = arena_alloc(arena, n + 1, sizeof(*ret_rows->at));
	if (ret_rows->at == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		ret_rows->at[i] = (struct object_at){place->field->object, field_item(place->field, outer, i), outer, i,
			NULL};
	ret_rows->n = ret_rows->shown = n;
	return 0;
}

struct sorted {
	double first, second;
	size_t place;
	struct object_at at;
};

// NaN sorts below all numbers.
static int descending(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) - isnan(b);
	return (a < b) - (a > b);
}

static int by_keys(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	int order = descending(x->first, y->first);
	order = order != 0 ? order : descending(x->second, y->second);
	return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

void rows_sort(struct rows *rows, const char *first, const char *second)
{
	struct sorted *sorted = rows->n > 1 ? calloc_array(rows->n, sizeof(*sorted)) : NULL;
	if (sorted == NULL) // rows stay unsorted without memory
		return;
	for (size_t i = 0; i < rows->n; i++)
		sorted[i] = (struct sorted){row_number(&rows->at[i], NULL, first),
			second != NULL ? row_number(&rows->at[i], NULL, second) : 0, i, rows->at[i]};
	qsort(sorted, rows->n, sizeof(*sorted), by_keys);
	for (size_t i = 0; i < rows->n; i++)
		rows->at[i] = sorted[i].at;
	free(sorted);
}

/* ---- figures ---- */

static void print_number(struct buf *out, double value)
{
	human_exact(out, value, 1e7);
}

typedef void print(struct buf *out, double value);

static print *printer_of(const char *unit)
{
	static const struct {
		const char *unit;
		print *print;
	} printers[] = {{"J", human_energy}, {"W", human_power}, {"s", human_short_time}, {"bytes", human_bytes},
		{"%", human_percent}, {"°C", human_celsius}, {"MHz", human_megahertz}, {"g", human_grams}};
	for (size_t i = 0; unit != NULL && i < ARRAY_SIZE(printers); i++)
		if (strcmp(printers[i].unit, unit) == 0)
			return printers[i].print;
	return print_number;
}

struct figure {
	double value, error;
	const char *mark; // unresolved_mark
	print *print;
};

static struct figure figure_of(const struct grid *grid, const struct column *column, const struct object_at *row)
{
	struct figure figure = {(double)NAN, (double)NAN, "", print_number};
	struct place place;
	if (!find_in(&place, row, grid->more, column->key))
		return figure;
	figure.value = number_in(&place);
	if (column->error != NULL)
		figure.error = row_number(row, grid->more, column->error);
	figure.mark = unresolved_mark(column->of != NULL ? row_number(row, grid->more, column->of) : figure.value,
		figure.error);
	figure.print = column->print != NULL ? column->print : printer_of(unit_in(&place));
	return figure;
}

bool row_print(struct buf *out, const struct object_at *row, const char *key, bool is_page)
{
	struct place place;
	struct buf scratch;
	if (!find_in(&place, row, NULL, key))
		return false;
	buf_init(&scratch, CELL_CEILING);
	struct field_value value = value_in(&place, &scratch);
	bool is_text = value.type == FIELD_IS_TEXT, is_known = value.known && (!is_text || value.text[0] != '\0');
	if (is_known && !is_text)
		printer_of(unit_in(&place))(out, number_of(value));
	else if (is_known && is_page)
		part_name(out, value.text);
	else if (is_known)
		buf_str(out, value.text);
	buf_finish(&scratch);
	return is_known;
}

void row_write_key(struct buf *out, const struct object_at *row, bool is_page)
{
	buf_str(out, row->outer->field->name(row->outer, row->index));
}

/* ---- column selection ---- */

static bool has_any(const struct grid *grid, const struct column *column, const struct rows *rows, bool is_page)
{
	struct buf text, scratch;
	bool found = false;
	buf_init(&text, CELL_CEILING);
	buf_init(&scratch, CELL_CEILING);
	for (size_t i = 0; i < rows->shown && !found; i++) {
		double number = column->key != NULL ? row_number(&rows->at[i], grid->more, column->key) : 0;
		if (column->key == NULL)
			column->write(&text, &rows->at[i], is_page);
		else if (column->write == NULL)
			found = row_text(&rows->at[i], grid->more, column->key, &scratch) != NULL;
		found |= text.size > 0 || (isfinite(number) && (number != 0 || column->keeps_zero));
	}
	buf_finish(&text);
	buf_finish(&scratch);
	return found;
}

static bool is_shown(const struct grid *grid, const struct column *column, const struct rows *rows, unsigned int on)
{
	if (!is_wanted(column->only, on, rows->of))
		return false;
	return !column->is_optional || has_any(grid, column, rows, on == ON_PAGE);
}

static const char *title_of(const struct grid *grid, const struct column *column, const struct rows *rows)
{
	const struct object_at *row = rows->shown > 0 ? &rows->at[0] : rows->foot;
	struct place place;
	if (column->title == NULL && column->key != NULL && row != NULL &&
		find_in(&place, row, grid->more, column->key))
		return place.field->title != NULL ? place.field->title : "";
	return column->title != NULL ? column->title : "";
}

static size_t columns_of(const struct grid *grid, const struct rows *rows, unsigned int on,
	const struct column *ret_columns[])
{
	size_t n = 0;
	for (size_t i = 0; i < grid->n_columns; i++)
		if (is_shown(grid, &grid->columns[i], rows, on))
			ret_columns[n++] = &grid->columns[i];
	return n;
}

/* ---- terminal output ---- */

enum { COLUMNS_MAX = 24 };

static void plain_text(const struct grid *grid, const struct column *column, const struct object_at *row,
	struct buf *out)
{
	struct buf words, scratch;
	buf_init(&words, CELL_CEILING);
	buf_init(&scratch, CELL_CEILING);
	if (column->write != NULL)
		column->write(&words, row, false);
	const char *text = column->write != NULL ? words.data : row_text(row, grid->more, column->key, &scratch);
	if (text != NULL && column->width > 0)
		text_fit_middle(out, text, column->width);
	else if (text != NULL)
		buf_str(out, text);
	buf_finish(&words);
	buf_finish(&scratch);
}

static void text_cells(const struct grid *grid, const struct column *column, const struct object_at *row,
	struct table *table, bool is_foot)
{
	bool faint = is_foot || (grid->is_faint != NULL && grid->is_faint(row));
	struct buf *out = table_cell(table, faint);
	if (column->kind != COLUMN_FIGURE || column->write != NULL) {
		plain_text(grid, column, row, out);
		return;
	}
	struct figure figure = figure_of(grid, column, row);
	if (!isnan(figure.value)) {
		figure.print(out, figure.value);
		buf_str(out, column->error_title == NULL ? figure.mark : "");
	} else if (!is_foot) {
		buf_str(out, "n/a");
	}
	if (column->error_title == NULL)
		return;
	out = table_cell(table, faint);
	bool is_nothing = figure.value == 0 && figure.error == 0;
	if (!isnan(figure.value) && !isnan(figure.error) && !is_nothing)
		human_error_of(out, figure.value, figure.error);
}

bool grid_is_marked(const struct grid *grid, const struct rows *rows, unsigned int on)
{
	const struct column *columns[COLUMNS_MAX];
	size_t n = columns_of(grid, rows, on, columns);
	for (size_t c = 0; c < n; c++)
		for (size_t i = 0; i < rows->shown && columns[c]->error != NULL; i++) {
			struct figure figure = figure_of(grid, columns[c], &rows->at[i]);
			if (!isnan(figure.value) && figure.mark[0] != '\0')
				return true;
		}
	return false;
}

void grid_text(const struct grid *grid, const struct rows *rows, struct buf *out, const struct style *style)
{
	const struct column *columns[COLUMNS_MAX];
	struct table_column heads[2 * COLUMNS_MAX];
	size_t n = columns_of(grid, rows, ON_TEXT, columns), n_heads = 0;
	struct table table;
	for (size_t i = 0; i < n; i++) {
		heads[n_heads++] = (struct table_column){title_of(grid, columns[i], rows),
			columns[i]->kind == COLUMN_FIGURE, columns[i]->is_middle};
		if (columns[i]->error_title != NULL)
			heads[n_heads++] = (struct table_column){columns[i]->error_title, true, false};
	}
	table_init(&table, heads, n_heads);
	table.is_plain = grid->is_plain;
	for (size_t i = 0; i < rows->shown; i++)
		for (size_t c = 0; c < n; c++)
			text_cells(grid, columns[c], &rows->at[i], &table, false);
	for (size_t c = 0; rows->foot != NULL && c < n; c++)
		text_cells(grid, columns[c], rows->foot, &table, true);
	table_print(&table, out, style);
	table_finish(&table);
}

/* ---- page output ---- */

static void page_text(const struct grid *grid, const struct column *column, const struct object_at *row,
	struct buf *out)
{
	static const char *const begins[] = {[COLUMN_FIGURE] = "<td",
		[COLUMN_NAME] = "<th scope=\"row\" class=\"name\"",
		[COLUMN_TEXT] = "<td class=\"text\"",
		[COLUMN_LONG] = "<td class=\"name\"",
		[COLUMN_BAR] = "<td class=\"bar-cell\""};
	struct buf scratch;
	buf_init(&scratch, CELL_CEILING);
	buf_str(out, begins[column->kind]);
	if (column->write != NULL && column->key != NULL) {
		double number = row_number(row, grid->more, column->key);
		buf_str(out, " data-value=\"");
		if (isfinite(number))
			buf_double(out, number);
		buf_char(out, '"');
	}
	buf_char(out, '>');
	const char *text = column->write == NULL ? row_text(row, grid->more, column->key, &scratch) : NULL;
	if (column->write != NULL)
		column->write(out, row, true);
	else if ((text != NULL && text[0] != '\0') || column->kind == COLUMN_NAME)
		part_name(out, text);
	buf_str(out, column->kind == COLUMN_NAME ? "</th>" : "</td>");
	buf_finish(&scratch);
}

static void page_cell(const struct grid *grid, const struct column *column, const struct object_at *row,
	struct buf *out, bool is_foot)
{
	if (column->kind != COLUMN_FIGURE || (column->write != NULL && !is_foot)) {
		page_text(grid, column, row, out);
		return;
	}
	struct figure figure = figure_of(grid, column, row);
	if (is_foot && isnan(figure.value))
		buf_str(out, "<td></td>");
	else if (column->has_bar)
		part_cell_share(out, figure.value / 100, figure.mark);
	else if (column->error != NULL && column->of == NULL)
		part_cell_energy(out, figure.value, figure.error);
	else
		part_cell_marked(out, figure.value, figure.print, figure.mark);
}

static void page_row(const struct grid *grid, const struct column *const columns[], size_t n,
	const struct object_at *row, struct buf *out)
{
	buf_str(out, "<tr");
	if (grid->attributes != NULL)
		grid->attributes(out, row);
	else if (grid->is_faint != NULL && grid->is_faint(row))
		buf_str(out, " class=\"beside\"");
	buf_char(out, '>');
	for (size_t c = 0; c < n; c++)
		page_cell(grid, columns[c], row, out, false);
	buf_str(out, "</tr>\n");
}

void grid_page(const struct grid *grid, const struct rows *rows, struct buf *out)
{
	static const char *const classes[] = {[COLUMN_FIGURE] = NULL,
		[COLUMN_NAME] = "name",
		[COLUMN_TEXT] = "text",
		[COLUMN_LONG] = "name",
		[COLUMN_BAR] = "text"};
	const struct column *columns[COLUMNS_MAX];
	struct part_column heads[COLUMNS_MAX];
	size_t n = columns_of(grid, rows, ON_PAGE, columns);
	bool any_sorted = false;
	for (size_t c = 0; c < n; c++) {
		bool is_sorted = columns[c]->is_sorted && !any_sorted;
		heads[c] = (struct part_column){title_of(grid, columns[c], rows), classes[columns[c]->kind],
			is_sorted ? "descending" : NULL};
		any_sorted |= is_sorted;
	}
	const struct part part = {.out = out};
	part_table_begin(&part, grid->id, NULL, heads, n, !grid->is_fixed && rows->n > 1);
	for (size_t i = 0; i < rows->shown; i++)
		page_row(grid, columns, n, &rows->at[i], out);
	if (rows->foot != NULL) {
		buf_str(out, "<tfoot><tr class=\"beside\">");
		for (size_t c = 0; c < n; c++)
			page_cell(grid, columns[c], rows->foot, out, true);
		buf_str(out, "</tr></tfoot>\n");
	}
	part_table_end(&part);
}

/* ---- either ---- */

size_t grid_list(const struct grid *grid, const struct object_at *document, const char *list, struct buf *out,
	const struct style *style)
{
	struct arena *arena = arena_new();
	struct rows rows = {0};
	if (arena == NULL || rows_of(document, list, arena, &rows) < 0)
		out->failed = -ENOMEM;
	rows.shown = 0;
	for (size_t i = 0; i < rows.n; i++)
		if (grid->is_shown == NULL || grid->is_shown(&rows.at[i]))
			rows.at[rows.shown++] = rows.at[i];
	if (rows.shown > 0 && style != NULL && grid->heading != NULL)
		buf_printf(out, "\n  %s%s%s\n", style->title, grid->heading, style->off);
	if (rows.shown > 0 && style != NULL)
		grid_text(grid, &rows, out, style);
	else if (rows.shown > 0)
		grid_page(grid, &rows, out);
	arena_free(arena);
	return rows.shown;
}
