/* What is known of a value (a tensor that nodes pass on) without computing it: its shape, and the numbers in it where
 * they are few and follow from shapes and constants. Reshape, Slice and their like take shapes from such numbers. */
#pragma once

#include "base/arena.h"
#include "base/util.h"
#include "model/onnx.h"

enum {
	VALUE_RANK_MAX = 12,       // dimensions that are followed
	VALUE_CONTENTS_MAX = 1024, // numbers that are followed
};

struct value {
	const char *name; // borrowed; NULL: inside an operator
	int32_t type;     // enum onnx_type; ONNX_UNDEFINED: not known
	bool ranked;      // rank and dims are known
	bool fixed;       // made of stored tensors alone: the weights' side of a product
	bool number;      // made of shapes and constants alone: bookkeeping, not the model's arithmetic
	int rank;
	int64_t dims[VALUE_RANK_MAX]; // VALUE_MISSING: not known
	// The numbers in row-major order, in the arena: at most one of the two; NULL: not known. One of them may be unknown
	// alone: VALUE_MISSING, NaN.
	const int64_t *ints;
	const double *floats;
	struct stored *stored; // the tensor of the file that this is, or NULL
	struct call *maker;    // the node that makes it; NULL: input or stored
};

// Number of elements, VALUE_MISSING where it is not known; false when 64 bits can't count them.
bool value_count(const struct value *value, int64_t *ret_count);
// Number of elements when it is known and small enough to be followed, else -1.
int64_t value_few(const struct value *value);
bool value_has_contents(const struct value *value);
// One of its numbers, whatever their type; NaN when it is not known.
double value_float(const struct value *value, int64_t i);
int64_t value_int(const struct value *value, int64_t i); // VALUE_MISSING: not known, or no integer of 64 bits
// The number of a value that has one element; VALUE_MISSING: NULL, another number of them, or as value_int.
int64_t value_lone_int(const struct value *value);

// a * b where both are known; false when the product does not fit.
bool dims_multiply(int64_t a, int64_t b, int64_t *ret_product);

bool onnx_type_is_float(int32_t type); // quantised forms are none
int onnx_type_bits(int32_t type);      // 0: not known, or of no fixed size
