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

#include <errno.h>
#include <jansson.h>

enum { ROWS_MAX = 2000 };

struct layer {
	const json_t *row;
	const char *name;
	bool is_measured;
	double parameters, multiply_adds, energy_j, error_j, time_s;
	double passes; // number of forward passes, each with all multiply_adds
	double share_percent, per_giga_j;
};

#define L struct layer
static const struct field layer_fields[] = {
	FIELD(L, parameters, NULL, "number of parameters", .title = "parameters"),
	FIELD(L, multiply_adds, NULL, "multiply-adds per forward pass", .title = "multiply-adds"),
	FIELD(L, time_s, "s", "time without nested layers", .title = "own time"),
	FIELD(L, energy_j, "J", "energy without nested layers", .title = "own energy"),
	FIELD(L, error_j, "J", "half of its 95 % interval"),
	FIELD(L, share_percent, "%", "share of the program's energy", .title = "share"),
	FIELD(L, per_giga_j, "J", "energy of 10^9 multiply-adds", .title = "J per 10<sup>9</sup> multiply-adds"),
};
#undef L
static const struct object_type layer_type = OBJECT_TYPE("layer", "A layer of a model.", layer_fields);

struct layers {
	const struct part *part;
	json_t *summary, *kept; // owned; NULL: none
	json_t *costs;          // owned: stored rows by name
	struct layer *all;      // rows of the summary, then other measured rows: containers, time outside layers
	size_t n;
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
		.row = row,
		.name = json_string_value(json_object_get(row, "name")),
		.parameters = number(row, "parameters"),
		.multiply_adds = number(row, "multiply_adds"),
		.energy_j = NAN,
		.error_j = NAN,
		.time_s = NAN,
		.passes = NAN,
		.share_percent = NAN,
		.per_giga_j = NAN,
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
	layer.share_percent = layer.energy_j / layers->part->f->ledger.target_j * 100;
	if (layer.multiply_adds > 0)
		layer.per_giga_j = layer.energy_j / (layer.passes * layer.multiply_adds) * 1e9;
	return layer;
}

static const struct layer *layer_at(const struct object_at *at)
{
	return at->data;
}

static void name(struct buf *out, const struct object_at *at, bool is_page)
{
	const struct layer *layer = layer_at(at);
	if (is_outside(layer->row))
		buf_str(out, "<span class=\"faint\">outside layers</span>");
	else if (layer->name != NULL && layer->name[0] != '\0')
		part_name(out, layer->name);
	else
		buf_str(out, "<span class=\"faint\">(model)</span>");
}

static void type(struct buf *out, const struct object_at *at, bool is_page)
{
	const json_t *row = layer_at(at)->row;
	if (!is_outside(row))
		part_name(out, json_string_value(json_object_get(row, "type")));
}

static void shape(struct buf *out, const struct object_at *at, bool is_page)
{
	size_t i;
	json_t *size;
	json_array_foreach(json_object_get(layer_at(at)->row, "output_shape"), i, size)
	{
		buf_str(out, i == 0 ? "" : " × ");
		if (json_is_integer(size))
			buf_i64(out, json_integer_value(size));
		else
			html_text(out, json_is_string(size) ? json_string_value(size) : "?");
	}
}

#define DERIVED .error = "error_j", .of = "energy_j"
enum { COST_COLUMNS = 4 }; // the last ones, only if a layer has been measured
static const struct column columns[] = {
	{NULL, "layer", COLUMN_NAME, .write = name},
	{NULL, "type", COLUMN_TEXT, .write = type},
	{"parameters", .print = human_count},
	{"multiply_adds", .print = human_count},
	{NULL, "output", COLUMN_TEXT, .write = shape},
	{"time_s"},
	{"energy_j", .error = "error_j", .is_sorted = true},
	{"share_percent", .print = part_percent, DERIVED},
	{"per_giga_j", DERIVED},
};

static void table(const struct layers *layers)
{
	struct rows rows = {.at = arena_alloc(layers->part->document->arena, layers->n + 1, sizeof(*rows.at)),
		.n = layers->n};
	struct grid grid = GRID("layers-table", columns);
	if (rows.at == NULL) {
		layers->part->out->failed = -ENOMEM;
		return;
	}
	if (rows.n == 0)
		return;
	for (size_t i = 0; i < rows.n; i++)
		rows.at[i] = (struct object_at){.type = &layer_type, .data = &layers->all[i], .index = i};
	if (layers->has_costs) // print shows only a few rows
		rows_sort(&rows, "energy_j", NULL);
	else
		grid.n_columns -= COST_COLUMNS;
	part_grid(layers->part, &grid, &rows, (struct limits){ROWS_MAX, ROWS_MAX, PRINT_LAYERS});
	if (layers->has_costs)
		buf_str(layers->part->out,
			"<p class=\"faint small\">Time and energy cover forward and backward passes, without nested layers. "
			"Multiply-adds are per forward pass; joules per multiply-add include all calls.</p>\n");
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

static void add(struct layers *layers, const json_t *row)
{
	struct layer layer = layer_of(layers, row);
	layers->has_costs |= layer.is_measured;
	layers->all[layers->n++] = layer;
}

static void gather(struct layers *layers)
{
	const json_t *known = json_object_get(layers->summary, "layers");
	json_t *names = json_object(), *row;
	size_t i, n = json_array_size(known) + json_array_size(layers->kept);
	layers->all = arena_alloc(layers->part->document->arena, n + 1, sizeof(*layers->all));
	if (layers->all == NULL)
		layers->part->out->failed = -ENOMEM;
	json_array_foreach(layers->kept, i, row)
	{
		if (!is_outside(row))
			json_object_set(layers->costs, json_string_value(json_object_get(row, "name")), row);
	}
	for (i = 0; layers->all != NULL && i < n; i++) {
		size_t n_known = json_array_size(known);
		row = i < n_known ? json_array_get(known, i) : json_array_get(layers->kept, i - n_known);
		const char *of = json_string_value(json_object_get(row, "name"));
		if (i < n_known)
			json_object_set(names, of, row);
		else if (of == NULL || (!is_outside(row) && json_object_get(names, of) != NULL))
			continue;
		add(layers, row);
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
	};
	if (layers.summary != NULL || json_array_size(layers.kept) > 0) {
		gather(&layers);
		section_begin(part, "layers", layers.summary != NULL ? "Layers and complexity" : "Layers");
		if (layers.summary != NULL)
			figures(&layers);
		table(&layers);
		section_end(part);
	}
	json_decref(layers.costs);
	json_decref(layers.kept);
	json_decref(layers.summary);
}
