/* The operators that are known: operators.def has a row for each. */
#pragma once

#include "model/op.h"

enum type_rule {     // of the first output
	TYPE_FIRST,  // that of input 0
	TYPE_SECOND, // that of input 1
	TYPE_BOOL,
	TYPE_INT64,
	TYPE_INT32,
	TYPE_FLOAT,
	TYPE_UINT8,
	TYPE_OWN, // the shape function says, or it is not known
};

struct operator_row {
	const char *domain, *name;             // domain "": ONNX's own
	void (*shape)(struct op *op);          // NULL: what comes out is not known
	void (*fold)(struct op *op);           // fills contents in where inputs have theirs; NULL: none
	int64_t (*count)(const struct op *op); // multiply-adds; NULL: none; VALUE_MISSING: not known
	enum type_rule type;
	uint32_t factors;  // inputs that are multiplied: with a weight among them the multiply-adds are the weights'
	uint32_t weights;  // inputs that are weights whatever their name and type, one bit each
	uint32_t settings; // inputs that are no parameters even when they are stored
};

const struct operator_row *operator_find(const char *domain, const char *name); // NULL: not known
const struct operator_row *operator_list(size_t *ret_n);                        // all, sorted

#define SHAPE(name) void shape_##name(struct op *op);
SHAPE(same)
SHAPE(broadcast)
SHAPE(cast)
SHAPE(skip_norm)
SHAPE(bias_norm)
SHAPE(dynamic_quantize)
SHAPE(batch_norm)
SHAPE(layer_norm)
SHAPE(conv)
SHAPE(conv_transpose)
SHAPE(conv_quantized)
SHAPE(pool)
SHAPE(global_pool)
SHAPE(roi)
SHAPE(grid_sample)
SHAPE(depth_to_space)
SHAPE(space_to_depth)
SHAPE(resize)
SHAPE(pad)
SHAPE(matmul)
SHAPE(matmul_quantized)
SHAPE(matmul_nbits)
SHAPE(gemm)
SHAPE(einsum)
SHAPE(rnn)
SHAPE(attention)
SHAPE(attention_plain)
SHAPE(reshape)
SHAPE(flatten)
SHAPE(transpose)
SHAPE(squeeze)
SHAPE(unsqueeze)
SHAPE(concat)
SHAPE(split)
SHAPE(slice)
SHAPE(gather)
SHAPE(gather_elements)
SHAPE(gather_nd)
SHAPE(expand)
SHAPE(tile)
SHAPE(shape)
SHAPE(size)
SHAPE(constant)
SHAPE(constant_of_shape)
SHAPE(range)
SHAPE(random)
SHAPE(one_hot)
SHAPE(nonzero)
SHAPE(reduce)
SHAPE(arg)
SHAPE(topk)
SHAPE(nms)
SHAPE(scalar)
SHAPE(compress)
SHAPE(eye_like)
#undef SHAPE

#define FOLD(name) void fold_##name(struct op *op);
FOLD(unary)
FOLD(binary)
FOLD(where)
FOLD(same)
FOLD(reduce)
#undef FOLD
// Distance between neighbours along each dimension; only for values whose size is known and small.
void strides_of(const struct value *value, int64_t *ret_strides);
// Fills an output: element i, by coordinates, comes from start + the sum of coordinate * stride of the input.
void fold_strided(struct op *op, size_t output, const struct value *in, int64_t start, const int64_t *strides);

#define COUNT(name) int64_t count_##name(const struct op *op);
COUNT(conv)
COUNT(matmul)
COUNT(matmul_nbits)
COUNT(gemm)
COUNT(einsum)
COUNT(rnn)
COUNT(attention)
COUNT(attention_plain)
#undef COUNT

// What a node multiplies of its own activations besides: onnxruntime's Attention.
int64_t count_inside(const struct op *op);
