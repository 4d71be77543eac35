/* One operator at a time: its output shape. Each row is written as:
 *
 *	Operator INPUT… [NUMBERS] attribute=value… -> SHAPE
 *
 * INPUT is a shape (2x3, `scalar`), [1,-1] integers stored in the file, `-` an omitted input; attribute=1,2, is a list,
 * attribute=1 a number, attribute=text a text. `?` is an unknown size; `error` is an invalid graph. */
#include "model_builder.h"

#include "base/buf.h"

#include <ctype.h>
#include <errno.h>

static const struct row {
	const char *teaches;
	int64_t opset;
	const char *text;
} rows[] = {
	{"broadcasting: sizes of 1 repeat, missing leading sizes too", 13, "Add 2x1x4 3x1 -> 2x3x4"},
	{"required input omitted: shape unknown", 13, "Add [2] - -> n/a"},
	{"broadcasting of three inputs", 13, "Where [1] - [2] -> n/a"},
	{"broadcasting of different sizes: error", 13, "Add 2x3 2x4 -> error"},
	{"sliding window: (size + pads - kernel) / stride + 1", 13,
		"Conv 1x3x9x8 4x3x3x3 strides=2,2, pads=1,1,1,1, -> 1x4x5x4"},
	{"dilation enlarges the window", 13, "Conv 1x3x9x9 4x3x3x3 dilations=2,2, -> 1x4x5x5"},
	{"SAME padding: size / stride", 13, "Conv 1x3x9x9 4x3x3x3 strides=2,2, auto_pad=SAME_UPPER -> 1x4x5x5"},
	{"groups share the channels", 13, "Conv 1x6x5x5 4x3x3x3 group=2 -> 1x4x3x3"},
	{"channels differ from the weight's: error", 13, "Conv 1x5x5x5 4x3x3x3 group=2 -> error"},
	{"window larger than its input: error", 13, "Conv 1x3x2x2 4x3x3x3 -> error"},
	{"stride of 0: error", 13, "Conv 1x3x9x9 4x3x3x3 strides=0,0, -> error"},
	{"more strides than spatial dimensions: error", 13, "Conv 1x3x9x9 4x3x3x3 strides=2,2,2, -> error"},
	{"two pads for each spatial dimension", 13, "Conv 1x3x9x9 4x3x3x3 pads=1,1,1,1,1,1, -> error"},
	{"transposed: (size - 1) * stride + kernel - pads + output_padding", 13,
		"ConvTranspose 1x4x5x5 4x6x3x3 strides=2,2, pads=1,1,1,1, output_padding=1,1, -> 1x6x10x10"},
	{"ceil_mode: no window starts in the trailing padding", 13,
		"MaxPool 1x1x4x4 kernel_shape=1,1, strides=2,2, ceil_mode=1 -> 1x1x2x2"},
	{"ceil_mode rounds up", 13, "MaxPool 1x1x6x6 kernel_shape=3,3, strides=2,2, ceil_mode=1 -> 1x1x3x3"},
	{"global pooling: spatial size 1", 13, "GlobalAveragePool 2x7x5x5 -> 2x7x1x1"},
	{"stacks of matrices broadcast", 13, "MatMul 5x1x2x3 4x3x6 -> 5x4x2x6"},
	{"matrix times vector: one dimension fewer", 13, "MatMul 3 4x3x6 -> 4x6"},
	{"inner sizes differ: error", 13, "MatMul 2x3 4x5 -> error"},
	{"Gemm transposes its factors", 13, "Gemm 3x2 5x3 transA=1 transB=1 -> 2x5"},
	{"Einsum: sizes by subscript letters", 13, "Einsum 2x3x4 5x4 equation=bij,kj->bik -> 2x3x5"},
	{"Einsum with an ellipsis", 13, "Einsum 7x2x3 3x4 equation=...ij,jk->...ik -> 7x2x4"},
	{"Einsum: equation does not match the inputs: error", 13, "Einsum 2x3 3x4 equation=ij -> error"},
	{"Reshape: 0 keeps a size, -1 is the rest", 13, "Reshape 2x3x4 [0,-1] -> 2x12"},
	{"Reshape with allowzero: 0 is 0", 14, "Reshape 0x3 [0,5] allowzero=1 -> 0x5"},
	{"Reshape to another number of elements: error", 13, "Reshape 2x3x4 [5,-1] -> error"},
	{"Reshape before opset 5: shape is an attribute", 7, "Reshape 2x3x4 shape=6,4, -> 6x4"},
	{"Flatten at an axis", 13, "Flatten 2x3x4x5 axis=2 -> 6x20"},
	{"Squeeze: axes as attribute up to opset 12", 11, "Unsqueeze 3x4 axes=0,-1, -> 1x3x4x1"},
	{"Squeeze: axes as input since opset 13", 13, "Unsqueeze 3x4 [0,3] -> 1x3x4x1"},
	{"Squeeze: an axis whose size is not 1: error", 13, "Squeeze 2x1x3 [0] -> error"},
	{"Squeeze without axes: removes all sizes of 1", 13, "Squeeze 1x2x1x3 -> 2x3"},
	{"perm", 13, "Transpose 2x3x4 perm=2,0,1, -> 4x2x3"},
	{"Transpose: perm must name each axis once", 13, "Transpose 2x3x4 perm=2,0,2, -> error"},
	{"Concat: sizes along the axis add up", 13, "Concat 2x3 2x5 axis=-1 -> 2x8"},
	{"Split: as many parts as outputs", 13, "Split 6x4 [2,4] -> error"},
	{"Split: part larger than the input: error", 13, "Split 6x4 [7] -> error"},
	{"Split: more equal parts than elements: error", 18,
		"Split 6x4 num_outputs=9223372036854775807 -> 1x4"},
	{"Slice: ends beyond the size are clamped", 13, "Slice 10x20 [2,0] [5,9223372036854775807] -> 3x20"},
	{"Slice: negative steps go backwards", 13, "Slice 10 [-1] [-9223372036854775807] [0] [-3] -> 4"},
	{"Slice: empty result", 13, "Slice 10 [8] [3] -> 0"},
	{"Slice: step of 0: error", 13, "Slice 10 [0] [5] [0] [0] -> error"},
	{"Gather: the shape of the indices replaces the axis", 13, "Gather 5x6x7 [2,3] axis=1 -> 5x2x7"},
	{"Expand broadcasts both ways", 13, "Expand 3x1 [2,1,6] -> 2x3x6"},
	{"Tile", 13, "Tile 2x3 [2,4] -> 4x12"},
	{"Pad: leading and trailing pads, also negative", 13, "Pad 4x5 [1,-1,2,0] -> 7x4"},
	{"Resize by sizes", 13, "Resize 1x3x8x8 - - [1,3,16,20] -> 1x3x16x20"},
	{"Reduce: keepdims keeps the axis as 1, else it is removed", 13, "ReduceMean 2x3x4 axes=1, keepdims=0 -> 2x4"},
	{"Reduce without axes: all axes", 13, "ReduceSum 2x3x4 -> 1x1x1"},
	{"Reduce: axis out of range: error", 13, "ArgMax 2x3 axis=2 -> error"},
	{"ArgMax", 13, "ArgMax 2x3x4 axis=-1 keepdims=0 -> 2x3"},
	{"TopK: k as input", 13, "TopK 2x9 [3] -> 2x3"},
	{"SpaceToDepth: blocks become channels", 13, "SpaceToDepth 1x2x6x4 blocksize=2 -> 1x8x3x2"},
	{"DepthToSpace: channels become blocks", 13, "DepthToSpace 1x8x3x2 blocksize=2 -> 1x2x6x4"},
	{"RNN: steps x directions x sequences x hidden", 14,
		"LSTM 7x3x10 2x64x10 2x64x16 hidden_size=16 direction=bidirectional -> 7x2x3x16"},
	{"RNN: features differ from the weight's: error", 14, "GRU 7x3x11 1x48x10 1x48x16 hidden_size=16 -> error"},
	{"NonZero: number of results unknown", 13, "NonZero 2x3 -> 2x?"},
	{"RoiAlign with a negative output size: error", 16,
		"RoiAlign 1x3x8x8 5x4 5 output_height=-1 -> error"},
	{"TopK with a negative k: error", 9, "TopK 2x9 k=-1 -> error"},
	{"LSTM with a negative hidden size: error", 14, "LSTM 7x3x10 - - hidden_size=-4 -> error"},
	{"OneHot with a negative depth: error", 13, "OneHot 4 [-3] 2 -> error"},
	{"size that overflows: error", 13, "Tile 4611686018427387904x3 [4,1] -> error"},
};

/* ---- from a row to a model ---- */

enum { WORDS = 12 };

struct made {
	Onnx__GraphProto graph;
	Onnx__NodeProto node;
	Onnx__ModelProto model;
	struct arena *arena;
};

static void *alloc(struct made *made, size_t n, size_t size)
{
	void *start = arena_alloc(made->arena, n, size);
	assert_non_null(start);
	return start;
}

static size_t read_numbers(const char *text, char separator, int64_t *ret)
{
	size_t n = 0;
	while (isdigit((unsigned char)*text) || *text == '-') {
		char *end;
		errno = 0;
		ret[n++] = strtoll(text, &end, 10);
		assert_int_equal(errno, 0);
		text = *end == separator ? end + 1 : end;
	}
	return n;
}

static char *new_name(struct made *made, const char *prefix)
{
	char *name = alloc(made, 16, 1);
	snprintf(name, 16, "%s%zu", prefix, made->node.n_input);
	made->node.input[made->node.n_input++] = name;
	return name;
}

static void add_input(struct made *made, const char *word)
{
	int64_t sizes[16];
	size_t n = read_numbers(word, 'x', sizes);
	Onnx__ValueInfoProto *info = alloc(made, 1, sizeof(*info));
	Onnx__TypeProto *type = alloc(made, 1, sizeof(*type));
	Onnx__TypeProto__Tensor *tensor = alloc(made, 1, sizeof(*tensor));
	Onnx__TensorShapeProto *shape = alloc(made, 1, sizeof(*shape));
	onnx__value_info_proto__init(info);
	onnx__type_proto__init(type);
	onnx__type_proto__tensor__init(tensor);
	onnx__tensor_shape_proto__init(shape);
	shape->dim = alloc(made, n + 1, sizeof(*shape->dim));
	for (size_t i = 0; i < n; i++) {
		Onnx__TensorShapeProto__Dimension *dim = shape->dim[i] = alloc(made, 1, sizeof(*dim));
		onnx__tensor_shape_proto__dimension__init(dim);
		dim->has_dim_value = true;
		dim->dim_value = sizes[i];
	}
	shape->n_dim = n;
	tensor->has_elem_type = true;
	tensor->elem_type = ONNX_FLOAT;
	tensor->shape = shape;
	type->tensor_type = tensor;
	info->type = type;
	info->name = new_name(made, "x");
	made->graph.input[made->graph.n_input++] = info;
}

static void add_stored(struct made *made, const char *word)
{
	Onnx__TensorProto *tensor = alloc(made, 1, sizeof(*tensor));
	onnx__tensor_proto__init(tensor);
	tensor->int64_data = alloc(made, 16, sizeof(int64_t));
	tensor->n_int64_data = read_numbers(word + 1, ',', tensor->int64_data);
	tensor->dims = alloc(made, 1, sizeof(int64_t));
	tensor->dims[0] = (int64_t)tensor->n_int64_data;
	tensor->n_dims = 1;
	tensor->has_data_type = true;
	tensor->data_type = ONNX_INT64;
	tensor->name = new_name(made, "s");
	made->graph.initializer[made->graph.n_initializer++] = tensor;
}

static void add_attribute(struct made *made, char *word, char *equals)
{
	Onnx__AttributeProto *attribute = alloc(made, 1, sizeof(*attribute));
	onnx__attribute_proto__init(attribute);
	*equals = '\0';
	attribute->name = word;
	char *text = equals + 1;
	attribute->ints = alloc(made, 16, sizeof(int64_t));
	size_t n = read_numbers(text, ',', attribute->ints);
	if (n > 0 && text[strlen(text) - 1] == ',') {
		attribute->n_ints = n;
	} else if (n > 0) {
		attribute->has_i = true;
		attribute->i = attribute->ints[0];
	} else {
		attribute->has_s = true;
		attribute->s.data = (uint8_t *)text;
		attribute->s.len = strlen(text);
	}
	made->node.attribute[made->node.n_attribute++] = attribute;
}

static void add_word(struct made *made, char *word)
{
	char *equals = strchr(word, '=');
	if (word[0] == '[')
		add_stored(made, word);
	else if (strcmp(word, "-") == 0)
		new_name(made, "")[0] = '\0';
	else if (equals != NULL)
		add_attribute(made, word, equals);
	else
		add_input(made, word);
}

static void make(struct made *made, char *text, int64_t opset)
{
	static char output[] = "y", empty[] = "";
	static char *outputs[] = {output};
	char *words = NULL;
	onnx__graph_proto__init(&made->graph);
	onnx__node_proto__init(&made->node);
	onnx__model_proto__init(&made->model);
	made->node.op_type = strtok_r(text, " ", &words);
	made->node.domain = empty;
	made->node.input = alloc(made, WORDS, sizeof(char *));
	made->node.attribute = alloc(made, WORDS, sizeof(*made->node.attribute));
	made->node.output = outputs;
	made->node.n_output = 1;
	made->graph.input = alloc(made, WORDS, sizeof(*made->graph.input));
	made->graph.initializer = alloc(made, WORDS, sizeof(*made->graph.initializer));
	for (char *word; (word = strtok_r(NULL, " ", &words)) != NULL;)
		add_word(made, word);
	made->graph.node = alloc(made, 1, sizeof(*made->graph.node));
	made->graph.node[0] = &made->node;
	made->graph.n_node = 1;
	made->model.graph = &made->graph;
	made->model.has_ir_version = true;
	made->model.ir_version = 8;
	Onnx__OperatorSetIdProto *import = alloc(made, 1, sizeof(*import));
	onnx__operator_set_id_proto__init(import);
	import->has_version = true;
	import->version = opset;
	made->model.opset_import = alloc(made, 1, sizeof(*made->model.opset_import));
	made->model.opset_import[0] = import;
	made->model.n_opset_import = 1;
}

static void add_shape(struct buf *out, const struct model_shape *shape)
{
	if (!shape->known)
		buf_str(out, "n/a");
	for (int i = 0; shape->known && i < shape->rank; i++) {
		buf_str(out, i > 0 ? "x" : "");
		if (value_ok(shape->dims[i]))
			buf_i64(out, shape->dims[i]);
		else
			buf_char(out, '?');
	}
}

static void check(void **state)
{
	const struct row *row = *state;
	struct made made = {.arena = arena_new()};
	char *text = arena_text(made.arena, row->text);
	char *arrow = strstr(text, " -> ");
	for (char *next; (next = strstr(arrow + 1, " -> ")) != NULL;)
		arrow = next;
	*arrow = '\0';
	make(&made, text, row->opset);
	size_t size = onnx__model_proto__get_packed_size(&made.model);
	uint8_t *bytes = alloc(&made, size, 1);
	onnx__model_proto__pack(&made.model, bytes);
	struct made_file file = made_open();
	made_write(&file, bytes, size);
	struct model_figures figures;
	struct buf found;
	buf_init(&found, 1000);
	int r = made_read(&file, made.arena, &figures);
	if (r < 0)
		buf_str(&found, "error");
	else
		add_shape(&found, &figures.layers[0].output);
	assert_string_equal(found.data != NULL ? found.data : "", arrow + 4);
	buf_finish(&found);
	close(file.fd);
	arena_free(made.arena);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "shapes of operators");
}
