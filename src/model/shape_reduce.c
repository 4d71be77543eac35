/* Reductions. */
#include "model/internal.h"

void shape_reduce(struct op *op)
{
	const int64_t *axes;
	size_t n;
	bool known, keep = op_int(op, "keepdims", 1) != 0;
	bool given = op_numbers(op, 1, "axes", &axes, &n, &known);
	if (!op_ranked(op, 0))
		return;
	const struct value *in = op->in[0];
	if (!known) {
		if (keep)
			op_shape(op, 0, in->rank);
		return;
	}
	unsigned bits;
	if (!op_axes(op, axes, n, in->rank, &bits))
		return;
	if (!given || n == 0) // no axes mean all axes, or none if the node has that setting
		bits = op_int(op, "noop_with_empty_axes", 0) != 0 ? 0 : ~0U;
	int64_t dims[VALUE_RANK_MAX];
	int rank = 0;
	for (int i = 0; i < in->rank; i++) {
		bool goes = (bits >> i & 1) != 0;
		if (!goes || keep)
			dims[rank++] = goes ? 1 : in->dims[i];
	}
	memcpy(op_shape(op, 0, rank), dims, sizeof(dims[0]) * (size_t)rank);
}

void shape_arg(struct op *op)
{
	int axis;
	if (!op_ranked(op, 0) || !op_axis(op, op_int(op, "axis", 0), op->in[0]->rank, &axis))
		return;
	const struct value *in = op->in[0];
	bool keep = op_int(op, "keepdims", 1) != 0;
	int64_t *dims = op_shape(op, 0, in->rank - (keep ? 0 : 1));
	for (int i = 0, k = 0; i < in->rank; i++)
		if (i != axis || keep)
			dims[k++] = i == axis ? 1 : in->dims[i];
}

void shape_topk(struct op *op)
{
	int axis;
	if (!op_ranked(op, 0) || !op_axis(op, op_int(op, "axis", -1), op->in[0]->rank, &axis))
		return;
	int64_t k = op_in(op, 1) != NULL ? value_lone_int(op->in[1]) : op_int(op, "k", VALUE_MISSING);
	for (size_t i = 0; i < op->n_out; i++) {
		op_shape_like(op, i, op->in[0]);
		if (op_out(op, i) == NULL)
			continue;
		op_out(op, i)->dims[axis] = k;
		op_out(op, i)->type = i == 0 ? op->in[0]->type : ONNX_INT64;
	}
}

void shape_nms(struct op *op) // one row per remaining box
{
	op_shape(op, 0, 2)[1] = 3;
}

void shape_compress(struct op *op)
{
	if (op_attribute(op, "axis") == NULL) {
		op_shape(op, 0, 1);
		return;
	}
	int axis;
	if (!op_ranked(op, 0) || !op_axis(op, op_int(op, "axis", 0), op->in[0]->rank, &axis))
		return;
	op_shape_like(op, 0, op->in[0]);
	if (op_out(op, 0) != NULL)
		op_out(op, 0)->dims[axis] = VALUE_MISSING;
}
