/* Parameters and multiply-adds of a model, from its ONNX file alone. docs/onnx.md lists what is counted. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_RANK_MAX = 12 };

struct model_shape {
	bool known; // false: the rank is unknown
	int rank;
	int64_t dims[MODEL_RANK_MAX]; // VALUE_MISSING: unknown
};

struct model_layer { // a node of the graph; nodes of functions and subgraphs are named "caller/node"
	const char *name, *type;
	const char *why; // reason, as a sentence, if multiply_adds is unknown; else NULL
	int64_t parameters;
	int64_t multiply_adds;       // with a weight as one factor; VALUE_MISSING: unknown
	int64_t other_multiply_adds; // of two factors that both depend on the input, as in attention
	struct model_shape output;   // shape of its first output
};

struct model_input {
	const char *name;
	struct model_shape shape;
};

struct model_operator { // an unsupported operator
	const char *type;
	int64_t count;
};

struct model_figures {
	const char *producer; // may be NULL
	int64_t ir_version, opset;
	int64_t batch;                              // batch size of the figures; VALUE_MISSING: no input has dimensions
	int64_t parameters;                         // VALUE_MISSING: unknown
	int64_t parameter_bytes;                    // as stored; VALUE_MISSING: unknown
	int64_t multiply_adds, other_multiply_adds; // VALUE_MISSING: unknown for at least one layer
	int64_t known_multiply_adds, known_other_multiply_adds; // sum over the layers for which they are known: a lower bound
	uint64_t read_bytes;                                    // bytes read from the file
	size_t n_layers, n_inputs, n_unknown_operators, n_free_dims, n_warnings;
	const struct model_layer *layers;
	const struct model_input *inputs; // without the weights
	const struct model_operator *unknown_operators;
	const char *const *free_dims; // named dimensions of inputs without a given size
	const char *const *warnings;
};

struct model_dim {
	const char *name;
	int64_t size;
};

struct model_options {
	int64_t batch; // VALUE_MISSING: as stored, 1 if that is open
	const struct model_dim *dims;
	size_t n_dims;
};

// All data of *ret_figures is in the arena.
int model_read(const char *path, const struct model_options *options, struct arena *arena,
	struct model_figures *ret_figures, struct wattle_error *reterr);
