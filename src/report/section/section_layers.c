/* Layers and complexity of a model, as stored with the run (`--meta model_summary=JSON`, complexity().keep()), with the
 * use of each layer; both use the names of named_modules().
 *
 * Rows stored by wattle.torch.layers take precedence: they contain more than the spans (a GPU's own times) and match the
 * program's own output. Otherwise, the use is that of the spans with these names. */
#include "report/section/sections.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "report/html.h"
#include "report/report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 2000 };

struct layer {
	const char *name;
	bool is_measured;
	double parameters, multiply_adds, energy_j, error_j, time_s;
	double passes; // number of forward passes, each with all multiply_adds
};

struct layers {
	const struct part *part;
	json_t *summary, *kept; // owned; NULL: none
	json_t *costs; // owned: stored rows by name
	json_t *rows;  // owned: rows of the summary, then other measured rows: containers, time outside layers
	bool has_costs;
};

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

// Reads wattle's key, else AIPowerMeter's name for it.
static double either(const json_t *object, const char *key, const char *other)
{
	double value = number(object, key);
	return isnan(value) ? number(object, other) : value;
}

// Writes 25557032 as 25.6 M.
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

static const struct block_finding *block_of(const struct findings *f, const char *name, const char *suffix)
{
	struct buf text;
	buf_init(&text, 1 << 14);
	buf_printf(&text, "%s%s", name, suffix);
	uint32_t found = text.failed == 0 ? findings_block(f, text.data) : UINT32_MAX;
	buf_finish(&text);
	return found != UINT32_MAX ? &f->blocks[found] : NULL;
}

// True for the stored row of time outside layers.
static bool is_outside(const json_t *row)
{
	return json_is_true(json_object_get(row, "is_outside"));
}

// The multiply-adds of a layer that is called twice per pass include both calls.
static double passes_of(double calls, const json_t *row)
{
	double calls_per_pass = number(row, "calls");
	return calls / (calls_per_pass > 0 ? calls_per_pass : 1);
}

static void cost_by_row(struct layer *layer, const json_t *row, const json_t *cost)
{
	layer->is_measured = true;
	layer->energy_j = number(cost, "energy_j");
	layer->error_j = number(cost, "error_j");
	layer->time_s = number(cost, "time_s");
	layer->passes = passes_of(number(cost, "calls"), row);
}

static void cost_by_spans(struct layer *layer, const json_t *row, const struct findings *f)
{
	const struct block_finding *forward = block_of(f, layer->name, ""),
				   *backward = block_of(f, layer->name, " backward");
	const struct block_finding *blocks[] = {forward, backward};
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		if (blocks[i] == NULL)
			continue;
		bool is_first = !layer->is_measured;
		layer->energy_j = (is_first ? 0 : layer->energy_j) + blocks[i]->self_j;
		layer->error_j = hypot(is_first ? 0 : layer->error_j, blocks[i]->self_error_j);
		layer->time_s = (is_first ? 0 : layer->time_s) + blocks[i]->self_time_s;
		layer->is_measured = true;
	}
	if (forward != NULL)
		layer->passes = passes_of((double)forward->calls, row);
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
		.passes = NAN,
	};
	if (is_outside(row))
		layer.parameters = NAN;
	if (layer.name == NULL)
		return layer;
	const json_t *cost = is_outside(row) ? row : json_object_get(layers->costs, layer.name);
	if (cost != NULL)
		cost_by_row(&layer, row, cost);
	else if (layers->kept == NULL && layer.name[0] != '\0')
		cost_by_spans(&layer, row, layers->part->f);
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
	if (is_outside(json))
		buf_str(out, "<span class=\"faint\">outside layers</span>");
	else if (layer.name != NULL && layer.name[0] != '\0')
		part_name(out, layer.name);
	else
		buf_str(out, "<span class=\"faint\">(model)</span>");
	buf_str(out, "</th><td class=\"text\">");
	if (!is_outside(json))
		part_name(out, type);
	buf_str(out, "</td>");
	part_cell(out, layer.parameters, human_count);
	part_cell(out, layer.multiply_adds, human_count);
	shape_cell(out, json_object_get(json, "output_shape"));
	if (layers->has_costs) {
		double all_j = layers->part->f->ledger.target_j;
		const char *mark = unresolved_mark(layer.energy_j, layer.error_j);
		part_cell(out, layer.time_s, human_short_time);
		part_cell_energy(out, layer.energy_j, layer.error_j);
		part_cell_marked(out, layer.energy_j / all_j * 100, part_percent, mark);
		part_cell_marked(out,
			layer.multiply_adds > 0 ? layer.energy_j / (layer.passes * layer.multiply_adds) * 1e9
						: (double)NAN,
			human_energy, mark);
	}
	buf_str(out, "</tr>\n");
}

struct place {
	size_t index; // in the model's order
	double energy_j;
};

static int by_energy(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (!isnan(x->energy_j) && !isnan(y->energy_j) && x->energy_j != y->energy_j)
		return x->energy_j > y->energy_j ? -1 : 1;
	if (isnan(x->energy_j) != isnan(y->energy_j))
		return isnan(x->energy_j) ? 1 : -1;
	return x->index < y->index ? -1 : x->index > y->index;
}

// Sorts by energy, descending, because print shows only a few rows. Without energies, keeps the model's order.
static void sort_rows(struct layers *layers)
{
	size_t n = json_array_size(layers->rows);
	struct place *places = calloc(n, sizeof(*places));
	json_t *sorted = json_array();
	for (size_t i = 0; places != NULL && i < n; i++)
		places[i] = (struct place){i, layer_of(layers, json_array_get(layers->rows, i)).energy_j};
	if (places != NULL && n > 0)
		qsort(places, n, sizeof(*places), by_energy);
	for (size_t i = 0; i < n; i++)
		json_array_append(sorted, json_array_get(layers->rows, places != NULL ? places[i].index : i));
	free(places);
	json_decref(layers->rows);
	layers->rows = sorted;
}

static bool any_marked(const struct layers *layers)
{
	size_t i;
	json_t *row;
	json_array_foreach(layers->rows, i, row)
	{
		struct layer layer = layer_of(layers, row);
		if (unresolved_mark(layer.energy_j, layer.error_j)[0] != '\0')
			return true;
	}
	return false;
}

static void table(const struct layers *layers)
{
	static const struct part_column columns[] = {{"layer", "name"}, {"type", "text"}, {"parameters"},
		{"multiply-adds"}, {"output", "text"}, {"own time"}, {"own energy", NULL, "descending"}, {"share"},
		{"J per 10<sup>9</sup> multiply-adds"}};
	size_t n = json_array_size(layers->rows);
	if (n == 0)
		return;
	part_table_begin(layers->part, "layers-table", NULL, columns, layers->has_costs ? 9 : 5, true);
	for (size_t i = 0; i < n && i < ROWS_MAX; i++)
		row(layers, json_array_get(layers->rows, i));
	part_table_end(layers->part);
	print_limit_mark(layers->part, PRINT_LAYERS, n < ROWS_MAX ? n : ROWS_MAX);
	if (n > ROWS_MAX)
		buf_printf(layers->part->out, "<p class=\"faint small\">… and %zu more.</p>\n", n - ROWS_MAX);
	if (layers->has_costs)
		buf_str(layers->part->out,
			"<p class=\"faint small\">Time and energy cover forward and backward passes, without nested layers. "
			"Multiply-adds are per forward pass; joules per multiply-add include all calls.</p>\n");
	if (any_marked(layers))
		html_section_note(layers->part, unresolved_note);
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
	fact(out, "trainable parameters", number(s, "trainable_parameters"));
	fact(out, "multiply-adds per forward pass", either(s, "multiply_adds", "total_mult_adds"));
	fact(out, "multiply-adds between activations", number(s, "other_multiply_adds"));
	double memory_bytes = number(json_object_get(s, "memory"), "total_bytes");
	if (memory_bytes >= 0) {
		buf_str(out, "<dt>memory (torchinfo's method)</dt><dd>");
		human_bytes(out, memory_bytes);
		buf_str(out, "</dd>");
	}
	size_t unknown = json_object_size(json_object_get(s, "unknown"));
	if (unknown > 0)
		buf_printf(out, "<dt>not counted</dt><dd class=\"warn\">operators in %zu layer%s</dd>", unknown,
			unknown == 1 ? "" : "s");
	buf_str(out, "</dl>\n");
}

static bool any_cost(const struct layers *layers)
{
	size_t i;
	json_t *row;
	json_array_foreach(layers->rows, i, row)
	{
		if (layer_of(layers, row).is_measured)
			return true;
	}
	return false;
}

static void gather(struct layers *layers)
{
	const json_t *known = json_object_get(layers->summary, "layers");
	json_t *names = json_object(), *row;
	size_t i;
	json_array_foreach(known, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));
		json_array_append(layers->rows, row);
		if (name != NULL)
			json_object_set(names, name, row);
	}
	json_array_foreach(layers->kept, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));
		if (name == NULL)
			continue;
		if (!is_outside(row))
			json_object_set(layers->costs, name, row);
		if (is_outside(row) || json_object_get(names, name) == NULL)
			json_array_append(layers->rows, row);
	}
	json_decref(names);
}

// NULL: absent, or not JSON of that type.
static json_t *stored(const struct run *run, const char *key, json_type type)
{
	const char *text = run_metadata(run, key);
	json_t *json = text != NULL ? json_loads(text, 0, NULL) : NULL;
	if (json != NULL && json_typeof(json) == type)
		return json;
	json_decref(json);
	return NULL;
}

void section_layers(const struct part *part)
{
	struct layers layers = {
		.part = part,
		.summary = stored(part->run, META_KEY_META_PREFIX "model_summary", JSON_OBJECT),
		.kept = stored(part->run, "torch_layers", JSON_ARRAY),
		.costs = json_object(),
		.rows = json_array(),
	};
	if (layers.summary != NULL || json_array_size(layers.kept) > 0) {
		gather(&layers);
		layers.has_costs = any_cost(&layers);
		if (layers.has_costs)
			sort_rows(&layers);
		section_begin(part, "layers", layers.summary != NULL ? "Layers and complexity" : "Layers");
		if (layers.summary != NULL)
			figures(&layers);
		table(&layers);
		section_end(part);
	}
	json_decref(layers.rows);
	json_decref(layers.costs);
	json_decref(layers.kept);
	json_decref(layers.summary);
}
