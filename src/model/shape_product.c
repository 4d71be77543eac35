/* Operators that multiply: the MatMul family, Einsum, recurrent layers, attention. */
#include "model/internal.h"

/* ---- MatMul by NumPy's rules: stacks of matrices, vectors on either side ---- */

static void matmul(struct op *op, const struct value *a, const struct value *b, bool a_turned, bool b_turned)
{
	if (a == NULL || b == NULL || !a->ranked || !b->ranked)
		return;
	if (a->rank < 1 || b->rank < 1) {
		op_contradiction(op, "a factor without dimensions");
		return;
	}
	int stack_a = a->rank > 2 ? a->rank - 2 : 0, stack_b = b->rank > 2 ? b->rank - 2 : 0;
	int stack = stack_a > stack_b ? stack_a : stack_b, rank = stack;
	int64_t dims[VALUE_RANK_MAX], inner;
	for (int i = 0; i < stack; i++) {
		int64_t x = i < stack - stack_a ? 1 : a->dims[i - (stack - stack_a)];
		int64_t y = i < stack - stack_b ? 1 : b->dims[i - (stack - stack_b)];
		if (x == 1 || y == 1)
			dims[i] = x == 1 ? y : x;
		else if (!dims_unify(x, y, &dims[i])) {
			op_contradiction(op, "stacks of %lld and %lld matrices", (long long)x, (long long)y);
			return;
		}
	}
	int64_t inner_a = a->dims[a->rank - (a_turned && a->rank > 1 ? 2 : 1)];
	int64_t inner_b = b->dims[b->rank - (b_turned || b->rank == 1 ? 1 : 2)];
	if (!dims_unify(inner_a, inner_b, &inner)) {
		op_contradiction(op, "sizes %lld and %lld don't match", (long long)inner_a, (long long)inner_b);
		return;
	}
	if (a->rank > 1)
		dims[rank++] = a->dims[a->rank - (a_turned ? 1 : 2)];
	if (b->rank > 1)
		dims[rank++] = b->dims[b->rank - (b_turned ? 2 : 1)];
	memcpy(op_shape(op, 0, rank), dims, sizeof(dims[0]) * (size_t)rank);
}

void shape_matmul(struct op *op)
{
	matmul(op, op_in(op, 0), op_in(op, 1), op_int(op, "transA", 0) != 0, op_int(op, "transB", 0) != 0);
}

void shape_matmul_quantized(struct op *op) // inputs: a, its scale and zero point, then b
{
	matmul(op, op_in(op, 0), op_in(op, 3), false, false);
}

void shape_matmul_nbits(struct op *op) // onnxruntime: b is packed, its sizes K and N are attributes
{
	op_shape_like(op, 0, op_in(op, 0));
	struct value *out = op_out(op, 0);
	int64_t n = op_int(op, "N", VALUE_MISSING);
	if (out != NULL && out->ranked && out->rank > 0)
		out->dims[out->rank - 1] = n >= 0 ? n : VALUE_MISSING;
}

void shape_gemm(struct op *op)
{
	const struct value *a = op_in(op, 0), *b = op_in(op, 1);
	if (a == NULL || b == NULL)
		return;
	if ((a->ranked && a->rank != 2) || (b->ranked && b->rank != 2)) {
		op_contradiction(op, "factors of %d and %d dimensions", a->rank, b->rank);
		return;
	}
	if (a->ranked && b->ranked) {
		matmul(op, a, b, op_int(op, "transA", 0) != 0, op_int(op, "transB", 0) != 0);
		return;
	}
	int64_t *dims = op_shape(op, 0, 2);
	if (b->ranked)
		dims[1] = b->dims[op_int(op, "transB", 0) != 0 ? 0 : 1];
	if (a->ranked)
		dims[0] = a->dims[op_int(op, "transA", 0) != 0 ? 1 : 0];
}

void shape_einsum(struct op *op)
{
	struct einsum sum;
	if (!einsum_read(op, &sum))
		return;
	int64_t *dims = op_shape(op, 0, sum.out_rank);
	for (int i = 0; i < sum.out_rank; i++)
		dims[i] = sum.sizes[sum.out[i]];
}

/* ---- LSTM, GRU, RNN ---- */

void shape_rnn(struct op *op)
{
	const struct value *x = op_in(op, 0), *w = op_in(op, 1), *r = op_in(op, 2);
	int64_t directions = op_text_is(op, "direction", "bidirectional", false) ? 2 : 1;
	int64_t hidden = op_int(op, "hidden_size", VALUE_MISSING);
	if (r != NULL && r->ranked && r->rank == 3 && !dims_unify(hidden, r->dims[2], &hidden)) {
		op_contradiction(op, "hidden_size is %lld, the weight expects %lld", (long long)hidden,
			(long long)r->dims[2]);
		return;
	}
	bool batch_first = op_int(op, "layout", 0) != 0, known = x != NULL && x->ranked;
	if (known && x->rank != 3) {
		op_contradiction(op, "an input of %d dimensions", x->rank);
		return;
	}
	int64_t features;
	if (known && w != NULL && w->ranked && w->rank == 3 && !dims_unify(w->dims[2], x->dims[2], &features)) {
		op_contradiction(op, "the input has %lld features, the weight expects %lld", (long long)x->dims[2],
			(long long)w->dims[2]);
		return;
	}
	int64_t first = known ? x->dims[0] : VALUE_MISSING, second = known ? x->dims[1] : VALUE_MISSING;
	int64_t *dims = op_shape(op, 0, 4);
	dims[0] = first;
	dims[1] = batch_first ? second : directions;
	dims[2] = batch_first ? directions : second;
	dims[3] = hidden;
	for (size_t i = 1; i < op->n_out; i++) { // the last state, and the last cell state of an LSTM
		dims = op_shape(op, i, 3);
		dims[0] = batch_first ? first : directions;
		dims[1] = batch_first ? directions : second;
		dims[2] = hidden;
		if (op_out(op, i) != NULL && x != NULL)
			op_out(op, i)->type = x->type;
	}
}

/* ---- attention nodes of onnxruntime ---- */

void shape_attention(struct op *op) // inputs: input, weight [features, 3 * hidden], bias
{
	const struct value *x = op_in(op, 0), *w = op_in(op, 1);
	if (!op_ranked(op, 0) || x->rank != 3)
		return;
	int64_t *dims = op_shape(op, 0, 3);
	dims[0] = x->dims[0];
	dims[1] = x->dims[1];
	const int64_t *sizes;
	if (op_ints(op, "qkv_hidden_sizes", &sizes) == 3)
		dims[2] = sizes[2];
	else if (w != NULL && w->ranked && w->rank == 2 && value_ok(w->dims[1]))
		dims[2] = w->dims[1] / 3;
}

void shape_attention_plain(struct op *op) // inputs: query, key, value
{
	op_shape_like(op, 0, op_in(op, 0));
	struct value *out = op_out(op, 0);
	const struct value *v = op_in(op, 2);
	if (out != NULL && out->ranked && v != NULL && v->ranked && v->rank == out->rank &&
		op_int(op, "kv_num_heads", 0) == 0)
		out->dims[out->rank - 1] = v->dims[v->rank - 1];
}
