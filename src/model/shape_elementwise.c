/* Elementwise operators: shapes by NumPy's broadcasting. */
#include "model/internal.h"

void shape_same(struct op *op)
{
	if (op_in(op, 0) != NULL)
		op_shape_like(op, 0, op_in(op, 0));
	// Dropout's mask has the shape of the input too.
	if (op_is(op, "Dropout"))
		op_shape_like(op, 1, op_in(op, 0));
}

static bool broadcast_dim(int64_t a, int64_t b, int64_t *ret_dim)
{
	if (a == 1 || b == 1)
		*ret_dim = a == 1 ? b : a;
	else if (!value_ok(a) || !value_ok(b)) // the unknown one is 1 or equal; a known one above 1 decides
		*ret_dim = value_ok(a) ? a : b;
	else
		*ret_dim = a;
	return !(value_ok(a) && value_ok(b) && a != b && a != 1 && b != 1);
}

// Broadcasts a shape into *rank dims, aligned at the last dimension.
static bool broadcast_into(const struct op *op, int64_t *dims, int *rank, const struct value *value)
{
	int64_t joined[VALUE_RANK_MAX];
	int wide = *rank > value->rank ? *rank : value->rank;
	for (int i = 0; i < wide; i++) {
		int64_t a = i < wide - *rank ? 1 : dims[i - (wide - *rank)];
		int64_t b = i < wide - value->rank ? 1 : value->dims[i - (wide - value->rank)];
		if (!broadcast_dim(a, b, &joined[i]))
			return op_contradiction(op, "sizes %lld and %lld don't match", (long long)a,
				(long long)b);
	}
	memcpy(dims, joined, sizeof(joined[0]) * (size_t)wide);
	*rank = wide;
	return true;
}

void shape_broadcast(struct op *op)
{
	int64_t dims[VALUE_RANK_MAX] = {0};
	int rank = 0;
	for (size_t i = 0; i < op->n_in; i++) {
		if (!op_ranked(op, i) || !broadcast_into(op, dims, &rank, op->in[i]))
			return;
	}
	if (op->n_in > 0)
		memcpy(op_shape(op, 0, rank), dims, sizeof(dims[0]) * (size_t)rank);
}

void shape_cast(struct op *op)
{
	op_shape_like(op, 0, op_in(op, 0));
	struct value *out = op_out(op, 0);
	if (out == NULL)
		return;
	const struct value *like = op_in(op, 1); // CastLike
	out->type = like != NULL ? like->type : (int32_t)op_int(op, "to", ONNX_UNDEFINED);
}

/* Fused operators of onnxruntime: the first output has the input's shape; some have the sum as an additional last
 * output. */
void shape_skip_norm(struct op *op)
{
	op_shape_like(op, 0, op_in(op, 0));
	op_shape_like(op, 3, op_in(op, 0));
}

void shape_bias_norm(struct op *op)
{
	op_shape_like(op, 0, op_in(op, 0));
}

void shape_dynamic_quantize(struct op *op)
{
	op_shape_like(op, 0, op_in(op, 0));
	op_shape(op, 1, 0);
	op_shape(op, 2, 0);
	if (op_out(op, 1) != NULL)
		op_out(op, 1)->type = ONNX_FLOAT;
	if (op_out(op, 2) != NULL)
		op_out(op, 2)->type = ONNX_UINT8;
}

void shape_batch_norm(struct op *op)
{
	op_shape_like(op, 0, op_in(op, 0));
	for (size_t i = 1; i < op->n_out; i++)
		op_shape_like(op, i, op_in(op, i < 3 ? i + 2 : 3));
}

void shape_layer_norm(struct op *op)
{
	op_shape_like(op, 0, op_in(op, 0));
	int axis;
	if (!op_ranked(op, 0) || !op_axis(op, op_int(op, "axis", -1), op->in[0]->rank, &axis))
		return;
	for (size_t i = 1; i < op->n_out; i++) { // mean and standard deviation
		int64_t *dims = op_shape(op, i, op->in[0]->rank);
		for (int k = 0; k < op->in[0]->rank; k++)
			dims[k] = k < axis ? op->in[0]->dims[k] : 1;
	}
}

void shape_scalar(struct op *op)
{
	op_shape(op, 0, 0);
}
