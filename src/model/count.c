/* Multiply-adds: one for each use of a weight at a position of the output. Biases, norms and other elementwise
 * operations count as none. */
#include "model/internal.h"

#include <errno.h>

static int64_t multiply(const struct op *op, int64_t a, int64_t b)
{
	int64_t product;
	if (dims_multiply(a, b, &product))
		return product;
	walk_fail(op->walk, -EOVERFLOW, "%s: node '%.100s' (%.60s) has more multiply-adds than 64 bits can count",
		op->walk->path, node_name(op->node), op->node->op_type);
	return VALUE_MISSING;
}

static int64_t elements(const struct op *op, const struct value *value)
{
	int64_t product = value != NULL && value->ranked ? 1 : VALUE_MISSING;
	for (int i = 0; value != NULL && value->ranked && i < value->rank; i++)
		product = multiply(op, product, value->dims[i]);
	return product;
}

int64_t count_conv(const struct op *op) // also ConvTranspose
{
	const struct value *out = op_out(op, 0);
	bool quantized = op_is(op, "QLinearConv");
	const struct value *weight = op_in(op, quantized ? 3 : 1);
	int64_t product = elements(op, weight);
	if (out == NULL || !out->ranked)
		return product == 0 ? 0 : VALUE_MISSING;
	for (int i = 0; i < out->rank; i++)
		if (i != 1)
			product = multiply(op, product, out->dims[i]);
	return product;
}

int64_t count_matmul(const struct op *op)
{
	const struct value *a = op_in(op, 0);
	if (a == NULL || !a->ranked || a->rank < 1)
		return VALUE_MISSING;
	bool turned = op_int(op, "transA", 0) != 0 && a->rank > 1;
	return multiply(op, elements(op, op_out(op, 0)), a->dims[a->rank - (turned ? 2 : 1)]);
}

int64_t count_matmul_nbits(const struct op *op)
{
	int64_t inner = op_int(op, "K", VALUE_MISSING);
	return multiply(op, elements(op, op_out(op, 0)), inner >= 0 ? inner : VALUE_MISSING);
}

int64_t count_gemm(const struct op *op)
{
	const struct value *a = op_in(op, 0), *b = op_in(op, 1);
	int64_t inner = VALUE_MISSING;
	if (a != NULL && a->ranked && a->rank == 2)
		inner = a->dims[op_int(op, "transA", 0) != 0 ? 0 : 1];
	if (!value_ok(inner) && b != NULL && b->ranked && b->rank == 2)
		inner = b->dims[op_int(op, "transB", 0) != 0 ? 1 : 0];
	return multiply(op, elements(op, op_out(op, 0)), inner);
}

// A product without a sum over a letter scales elements, as Mul does. The order of more than two factors is not
// defined.
int64_t count_einsum(const struct op *op)
{
	struct einsum sum;
	if (!einsum_read(op, &sum))
		return VALUE_MISSING;
	if (op->n_in < 2 || (sum.used & ~sum.kept) == 0)
		return 0;
	int64_t product = op->n_in == 2 ? 1 : VALUE_MISSING;
	for (int i = 0; i < EINSUM_LETTERS; i++)
		if ((sum.used >> i & 1) != 0)
			product = multiply(op, product, sum.sizes[i]);
	return product;
}

int64_t count_rnn(const struct op *op) // each weight of W and R once per step of each sequence
{
	const struct value *x = op_in(op, 0);
	int64_t w = elements(op, op_in(op, 1)), r = elements(op, op_in(op, 2)), weights;
	if (x == NULL || !x->ranked || x->rank != 3 || !value_ok(w) || !value_ok(r))
		return VALUE_MISSING;
	if (__builtin_add_overflow(w, r, &weights))
		return multiply(op, INT64_MAX, 2);
	return multiply(op, multiply(op, weights, x->dims[0]), x->dims[1]);
}

int64_t count_attention(const struct op *op) // the projection of the input
{
	const struct value *x = op_in(op, 0);
	if (x == NULL || !x->ranked || x->rank != 3)
		return VALUE_MISSING;
	return multiply(op, multiply(op, elements(op, op_in(op, 1)), x->dims[0]), x->dims[1]);
}

int64_t count_attention_plain(const struct op *op)
{
	const struct value *q = op_in(op, 0), *k = op_in(op, 1), *v = op_in(op, 2);
	if (q == NULL || k == NULL || v == NULL || !q->ranked || !k->ranked || !v->ranked || q->rank != 3 ||
		k->rank != 3 || v->rank != 3 || op_int(op, "kv_num_heads", 0) != 0)
		return VALUE_MISSING;
	// Per head q times k, then the scores times v: the number of heads times their width is the whole width.
	int64_t scores = multiply(op, elements(op, q), k->dims[1]);
	int64_t sums = multiply(op, multiply(op, multiply(op, q->dims[0], q->dims[1]), k->dims[1]), v->dims[2]), whole;
	if (!value_ok(scores) || !value_ok(sums) || __builtin_add_overflow(scores, sums, &whole))
		return VALUE_MISSING;
	return whole;
}

int64_t count_inside(const struct op *op)
{
	const struct value *x = op_in(op, 0), *out = op_out(op, 0);
	if (!op_is(op, "Attention"))
		return 0;
	if (x == NULL || !x->ranked || x->rank != 3 || out == NULL || op_in(op, 4) != NULL)
		return VALUE_MISSING; // input 4 holds the past state, so there are more keys than in the input
	const int64_t *sizes;
	int64_t score = op_ints(op, "qkv_hidden_sizes", &sizes) == 3 ? sizes[0] : out->dims[2], width;
	if (!value_ok(score) || !value_ok(out->dims[2]) || __builtin_add_overflow(score, out->dims[2], &width))
		return VALUE_MISSING;
	return multiply(op, multiply(op, multiply(op, x->dims[0], x->dims[1]), x->dims[1]), width);
}
