/* Layers and complexity of a model, as kept with the run (`--meta model_summary=JSON`, complexity().keep()), beside what the layers'
 * spans cost (wattle.torch.layers): both have the names of named_modules(). */
#include "report/page/part.h"

#include "analysis/facts.h"
#include "base/util.h"
#include "report/html.h"
#include "report/report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 2000 };

struct layer {
	const char *name;
	const struct block_finding *forward, *backward; // NULL: no span of that name
	double parameters, multiply_adds, energy_j, error_j, time_s;
};

struct layers {
	const struct part *part;
	json_t *summary; // owned
	const json_t *rows;
	bool has_spans;
};

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

// Ours, else AIPowerMeter's name of the same.
static double either(const json_t *object, const char *key, const char *other)
{
	double value = number(object, key);
	return isnan(value) ? number(object, other) : value;
}

// 25557032 as 25.6 M.
static void human_count(struct buf *out, double value)
{
	static const struct {
		double size;
		const char *unit;
	} units[] = {{999.5e9, " T"}, {999.5e6, " G"}, {999.5e3, " M"}, {9999.5, " k"}};
	static const double sizes[] = {1e12, 1e9, 1e6, 1e3};
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!(value >= units[i].size))
			continue;
		human_number(out, value / sizes[i], 3);
		buf_str(out, units[i].unit);
		return;
	}
	buf_fixed(out, value, 0);
}

static int by_name(const void *key, const void *block)
{
	return strcmp(key, ((const struct block_finding *)block)->name);
}

static const struct block_finding *block_of(const struct findings *f, const char *name, const char *suffix)
{
	struct buf text;
	buf_init(&text, 1 << 14);
	buf_printf(&text, "%s%s", name, suffix);
	const struct block_finding *found = text.failed == 0 && f->n_blocks > 0
		? bsearch(text.data, f->blocks, f->n_blocks, sizeof(*f->blocks), by_name)
		: NULL;
	buf_finish(&text);
	return found;
}

static struct layer layer_of(const struct layers *layers, const json_t *row)
{
	struct layer layer = {
		.name = json_string_value(json_object_get(row, "name")),
		.parameters = number(row, "parameters"),
		.multiply_adds = number(row, "multiply_adds"),
		.energy_j = NAN,
		.error_j = NAN,
		.time_s = NAN,
	};
	if (layer.name == NULL || layer.name[0] == '\0')
		return layer;
	layer.forward = block_of(layers->part->f, layer.name, "");
	layer.backward = block_of(layers->part->f, layer.name, " backward");
	const struct block_finding *blocks[] = {layer.forward, layer.backward};
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		if (blocks[i] == NULL)
			continue;
		bool is_first = isnan(layer.time_s) && isnan(layer.energy_j);
		layer.energy_j = (is_first ? 0 : layer.energy_j) + blocks[i]->self_j;
		layer.error_j = hypot(is_first ? 0 : layer.error_j, blocks[i]->self_error_j);
		layer.time_s = (is_first ? 0 : layer.time_s) + blocks[i]->self_time_s;
	}
	return layer;
}

static void shape_cell(struct buf *out, const json_t *shape)
{
	size_t i;
	json_t *size;
	buf_str(out, "<td class=\"text\">");
	json_array_foreach(shape, i, size)
	{
		buf_str(out, i == 0 ? "" : " × ");
		if (json_is_integer(size))
			buf_i64(out, json_integer_value(size));
		else
			html_text(out, json_is_string(size) ? json_string_value(size) : "?");
	}
	buf_str(out, "</td>");
}

static void row(const struct layers *layers, const json_t *json)
{
	struct buf *out = layers->part->out;
	struct layer layer = layer_of(layers, json);
	const char *type = json_string_value(json_object_get(json, "type"));
	buf_str(out, "<tr><th scope=\"row\" class=\"name\">");
	if (layer.name != NULL && layer.name[0] != '\0')
		part_name(out, layer.name);
	else
		buf_str(out, "<span class=\"faint\">(the model itself)</span>");
	buf_str(out, "</th><td class=\"text\">");
	part_name(out, type);
	buf_str(out, "</td>");
	part_cell(out, layer.parameters, human_count);
	part_cell(out, layer.multiply_adds, human_count);
	shape_cell(out, json_object_get(json, "output_shape"));
	if (layers->has_spans) {
		double all_j = layers->part->f->ledger.target_j,
		       calls = layer.forward != NULL ? (double)layer.forward->calls : (double)NAN;
		bool resolved = layer.error_j < fabs(layer.energy_j);
		part_cell(out, layer.time_s, human_short_time);
		part_cell_energy(out, layer.energy_j, layer.error_j);
		part_cell(out, resolved ? layer.energy_j / all_j * 100 : (double)NAN, part_percent);
		part_cell(out,
			resolved && layer.multiply_adds > 0 ? layer.energy_j / (calls * layer.multiply_adds) * 1e9
							    : (double)NAN,
			human_energy);
	}
	buf_str(out, "</tr>\n");
}

static void table(const struct layers *layers)
{
	static const struct part_column columns[] = {{"layer", "name"}, {"type", "text"}, {"parameters"},
		{"multiply-adds"}, {"output", "text"}, {"own time"}, {"own energy"}, {"share"},
		{"J per 10<sup>9</sup> multiply-adds"}};
	size_t n = json_array_size(layers->rows);
	if (n == 0)
		return;
	part_table_begin(layers->part, "layers-table", NULL, columns, layers->has_spans ? 9 : 5, true);
	for (size_t i = 0; i < n && i < ROWS_MAX; i++)
		row(layers, json_array_get(layers->rows, i));
	part_table_end(layers->part);
	part_paper(layers->part, PAPER_LAYERS, n < ROWS_MAX ? n : ROWS_MAX);
	if (n > ROWS_MAX)
		buf_printf(layers->part->out, "<p class=\"faint small\">… and %zu more.</p>\n", n - ROWS_MAX);
	if (layers->has_spans)
		buf_str(layers->part->out,
			"<p class=\"faint small\">Time and energy: forward and backward together, without the layers inside; "
			"multiply-adds are those of one forward pass, joules per multiply-add count each call.</p>\n");
}

static void fact(struct buf *out, const char *name, double value)
{
	if (isnan(value))
		return;
	buf_printf(out, "<dt>%s</dt><dd>", name);
	human_count(out, value);
	buf_str(out, "</dd>");
}

static void figures(const struct layers *layers)
{
	const json_t *s = layers->summary;
	struct buf *out = layers->part->out;
	const char *model = json_string_value(json_object_get(s, "model"));
	buf_str(out, "<dl class=\"facts\">");
	if (model != NULL) {
		buf_str(out, "<dt>model</dt><dd>");
		part_name(out, model);
		buf_str(out, "</dd>");
	}
	fact(out, "parameters", either(s, "parameters", "total_params"));
	fact(out, "of them trained", number(s, "trainable_parameters"));
	fact(out, "multiply-adds, one forward pass", either(s, "multiply_adds", "total_mult_adds"));
	fact(out, "between activations", number(s, "other_multiply_adds"));
	double memory_bytes = number(json_object_get(s, "memory"), "total_bytes");
	if (memory_bytes >= 0) {
		buf_str(out, "<dt>memory, by torchinfo's rule</dt><dd>");
		human_bytes(out, memory_bytes);
		buf_str(out, "</dd>");
	}
	size_t unknown = json_object_size(json_object_get(s, "unknown"));
	if (unknown > 0)
		buf_printf(out, "<dt>not counted</dt><dd class=\"warn\">operators in %zu layer%s</dd>", unknown,
			unknown == 1 ? "" : "s");
	buf_str(out, "</dl>\n");
}

static bool any_span(const struct layers *layers)
{
	size_t i;
	json_t *row;
	json_array_foreach(layers->rows, i, row)
	{
		struct layer layer = layer_of(layers, row);
		if (layer.forward != NULL || layer.backward != NULL)
			return true;
	}
	return false;
}

void section_layers(const struct part *part)
{
	const char *stored = run_fact(part->run, FACT_META_PREFIX "model_summary");
	struct layers layers = {.part = part, .summary = stored != NULL ? json_loads(stored, 0, NULL) : NULL};
	if (json_is_object(layers.summary)) {
		layers.rows = json_object_get(layers.summary, "layers");
		layers.has_spans = any_span(&layers);
		buf_str(part->out, "<section>\n");
		part_title(part, "layers", "Layers and complexity");
		figures(&layers);
		table(&layers);
		buf_str(part->out, "</section>\n");
	}
	json_decref(layers.summary);
}
