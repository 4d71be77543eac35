/* Parameters and multiply-adds of a model, from its ONNX file alone. docs/onnx.md says what is counted. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_RANK_MAX = 12 };

struct model_shape {
	bool known; // else not even the number of dimensions is
	int rank;
	int64_t dims[MODEL_RANK_MAX]; // VALUE_MISSING: not known
};

struct model_layer { // a node of the graph; those of functions and subgraphs as "caller/node"
	const char *name, *type;
	const char *why; // multiply_adds is not known: a sentence; else NULL
	int64_t parameters;
	int64_t multiply_adds;       // with a weight on one side; VALUE_MISSING: not known
	int64_t other_multiply_adds; // of two values that both depend on the input, such as attention's
	struct model_shape output;   // its first one
};

struct model_input {
	const char *name;
	struct model_shape shape;
};

struct model_operator { // that is not known
	const char *type;
	int64_t count;
};

struct model_figures {
	const char *producer; // may be NULL
	int64_t ir_version, opset;
	int64_t batch;                              // of the figures; VALUE_MISSING: no input has any dimension
	int64_t parameters;                         // VALUE_MISSING: not known
	int64_t parameter_bytes;                    // as stored; VALUE_MISSING: not known
	int64_t multiply_adds, other_multiply_adds; // VALUE_MISSING: some of it is not known
	int64_t known_multiply_adds, known_other_multiply_adds; // of the layers where it is known: at least this
	uint64_t read_bytes;                                    // of the file
	size_t n_layers, n_inputs, n_unknown_operators, n_free_dims, n_warnings;
	const struct model_layer *layers;
	const struct model_input *inputs; // without the weights
	const struct model_operator *unknown_operators;
	const char *const *free_dims; // named dimensions of inputs that nobody gave a size
	const char *const *warnings;
};

struct model_dim {
	const char *name;
	int64_t size;
};

struct model_options {
	int64_t batch; // VALUE_MISSING: as stored, 1 where that is open
	const struct model_dim *dims;
	size_t n_dims;
};

// All of *ret_figures lives in the arena.
int model_read(const char *path, const struct model_options *options, struct arena *arena,
	struct model_figures *ret_figures, struct wattle_error *reterr);
