/* Calls of the file's own functions, and helpers shared with nodes that contain graphs. */
#include "model/internal.h"

#include "base/buf.h"

#include <errno.h>

static bool enter(const struct op *op)
{
	if (++op->walk->depth > WALK_DEPTH_MAX) {
		walk_fail(op->walk, -EBADMSG, "%s: node '%.100s': graphs or functions are nested deeper than %d",
			op->walk->path, node_name(op->node), WALK_DEPTH_MAX);
		return false;
	}
	return true;
}

// Name prefix of the inner layers: "caller/layer".
static const char *prefix_for(const struct op *op)
{
	struct buf text;
	buf_init(&text, 4096);
	buf_printf(&text, "%s%s/", op->scope->prefix, node_name(op->node));
	const char *prefix = text.failed == 0 ? arena_text(op->walk->arena, text.data) : op->scope->prefix;
	buf_finish(&text);
	return prefix != NULL ? prefix : "";
}

bool body_open(struct scope *scope, const struct op *op, struct scope *outer)
{
	scope_init(scope, op->walk, outer);
	scope->prefix = prefix_for(op);
	return enter(op);
}

void body_close(struct scope *scope, const struct op *op)
{
	scope_finish(scope);
	op->walk->depth--;
}

void body_give(const struct op *op, size_t i, const struct value *from)
{
	struct value *out = op_out(op, i);
	if (out == NULL || from == NULL)
		return;
	const char *name = out->name;
	*out = *from;
	out->name = name;
}

static void function_key(struct buf *ret_key, const char *domain, const char *name, const char *overload)
{
	buf_init(ret_key, 4096);
	buf_printf(ret_key, "%s\n%s\n%s", domain != NULL ? domain : "", name != NULL ? name : "",
		overload != NULL ? overload : "");
}

bool function_index(struct walk *walk)
{
	for (size_t i = 0; i < walk->model->n_functions; i++) {
		const Onnx__FunctionProto *function = walk->model->functions[i];
		struct buf key;
		function_key(&key, function->domain, function->name, function->overload);
		int64_t number = key.failed == 0 ? intern_number(&walk->functions, key.data, key.size) : key.failed;
		buf_finish(&key);
		if (number == (int64_t)i)
			continue;
		if (number == -ENOMEM)
			walk_fail(walk, -ENOMEM, "out of memory for the graph of %s", walk->path);
		else
			walk_fail(walk, -EBADMSG, "%s: two functions have one name, or a name is too long", walk->path);
		return false;
	}
	return true;
}

static const Onnx__FunctionProto *find_function(const struct op *op)
{
	struct buf key;
	function_key(&key, op->node->domain, op->node->op_type, op->node->overload);
	int64_t i = key.failed == 0 ? intern_find(&op->walk->functions, key.data, key.size) : -1;
	buf_finish(&key);
	return i >= 0 ? op->walk->model->functions[i] : NULL;
}

static bool call_function(struct op *op, const Onnx__FunctionProto *function, struct scope *scope)
{
	for (size_t i = 0; i < function->n_input; i++)
		if (op_in(op, i) != NULL && scope_add(op->walk, scope, function->input[i], op->in[i]) == NULL)
			return false;
	if (!op->walk->nodes(op->walk, scope, function->node, function->n_node))
		return false;
	for (size_t i = 0; i < op->n_out && i < function->n_output; i++)
		body_give(op, i, scope_find(scope, function->output[i]));
	return true;
}

bool function_run(struct op *op)
{
	const Onnx__FunctionProto *function = find_function(op);
	if (function == NULL)
		return false;
	struct scope scope;
	bool opened = body_open(&scope, op, NULL);
	scope.call = op;
	scope.opsets = function->n_opset_import > 0 ? function->opset_import : op->scope->opsets;
	scope.n_opsets = function->n_opset_import > 0 ? function->n_opset_import : op->scope->n_opsets;
	scope.defaults = function->attribute_proto;
	scope.n_defaults = function->n_attribute_proto;
	if (opened)
		call_function(op, function, &scope);
	body_close(&scope, op);
	return true;
}
