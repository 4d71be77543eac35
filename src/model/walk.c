#include "model/internal.h"

#include <errno.h>

/* ---- one node ---- */

static void set_type(struct op *op)
{
	struct value *out = op_out(op, 0);
	static const int32_t types[] = {[TYPE_BOOL] = ONNX_BOOL,
		[TYPE_INT64] = ONNX_INT64,
		[TYPE_INT32] = ONNX_INT32,
		[TYPE_FLOAT] = ONNX_FLOAT,
		[TYPE_UINT8] = ONNX_UINT8};
	if (out == NULL || op->what->type == TYPE_OWN)
		return;
	if (op->what->type == TYPE_FIRST || op->what->type == TYPE_SECOND) {
		const struct value *in = op_in(op, op->what->type == TYPE_FIRST ? 0 : 1);
		out->type = in != NULL ? in->type : ONNX_UNDEFINED;
	} else {
		out->type = types[op->what->type];
	}
}

// Origin of the outputs: stored tensors only, numbers only, or the model's input.
static bool set_origin(struct op *op)
{
	bool fixed = op->n_in > 0, number = op->n_in > 0;
	for (size_t i = 0; i < op->n_in; i++) {
		fixed = fixed && (op->in[i] == NULL || op->in[i]->fixed);
		number = number && (op->in[i] == NULL || op->in[i]->number);
	}
	if (op->what != NULL && op->what->shape == shape_constant)
		fixed = number = true;
	if (op->what != NULL && (op->what->shape == shape_shape || op->what->shape == shape_size))
		number = true;
	if (op->what == NULL || (op->what->shape == shape_random && op->n_in == 0))
		fixed = number = false;
	struct call *call = fixed && op->n_in > 0 ? walk_alloc(op->walk, 1, sizeof(*call)) : NULL;
	if (call != NULL)
		*call = (struct call){op->what, op->in, op->n_in, 0};
	for (size_t i = 0; i < op->n_out; i++) {
		if (op->out[i] == NULL)
			continue;
		op->out[i]->fixed = fixed;
		op->out[i]->number = number;
		op->out[i]->maker = call;
	}
	return op->walk->failed == 0;
}

static const struct {
	const char *name;
	void (*run)(struct op *op);
} controls[] = {{"If", control_if}, {"Loop", control_loop}, {"Scan", control_scan}};

static bool run_control(struct op *op, const char *domain)
{
	for (size_t i = 0; domain[0] == '\0' && i < ARRAY_SIZE(controls); i++)
		if (op_is(op, controls[i].name)) {
			controls[i].run(op);
			return true;
		}
	return function_run(op);
}

// Attributes give sizes as well, so this rejects negative ones.
static void check_sizes(struct op *op)
{
	for (size_t i = 0; i < op->n_out; i++) {
		struct value *out = op->out[i];
		for (int k = 0; out != NULL && out->ranked && k < out->rank; k++) {
			if (!value_ok(out->dims[k]) || out->dims[k] >= 0)
				continue;
			op_contradiction(op, "a size of %lld", (long long)out->dims[k]);
			out->dims[k] = VALUE_MISSING;
		}
	}
}

static void run_operator(struct op *op)
{
	if (!set_origin(op))
		return;
	if (op->what != NULL) {
		set_type(op);
		if (op->what->shape != NULL)
			op->what->shape(op);
		check_sizes(op);
		if (op->what->fold != NULL && op_out(op, 0) != NULL)
			op->what->fold(op);
	}
	if (op->walk->failed == 0)
		layer_make(op);
}

static bool read_values(struct op *op, const struct value **in, struct value **out)
{
	struct walk *walk = op->walk;
	const Onnx__NodeProto *node = op->node;
	for (size_t i = 0; i < node->n_input; i++) {
		if (node->input[i][0] == '\0')
			continue;
		in[i] = scope_find(op->scope, node->input[i]);
		// An optional input of a function that its caller omitted is a name without a value.
		if (in[i] == NULL && op->scope->call == NULL) {
			walk_fail(walk, -EBADMSG,
				"%s: node '%.100s' (%.60s) reads '%.100s', which no earlier node produces: "
				"the nodes are out of order or form a cycle",
				walk->path, node_name(node), node->op_type, node->input[i]);
			return false;
		}
	}
	for (size_t i = 0; i < node->n_output; i++) {
		if (node->output[i][0] == '\0')
			continue;
		out[i] = scope_add(walk, op->scope, node->output[i], NULL);
		if (out[i] == NULL)
			return false;
	}
	return true;
}

static bool walk_node(struct walk *walk, struct scope *scope, const Onnx__NodeProto *node)
{
	if (node->op_type == NULL || node->op_type[0] == '\0') {
		walk_fail(walk, -EBADMSG, "%s: node '%.100s' has no operator", walk->path, node_name(node));
		return false;
	}
	if (++walk->work > WALK_WORK_MAX) {
		walk_fail(walk, -EFBIG, "%s has more than %d nodes, those of its functions and loops included",
			walk->path, WALK_WORK_MAX);
		return false;
	}
	const struct value **in = walk_alloc(walk, node->n_input, sizeof(struct value *));
	struct value **out = walk_alloc(walk, node->n_output, sizeof(struct value *));
	if (in == NULL || out == NULL)
		return false;
	const char *domain = node->domain != NULL && strcmp(node->domain, "ai.onnx") != 0 ? node->domain : "";
	int64_t spare[VALUE_RANK_MAX];
	struct op op = {.walk = walk,
		.scope = scope,
		.node = node,
		.what = operator_find(domain, node->op_type),
		.opset = scope_opset(scope, domain),
		.n_in = node->n_input,
		.n_out = node->n_output,
		.in = in,
		.out = out,
		.spare = spare};
	if (!read_values(&op, in, out))
		return false;
	if (!run_control(&op, domain))
		run_operator(&op);
	return walk->failed == 0;
}

bool walk_nodes(struct walk *walk, struct scope *scope, Onnx__NodeProto *const *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!walk_node(walk, scope, nodes[i]))
			return false;
	return true;
}

/* ---- a graph ---- */

static bool add_initializers(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph)
{
	for (size_t i = 0; i < graph->n_initializer; i++) {
		const Onnx__TensorProto *tensor = graph->initializer[i];
		struct value *value = tensor->name != NULL && tensor->name[0] != '\0'
			? scope_add(walk, scope, tensor->name, NULL)
			: NULL;
		if (value == NULL) {
			walk_fail(walk, -EBADMSG, "%s: an initializer has no name", walk->path);
			return false;
		}
		stored_tensor(walk, tensor, false, value);
	}
	for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
		const Onnx__SparseTensorProto *tensor = graph->sparse_initializer[i];
		const char *name = tensor->values != NULL ? tensor->values->name : NULL;
		struct value *value = name != NULL ? scope_add(walk, scope, name, NULL) : NULL;
		if (value == NULL) {
			walk_fail(walk, -EBADMSG, "%s: a sparse initializer has no name", walk->path);
			return false;
		}
		stored_sparse(walk, tensor, false, value);
	}
	return walk->failed == 0;
}

// Indexes the shapes that the file declares by name, so that each node finds those of its outputs.
static bool index_declared(struct walk *walk, const Onnx__GraphProto *graph, struct intern *names,
	const Onnx__ValueInfoProto **infos)
{
	for (size_t i = 0; i < graph->n_value_info + graph->n_output; i++) {
		const Onnx__ValueInfoProto *info = i < graph->n_value_info ? graph->value_info[i]
									   : graph->output[i - graph->n_value_info];
		if (info->name == NULL)
			continue;
		int64_t number = intern_number(names, info->name, strlen(info->name));
		if (number < 0) {
			walk_fail(walk, -ENOMEM, "out of memory for the graph of %s", walk->path);
			return false;
		}
		infos[number] = info;
	}
	return true;
}

static bool walk_declared_nodes(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph,
	const struct intern *names, const Onnx__ValueInfoProto *const *infos)
{
	for (size_t i = 0; i < graph->n_node; i++) {
		const Onnx__NodeProto *node = graph->node[i];
		if (!walk_node(walk, scope, node))
			return false;
		for (size_t k = 0; k < node->n_output; k++) {
			int64_t number = intern_find(names, node->output[k], strlen(node->output[k]));
			struct value *value = number >= 0 ? scope_find_here(scope, node->output[k]) : NULL;
			if (value != NULL)
				declared_apply(walk, infos[number], value);
		}
	}
	return true;
}

bool walk_graph(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph)
{
	// For the main graph the initializers were added before its inputs, which can repeat them.
	if (scope->outer != NULL && !add_initializers(walk, scope, graph))
		return false;
	struct intern names;
	intern_init(&names, walk->arena);
	const Onnx__ValueInfoProto **infos = walk_alloc(walk, graph->n_value_info + graph->n_output,
		sizeof(Onnx__ValueInfoProto *));
	bool done = infos != NULL && index_declared(walk, graph, &names, infos) &&
		walk_declared_nodes(walk, scope, graph, &names, infos);
	intern_finish(&names);
	return done;
}

bool walk_main_graph(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph,
	struct model_figures *figures)
{
	return add_initializers(walk, scope, graph) && inputs_add(walk, scope, graph, figures) &&
		walk_graph(walk, scope, graph);
}
