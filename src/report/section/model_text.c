#include "report/documents.h"

#include "base/util.h"
#include "report/report.h"
#include "report/section/grid.h"

#include <stdio.h>

enum { INPUT_NAME_WIDTH = 30 };

struct page {
	struct buf *out;
	const struct style *style;
};

// Groups digits (11,689,512), because readers compare such numbers digit by digit.
static void add_grouped(struct buf *out, int64_t value)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%lld", (long long)value);
	for (int i = 0; i < n; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			buf_char(out, ',');
		buf_char(out, digits[i]);
	}
}

static void add_count(struct buf *out, int64_t value)
{
	if (value_ok(value))
		add_grouped(out, value);
	else
		buf_str(out, "n/a");
}

static void add_shape(struct buf *out, const struct model_shape *shape)
{
	if (!shape->known)
		buf_str(out, "n/a");
	else if (shape->rank == 0)
		buf_str(out, "scalar");
	for (int i = 0; shape->known && i < shape->rank; i++) {
		buf_str(out, i > 0 ? "x" : "");
		if (value_ok(shape->dims[i]))
			buf_i64(out, shape->dims[i]);
		else
			buf_char(out, '?');
	}
}

static void begin_line(const struct page *page, const char *title)
{
	size_t start = page->out->size;
	buf_printf(page->out, "  %s", title);
	buf_pad_to(page->out, start, 28);
}

static void sum_line(const struct page *page, const char *title, int64_t sum, int64_t known)
{
	begin_line(page, title);
	if (!value_ok(sum))
		buf_str(page->out, "at least ");
	add_grouped(page->out, value_ok(sum) ? sum : known);
	buf_str(page->out, value_ok(sum) ? "\n" : "; the rest is unknown\n");
}

static void parameter_line(const struct page *page, const struct model_figures *f)
{
	begin_line(page, "Parameters");
	add_count(page->out, f->parameters);
	if (value_ok(f->parameter_bytes)) {
		buf_str(page->out, ", ");
		human_bytes(page->out, (double)f->parameter_bytes);
	}
	buf_char(page->out, '\n');
}

static void input_lines(const struct page *page, const struct model_figures *f)
{
	for (size_t i = 0; i < f->n_inputs; i++) {
		begin_line(page, i == 0 ? "Input" : "");
		text_fit_middle(page->out, f->inputs[i].name, INPUT_NAME_WIDTH);
		buf_char(page->out, ' ');
		add_shape(page->out, &f->inputs[i].shape);
		buf_char(page->out, '\n');
	}
}

static const struct model_layer *layer_of(const struct object_at *row)
{
	return row->data;
}

static bool is_shown(const struct object_at *row)
{
	const struct model_layer *layer = layer_of(row);
	return layer->parameters != 0 || layer->multiply_adds != 0 || layer->other_multiply_adds != 0;
}

// Whether all its multiply-adds are of activations with activations.
static bool is_between(const struct model_layer *layer)
{
	return layer->multiply_adds == 0 && layer->other_multiply_adds != 0;
}

static void type(struct buf *out, const struct object_at *row, bool is_page)
{
	buf_printf(out, "%s%s", layer_of(row)->type, is_between(layer_of(row)) ? " *" : "");
}

static void output(struct buf *out, const struct object_at *row, bool is_page)
{
	add_shape(out, &layer_of(row)->output);
}

static void grouped(struct buf *out, double value)
{
	add_grouped(out, (int64_t)value);
}

static void multiply_adds(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct model_layer *layer = layer_of(row);
	add_count(out, is_between(layer) ? layer->other_multiply_adds : layer->multiply_adds);
}

static const struct column layer_columns[] = {
	{"name", "", COLUMN_NAME, .is_middle = true},
	{NULL, "", COLUMN_TEXT, .write = type, .is_middle = true},
	{NULL, "output", .write = output},
	{"parameters", .print = grouped},
	{NULL, "multiply-adds", .write = multiply_adds},
};
static const struct grid layer_grid = GRID(NULL, layer_columns, .heading = "Layers", .is_shown = is_shown);

static void layer_table(const struct page *page, const struct model_figures *f)
{
	const struct object_at document = {.type = &model_type, .data = f};
	grid_list(&layer_grid, &document, "layers", page->out, page->style);
	if (f->known_other_multiply_adds != 0 || !value_ok(f->other_multiply_adds))
		buf_str(page->out, "  * of activations with activations; not in the sum for weights\n");
}

static void note(const struct page *page, const char *text)
{
	size_t start = page->out->size;
	buf_printf(page->out, "  %s", page->style->warning);
	struct buf clean;
	buf_init(&clean, 4096);
	text_add_printable(&clean, text, strlen(text));
	text_wrap(page->out, start, 2, clean.data != NULL ? clean.data : "");
	buf_finish(&clean);
	buf_printf(page->out, "%s\n", page->style->off);
}

static void notes(const struct page *page, const struct model_figures *f)
{
	char text[400];
	if (f->n_unknown_operators + f->n_free_dims + f->n_warnings > 0)
		buf_char(page->out, '\n');
	for (size_t i = 0; i < f->n_unknown_operators; i++) {
		snprintf(text, sizeof(text),
			"Operator %.200s is unknown (nodes: %lld): its multiply-adds and outputs are not counted.",
			f->unknown_operators[i].type, (long long)f->unknown_operators[i].count);
		note(page, text);
	}
	for (size_t i = 0; i < f->n_free_dims; i++) {
		snprintf(text, sizeof(text), "The size '%.200s' of an input is open; set it with --dim NAME=SIZE.",
			f->free_dims[i]);
		note(page, text);
	}
	for (size_t i = 0; i < f->n_warnings; i++)
		note(page, f->warnings[i]);
}

void model_text(const struct model_figures *figures, const char *file, struct buf *out, bool colour)
{
	const struct model_figures *f = figures;
	const struct page page = {out, style_for(colour)};
	buf_printf(out, "\n  %s", page.style->title);
	text_add_printable(out, file, strlen(file));
	buf_printf(out, "%s   operator set %lld", page.style->off, (long long)f->opset);
	if (f->producer != NULL && f->producer[0] != '\0') {
		buf_str(out, ", by ");
		text_add_printable(out, f->producer, strlen(f->producer));
	}
	buf_str(out, "\n\n");
	parameter_line(&page, f);
	sum_line(&page, "Multiply-adds of weights", f->multiply_adds, f->known_multiply_adds);
	if (f->known_other_multiply_adds != 0 || !value_ok(f->other_multiply_adds))
		sum_line(&page, "        of activations", f->other_multiply_adds, f->known_other_multiply_adds);
	input_lines(&page, f);
	layer_table(&page, f);
	notes(&page, f);
}
