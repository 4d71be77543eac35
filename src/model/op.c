#include "model/internal.h"

#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const Onnx__AttributeProto *find(Onnx__AttributeProto *const *attributes, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (attributes[i]->name != NULL && strcmp(attributes[i]->name, name) == 0)
			return attributes[i];
	return NULL;
}

const Onnx__AttributeProto *op_attribute(const struct op *op, const char *name)
{
	const Onnx__AttributeProto *found = find(op->node->attribute, op->node->n_attribute, name);
	const struct scope *scope = op->scope;
	// A function's node can refer to its caller's attribute by name, and so can the caller in turn.
	while (found != NULL && found->ref_attr_name != NULL && found->ref_attr_name[0] != '\0') {
		while (scope != NULL && scope->call == NULL)
			scope = scope->outer;
		if (scope == NULL)
			return NULL;
		const Onnx__NodeProto *call = scope->call->node;
		const char *wanted = found->ref_attr_name;
		found = find(call->attribute, call->n_attribute, wanted);
		if (found == NULL)
			return find(scope->defaults, scope->n_defaults, wanted);
		scope = scope->call->scope;
	}
	return found;
}

int64_t op_int(const struct op *op, const char *name, int64_t usual)
{
	const Onnx__AttributeProto *attribute = op_attribute(op, name);
	return attribute != NULL && attribute->has_i ? attribute->i : usual;
}

bool op_text_is(const struct op *op, const char *name, const char *text, bool usual)
{
	const Onnx__AttributeProto *attribute = op_attribute(op, name);
	if (attribute == NULL || !attribute->has_s)
		return usual;
	return attribute->s.len == strlen(text) && memcmp(attribute->s.data, text, attribute->s.len) == 0;
}

size_t op_ints(const struct op *op, const char *name, const int64_t **ret_ints)
{
	const Onnx__AttributeProto *attribute = op_attribute(op, name);
	*ret_ints = attribute != NULL ? attribute->ints : NULL;
	return attribute != NULL ? attribute->n_ints : 0;
}

bool op_is(const struct op *op, const char *type)
{
	return strcmp(op->node->op_type, type) == 0;
}

const struct value *op_in(const struct op *op, size_t i)
{
	return i < op->n_in ? op->in[i] : NULL;
}

bool op_ranked(const struct op *op, size_t i)
{
	const struct value *value = op_in(op, i);
	return value != NULL && value->ranked;
}

struct value *op_out(const struct op *op, size_t i)
{
	return i < op->n_out ? op->out[i] : NULL;
}

int64_t *op_shape(const struct op *op, size_t i, int rank)
{
	struct value *out = op_out(op, i);
	if (out != NULL) {
		out->ranked = rank >= 0 && rank <= VALUE_RANK_MAX;
		out->rank = rank;
	}
	int64_t *dims = out != NULL ? out->dims : op->spare;
	for (int k = 0; k < VALUE_RANK_MAX; k++)
		dims[k] = VALUE_MISSING;
	return dims;
}

void op_shape_like(const struct op *op, size_t i, const struct value *like)
{
	struct value *out = op_out(op, i);
	if (out == NULL || like == NULL || !like->ranked)
		return;
	out->ranked = true;
	out->rank = like->rank;
	memcpy(out->dims, like->dims, sizeof(out->dims));
}

int64_t *op_new_ints(const struct op *op, size_t i, int64_t n)
{
	struct value *out = op_out(op, i);
	if (out == NULL || n < 0 || n > VALUE_CONTENTS_MAX)
		return NULL;
	int64_t *ints = walk_alloc(op->walk, (size_t)n, sizeof(*ints));
	out->ints = ints;
	out->floats = NULL;
	return ints;
}

double *op_new_floats(const struct op *op, size_t i, int64_t n)
{
	struct value *out = op_out(op, i);
	if (out == NULL || n < 0 || n > VALUE_CONTENTS_MAX)
		return NULL;
	double *floats = walk_alloc(op->walk, (size_t)n, sizeof(*floats));
	out->floats = floats;
	out->ints = NULL;
	return floats;
}

bool op_numbers(const struct op *op, size_t i, const char *name, const int64_t **ret_ints, size_t *ret_n,
	bool *ret_known)
{
	*ret_known = true;
	*ret_n = op_ints(op, name, ret_ints);
	if (*ret_n > 0 || op_attribute(op, name) != NULL)
		return true;
	const struct value *value = op_in(op, i);
	if (value == NULL)
		return false;
	int64_t n = value_few(value);
	*ret_known = n >= 0 && value->ints != NULL;
	*ret_ints = value->ints;
	*ret_n = *ret_known ? (size_t)n : 0;
	return true;
}

bool op_axis(const struct op *op, int64_t axis, int rank, int *ret_axis)
{
	if (axis < -rank || axis >= rank)
		return op_contradiction(op, "axis %lld of a tensor of %d dimensions", (long long)axis, rank);
	*ret_axis = (int)(axis < 0 ? axis + rank : axis);
	return true;
}

bool op_axes(const struct op *op, const int64_t *axes, size_t n, int rank, unsigned *ret_bits)
{
	*ret_bits = 0;
	for (size_t i = 0; i < n; i++) {
		int axis = 0;
		if (!op_axis(op, axes[i], rank, &axis))
			return false;
		*ret_bits |= 1U << axis;
	}
	return true;
}

bool op_contradiction(const struct op *op, const char *format, ...)
{
	if (op->walk->guarded > 0)
		return false;
	char text[300];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	walk_fail(op->walk, -EBADMSG, "%s: node '%.100s' (%.60s): %s%s", op->walk->path, node_name(op->node),
		op->node->op_type, text,
		value_ok(op->walk->options->batch) ? "; the graph has a fixed batch size, try without --batch"
						   : "");
	return false;
}

bool dims_unify(int64_t a, int64_t b, int64_t *ret_dim)
{
	if (value_ok(a) && value_ok(b) && a != b)
		return false;
	*ret_dim = value_ok(a) ? a : b;
	return true;
}
