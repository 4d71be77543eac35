/* Operators that change the shape but not the elements. */
#include "model/internal.h"

// Computes the size that -1 stands for, or checks that the sizes match.
static bool fit(const struct op *op, int64_t *dims, int rank, int open)
{
	int64_t had, have = 1;
	if (!value_count(op->in[0], &had))
		return op_contradiction(op, "more elements than can be counted");
	for (int i = 0; i < rank; i++)
		if (i != open && !dims_multiply(have, dims[i], &have))
			return op_contradiction(op, "more elements than can be counted");
	if (!value_ok(had) || !value_ok(have))
		return true;
	if (open < 0)
		return had == have ||
			op_contradiction(op, "%lld elements can't become %lld", (long long)had, (long long)have);
	if (have == 0 ? had != 0 : had % have != 0)
		return op_contradiction(op, "%lld elements can't be divided by %lld", (long long)had, (long long)have);
	dims[open] = have == 0 ? 0 : had / have;
	return true;
}

/* Unknown sizes are often equal on both sides: [?, 768] to [?, 12, 64] leaves one size open, which is the product of
 * the unknown ones divided by the known ones; it stays unknown here. */
void shape_reshape(struct op *op)
{
	const int64_t *wanted;
	size_t n;
	bool known;
	if (!op_numbers(op, 1, "shape", &wanted, &n, &known))
		return;
	if (!known) {
		const struct value *shape = op_in(op, 1);
		if (shape->ranked && shape->rank == 1 && value_ok(shape->dims[0]) && shape->dims[0] <= VALUE_RANK_MAX)
			op_shape(op, 0, (int)shape->dims[0]);
		return;
	}
	if (n > VALUE_RANK_MAX)
		return;
	int64_t dims[VALUE_RANK_MAX];
	int open = -1;
	// A graph stored for a fixed batch has that batch in its constants.
	const struct walk *walk = op->walk;
	bool rebatched = value_ok(walk->stored_batch) && n > 1 && wanted[0] == walk->stored_batch && op_ranked(op, 0) &&
		op->in[0]->rank > 0 && op->in[0]->dims[0] == walk->options->batch;
	bool keeps_zero = op_int(op, "allowzero", 0) != 0, unsure = false;
	for (size_t i = 0; i < n; i++) {
		dims[i] = i == 0 && rebatched ? walk->options->batch : wanted[i];
		if (wanted[i] == 0 && !keeps_zero) {
			bool there = op_ranked(op, 0) && (int)i < op->in[0]->rank;
			dims[i] = there ? op->in[0]->dims[i] : VALUE_MISSING;
		} else if (wanted[i] == -1 && open < 0) {
			open = (int)i;
			dims[i] = VALUE_MISSING;
		} else if (wanted[i] < 0 && value_ok(wanted[i])) {
			op_contradiction(op, wanted[i] == -1 ? "two sizes of -1" : "a negative size");
			return;
		}
		unsure = unsure || !value_ok(wanted[i]); // may be the -1
	}
	if (op_ranked(op, 0) && !unsure && !fit(op, dims, (int)n, open))
		return;
	memcpy(op_shape(op, 0, (int)n), dims, sizeof(dims[0]) * n);
	fold_same(op);
}

void shape_flatten(struct op *op)
{
	int64_t *dims = op_shape(op, 0, 2);
	if (!op_ranked(op, 0))
		return;
	const struct value *in = op->in[0];
	int64_t axis = op_int(op, "axis", 1);
	if (axis < -in->rank || axis > in->rank) {
		op_contradiction(op, "axis %lld of a tensor of %d dimensions", (long long)axis, in->rank);
		return;
	}
	axis = axis < 0 ? axis + in->rank : axis;
	dims[0] = dims[1] = 1;
	for (int i = 0; i < in->rank; i++)
		if (!dims_multiply(dims[i >= axis], in->dims[i], &dims[i >= axis]))
			op_contradiction(op, "more elements than can be counted");
	fold_same(op);
}

void shape_squeeze(struct op *op)
{
	const int64_t *axes;
	size_t n;
	bool known;
	bool given = op_numbers(op, 1, "axes", &axes, &n, &known);
	if (!op_ranked(op, 0) || !known)
		return;
	const struct value *in = op->in[0];
	unsigned bits = 0;
	if (!op_axes(op, axes, n, in->rank, &bits))
		return;
	int64_t dims[VALUE_RANK_MAX];
	int rank = 0;
	for (int i = 0; i < in->rank; i++) {
		bool goes = given ? (bits >> i & 1) != 0 : in->dims[i] == 1;
		if (!given && !value_ok(in->dims[i]))
			return; // whether the dimension is removed is unknown
		if (goes && value_ok(in->dims[i]) && in->dims[i] != 1) {
			op_contradiction(op, "a size of %lld can't be squeezed out", (long long)in->dims[i]);
			return;
		}
		if (!goes)
			dims[rank++] = in->dims[i];
	}
	memcpy(op_shape(op, 0, rank), dims, sizeof(dims[0]) * (size_t)rank);
	fold_same(op);
}

void shape_unsqueeze(struct op *op)
{
	const int64_t *axes;
	size_t n;
	bool known;
	op_numbers(op, 1, "axes", &axes, &n, &known);
	if (!op_ranked(op, 0) || !known)
		return;
	const struct value *in = op->in[0];
	unsigned bits;
	int rank = in->rank + (int)(n < VALUE_RANK_MAX ? n : VALUE_RANK_MAX);
	if (rank > VALUE_RANK_MAX || !op_axes(op, axes, n, rank, &bits))
		return;
	if (__builtin_popcount(bits) != (int)n) {
		op_contradiction(op, "an axis is named twice");
		return;
	}
	int64_t *dims = op_shape(op, 0, rank);
	for (int i = 0, from = 0; i < rank; i++)
		dims[i] = (bits >> i & 1) != 0 ? 1 : in->dims[from++];
	fold_same(op);
}

void shape_depth_to_space(struct op *op)
{
	int64_t block = op_int(op, "blocksize", 0);
	if (!op_ranked(op, 0) || op->in[0]->rank != 4 || block < 1 || block > INT32_MAX)
		return;
	const int64_t *in = op->in[0]->dims;
	int64_t *out = op_shape(op, 0, 4);
	out[0] = in[0];
	out[1] = value_ok(in[1]) ? in[1] / (block * block) : VALUE_MISSING;
	if (!dims_multiply(in[2], block, &out[2]) || !dims_multiply(in[3], block, &out[3]))
		op_contradiction(op, "more elements than can be counted");
}

void shape_space_to_depth(struct op *op)
{
	int64_t block = op_int(op, "blocksize", 0);
	if (!op_ranked(op, 0) || op->in[0]->rank != 4 || block < 1 || block > INT32_MAX)
		return;
	const int64_t *in = op->in[0]->dims;
	int64_t *out = op_shape(op, 0, 4);
	out[0] = in[0];
	if (!dims_multiply(in[1], block * block, &out[1]))
		op_contradiction(op, "more elements than can be counted");
	out[2] = value_ok(in[2]) ? in[2] / block : VALUE_MISSING;
	out[3] = value_ok(in[3]) ? in[3] / block : VALUE_MISSING;
}
