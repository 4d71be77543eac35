#include "report/documents.h"

#include "base/fields.h"
#include "base/util.h"

// clang-format off

/* ---- shapes, located by the offset of a list's field ---- */

static const struct model_shape *shape(const struct object_at *at)
{
	return (const void *)((const char *)at->data + at->field->offset);
}

static bool has_no_shape(const struct object_at *at)
{
	return !shape(at)->known;
}

static size_t rank(const struct object_at *at)
{
	return (size_t)shape(at)->rank;
}

static int64_t dimension(const struct object_at *at)
{
	return shape(at->outer)->dims[at->index];
}

static const struct field dimension_field = FIELD_INTEGER("dimension", dimension, NULL, "size of a dimension; null: unknown");
#define SHAPE(key, struct_, member, meaning)                                                                           \
	FIELD_VALUES(key, &dimension_field, rank, meaning, .offset = offsetof(struct_, member), .null_if = has_no_shape)

/* ---- layers ---- */

static bool is_unknown(const struct object_at *at)
{
	return ((const struct model_layer *)at->data)->why != NULL;
}

#define L struct model_layer
static const struct field layer_fields[] = {
	FIELD(L, name, NULL, "name of the node; caller/node inside functions and subgraphs"),
	FIELD(L, type, NULL, "operator"),
	FIELD(L, parameters, NULL, "parameters", .title = "parameters"),
	FIELD(L, multiply_adds, NULL, "multiply-adds with a weight"),
	FIELD(L, other_multiply_adds, NULL, "multiply-adds of two values that depend on the input"),
	SHAPE("output_shape", L, output, "dimensions of the first output; null: unknown"),
	FIELD_AS(L, "unknown", why, NULL, "reason why its multiply-adds are unknown", .present = is_unknown),
};
#undef L
static const struct object_type layer_type = OBJECT_TYPE("layer", "A node of the graph.", layer_fields);

static const struct field input_fields[] = {
	FIELD(struct model_input, name, NULL, "name of the input"),
	SHAPE("shape", struct model_input, shape, "its dimensions; null: unknown"),
};
static const struct object_type input_type = OBJECT_TYPE("input", "An input of the model.", input_fields);

static const struct field operator_fields[] = {
	FIELD(struct model_operator, type, NULL, "the operator"),
	FIELD(struct model_operator, count, NULL, "number of nodes with this operator"),
};
static const struct object_type operator_type = OBJECT_TYPE("operator", "An unknown operator.", operator_fields);

/* ---- document ---- */

#define F struct model_figures
static const struct field model_fields[] = {
	FIELD_SCHEMA("wattle-model/1"),
	FIELD(F, producer, NULL, "program that wrote the file"),
	FIELD(F, ir_version, NULL, "ONNX IR version"),
	FIELD(F, opset, NULL, "ONNX operator set version"),
	FIELD(F, batch, NULL, "batch size of the figures"),
	FIELD(F, parameters, NULL, "elements of stored floating-point tensors that nodes use, and of quantized weights; each tensor counts once"),
	FIELD(F, parameter_bytes, "bytes", "stored size of the parameters"),
	FIELD(F, multiply_adds, NULL, "multiply-adds with a weight, one per weight and position of use; null: unknown for a layer"),
	FIELD(F, known_multiply_adds, NULL, "sum over the layers where they are known"),
	FIELD(F, other_multiply_adds, NULL, "multiply-adds of two values that depend on the input, such as attention's; null: unknown for a layer"),
	FIELD(F, known_other_multiply_adds, NULL, "sum over the layers where they are known"),
	FIELD(F, read_bytes, "bytes", "bytes read from the file, without the weights"),
	FIELD_ITEMS(F, "inputs", inputs, n_inputs, &input_type, "inputs without the weights"),
	FIELD_ITEMS(F, "layers", layers, n_layers, &layer_type, "compute nodes, in file order"),
	FIELD_ITEMS(F, "unknown_operators", unknown_operators, n_unknown_operators, &operator_type, "unknown operators"),
	FIELD_ITEM_VALUES(F, "open_dimensions", free_dims, n_free_dims, &text_item, "named dimensions without a size"),
	FIELD_ITEM_VALUES(F, "warnings", warnings, n_warnings, &text_item, "remarks on these figures"),
};
#undef F
const struct object_type model_type = OBJECT_TYPE("model", "Parameters and multiply-adds of a model.", model_fields);

void model_json(const struct model_figures *figures, struct buf *out)
{
	document_json(out, &model_type, figures, true);
	buf_char(out, '\n');
}
