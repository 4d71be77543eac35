#include "model/internal.h"

bool dims_multiply(int64_t a, int64_t b, int64_t *ret_product)
{
	if (a == 0 || b == 0) {
		*ret_product = 0; // even if the other one is unknown
		return true;
	}
	if (!value_ok(a) || !value_ok(b)) {
		*ret_product = VALUE_MISSING;
		return true;
	}
	return !__builtin_mul_overflow(a, b, ret_product);
}

bool value_count(const struct value *value, int64_t *ret_count)
{
	int64_t count = value->ranked ? 1 : VALUE_MISSING;
	for (int i = 0; value->ranked && i < value->rank; i++)
		if (!dims_multiply(count, value->dims[i], &count))
			return false;
	*ret_count = count;
	return true;
}

int64_t value_few(const struct value *value)
{
	int64_t count;
	if (!value_count(value, &count) || !value_ok(count) || count > VALUE_CONTENTS_MAX)
		return -1;
	return count;
}

bool value_has_contents(const struct value *value)
{
	return value->ints != NULL || value->floats != NULL;
}

double value_float(const struct value *value, int64_t i)
{
	if (value->floats != NULL)
		return value->floats[i];
	return value->ints != NULL ? value_to_double(value->ints[i], 1) : (double)NAN;
}

int64_t value_int(const struct value *value, int64_t i)
{
	if (value->ints != NULL)
		return value->ints[i];
	if (value->floats == NULL || !(fabs(value->floats[i]) < 0x1p63))
		return VALUE_MISSING;
	return (int64_t)value->floats[i];
}

int64_t value_lone_int(const struct value *value)
{
	return value != NULL && value_few(value) == 1 ? value_int(value, 0) : VALUE_MISSING;
}

static const unsigned char bits_of_type[] = {
	[ONNX_FLOAT] = 32,
	[ONNX_UINT8] = 8,
	[ONNX_INT8] = 8,
	[ONNX_UINT16] = 16,
	[ONNX_INT16] = 16,
	[ONNX_INT32] = 32,
	[ONNX_INT64] = 64,
	[ONNX_BOOL] = 8,
	[ONNX_FLOAT16] = 16,
	[ONNX_DOUBLE] = 64,
	[ONNX_UINT32] = 32,
	[ONNX_UINT64] = 64,
	[ONNX_COMPLEX64] = 64,
	[ONNX_COMPLEX128] = 128,
	[ONNX_BFLOAT16] = 16,
	[ONNX_FLOAT8_FIRST] = 8,
	[ONNX_FLOAT8_FIRST + 1] = 8,
	[ONNX_FLOAT8_FIRST + 2] = 8,
	[ONNX_FLOAT8_LAST] = 8,
	[ONNX_UINT4] = 4,
	[ONNX_INT4] = 4,
	[ONNX_FLOAT4] = 4,
	[ONNX_FLOAT8_SCALE] = 8,
	[ONNX_UINT2] = 2,
	[ONNX_INT2] = 2,
};

int onnx_type_bits(int32_t type)
{
	return type >= 0 && (size_t)type < ARRAY_SIZE(bits_of_type) ? bits_of_type[type] : 0;
}

bool onnx_type_is_float(int32_t type)
{
	switch (type) {
	case ONNX_FLOAT:
	case ONNX_FLOAT16:
	case ONNX_DOUBLE:
	case ONNX_BFLOAT16:
	case ONNX_COMPLEX64:
	case ONNX_COMPLEX128:
		return true;
	default:
		return type >= ONNX_FLOAT8_FIRST && type <= ONNX_FLOAT8_LAST;
	}
}
