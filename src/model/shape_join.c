/* Operators that join and split tensors: Concat, Split. */
#include "model/internal.h"

static void fold_concat(struct op *op, int axis)
{
	const struct value *out = op_out(op, 0);
	int64_t n = out != NULL ? value_few(out) : -1, inner = 1, row = 0, done = 0;
	bool has_ints = true;
	for (size_t i = 0; i < op->n_in; i++) {
		if (op->in[i] == NULL || !value_has_contents(op->in[i]))
			return;
		has_ints = has_ints && op->in[i]->ints != NULL;
	}
	if (n < 0)
		return;
	for (int k = axis + 1; k < out->rank; k++)
		inner *= out->dims[k];
	row = out->dims[axis] * inner;
	int64_t *ints = has_ints ? op_new_ints(op, 0, n) : NULL;
	double *floats = has_ints ? NULL : op_new_floats(op, 0, n);
	for (size_t i = 0; i < op->n_in; i++) {
		int64_t part = op->in[i]->dims[axis] * inner;
		for (int64_t k = 0, size = value_few(op->in[i]); k < size; k++) {
			int64_t to = k / part * row + done + k % part;
			if (ints != NULL)
				ints[to] = op->in[i]->ints[k];
			else if (floats != NULL)
				floats[to] = value_float(op->in[i], k);
		}
		done += part;
	}
}

// Appends a tensor to one with the shape `dims`; false if they don't fit.
static bool join(const struct op *op, int64_t *dims, const struct value *next, int axis)
{
	for (int k = 0; k < next->rank; k++) {
		int64_t size = next->dims[k];
		if (k != axis && !dims_unify(dims[k], size, &dims[k]))
			return op_contradiction(op, "the joined tensors have sizes %lld and %lld along another axis", (long long)dims[k],
				(long long)size);
	}
	if (!value_ok(dims[axis]) || !value_ok(next->dims[axis]))
		dims[axis] = VALUE_MISSING;
	else if (__builtin_add_overflow(dims[axis], next->dims[axis], &dims[axis]))
		return op_contradiction(op, "more elements than can be counted");
	return true;
}

void shape_concat(struct op *op)
{
	if (!op_ranked(op, 0))
		return;
	int axis, rank = op->in[0]->rank;
	if (!op_axis(op, op_int(op, "axis", 0), rank, &axis))
		return;
	int64_t dims[VALUE_RANK_MAX];
	memcpy(dims, op->in[0]->dims, sizeof(dims));
	for (size_t i = 1; i < op->n_in; i++) {
		if (!op_ranked(op, i))
			return;
		if (op->in[i]->rank != rank) {
			op_contradiction(op, "tensors of %d and %d dimensions", rank, op->in[i]->rank);
			return;
		}
		if (!join(op, dims, op->in[i], axis))
			return;
	}
	memcpy(op_shape(op, 0, rank), dims, sizeof(dims[0]) * (size_t)rank);
	fold_concat(op, axis);
}

struct parts {
	bool given;           // else all parts have one size, except the last one
	const int64_t *sizes; // NULL: absent, or unknown
	int64_t each;
};

static bool read_parts(const struct op *op, int64_t whole, struct parts *ret_parts)
{
	struct parts parts = {.each = VALUE_MISSING};
	size_t n;
	bool known;
	parts.given = op_numbers(op, 1, "split", &parts.sizes, &n, &known);
	if (!parts.given || !known)
		parts.sizes = NULL;
	else if (n != op->n_out)
		return op_contradiction(op, "%zu parts for %zu outputs", n, op->n_out);
	int64_t outputs = op_int(op, "num_outputs", 0);
	if (outputs < (int64_t)op->n_out)
		outputs = (int64_t)op->n_out;
	if (value_ok(whole) && outputs > 0)
		parts.each = whole / outputs + (whole % outputs != 0);
	*ret_parts = parts;
	return true;
}

static int64_t part_size(const struct parts *parts, size_t i, int64_t left)
{
	if (parts->given)
		return parts->sizes != NULL ? parts->sizes[i] : VALUE_MISSING;
	return value_ok(parts->each) && parts->each > left ? left : parts->each;
}

void shape_split(struct op *op)
{
	struct parts parts = {0};
	int axis;
	if (!op_ranked(op, 0) || !op_axis(op, op_int(op, "axis", 0), op->in[0]->rank, &axis))
		return;
	const struct value *in = op->in[0];
	int64_t left = in->dims[axis], start = 0, strides[VALUE_RANK_MAX] = {0};
	if (!read_parts(op, left, &parts))
		return;
	bool follows = value_few(in) >= 0;
	if (follows)
		strides_of(in, strides);
	for (size_t i = 0; i < op->n_out; i++) {
		int64_t part = part_size(&parts, i, left);
		if (value_ok(part) && value_ok(left) && (part < 0 || part > left)) {
			op_contradiction(op, "a part has size %lld, but only %lld is left", (long long)part, (long long)left);
			return;
		}
		op_shape_like(op, i, in);
		if (op_out(op, i) != NULL) {
			op_out(op, i)->dims[axis] = part;
			op_out(op, i)->type = in->type;
		}
		if (!value_ok(part) || !value_ok(left)) {
			left = VALUE_MISSING;
			continue;
		}
		if (follows)
			fold_strided(op, i, in, start * strides[axis], strides);
		start += part;
		left -= part;
	}
}
