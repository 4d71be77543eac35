/* Operators that select, repeat and reorder elements. */
#include "model/internal.h"

void shape_transpose(struct op *op)
{
	if (!op_ranked(op, 0))
		return;
	const struct value *in = op->in[0];
	const int64_t *order;
	size_t n = op_ints(op, "perm", &order);
	if (n > 0 && n != (size_t)in->rank) {
		op_contradiction(op, "%zu axes for a tensor of %d dimensions", n, in->rank);
		return;
	}
	unsigned bits;
	if (n > 0 && (!op_axes(op, order, n, in->rank, &bits) || bits != (1U << in->rank) - 1)) {
		op_contradiction(op, "perm does not contain each axis exactly once");
		return;
	}
	int64_t *dims = op_shape(op, 0, in->rank), strides[VALUE_RANK_MAX], moved[VALUE_RANK_MAX];
	bool follows = value_few(in) >= 0;
	if (follows)
		strides_of(in, strides);
	for (int i = 0; i < in->rank; i++) {
		int64_t from = n > 0 ? (order[i] < 0 ? order[i] + in->rank : order[i]) : in->rank - 1 - i;
		dims[i] = in->dims[from];
		if (follows)
			moved[i] = strides[from];
	}
	if (follows)
		fold_strided(op, 0, in, 0, moved);
}

void shape_expand(struct op *op)
{
	if (!op_ranked(op, 0) || op_in(op, 1) == NULL)
		return;
	const struct value *in = op->in[0], *shape = op->in[1];
	int64_t n = shape->ints != NULL ? value_few(shape) : -1;
	if (n < 0) {
		if (shape->ranked && shape->rank == 1 && value_ok(shape->dims[0]) && shape->dims[0] <= VALUE_RANK_MAX)
			op_shape(op, 0, shape->dims[0] > in->rank ? (int)shape->dims[0] : in->rank);
		return;
	}
	if (n > VALUE_RANK_MAX)
		return;
	int rank = n > in->rank ? (int)n : in->rank;
	int64_t *dims = op_shape(op, 0, rank), strides[VALUE_RANK_MAX], from[VALUE_RANK_MAX] = {0};
	bool follows = value_few(in) >= 0;
	if (follows)
		strides_of(in, strides);
	for (int i = 0; i < rank; i++) {
		int own = i - (rank - in->rank), asked = i - (rank - (int)n);
		int64_t a = own >= 0 ? in->dims[own] : 1, b = asked >= 0 ? shape->ints[asked] : 1;
		if (value_ok(b) && b < 0) {
			op_contradiction(op, "a negative size");
			return;
		}
		if (value_ok(a) && value_ok(b) && a != b && a != 1 && b != 1) {
			op_contradiction(op, "a size of %lld can't become %lld", (long long)a, (long long)b);
			return;
		}
		dims[i] = a == 1 ? b : (b == 1 || value_ok(a)) ? a : b;
		if (follows && own >= 0 && a != 1)
			from[i] = strides[own];
	}
	if (follows)
		fold_strided(op, 0, in, 0, from);
}

void shape_tile(struct op *op)
{
	const struct value *repeats = op_in(op, 1);
	if (!op_ranked(op, 0) || repeats == NULL)
		return;
	int64_t *dims = op_shape(op, 0, op->in[0]->rank);
	if (repeats->ints == NULL || value_few(repeats) != op->in[0]->rank)
		return;
	for (int i = 0; i < op->in[0]->rank; i++)
		if ((value_ok(repeats->ints[i]) && repeats->ints[i] < 0) ||
			!dims_multiply(op->in[0]->dims[i], repeats->ints[i], &dims[i]))
			op_contradiction(op, "more elements than can be counted");
}

/* ---- Slice ---- */

// The first element and the number of elements along one axis, by NumPy's rules.
static void slice_axis(int64_t size, int64_t start, int64_t end, int64_t step, int64_t *ret_start, int64_t *ret_n)
{
	__int128 from = start < 0 ? (__int128)start + size : start, to = end < 0 ? (__int128)end + size : end;
	__int128 low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
	from = from < 0 ? 0 : from > high ? high : from;
	to = to < low ? low : to > high ? high : to;
	__int128 n = step > 0 ? (to - from + step - 1) / step : (from - to + -(__int128)step - 1) / -(__int128)step;
	*ret_start = (int64_t)from;
	*ret_n = n > 0 ? (int64_t)n : 0;
}

struct slices {
	const int64_t *starts, *ends, *axes, *steps;
	size_t n;
};

// false: invalid, or unknown.
static bool read_slices(const struct op *op, struct slices *ret)
{
	size_t n_starts, n_ends, n_axes, n_steps;
	bool known[4];
	bool given = op_numbers(op, 1, "starts", &ret->starts, &n_starts, &known[0]);
	given = op_numbers(op, 2, "ends", &ret->ends, &n_ends, &known[1]) && given;
	if (!op_numbers(op, 3, "axes", &ret->axes, &n_axes, &known[2]))
		ret->axes = NULL;
	if (!op_numbers(op, 4, "steps", &ret->steps, &n_steps, &known[3]))
		ret->steps = NULL;
	if (!given || !known[2]) // the axes must be known
		return false;
	ret->n = known[0] ? n_starts : known[1] ? n_ends : ret->axes != NULL ? n_axes : 0;
	if ((!known[0] && !known[1] && ret->axes == NULL) || (ret->axes != NULL && n_axes != ret->n))
		return false;
	if ((known[0] && n_starts != ret->n) || (known[1] && n_ends != ret->n))
		return false;
	if (ret->steps != NULL && known[3] && n_steps != ret->n)
		return false;
	// If the steps are present but unknown, the first elements and sizes are unknown as well.
	ret->starts = known[0] && known[3] ? ret->starts : NULL;
	ret->ends = known[1] ? ret->ends : NULL;
	ret->steps = known[3] ? ret->steps : NULL;
	return true;
}

struct cut { // slice along one axis
	bool known;
	int64_t start, n, step;
};

// The i-th slice; false: its step is 0.
static bool read_cut(const struct op *op, const struct slices *s, size_t i, int64_t size, struct cut *ret_cut)
{
	struct cut cut = {.n = VALUE_MISSING, .step = s->steps != NULL ? s->steps[i] : 1};
	cut.known = s->starts != NULL && s->ends != NULL && value_ok(size) && value_ok(s->starts[i]) &&
		value_ok(s->ends[i]) && value_ok(cut.step);
	if (cut.known && cut.step == 0)
		return op_contradiction(op, "a step of 0");
	if (cut.known)
		slice_axis(size, s->starts[i], s->ends[i], cut.step, &cut.start, &cut.n);
	*ret_cut = cut;
	return true;
}

void shape_slice(struct op *op)
{
	struct slices s;
	if (!op_ranked(op, 0))
		return;
	const struct value *in = op->in[0];
	op_shape(op, 0, in->rank);
	if (!read_slices(op, &s))
		return;
	op_shape_like(op, 0, in);
	int64_t strides[VALUE_RANK_MAX] = {0}, from = 0;
	bool follows = value_few(in) >= 0;
	if (follows)
		strides_of(in, strides);
	for (size_t i = 0; i < s.n; i++) {
		int axis;
		if (!op_axis(op, s.axes != NULL ? s.axes[i] : (int64_t)i, in->rank, &axis))
			return;
		struct cut cut = {0};
		if (!read_cut(op, &s, i, in->dims[axis], &cut))
			return;
		if (op_out(op, 0) != NULL)
			op_out(op, 0)->dims[axis] = cut.n;
		follows = follows && cut.known;
		if (follows) {
			from += cut.start * strides[axis];
			strides[axis] = cut.n > 1 ? strides[axis] * cut.step : 0;
		}
	}
	if (follows)
		fold_strided(op, 0, in, from, strides);
}

/* ---- Gather ---- */

static void fold_gather(struct op *op, int axis)
{
	const struct value *data = op->in[0], *indices = op->in[1], *out = op_out(op, 0);
	int64_t n = out != NULL ? value_few(out) : -1, count = value_few(indices), size = data->dims[axis], inner = 1;
	if (n < 0 || count < 0 || indices->ints == NULL || !value_has_contents(data))
		return;
	for (int k = axis + 1; k < data->rank; k++)
		inner *= data->dims[k];
	int64_t *ints = data->ints != NULL ? op_new_ints(op, 0, n) : NULL;
	double *floats = data->ints == NULL ? op_new_floats(op, 0, n) : NULL;
	for (int64_t i = 0; i < n; i++) {
		int64_t index = indices->ints[i / inner % count];
		bool known = value_ok(index) && index >= -size && index < size;
		int64_t from = known
			? (i / inner / count * size + (index < 0 ? index + size : index)) * inner + i % inner
			: 0;
		if (ints != NULL)
			ints[i] = known ? data->ints[from] : VALUE_MISSING;
		else if (floats != NULL)
			floats[i] = known ? data->floats[from] : (double)NAN;
	}
}

void shape_gather(struct op *op)
{
	int axis;
	if (!op_ranked(op, 0) || !op_ranked(op, 1) || !op_axis(op, op_int(op, "axis", 0), op->in[0]->rank, &axis))
		return;
	const struct value *data = op->in[0], *indices = op->in[1];
	int rank = data->rank + indices->rank - 1;
	if (rank > VALUE_RANK_MAX)
		return;
	int64_t *dims = op_shape(op, 0, rank);
	for (int i = 0; i < rank; i++)
		dims[i] = i < axis                 ? data->dims[i]
			: i < axis + indices->rank ? indices->dims[i - axis]
						   : data->dims[i - indices->rank + 1];
	fold_gather(op, axis);
}

void shape_gather_elements(struct op *op)
{
	op_shape_like(op, 0, op_in(op, 1));
}

void shape_gather_nd(struct op *op)
{
	if (!op_ranked(op, 0) || !op_ranked(op, 1) || op->in[1]->rank < 1)
		return;
	const struct value *data = op->in[0], *indices = op->in[1];
	int64_t batch = op_int(op, "batch_dims", 0), depth = indices->dims[indices->rank - 1];
	if (!value_ok(depth) || depth < 0 || batch < 0 || batch >= indices->rank || depth > data->rank - batch)
		return;
	int rank = indices->rank - 1 + data->rank - (int)depth - (int)batch;
	if (rank > VALUE_RANK_MAX)
		return;
	int64_t *dims = op_shape(op, 0, rank);
	for (int i = 0; i < rank; i++)
		dims[i] = i < indices->rank - 1 ? indices->dims[i]
						: data->dims[i - (indices->rank - 1) + depth + batch];
}
