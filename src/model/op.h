/* What shape functions work with: the attributes, inputs and outputs of one node. */
#pragma once

#include "model/walk.h"

/* ---- attributes; those that a function refers to come from its caller ---- */
const Onnx__AttributeProto *op_attribute(const struct op *op, const char *name); // NULL: not given
int64_t op_int(const struct op *op, const char *name, int64_t usual);
double op_float(const struct op *op, const char *name, double usual);
bool op_text_is(const struct op *op, const char *name, const char *text, bool usual);
size_t op_ints(const struct op *op, const char *name, const int64_t **ret_ints); // 0: not given
bool op_is(const struct op *op, const char *type);

/* ---- values ---- */
const struct value *op_in(const struct op *op, size_t i); // NULL: left out
bool op_ranked(const struct op *op, size_t i);            // given, and its dimensions are known
struct value *op_out(const struct op *op, size_t i);      // NULL: nobody wants it
// The dimensions of an output, all unknown yet. Never NULL: of an output nobody wants they go to a spare.
int64_t *op_shape(const struct op *op, size_t i, int rank);
void op_shape_like(const struct op *op, size_t i, const struct value *like);
// n numbers to fill in for an output; NULL: no memory, or nobody wants it.
int64_t *op_new_ints(const struct op *op, size_t i, int64_t n);
double *op_new_floats(const struct op *op, size_t i, int64_t n);
// Integers of input i, or of the attribute of that name where older opsets have it. false: not given, *ret_n is 0.
// *ret_known: false when they are given but not known.
bool op_numbers(const struct op *op, size_t i, const char *name, const int64_t **ret_ints, size_t *ret_n,
	bool *ret_known);

// -1 … counts from the end; false (and a contradiction) when it is beyond.
bool op_axis(const struct op *op, int64_t axis, int rank, int *ret_axis);
// The axes as one bit each; false when one is beyond.
bool op_axes(const struct op *op, const int64_t *axes, size_t n, int rank, unsigned *ret_bits);

// The graph can't run as it is: fails the walk, unless the branch may never run. Always returns false.
bool op_contradiction(const struct op *op, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Two sizes of what must be one: the known of them; false when they differ.
bool dims_unify(int64_t a, int64_t b, int64_t *ret_dim);
