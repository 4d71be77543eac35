/* Operators with a sliding window: convolutions and pools. */
#include "model/internal.h"

struct window { // along one spatial dimension
	int64_t kernel, stride, dilation, pad_begin, pad_end;
};

enum padding { PAD_GIVEN, PAD_SAME, PAD_VALID };

static enum padding padding_of(const struct op *op)
{
	if (op_text_is(op, "auto_pad", "SAME_UPPER", false) || op_text_is(op, "auto_pad", "SAME_LOWER", false))
		return PAD_SAME;
	return op_text_is(op, "auto_pad", "VALID", false) ? PAD_VALID : PAD_GIVEN;
}

static bool read_axis(const struct op *op, const char *name, size_t i, size_t n_space, int64_t least, int64_t *value)
{
	const int64_t *given;
	size_t n = op_ints(op, name, &given);
	if (n == 0)
		return true;
	if (n != n_space)
		return op_contradiction(op, "%s has %zu numbers for %zu spatial dimensions", name, n, n_space);
	if (given[i] < least)
		return op_contradiction(op, "%s of %lld", name, (long long)given[i]);
	*value = given[i];
	return true;
}

// kernel: size from the weight's shape; VALUE_MISSING: kernel_shape must give it.
static bool read_window(const struct op *op, size_t i, size_t n_space, int64_t kernel, struct window *ret)
{
	*ret = (struct window){kernel, 1, 1, 0, 0};
	int64_t stated = VALUE_MISSING;
	if (!read_axis(op, "kernel_shape", i, n_space, 0, &stated) ||
		!read_axis(op, "strides", i, n_space, 1, &ret->stride) ||
		!read_axis(op, "dilations", i, n_space, 1, &ret->dilation))
		return false;
	if (!dims_unify(kernel, stated, &ret->kernel))
		return op_contradiction(op, "kernel_shape is %lld, but the weight has %lld", (long long)stated,
			(long long)kernel);
	const int64_t *pads;
	size_t n = op_ints(op, "pads", &pads);
	if (n == 0 || padding_of(op) != PAD_GIVEN)
		return true;
	if (n != 2 * n_space)
		return op_contradiction(op, "pads has %zu numbers for %zu spatial dimensions", n, n_space);
	ret->pad_begin = pads[i];
	ret->pad_end = pads[i + n_space];
	return true;
}

static bool size_from(const struct op *op, __int128 size, int64_t *ret_size)
{
	if (size < 0 || size > INT64_MAX)
		return op_contradiction(op, "the window is larger than its input");
	*ret_size = (int64_t)size;
	return true;
}

static __int128 reach(const struct window *w) // extent from the first to the last element of the window
{
	return ((__int128)w->kernel - 1) * w->dilation + 1;
}

// Number of windows that fit into a size of `in`.
static bool slide(const struct op *op, const struct window *w, int64_t in, bool ceiling, int64_t *ret_out)
{
	*ret_out = VALUE_MISSING;
	if (!value_ok(in))
		return true;
	enum padding padding = padding_of(op);
	if (padding == PAD_SAME)
		return size_from(op, ((__int128)in + w->stride - 1) / w->stride, ret_out);
	if (!value_ok(w->kernel))
		return true;
	__int128 capacity = (__int128)in + w->pad_begin + w->pad_end - reach(w);
	if (capacity < 0)
		return size_from(op, -1, ret_out);
	__int128 out = (ceiling ? capacity + w->stride - 1 : capacity) / w->stride + 1;
	// As in PyTorch, a last window that would begin after the input and its left padding is omitted.
	if (ceiling && (out - 1) * w->stride >= (__int128)in + w->pad_begin)
		out--;
	return size_from(op, out, ret_out);
}

/* ---- convolutions ---- */

static bool space_of(const struct op *op, const struct value *x, const struct value *weight, size_t *ret_n)
{
	if (x != NULL && x->ranked && weight != NULL && weight->ranked && x->rank != weight->rank)
		return op_contradiction(op, "an input of %d dimensions, a weight of %d", x->rank, weight->rank);
	const struct value *known = x != NULL && x->ranked ? x : weight;
	if (known == NULL || !known->ranked)
		return false;
	if (known->rank < 2)
		return op_contradiction(op, "an input of %d dimensions", known->rank);
	*ret_n = (size_t)known->rank - 2;
	return true;
}

static int64_t dim_of(const struct value *value, size_t i)
{
	return value != NULL && value->ranked && (int)i < value->rank ? value->dims[i] : VALUE_MISSING;
}

static void conv(struct op *op, const struct value *x, const struct value *weight)
{
	size_t n_space = 0;
	if (!space_of(op, x, weight, &n_space))
		return;
	int64_t group = op_int(op, "group", 1), channels;
	int64_t dims[VALUE_RANK_MAX] = {dim_of(x, 0), dim_of(weight, 0)};
	if (group < 1 || !dims_multiply(dim_of(weight, 1), group, &channels)) {
		op_contradiction(op, "group of %lld", (long long)group);
		return;
	}
	if (!dims_unify(channels, dim_of(x, 1), &channels)) {
		op_contradiction(op, "the input has %lld channels, the weight expects %lld", (long long)dim_of(x, 1),
			(long long)channels);
		return;
	}
	for (size_t i = 0; i < n_space; i++) {
		struct window w;
		if (!read_window(op, i, n_space, dim_of(weight, i + 2), &w) ||
			!slide(op, &w, dim_of(x, i + 2), false, &dims[i + 2]))
			return;
	}
	memcpy(op_shape(op, 0, (int)n_space + 2), dims, sizeof(dims[0]) * (n_space + 2));
}

void shape_conv(struct op *op)
{
	conv(op, op_in(op, 0), op_in(op, 1));
}

void shape_conv_quantized(struct op *op) // inputs: x, its scale and zero point, then the weight
{
	conv(op, op_in(op, 0), op_in(op, 3));
}

static bool unslide(const struct op *op, size_t i, size_t n_space, const struct window *w, int64_t in, int64_t *ret_out)
{
	int64_t stated = VALUE_MISSING, extra = 0;
	*ret_out = VALUE_MISSING;
	if (!read_axis(op, "output_shape", i, n_space, 0, &stated) ||
		!read_axis(op, "output_padding", i, n_space, 0, &extra))
		return false;
	if (value_ok(stated)) {
		*ret_out = stated;
		return true;
	}
	if (!value_ok(in) || !value_ok(w->kernel))
		return true;
	if (padding_of(op) == PAD_SAME)
		return size_from(op, (__int128)in * w->stride, ret_out);
	return size_from(op, ((__int128)in - 1) * w->stride + extra + reach(w) - (__int128)w->pad_begin - w->pad_end,
		ret_out);
}

void shape_conv_transpose(struct op *op)
{
	const struct value *x = op_in(op, 0), *weight = op_in(op, 1);
	size_t n_space = 0;
	if (!space_of(op, x, weight, &n_space))
		return;
	int64_t dims[VALUE_RANK_MAX] = {dim_of(x, 0)}, channels;
	if (!dims_multiply(dim_of(weight, 1), op_int(op, "group", 1), &dims[1]) ||
		!dims_unify(dim_of(weight, 0), dim_of(x, 1), &channels)) {
		op_contradiction(op, "the input has %lld channels, the weight expects %lld", (long long)dim_of(x, 1),
			(long long)dim_of(weight, 0));
		return;
	}
	for (size_t i = 0; i < n_space; i++) {
		struct window w;
		if (!read_window(op, i, n_space, dim_of(weight, i + 2), &w) ||
			!unslide(op, i, n_space, &w, dim_of(x, i + 2), &dims[i + 2]))
			return;
	}
	memcpy(op_shape(op, 0, (int)n_space + 2), dims, sizeof(dims[0]) * (n_space + 2));
}

/* ---- pools ---- */

void shape_pool(struct op *op)
{
	const struct value *x = op_in(op, 0);
	size_t n_space = 0;
	if (!space_of(op, x, NULL, &n_space))
		return;
	int64_t dims[VALUE_RANK_MAX] = {dim_of(x, 0), dim_of(x, 1)};
	for (size_t i = 0; i < n_space; i++) {
		struct window w;
		if (!read_window(op, i, n_space, VALUE_MISSING, &w) ||
			!slide(op, &w, dim_of(x, i + 2), op_int(op, "ceil_mode", 0) != 0, &dims[i + 2]))
			return;
	}
	for (size_t i = 0; i < op->n_out; i++)
		memcpy(op_shape(op, i, (int)n_space + 2), dims, sizeof(dims[0]) * (n_space + 2));
	if (op_out(op, 1) != NULL)
		op_out(op, 1)->type = ONNX_INT64;
}

void shape_global_pool(struct op *op)
{
	op_shape_like(op, 0, op_in(op, 0));
	struct value *out = op_out(op, 0);
	for (int i = 2; out != NULL && out->ranked && i < out->rank; i++)
		out->dims[i] = 1;
}

void shape_roi(struct op *op) // RoiAlign, MaxRoiPool: a window of fixed size for each region
{
	int64_t *dims = op_shape(op, 0, 4);
	dims[0] = dim_of(op_in(op, 1), 0);
	dims[1] = dim_of(op_in(op, 0), 1);
	const int64_t *pooled;
	bool stated = op_ints(op, "pooled_shape", &pooled) == 2;
	dims[2] = stated ? pooled[0] : op_int(op, "output_height", 1);
	dims[3] = stated ? pooled[1] : op_int(op, "output_width", 1);
}

void shape_grid_sample(struct op *op)
{
	const struct value *x = op_in(op, 0), *grid = op_in(op, 1);
	if (!op_ranked(op, 0) || !op_ranked(op, 1))
		return;
	int64_t *dims = op_shape(op, 0, x->rank);
	for (int i = 0; i < x->rank; i++)
		dims[i] = i < 2 ? x->dims[i] : dim_of(grid, (size_t)i - 1);
}

/* ---- Resize, Upsample, Pad ---- */

// Sizes (integers) or scales of each dimension; ONNX allows a choice of axes since opset 18.
static void resize_axis(struct op *op, const struct value *by, int64_t k, int axis)
{
	struct value *out = op_out(op, 0);
	if (by->ints != NULL) {
		out->dims[axis] = by->ints[k];
		return;
	}
	double size = floor(value_to_double(op->in[0]->dims[axis], 1) * by->floats[k]);
	out->dims[axis] = size >= 0 && size < 0x1p62 ? (int64_t)size : VALUE_MISSING;
}

// In opset 7, Upsample has its scales as an attribute.
static bool stated_scales(const struct op *op, int rank, double *floats, struct value *ret_scales)
{
	const Onnx__AttributeProto *scales = op_attribute(op, "scales");
	if (scales == NULL || scales->n_floats != (size_t)rank)
		return false;
	for (int i = 0; i < rank; i++)
		floats[i] = (double)scales->floats[i];
	*ret_scales = (struct value){.ranked = true, .rank = 1, .dims = {rank}, .floats = floats};
	return true;
}

// Whether one factor applies to all axes, whatever the sizes.
static bool keeps_ratio(const struct op *op)
{
	return op_attribute(op, "keep_aspect_ratio_policy") != NULL &&
		!op_text_is(op, "keep_aspect_ratio_policy", "stretch", true);
}

void shape_resize(struct op *op)
{
	if (!op_ranked(op, 0) || op_out(op, 0) == NULL)
		return;
	int rank = op->in[0]->rank;
	const int64_t *axes;
	size_t n_axes = op_ints(op, "axes", &axes);
	int64_t n = n_axes > 0 ? (int64_t)n_axes : rank;
	bool newer = op_is(op, "Resize") && op->opset >= 11;
	const struct value *by = newer && op_in(op, 3) != NULL ? op_in(op, 3) : op_in(op, newer ? 2 : 1);
	struct value stated;
	double floats[VALUE_RANK_MAX];
	if (by == NULL && stated_scales(op, rank, floats, &stated))
		by = &stated;
	op_shape(op, 0, rank);
	if (by == NULL || !value_has_contents(by) || value_few(by) != n || (by->ints != NULL && keeps_ratio(op)))
		return;
	if (n_axes > 0)
		op_shape_like(op, 0, op->in[0]);
	for (int64_t k = 0; k < n; k++) {
		int axis = (int)k;
		if (n_axes > 0 && !op_axis(op, axes[k], rank, &axis))
			return;
		resize_axis(op, by, k, axis);
	}
}

void shape_pad(struct op *op)
{
	const int64_t *pads, *axes;
	size_t n, n_axes;
	bool known, axes_known;
	if (!op_ranked(op, 0))
		return;
	const struct value *in = op->in[0];
	op_numbers(op, 1, "pads", &pads, &n, &known);
	bool has_axes = op_numbers(op, 3, "axes", &axes, &n_axes, &axes_known);
	int64_t *dims = op_shape(op, 0, in->rank);
	size_t padded = has_axes ? n_axes : (size_t)in->rank;
	if (!known || (has_axes && !axes_known))
		return;
	if (n != 2 * padded) {
		op_contradiction(op, "%zu pads for %zu dimensions", n, padded);
		return;
	}
	memcpy(dims, in->dims, sizeof(dims[0]) * (size_t)in->rank);
	for (size_t i = 0; i < padded; i++) {
		int axis = (int)i;
		if (has_axes && !op_axis(op, axes[i], in->rank, &axis))
			return;
		int64_t before = pads[i], after = pads[i + padded];
		if (!value_ok(dims[axis]) || !value_ok(before) || !value_ok(after))
			dims[axis] = VALUE_MISSING;
		else if (!size_from(op, (__int128)dims[axis] + before + after, &dims[axis]))
			return;
	}
}
