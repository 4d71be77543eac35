/* Damaged models: bytes changed, truncated, doubled and moved, and noise. Each gives figures or an error of one
 * line; counts are never negative. The seeds are fixed, so failures repeat. */
#include "model_builder.h"

enum { CHANGES = 6000, NOISE = 500, NOISE_SIZE = 400 };

static uint64_t state_of_chance = 0x9e3779b97f4a7c15;

static uint64_t below(uint64_t limit) // xorshift64*
{
	state_of_chance ^= state_of_chance >> 12;
	state_of_chance ^= state_of_chance << 25;
	state_of_chance ^= state_of_chance >> 27;
	return state_of_chance * 0x2545f4914f6cdd1d % limit;
}

static void check_figures(const struct model_figures *f)
{
	assert_true(!value_ok(f->parameters) || f->parameters >= 0);
	assert_true(!value_ok(f->multiply_adds) || f->multiply_adds == f->known_multiply_adds);
	assert_true(f->known_multiply_adds >= 0 && f->known_other_multiply_adds >= 0);
	for (size_t i = 0; i < f->n_layers; i++) {
		const struct model_layer *layer = &f->layers[i];
		assert_non_null(layer->name);
		assert_non_null(layer->type);
		assert_true(!layer->output.known || (layer->output.rank >= 0 && layer->output.rank <= MODEL_RANK_MAX));
		for (int k = 0; layer->output.known && k < layer->output.rank; k++)
			assert_true(!value_ok(layer->output.dims[k]) || layer->output.dims[k] >= 0);
		assert_true(value_ok(layer->multiply_adds) || layer->why != NULL);
	}
}

static int read_once(const struct made_file *file, const void *bytes, size_t size)
{
	struct arena *arena = arena_new();
	struct model_figures figures;
	made_write(file, bytes, size);
	int r = made_read(file, arena, &figures);
	if (r == 0)
		check_figures(&figures);
	arena_free(arena);
	return r;
}

/* ---- a model with a node of every kind ---- */

static char name_x[] = "x", name_w[] = "w", name_s[] = "s", name_a[] = "a", name_b[] = "b", name_c[] = "c",
	    name_d[] = "d", name_y[] = "y";
static char *const names[] = {name_x, name_w, name_s, name_a, name_b, name_c, name_d, name_y};

static size_t make_model(uint8_t **ret_bytes)
{
	static float numbers[4 * 3 * 9];
	static int64_t conv_dims[] = {4, 3, 3, 3}, shape_dims[] = {3}, shape[] = {0, -1, 2}, ones[] = {1, 1, 1, 1},
		       axes[] = {2};
	static int64_t sizes[] = {1, 3, 8, 8};
	Onnx__TensorProto w = ONNX__TENSOR_PROTO__INIT, s = ONNX__TENSOR_PROTO__INIT;
	w.name = names[1];
	w.dims = conv_dims;
	w.n_dims = 4;
	w.has_data_type = s.has_data_type = true;
	w.data_type = ONNX_FLOAT;
	w.float_data = numbers;
	w.n_float_data = ARRAY_SIZE(numbers);
	s.name = names[2];
	s.dims = shape_dims;
	s.n_dims = 1;
	s.data_type = ONNX_INT64;
	s.int64_data = shape;
	s.n_int64_data = 3;
	Onnx__TensorProto *stored[] = {&w, &s};
	Onnx__AttributeProto pads = ONNX__ATTRIBUTE_PROTO__INIT, axis = ONNX__ATTRIBUTE_PROTO__INIT,
			     equation = ONNX__ATTRIBUTE_PROTO__INIT;
	pads.name = (char[]){"pads"};
	pads.ints = ones;
	pads.n_ints = 4;
	axis.name = (char[]){"axes"};
	axis.ints = axes;
	axis.n_ints = 1;
	equation.name = (char[]){"equation"};
	equation.has_s = true;
	equation.s = (ProtobufCBinaryData){11, (uint8_t[]){"bij,bkj->bik"}};
	equation.s.len = 12;
	Onnx__AttributeProto *conv_attributes[] = {&pads}, *axis_attributes[] = {&axis},
			     *sum_attributes[] = {&equation};
	static const char *const kinds[] = {"Conv", "Reshape", "Einsum", "ReduceMean", "Shape"};
	Onnx__NodeProto nodes[5], *graph_nodes[5];
	char *conv_in[] = {names[0], names[1]}, *reshape_in[] = {names[3], names[2]}, *sum_in[] = {names[4], names[4]};
	char **in[] = {conv_in, reshape_in, sum_in, &conv_in[0], &reshape_in[0]};
	static const size_t n_in[] = {2, 2, 2, 1, 1};
	char *out[] = {names[3], names[4], names[5], names[6], names[7]};
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		onnx__node_proto__init(&nodes[i]);
		nodes[i].op_type = (char *)(uintptr_t)kinds[i];
		nodes[i].input = in[i];
		nodes[i].n_input = n_in[i];
		nodes[i].output = &out[i];
		nodes[i].n_output = 1;
		graph_nodes[i] = &nodes[i];
	}
	nodes[0].attribute = conv_attributes;
	nodes[2].attribute = sum_attributes;
	nodes[3].attribute = axis_attributes;
	nodes[0].n_attribute = nodes[2].n_attribute = nodes[3].n_attribute = 1;
	Onnx__TensorShapeProto__Dimension dims[4], *dim[4];
	for (size_t i = 0; i < 4; i++) {
		onnx__tensor_shape_proto__dimension__init(&dims[i]);
		dims[i].has_dim_value = true;
		dims[i].dim_value = sizes[i];
		dim[i] = &dims[i];
	}
	Onnx__TensorShapeProto input_shape = ONNX__TENSOR_SHAPE_PROTO__INIT;
	input_shape.dim = dim;
	input_shape.n_dim = 4;
	Onnx__TypeProto__Tensor tensor = ONNX__TYPE_PROTO__TENSOR__INIT;
	tensor.shape = &input_shape;
	Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
	type.tensor_type = &tensor;
	Onnx__ValueInfoProto input = ONNX__VALUE_INFO_PROTO__INIT, *inputs[] = {&input};
	input.name = names[0];
	input.type = &type;
	Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
	graph.node = graph_nodes;
	graph.n_node = ARRAY_SIZE(nodes);
	graph.initializer = stored;
	graph.n_initializer = 2;
	graph.input = inputs;
	graph.n_input = 1;
	Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
	opset.has_version = true;
	opset.version = 13;
	Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
	model.has_ir_version = true;
	model.ir_version = 8;
	model.graph = &graph;
	model.opset_import = opsets;
	model.n_opset_import = 1;
	size_t size = onnx__model_proto__get_packed_size(&model);
	*ret_bytes = malloc(size);
	assert_non_null(*ret_bytes);
	onnx__model_proto__pack(&model, *ret_bytes);
	return size;
}

static size_t change(uint8_t *bytes, size_t size)
{
	for (uint64_t n = below(4); n > 0; n--)
		bytes[below(size)] = below(3) == 0 ? 0xff : (uint8_t)below(256);
	size_t from = below(size), to = below(size), length = below(size - (from > to ? from : to));
	switch (below(5)) {
	case 0:
		return below(size) + 1; // truncated
	case 1:
		memmove(bytes + to, bytes + from, length); // doubled
		return size;
	default:
		return size;
	}
}

static void changed(void **state)
{
	uint8_t *bytes, *copy;
	size_t size = make_model(&bytes), n_read = 0;
	struct made_file file = made_open();
	assert_int_equal(read_once(&file, bytes, size), 0);
	copy = malloc(size);
	assert_non_null(copy);
	for (int i = 0; i < CHANGES; i++) {
		memcpy(copy, bytes, size);
		n_read += read_once(&file, copy, change(copy, size)) == 0;
	}
	assert_true(n_read > CHANGES / 50 && n_read < CHANGES); // both outcomes occur
	free(copy);
	free(bytes);
	close(file.fd);
}

static void noise(void **state)
{
	struct made_file file = made_open();
	for (int i = 0; i < NOISE; i++) {
		uint8_t bytes[NOISE_SIZE];
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)below(256);
		assert_true(read_once(&file, bytes, sizeof(bytes)) < 0);
	}
	close(file.fd);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "model with bytes changed, truncated or doubled: figures or an error of one line",
		changed);
	ROWS_ADD_ONE(&tests, "noise: an error of one line", noise);
	return rows_run(&tests, "hostile models");
}
