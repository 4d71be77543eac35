/* The inputs of the graph: finds the weights among them, and the sizes of open dimensions. */
#include "model/internal.h"

#include <ctype.h>
#include <errno.h>

/* ---- weights among the inputs ----
 *
 * torch.onnx.export(export_params=False) stores no tensor: the weights are inputs after the real ones. An input is a
 * weight if a node uses it as one (a convolution's kernel, …), directly or transposed, sliced or concatenated. In a
 * graph that stores no weights at all, it is also one if it follows such an input or has a name like a module's
 * parameter. */

struct search {
	struct intern wanted; // names of values that are weights
	struct walk *walk;
	bool failed;
};

static void want(struct search *search, const char *name)
{
	if (name[0] != '\0' && intern_number(&search->wanted, name, strlen(name)) < 0)
		search->failed = true;
}

static bool is_wanted(const struct search *search, const char *name)
{
	return intern_find(&search->wanted, name, strlen(name)) >= 0;
}

static bool is_plain(const Onnx__NodeProto *node)
{
	return node->op_type != NULL &&
		(node->domain == NULL || node->domain[0] == '\0' || strcmp(node->domain, "ai.onnx") == 0);
}

static bool is_one_of(const Onnx__NodeProto *node, const char *const *types, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(node->op_type, types[i]) == 0)
			return true;
	return false;
}

// Number of a node's inputs that its first output consists of, if it only moves, slices or concatenates them.
static size_t carried(const Onnx__NodeProto *node)
{
	static const char *const carriers[] = {"Transpose", "Reshape", "Unsqueeze", "Squeeze", "Slice", "Cast",
		"Identity", "Split", "Flatten", "DequantizeLinear"};
	if (!is_plain(node) || node->n_input == 0)
		return 0;
	if (strcmp(node->op_type, "Concat") == 0)
		return node->n_input;
	return is_one_of(node, carriers, ARRAY_SIZE(carriers)) ? 1 : 0;
}

// Marks inputs that are weights because of the operator.
static void want_weights(struct search *search, const Onnx__NodeProto *node)
{
	const struct operator_row *what = is_plain(node) ? operator_find("", node->op_type) : NULL;
	// These operators accept weights and activations for the same input.
	static const char *const unsure[] = {"MatMul", "Gather", "Gemm", "MatMulInteger", "DequantizeLinear", "Einsum"};
	if (what == NULL || is_one_of(node, unsure, ARRAY_SIZE(unsure)))
		return;
	uint32_t weights = what->weights;
	if (strcmp(node->op_type, "BatchNormalization") == 0)
		weights |= what->settings;
	for (size_t i = 0; i < node->n_input && i < 32; i++)
		if ((weights >> i & 1) != 0)
			want(search, node->input[i]);
}

static void search_nodes(struct search *search, const Onnx__GraphProto *graph)
{
	for (size_t i = graph->n_node; i > 0; i--) {
		const Onnx__NodeProto *node = graph->node[i - 1];
		want_weights(search, node);
		for (size_t k = 0; k < node->n_output; k++)
			if (is_wanted(search, node->output[k]))
				for (size_t m = 0, n = carried(node); m < n; m++)
					want(search, node->input[m]);
		// Gemm is nn.Linear: its second factor and its bias are weights; the first factor is the activation.
		if (is_plain(node) && strcmp(node->op_type, "Gemm") == 0)
			for (size_t k = 1; k < node->n_input; k++)
				want(search, node->input[k]);
	}
}

// "layer1.0.conv1.weight", "weight_ih_l0", "in_proj_weight", "class_token"; not "input.1", "x", "onnx::Conv_0".
static bool is_named_so(const char *name)
{
	static const char *const endings[] = {"weight", "bias", "gamma", "beta", "kernel", "embedding", "_token",
		"running_mean", "running_var"};
	const char *dot = strrchr(name, '.'), *last = dot != NULL ? dot + 1 : name;
	if (strncmp(last, "weight_", 7) == 0 || strncmp(last, "bias_", 5) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		size_t length = strlen(last), ending = strlen(endings[i]);
		if (length >= ending && strcmp(last + length - ending, endings[i]) == 0)
			return true;
	}
	return false;
}

static bool is_float_input(const Onnx__ValueInfoProto *input)
{
	return input->type != NULL && input->type->tensor_type != NULL &&
		onnx_type_is_float(input->type->tensor_type->elem_type);
}

static bool stores_weights(const Onnx__GraphProto *graph)
{
	for (size_t i = 0; i < graph->n_initializer; i++)
		if (onnx_type_is_float(graph->initializer[i]->data_type) && graph->initializer[i]->n_dims > 0)
			return true;
	return graph->n_sparse_initializer > 0;
}

static void decide(const Onnx__GraphProto *graph, const struct search *search, bool *weights)
{
	bool stored = stores_weights(graph), behind = false;
	for (size_t i = 0; i < graph->n_input; i++) {
		const char *name = graph->input[i]->name;
		if (name == NULL)
			continue;
		weights[i] = is_wanted(search, name);
		if (stored || i == 0) // the first input is the model's input
			continue;
		weights[i] = weights[i] || behind || (is_float_input(graph->input[i]) && is_named_so(name));
		behind = weights[i];
	}
}

// One flag per input: whether it is a weight. NULL: the walk has failed.
static bool *find_weights(struct walk *walk, const Onnx__GraphProto *graph)
{
	struct search search = {.walk = walk};
	intern_init(&search.wanted, walk->arena);
	search_nodes(&search, graph);
	bool *weights = walk_alloc(walk, graph->n_input + 1, sizeof(*weights));
	if (weights != NULL)
		decide(graph, &search, weights);
	intern_finish(&search.wanted);
	if (search.failed)
		walk_fail(walk, -ENOMEM, "out of memory for the graph of %s", walk->path);
	return weights;
}

/* ---- open dimensions ---- */

enum { FREE_DIMS_MAX = 100 }; // limit of the list in the report

struct opening {
	struct walk *walk;
	const char *batch_name; // name of the batch dimension; NULL: the first one of each input
	bool has_batch;         // at least one input has a batch dimension
	const char **free_dims;
	size_t n_free;
	bool *used; // per dimension in the options
};

static bool is_batch_name(const char *name)
{
	char lower[32] = "";
	for (size_t i = 0; name[i] != '\0' && i + 1 < sizeof(lower); i++)
		lower[i] = (char)tolower((unsigned char)name[i]);
	return strstr(lower, "batch") != NULL || strcmp(lower, "n") == 0 || strcmp(lower, "b") == 0 ||
		strcmp(lower, "bs") == 0;
}

static const Onnx__TensorShapeProto *shape_of(const Onnx__ValueInfoProto *input)
{
	return input->type != NULL && input->type->tensor_type != NULL ? input->type->tensor_type->shape : NULL;
}

static bool is_open(const Onnx__TensorShapeProto__Dimension *dim)
{
	return !dim->has_dim_value || dim->dim_value < 0;
}

static const char *param_of(const Onnx__TensorShapeProto__Dimension *dim)
{
	return is_open(dim) && dim->dim_param != NULL && dim->dim_param[0] != '\0' ? dim->dim_param : NULL;
}

static void note_free(struct opening *o, const char *name)
{
	for (size_t i = 0; i < o->n_free; i++)
		if (strcmp(o->free_dims[i], name) == 0)
			return;
	if (o->free_dims == NULL)
		o->free_dims = walk_alloc(o->walk, FREE_DIMS_MAX, sizeof(char *));
	if (o->free_dims != NULL && o->n_free < FREE_DIMS_MAX)
		o->free_dims[o->n_free++] = name;
}

static int64_t size_of(struct opening *o, const Onnx__TensorShapeProto__Dimension *dim, bool is_first, bool is_weight)
{
	const struct model_options *options = o->walk->options;
	const char *name = param_of(dim);
	if (!is_open(dim))
		return dim->dim_value;
	for (size_t i = 0; name != NULL && i < options->n_dims; i++)
		if (strcmp(options->dims[i].name, name) == 0) {
			o->used[i] = true;
			return options->dims[i].size;
		}
	bool is_batch = o->batch_name != NULL && name != NULL
		? strcmp(name, o->batch_name) == 0
		: is_first && !is_weight && (o->batch_name == NULL || name == NULL);
	if (is_batch) {
		o->has_batch = true;
		return value_ok(options->batch) ? options->batch : 1;
	}
	note_free(o, name != NULL ? name : "(without a name)");
	return VALUE_MISSING;
}

static void find_batch_name(struct opening *o, const Onnx__GraphProto *graph, const bool *is_data)
{
	for (size_t i = 0; i < graph->n_input; i++) {
		const Onnx__TensorShapeProto *shape = is_data[i] ? shape_of(graph->input[i]) : NULL;
		for (size_t k = 0; shape != NULL && k < shape->n_dim; k++) {
			const char *name = param_of(shape->dim[k]);
			if (name != NULL && is_batch_name(name)) {
				o->batch_name = name;
				return;
			}
		}
	}
}

static void open_shape(struct opening *o, const Onnx__ValueInfoProto *input, struct value *value, bool is_weight)
{
	const Onnx__TensorShapeProto *shape = shape_of(input);
	if (input->type != NULL && input->type->tensor_type != NULL)
		value->type = input->type->tensor_type->elem_type;
	if (shape == NULL || shape->n_dim > VALUE_RANK_MAX)
		return;
	value->ranked = true;
	value->rank = (int)shape->n_dim;
	for (size_t k = 0; k < shape->n_dim; k++)
		value->dims[k] = size_of(o, shape->dim[k], k == 0, is_weight);
}

// If the graph contains a fixed batch, the requested batch replaces it in all inputs that have it as their first
// dimension.
static void rebatch(struct opening *o, struct value **values, const bool *is_data, size_t n,
	struct model_figures *figures)
{
	int64_t wanted = o->walk->options->batch, stored = VALUE_MISSING;
	for (size_t i = 0; i < n && !value_ok(stored); i++)
		if (is_data[i] && values[i]->ranked && values[i]->rank > 0)
			stored = values[i]->dims[0];
	figures->batch = o->has_batch ? (value_ok(wanted) ? wanted : 1) : stored;
	if (o->has_batch || !value_ok(wanted) || !value_ok(stored) || wanted == stored)
		return;
	for (size_t i = 0; i < n; i++)
		if (is_data[i] && values[i]->ranked && values[i]->rank > 0 && values[i]->dims[0] == stored)
			values[i]->dims[0] = wanted;
	o->walk->stored_batch = stored;
	figures->batch = wanted;
}

static void describe(struct walk *walk, struct value **values, const bool *is_data, size_t n,
	struct model_figures *figures)
{
	struct model_input *inputs = walk_alloc(walk, n + 1, sizeof(*inputs));
	for (size_t i = 0; inputs != NULL && i < n; i++) {
		if (!is_data[i])
			continue;
		struct model_input *input = &inputs[figures->n_inputs++];
		input->name = values[i]->name;
		input->shape.known = values[i]->ranked;
		input->shape.rank = values[i]->rank;
		memcpy(input->shape.dims, values[i]->dims, sizeof(input->shape.dims));
	}
	figures->inputs = inputs;
}

static void check_names(struct opening *o)
{
	const struct model_options *options = o->walk->options;
	for (size_t i = 0; i < options->n_dims; i++)
		if (!o->used[i])
			walk_fail(o->walk, -EINVAL, "--dim: no input of %s has an open dimension '%.100s'%s%.100s",
				o->walk->path, options->dims[i].name, o->n_free > 0 ? "; one is " : "",
				o->n_free > 0 ? o->free_dims[0] : "");
}

bool inputs_add(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph, struct model_figures *figures)
{
	static_assert((int)MODEL_RANK_MAX == (int)VALUE_RANK_MAX, "shapes are copied without truncation");
	size_t n = graph->n_input;
	const bool *weights = find_weights(walk, graph);
	bool *is_data = walk_alloc(walk, n + 1, sizeof(*is_data));
	struct value **values = walk_alloc(walk, n + 1, sizeof(struct value *));
	struct opening o = {.walk = walk, .used = walk_alloc(walk, walk->options->n_dims + 1, sizeof(bool))};
	if (walk->failed < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (graph->input[i]->name == NULL) {
			walk_fail(walk, -EBADMSG, "%s: an input of the graph has no name", walk->path);
			return false;
		}
		// Up to IR version 3 each initializer is also an input.
		is_data[i] = scope_find_here(scope, graph->input[i]->name) == NULL && !weights[i];
	}
	find_batch_name(&o, graph, is_data);
	for (size_t i = 0; i < n && walk->failed == 0; i++) {
		values[i] = scope_find_here(scope, graph->input[i]->name);
		if (values[i] != NULL && values[i]->stored != NULL)
			continue;
		values[i] = scope_add(walk, scope, graph->input[i]->name, NULL);
		if (values[i] == NULL)
			return false;
		open_shape(&o, graph->input[i], values[i], weights[i]);
		if (weights[i])
			stored_input(walk, graph->input[i], values[i]);
	}
	if (walk->failed < 0)
		return false;
	rebatch(&o, values, is_data, n, figures);
	describe(walk, values, is_data, n, figures);
	figures->free_dims = o.free_dims;
	figures->n_free_dims = o.n_free;
	check_names(&o);
	return walk->failed == 0;
}
