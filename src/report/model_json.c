#include "report/model_report.h"

#include "base/jsonw.h"
#include "base/util.h"

static void shape(struct jsonw *j, const char *key, const struct model_shape *shape)
{
	jsonw_key(j, key);
	if (!shape->known) {
		jsonw_null(j);
		return;
	}
	jsonw_begin_array(j);
	for (int i = 0; i < shape->rank; i++) {
		if (value_ok(shape->dims[i]))
			jsonw_i64(j, shape->dims[i]);
		else
			jsonw_null(j);
	}
	jsonw_end_array(j);
}

static void layers(struct jsonw *j, const struct model_figures *f)
{
	jsonw_key(j, "layers");
	jsonw_begin_array(j);
	for (size_t i = 0; i < f->n_layers; i++) {
		const struct model_layer *layer = &f->layers[i];
		jsonw_begin_object(j);
		jsonw_key_string(j, "name", layer->name);
		jsonw_key_string(j, "type", layer->type);
		jsonw_key_i64(j, "parameters", layer->parameters);
		jsonw_key_i64(j, "multiply_adds", layer->multiply_adds);
		jsonw_key_i64(j, "other_multiply_adds", layer->other_multiply_adds);
		shape(j, "output_shape", &layer->output);
		if (layer->why != NULL)
			jsonw_key_string(j, "unknown", layer->why);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

static void inputs(struct jsonw *j, const struct model_figures *f)
{
	jsonw_key(j, "inputs");
	jsonw_begin_array(j);
	for (size_t i = 0; i < f->n_inputs; i++) {
		jsonw_begin_object(j);
		jsonw_key_string(j, "name", f->inputs[i].name);
		shape(j, "shape", &f->inputs[i].shape);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

static void texts(struct jsonw *j, const char *key, const char *const *items, size_t n)
{
	jsonw_key(j, key);
	jsonw_begin_array(j);
	for (size_t i = 0; i < n; i++)
		jsonw_string(j, items[i]);
	jsonw_end_array(j);
}

static void unknown_operators(struct jsonw *j, const struct model_figures *f)
{
	jsonw_key(j, "unknown_operators");
	jsonw_begin_array(j);
	for (size_t i = 0; i < f->n_unknown_operators; i++) {
		jsonw_begin_object(j);
		jsonw_key_string(j, "type", f->unknown_operators[i].type);
		jsonw_key_i64(j, "count", f->unknown_operators[i].count);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

void model_json(const struct model_figures *figures, struct buf *out)
{
	const struct model_figures *f = figures;
	struct jsonw j;
	jsonw_init(&j, out, true);
	jsonw_begin_object(&j);
	jsonw_key_string(&j, "schema", "wattle-model/1");
	jsonw_key_string(&j, "producer", f->producer);
	jsonw_key_i64(&j, "ir_version", f->ir_version);
	jsonw_key_i64(&j, "opset", f->opset);
	jsonw_key_i64(&j, "batch", f->batch);
	jsonw_key_i64(&j, "parameters", f->parameters);
	jsonw_key_i64(&j, "parameter_bytes", f->parameter_bytes);
	jsonw_key_i64(&j, "multiply_adds", f->multiply_adds);
	jsonw_key_i64(&j, "known_multiply_adds", f->known_multiply_adds);
	jsonw_key_i64(&j, "other_multiply_adds", f->other_multiply_adds);
	jsonw_key_i64(&j, "known_other_multiply_adds", f->known_other_multiply_adds);
	jsonw_key_i64(&j, "read_bytes", (int64_t)f->read_bytes); // of the file
	inputs(&j, f);
	layers(&j, f);
	unknown_operators(&j, f);
	texts(&j, "open_dimensions", f->free_dims, f->n_free_dims);
	texts(&j, "warnings", f->warnings, f->n_warnings);
	jsonw_end_object(&j);
	buf_char(out, '\n');
}
