/* Arithmetic on small known numbers, with which graphs compute their shapes. */
#include "model/internal.h"

/* ---- binary operators ---- */

struct binary {
	const char *name;
	int64_t (*ints)(int64_t a, int64_t b);
	double (*floats)(double a, double b);
	bool compares; // results are 0 or 1
};

static int64_t add_ints(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? VALUE_MISSING : sum;
}
static int64_t sub_ints(int64_t a, int64_t b)
{
	int64_t difference;
	return __builtin_sub_overflow(a, b, &difference) ? VALUE_MISSING : difference;
}
static int64_t mul_ints(int64_t a, int64_t b)
{
	int64_t product;
	return __builtin_mul_overflow(a, b, &product) ? VALUE_MISSING : product;
}
static int64_t div_ints(int64_t a, int64_t b) // a is never INT64_MIN, which is VALUE_MISSING
{
	return b == 0 ? VALUE_MISSING : a / b;
}
static int64_t mod_ints(int64_t a, int64_t b)
{
	if (b == 0 || b == -1)
		return b == 0 ? VALUE_MISSING : 0;
	int64_t rest = a % b;
	return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static int64_t min_ints(int64_t a, int64_t b)
{
	return a < b ? a : b;
}
static int64_t max_ints(int64_t a, int64_t b)
{
	return a > b ? a : b;
}
static int64_t pow_ints(int64_t a, int64_t b)
{
	int64_t product = 1;
	if (b < 0 || b > 64)
		return VALUE_MISSING;
	for (; b > 0 && value_ok(product); b--)
		product = mul_ints(product, a);
	return product;
}
#define COMPARE(name, operation)                                                                                       \
	static int64_t name##_ints(int64_t a, int64_t b)                                                               \
	{                                                                                                              \
		return a operation b;                                                                                  \
	}                                                                                                              \
	static double name##_floats(double a, double b)                                                                \
	{                                                                                                              \
		return a operation b;                                                                                  \
	}
COMPARE(equal, ==)
COMPARE(less, <)
COMPARE(less_or_equal, <=)
COMPARE(greater, >)
COMPARE(greater_or_equal, >=)
COMPARE(both, &&)
COMPARE(either, ||)
#undef COMPARE
static double add_floats(double a, double b)
{
	return a + b;
}
static double sub_floats(double a, double b)
{
	return a - b;
}
static double mul_floats(double a, double b)
{
	return a * b;
}
static double div_floats(double a, double b)
{
	return a / b;
}

static const struct binary binaries[] = {
	{"Add", add_ints, add_floats},
	{"Sub", sub_ints, sub_floats},
	{"Mul", mul_ints, mul_floats},
	{"Div", div_ints, div_floats},
	{"Mod", mod_ints, fmod},
	{"Pow", pow_ints, pow},
	{"Min", min_ints, fmin},
	{"Max", max_ints, fmax},
	{"Sum", add_ints, add_floats},
	{"Equal", equal_ints, equal_floats, .compares = true},
	{"Less", less_ints, less_floats, .compares = true},
	{"LessOrEqual", less_or_equal_ints, less_or_equal_floats, .compares = true},
	{"Greater", greater_ints, greater_floats, .compares = true},
	{"GreaterOrEqual", greater_or_equal_ints, greater_or_equal_floats, .compares = true},
	{"And", both_ints, both_floats, .compares = true},
	{"Or", either_ints, either_floats, .compares = true},
};

// Index, in an input that is broadcast to the output, of an element of the output.
static int64_t broadcast_index(const struct value *out, const struct value *in, int64_t i)
{
	int64_t index = 0, stride = 1;
	for (int k = out->rank - 1, m = in->rank - 1; k >= 0; k--, m--) {
		int64_t coordinate = out->dims[k] > 0 ? i % out->dims[k] : 0;
		i /= out->dims[k] > 0 ? out->dims[k] : 1;
		if (m < 0)
			break;
		if (in->dims[m] != 1)
			index += coordinate * stride;
		stride *= in->dims[m];
	}
	return index;
}

static void binary_ints(struct op *op, const struct binary *how, int64_t n)
{
	const struct value *out = op_out(op, 0), *a = op->in[0], *b = op->in[1];
	int64_t *results = op_new_ints(op, 0, n);
	for (int64_t i = 0; results != NULL && i < n; i++) {
		int64_t x = a->ints[broadcast_index(out, a, i)], y = b->ints[broadcast_index(out, b, i)];
		results[i] = value_ok(x) && value_ok(y) ? how->ints(x, y) : VALUE_MISSING;
	}
}

static void binary_floats(struct op *op, const struct binary *how, int64_t n)
{
	const struct value *out = op_out(op, 0), *a = op->in[0], *b = op->in[1];
	double *results = how->compares ? NULL : op_new_floats(op, 0, n);
	int64_t *truths = how->compares ? op_new_ints(op, 0, n) : NULL;
	for (int64_t i = 0; (results != NULL || truths != NULL) && i < n; i++) {
		double x = value_float(a, broadcast_index(out, a, i)), y = value_float(b, broadcast_index(out, b, i));
		double result = isnan(x) || isnan(y) ? (double)NAN : how->floats(x, y);
		if (truths != NULL)
			truths[i] = isnan(result) ? VALUE_MISSING : result != 0;
		else
			results[i] = result;
	}
}

void fold_binary(struct op *op)
{
	const struct value *a = op_in(op, 0), *b = op_in(op, 1);
	if (op->n_in != 2 || a == NULL || b == NULL || !value_has_contents(a) || !value_has_contents(b))
		return;
	int64_t n = op_out(op, 0) != NULL ? value_few(op_out(op, 0)) : -1;
	for (size_t i = 0; n >= 0 && i < ARRAY_SIZE(binaries); i++) {
		if (!op_is(op, binaries[i].name))
			continue;
		if (a->ints != NULL && b->ints != NULL)
			binary_ints(op, &binaries[i], n);
		else
			binary_floats(op, &binaries[i], n);
		return;
	}
}

void fold_where(struct op *op)
{
	int64_t n = op_out(op, 0) != NULL ? value_few(op_out(op, 0)) : -1;
	for (size_t i = 0; i < 3; i++)
		if (n < 0 || op_in(op, i) == NULL || op->in[i]->ints == NULL)
			return;
	const struct value *out = op_out(op, 0);
	int64_t *results = op_new_ints(op, 0, n);
	for (int64_t i = 0; results != NULL && i < n; i++) {
		int64_t condition = op->in[0]->ints[broadcast_index(out, op->in[0], i)];
		int64_t yes = op->in[1]->ints[broadcast_index(out, op->in[1], i)];
		int64_t no = op->in[2]->ints[broadcast_index(out, op->in[2], i)];
		results[i] = value_ok(condition) ? (condition != 0 ? yes : no) : yes == no ? yes : VALUE_MISSING;
	}
}

/* ---- unary operators ---- */

static double sign(double x)
{
	return (x > 0) - (x < 0);
}
static double negative(double x)
{
	return -x;
}
static double reciprocal(double x)
{
	return 1 / x;
}
static double not_true(double x)
{
	return x == 0;
}

static const struct {
	const char *name;
	double (*of)(double x);
} unaries[] = {
	{"Neg", negative},
	{"Abs", fabs},
	{"Floor", floor},
	{"Ceil", ceil},
	{"Round", nearbyint},
	{"Sqrt", sqrt},
	{"Sign", sign},
	{"Reciprocal", reciprocal},
	{"Not", not_true},
	{"Exp", exp},
	{"Log", log},
};

static bool is_exact(int64_t value) // exactly representable as a double
{
	return value_ok(value) && value <= INT64_C(1) << 53 && value >= -(INT64_C(1) << 53);
}

static void unary(struct op *op, double (*of)(double x), int64_t n)
{
	const struct value *in = op->in[0];
	int64_t *ints = in->ints != NULL ? op_new_ints(op, 0, n) : NULL;
	double *floats = in->ints == NULL ? op_new_floats(op, 0, n) : NULL;
	for (int64_t i = 0; i < n; i++) {
		double result = ints != NULL && is_exact(in->ints[i]) ? of((double)in->ints[i]) : (double)NAN;
		if (ints != NULL)
			ints[i] = fabs(result) < 0x1p63 ? (int64_t)result : VALUE_MISSING;
		else if (floats != NULL)
			floats[i] = of(in->floats[i]);
	}
}

static void cast(struct op *op, int64_t n)
{
	const struct value *in = op->in[0];
	int32_t type = op_out(op, 0)->type;
	if (onnx_type_is_float(type)) {
		double *floats = op_new_floats(op, 0, n);
		for (int64_t i = 0; floats != NULL && i < n; i++)
			floats[i] = value_float(in, i);
		return;
	}
	int64_t *ints = type != ONNX_UNDEFINED && type != ONNX_STRING ? op_new_ints(op, 0, n) : NULL;
	for (int64_t i = 0; ints != NULL && i < n; i++) {
		ints[i] = value_int(in, i);
		if (type == ONNX_BOOL && value_ok(ints[i]))
			ints[i] = value_float(in, i) != 0;
	}
}

void fold_unary(struct op *op)
{
	const struct value *in = op_in(op, 0);
	int64_t n = in != NULL && op_out(op, 0) != NULL && value_has_contents(in) ? value_few(in) : -1;
	if (n < 0)
		return;
	if (op_is(op, "Cast") || op_is(op, "CastLike")) {
		cast(op, n);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(unaries); i++)
		if (op_is(op, unaries[i].name))
			unary(op, unaries[i].of, n);
}

// Same numbers, other shape.
void fold_same(struct op *op)
{
	struct value *out = op_out(op, 0);
	if (op_in(op, 0) == NULL || out == NULL || value_few(out) < 0 || value_few(out) != value_few(op->in[0]))
		return;
	out->ints = op->in[0]->ints;
	out->floats = op->in[0]->floats;
}

/* ---- reductions ---- */

static const struct {
	const char *name;
	int64_t (*ints)(int64_t a, int64_t b);
	double (*floats)(double a, double b);
} reductions[] = {
	{"ReduceMax", max_ints, fmax},
	{"ReduceMin", min_ints, fmin},
	{"ReduceProd", mul_ints, mul_floats},
	{"ReduceSum", add_ints, add_floats},
};

static void reduce_ints(struct op *op, const int64_t *in, int64_t n, int64_t (*join)(int64_t a, int64_t b))
{
	int64_t *result = op_new_ints(op, 0, 1);
	if (result == NULL)
		return;
	*result = in[0];
	for (int64_t i = 1; i < n; i++)
		*result = value_ok(*result) && value_ok(in[i]) ? join(*result, in[i]) : VALUE_MISSING;
}

static void reduce_floats(struct op *op, const double *in, int64_t n, double (*join)(double a, double b))
{
	double *result = op_new_floats(op, 0, 1);
	if (result == NULL)
		return;
	*result = in[0];
	for (int64_t i = 1; i < n; i++) // fmax and fmin would skip unknown values (NaN)
		*result = isnan(*result) || isnan(in[i]) ? (double)NAN : join(*result, in[i]);
}

void fold_reduce(struct op *op)
{
	const struct value *in = op_in(op, 0);
	int64_t n = in != NULL && value_has_contents(in) ? value_few(in) : 0;
	if (n < 1 || value_few(op_out(op, 0)) != 1)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(reductions); i++) {
		if (!op_is(op, reductions[i].name))
			continue;
		if (in->ints != NULL)
			reduce_ints(op, in->ints, n, reductions[i].ints);
		else
			reduce_floats(op, in->floats, n, reductions[i].floats);
	}
}

/* ---- moved elements ---- */

void strides_of(const struct value *value, int64_t *ret_strides)
{
	int64_t stride = 1;
	for (int i = value->rank - 1; i >= 0; i--) {
		ret_strides[i] = stride;
		stride *= value->dims[i];
	}
}

void fold_strided(struct op *op, size_t output, const struct value *in, int64_t start, const int64_t *strides)
{
	struct value *out = op_out(op, output);
	int64_t n = out != NULL ? value_few(out) : -1;
	if (n < 0 || !value_has_contents(in))
		return;
	int64_t *ints = in->ints != NULL ? op_new_ints(op, output, n) : NULL;
	double *floats = in->ints == NULL ? op_new_floats(op, output, n) : NULL;
	for (int64_t i = 0; i < n; i++) {
		int64_t from = start, rest = i;
		for (int k = out->rank - 1; k >= 0; k--) {
			from += rest % out->dims[k] * strides[k];
			rest /= out->dims[k];
		}
		if (ints != NULL)
			ints[i] = in->ints[from];
		else if (floats != NULL)
			floats[i] = in->floats[from];
	}
}
