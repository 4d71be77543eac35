/* Operators that create values: from shapes, constants or random numbers. */
#include "model/internal.h"

void shape_shape(struct op *op)
{
	int64_t *dims = op_shape(op, 0, 1);
	if (!op_ranked(op, 0))
		return;
	const struct value *in = op->in[0];
	int64_t start = op_int(op, "start", 0), end = op_int(op, "end", in->rank); // since opset 15
	start = start < 0 ? start + in->rank : start;
	end = end < 0 ? end + in->rank : end;
	start = start < 0 ? 0 : start > in->rank ? in->rank : start;
	end = end < start ? start : end > in->rank ? in->rank : end;
	dims[0] = end - start;
	int64_t *ints = op_new_ints(op, 0, dims[0]);
	if (ints != NULL)
		memcpy(ints, in->dims + start, sizeof(*ints) * (size_t)dims[0]);
}

void shape_size(struct op *op)
{
	op_shape(op, 0, 0);
	int64_t *n = op_new_ints(op, 0, 1);
	if (n != NULL && (op_in(op, 0) == NULL || !value_count(op->in[0], n)))
		*n = VALUE_MISSING;
}

// Shape of an attribute's contents: one number, or a list of n.
static void constant_shape(struct op *op, size_t n, bool is_list, int32_t type)
{
	int64_t *dims = op_shape(op, 0, is_list ? 1 : 0);
	if (is_list)
		dims[0] = (int64_t)n;
	op_out(op, 0)->type = type;
}

static void constant_ints(struct op *op, const Onnx__AttributeProto *given, bool is_list)
{
	size_t n = is_list ? given->n_ints : 1;
	constant_shape(op, n, is_list, ONNX_INT64);
	int64_t *ints = op_new_ints(op, 0, (int64_t)n);
	if (ints != NULL && n > 0)
		memcpy(ints, is_list ? given->ints : &given->i, sizeof(*ints) * n);
}

static void constant_floats(struct op *op, const Onnx__AttributeProto *given, bool is_list)
{
	size_t n = is_list ? given->n_floats : 1;
	constant_shape(op, n, is_list, ONNX_FLOAT);
	double *floats = op_new_floats(op, 0, (int64_t)n);
	for (size_t i = 0; floats != NULL && i < n; i++)
		floats[i] = (double)(is_list ? given->floats[i] : given->f);
}

void shape_constant(struct op *op)
{
	const Onnx__AttributeProto *given;
	struct value *out = op_out(op, 0);
	if (out == NULL)
		return;
	if ((given = op_attribute(op, "value")) != NULL && given->t != NULL)
		stored_tensor(op->walk, given->t, true, out);
	else if ((given = op_attribute(op, "sparse_value")) != NULL && given->sparse_tensor != NULL)
		stored_sparse(op->walk, given->sparse_tensor, true, out);
	else if ((given = op_attribute(op, "value_ints")) != NULL)
		constant_ints(op, given, true);
	else if ((given = op_attribute(op, "value_int")) != NULL)
		constant_ints(op, given, false);
	else if ((given = op_attribute(op, "value_floats")) != NULL)
		constant_floats(op, given, true);
	else if ((given = op_attribute(op, "value_float")) != NULL)
		constant_floats(op, given, false);
	else if (op_attribute(op, "value_string") == NULL && op_attribute(op, "value_strings") == NULL)
		op_contradiction(op, "no value");
}

static void fill(struct op *op, int64_t n, const struct value *with)
{
	if (with->floats != NULL) {
		double *floats = op_new_floats(op, 0, n);
		for (int64_t i = 0; floats != NULL && i < n; i++)
			floats[i] = with->floats[0];
		return;
	}
	int64_t *ints = op_new_ints(op, 0, n);
	for (int64_t i = 0; ints != NULL && i < n; i++)
		ints[i] = with->ints[0];
}

void shape_constant_of_shape(struct op *op)
{
	struct value *out = op_out(op, 0);
	const struct value *shape = op_in(op, 0);
	if (out == NULL || shape == NULL)
		return;
	static const double zero = 0;
	struct value with = {.type = ONNX_FLOAT, .ranked = true, .floats = &zero};
	const Onnx__AttributeProto *given = op_attribute(op, "value");
	if (given != NULL && given->t != NULL) {
		with = (struct value){0};
		stored_tensor(op->walk, given->t, true, &with);
	}
	out->type = with.type;
	int64_t rank = shape->ints != NULL                                      ? value_few(shape)
		: shape->ranked && shape->rank == 1 && value_ok(shape->dims[0]) ? shape->dims[0]
										: -1;
	if (rank < 0 || rank > VALUE_RANK_MAX)
		return;
	int64_t *dims = op_shape(op, 0, (int)rank);
	for (int64_t i = 0; shape->ints != NULL && i < rank; i++) {
		dims[i] = shape->ints[i];
		if (value_ok(dims[i]) && dims[i] < 0) {
			op_contradiction(op, "a negative size");
			return;
		}
	}
	int64_t n = value_few(out);
	if (n >= 0 && value_few(&with) == 1 && value_has_contents(&with))
		fill(op, n, &with);
}

void shape_range(struct op *op)
{
	int64_t *dims = op_shape(op, 0, 1);
	for (size_t i = 0; i < 3; i++)
		if (op_in(op, i) == NULL || !value_has_contents(op->in[i]) || value_few(op->in[i]) != 1)
			return;
	double start = value_float(op->in[0], 0), end = value_float(op->in[1], 0), step = value_float(op->in[2], 0);
	double n = step != 0 ? ceil((end - start) / step) : (double)NAN;
	if (!(n < 0x1p53)) // also if one of them is unknown
		return;
	dims[0] = n > 0 ? (int64_t)n : 0;
	int64_t first = value_int(op->in[0], 0), by = value_int(op->in[2], 0);
	int64_t *ints = op->in[0]->ints != NULL && value_ok(first) && value_ok(by) ? op_new_ints(op, 0, dims[0]) : NULL;
	for (int64_t i = 0; ints != NULL && i < dims[0]; i++)
		if (__builtin_mul_overflow(i, by, &ints[i]) || __builtin_add_overflow(first, ints[i], &ints[i]))
			ints[i] = VALUE_MISSING;
}

void shape_random(struct op *op)
{
	struct value *out = op_out(op, 0);
	const int64_t *shape;
	size_t n = op_ints(op, "shape", &shape);
	if (out != NULL)
		out->type = (int32_t)op_int(op, "dtype", ONNX_FLOAT);
	if (n == 0 || n > VALUE_RANK_MAX)
		return;
	int64_t *dims = op_shape(op, 0, (int)n);
	memcpy(dims, shape, sizeof(dims[0]) * n);
}

void shape_one_hot(struct op *op)
{
	const struct value *indices = op_in(op, 0), *values = op_in(op, 2);
	if (op_out(op, 0) != NULL && values != NULL)
		op_out(op, 0)->type = values->type;
	int axis, rank = op_ranked(op, 0) ? indices->rank + 1 : 0;
	if (rank == 0 || rank > VALUE_RANK_MAX || !op_axis(op, op_int(op, "axis", -1), rank, &axis))
		return;
	int64_t *dims = op_shape(op, 0, rank);
	for (int i = 0; i < rank; i++)
		if (i != axis)
			dims[i] = indices->dims[i < axis ? i : i - 1];
	dims[axis] = value_lone_int(op_in(op, 1));
}

void shape_eye_like(struct op *op)
{
	shape_same(op);
	struct value *out = op_out(op, 0);
	if (out != NULL)
		out->type = (int32_t)op_int(op, "dtype", op_in(op, 0) != NULL ? op->in[0]->type : ONNX_FLOAT);
}

// The number of nonzero elements is known only if all elements are known.
void shape_nonzero(struct op *op)
{
	int64_t *dims = op_shape(op, 0, 2);
	if (!op_ranked(op, 0))
		return;
	const struct value *in = op->in[0];
	dims[0] = in->rank > 0 ? in->rank : 1;
	int64_t n = value_has_contents(in) ? value_few(in) : -1, count = 0;
	for (int64_t i = 0; i < n; i++) {
		double number = value_float(in, i);
		if (isnan(number))
			return;
		count += number != 0;
	}
	if (n < 0)
		return;
	dims[1] = count;
	int64_t *ints = in->rank > 0 && value_few(op_out(op, 0)) >= 0 ? op_new_ints(op, 0, in->rank * count) : NULL;
	for (int64_t i = 0, found = 0; ints != NULL && i < n; i++) {
		if (value_float(in, i) == 0)
			continue;
		for (int64_t k = in->rank - 1, rest = i; k >= 0; rest /= in->dims[k--])
			ints[k * count + found] = rest % in->dims[k];
		found++;
	}
}
