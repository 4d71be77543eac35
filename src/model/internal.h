/* Internal interfaces of the walk over a graph. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/util.h"
#include "model/model.h"
#include "model/onnx.h"

/* Known properties of a value (a tensor passed between nodes) without computing it: its shape, and its numbers if they
 * are few and follow from shapes and constants. Reshape, Slice and similar operators take shapes from such numbers. */

enum {
	VALUE_RANK_MAX = 12,       // maximum rank
	VALUE_CONTENTS_MAX = 1024, // maximum number of known numbers
};

struct value {
	const char *name; // borrowed; NULL: inside an operator
	int32_t type;     // enum onnx_type; ONNX_UNDEFINED: unknown
	bool ranked;      // rank and dims are known
	bool fixed;       // computed from stored tensors only: the weights' side of a product
	bool number;      // computed from shapes and constants only: shape computation, not the model's arithmetic
	int rank;
	int64_t dims[VALUE_RANK_MAX]; // VALUE_MISSING: unknown
	// The numbers in row-major order, in the arena; at most one of the two is set; both NULL: unknown. Single
	// unknown numbers are VALUE_MISSING or NaN.
	const int64_t *ints;
	const double *floats;
	struct stored *stored; // the corresponding tensor of the file, or NULL
	struct call *maker;    // the node that computes it; NULL: input or stored
};

// Number of elements, VALUE_MISSING if unknown; false on overflow of 64 bits.
bool value_count(const struct value *value, int64_t *ret_count);
// Number of elements if it is known and at most VALUE_CONTENTS_MAX, else -1.
int64_t value_few(const struct value *value);
bool value_has_contents(const struct value *value);
// One of its numbers, whatever their type; NaN if unknown.
double value_float(const struct value *value, int64_t i);
int64_t value_int(const struct value *value, int64_t i); // VALUE_MISSING: unknown, or not a 64-bit integer
// The number of a value with one element; VALUE_MISSING: no value, another number of elements, or as value_int.
int64_t value_lone_int(const struct value *value);

// a * b if both are known; false on overflow.
bool dims_multiply(int64_t a, int64_t b, int64_t *ret_product);

bool onnx_type_is_float(int32_t type); // quantised types are not
int onnx_type_bits(int32_t type);      // 0: unknown, or no fixed size

/* State of the walk over the nodes of a graph in their order. */

enum {
	WALK_DEPTH_MAX = 24,         // nesting of graphs and functions
	WALK_WORK_MAX = 1000 * 1000, // nodes visited; functions that call functions twice grow as 2^n
	WALK_MEMORY_MAX = 1 << 30,   // bytes; protects against small constants folded repeatedly
	WALK_WARNINGS_MAX = 20,
};

/* ---- names ---- */

struct operator_row;

struct scope {               // names of one graph or of one call of a function
	struct scope *outer; // scope whose names are visible too; NULL: none
	struct intern names;
	struct value **values; // indexed by the names' numbers; owned
	size_t n_values;
	const struct op *call;     // the node that calls this function; NULL: a graph
	const struct scope *owner; // of `call`
	const char *prefix;        // name prefix of its layers: "caller/" or ""
	Onnx__OperatorSetIdProto *const *opsets;
	size_t n_opsets;
	Onnx__AttributeProto *const *defaults; // of a function
	size_t n_defaults;
};

/* ---- stored tensors ---- */

struct stored {
	const char *name;
	int64_t elements; // VALUE_MISSING: an input with an open shape
	int32_t type;
	bool is_constant; // a Constant node, not an initializer
	bool is_setting;  // running statistics, scales: used, but no parameter
	bool is_parameter;
};

// A node with constant outputs; leads from these to the stored tensors they are computed from.
struct call {
	const struct operator_row *what;
	const struct value *const *in;
	size_t n_in;
	unsigned seen; // bit set of the kinds of use for which it was followed
};

/* ---- the walk ---- */

struct walk {
	// walk_nodes and walk_graph: nodes can contain graphs and functions, which are walked recursively.
	bool (*nodes)(struct walk *walk, struct scope *scope, Onnx__NodeProto *const *nodes, size_t n);
	bool (*graph)(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph);
	struct arena *arena;
	const struct model_options *options;
	const Onnx__ModelProto *model;
	const char *path;
	struct wattle_error *reterr;
	int failed;  // sticky
	int guarded; // > 0: in a branch that may never run, where a contradiction only makes values unknown
	int silent;  // > 0: computes shapes only, adds no layers
	int depth;
	int64_t work;
	int64_t runs;             // number of runs of the current graph; VALUE_MISSING: unknown
	int64_t stored_batch;     // fixed batch of the file, replaced by the requested one; VALUE_MISSING: open
	const char *unknown_runs; // reason if `runs` is unknown
	struct intern functions;  // domain, name and overload -> index of the first such function in the model
	struct intern stored_ids; // address of a TensorProto or ValueInfoProto -> number
	struct stored **stored;
	size_t n_stored, stored_capacity;
	struct model_layer *layers;
	size_t n_layers, layer_capacity;
	size_t taken_bytes;
	struct intern unknown_types; // type -> index in `unknown`
	struct model_operator *unknown;
	size_t n_unknown, unknown_capacity;
	const char **warnings;
	size_t n_warnings;
	size_t n_disagreements; // shapes in the file that differ from those of the nodes
};

struct op { // one node with its values
	struct walk *walk;
	struct scope *scope;
	const Onnx__NodeProto *node;
	const struct operator_row *what; // NULL: unknown operator
	int64_t opset;
	size_t n_in, n_out;
	const struct value *const *in; // NULL: omitted
	struct value *const *out;      // NULL: unused
	int64_t *spare;                // dimensions of unused outputs
};

/* walk_state.c */
void walk_fail(struct walk *walk, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void walk_warn(struct walk *walk, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *walk_alloc(struct walk *walk, size_t n, size_t size); // NULL: the walk has failed
const char *node_name(const Onnx__NodeProto *node);

/* walk.c */
// Walks the nodes in their order; false: the walk has failed.
bool walk_nodes(struct walk *walk, struct scope *scope, Onnx__NodeProto *const *nodes, size_t n);
bool walk_graph(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph);
bool walk_main_graph(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph,
	struct model_figures *figures);

/* layer.c */
void layer_add(struct walk *walk, const struct model_layer *layer);
// Nodes that only move weights or compute shapes are no layers; their weights belong to the node that uses them.
void layer_make(struct op *op);
void layer_add_unused(struct walk *walk); // a last layer for stored tensors that no node uses

/* scope.c */
void scope_init(struct scope *scope, struct walk *walk, struct scope *outer);
void scope_finish(struct scope *scope);
struct value *scope_find(struct scope *scope, const char *name); // in this scope or an outer one; NULL
struct value *scope_find_here(struct scope *scope, const char *name);
// Adds a value with that name, as a copy of `like` or empty (NULL). A duplicate name fails the walk.
struct value *scope_add(struct walk *walk, struct scope *scope, const char *name, const struct value *like);
int64_t scope_opset(const struct scope *scope, const char *domain); // 0: not imported

/* stored.c */
// Sets *value to an initializer or the tensor of a Constant.
void stored_tensor(struct walk *walk, const Onnx__TensorProto *tensor, bool is_constant, struct value *value);
void stored_sparse(struct walk *walk, const Onnx__SparseTensorProto *tensor, bool is_constant, struct value *value);
// Sets *value to an input that is a weight (exported without parameters).
void stored_input(struct walk *walk, const Onnx__ValueInfoProto *input, struct value *value);
// Number of parameters that this node is the first to use.
int64_t stored_claim(const struct op *op);
// Number of parameters that no node uses; they count too, because the graph stores them.
int64_t stored_unused(struct walk *walk);
void stored_sum(struct walk *walk, int64_t *ret_parameters, int64_t *ret_bytes);

/* inputs.c */
// Adds the values of all inputs, with the open dimensions set by the options.
bool inputs_add(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph, struct model_figures *figures);

/* control.c */
void control_if(struct op *op);
void control_loop(struct op *op);
void control_scan(struct op *op);

/* function.c */
bool function_index(struct walk *walk); // indexes the file's functions by name; false: the walk has failed
bool function_run(struct op *op);       // false: the file has no such function
// Opens the scope of the graph or function that a node runs; false: the walk has failed. Call body_close in any case.
bool body_open(struct scope *scope, const struct op *op, struct scope *outer);
void body_close(struct scope *scope, const struct op *op);
// Sets output i of the node to a value of the body; either may be NULL.
void body_give(const struct op *op, size_t i, const struct value *from);

/* declared.c */
// Applies a shape that the file declares for a value: fills unknown dimensions, and compares known ones.
void declared_apply(struct walk *walk, const Onnx__ValueInfoProto *info, struct value *value);

/* Accessors for shape functions: attributes, inputs and outputs of one node. */

/* ---- attributes; references in a function resolve to the caller's attributes ---- */
const Onnx__AttributeProto *op_attribute(const struct op *op, const char *name); // NULL: absent
int64_t op_int(const struct op *op, const char *name, int64_t usual);
bool op_text_is(const struct op *op, const char *name, const char *text, bool usual);
size_t op_ints(const struct op *op, const char *name, const int64_t **ret_ints); // 0: absent
bool op_is(const struct op *op, const char *type);

/* ---- values ---- */
const struct value *op_in(const struct op *op, size_t i); // NULL: omitted
bool op_ranked(const struct op *op, size_t i);            // present, with known dimensions
struct value *op_out(const struct op *op, size_t i);      // NULL: unused
// The dimensions of an output, initially unknown. Never NULL: an unused output has spare dimensions.
int64_t *op_shape(const struct op *op, size_t i, int rank);
void op_shape_like(const struct op *op, size_t i, const struct value *like);
// Allocates n numbers of an output for the caller to fill; NULL: no memory, or the output is unused.
int64_t *op_new_ints(const struct op *op, size_t i, int64_t n);
double *op_new_floats(const struct op *op, size_t i, int64_t n);
// Integers of input i, or of the attribute of that name in older opsets. false: absent, *ret_n is 0. *ret_known: false
// if present but unknown.
bool op_numbers(const struct op *op, size_t i, const char *name, const int64_t **ret_ints, size_t *ret_n,
	bool *ret_known);

// Negative axes count from the end; false (and a contradiction) if out of range.
bool op_axis(const struct op *op, int64_t axis, int rank, int *ret_axis);
// The axes as a bit set; false if one is out of range.
bool op_axes(const struct op *op, const int64_t *axes, size_t n, int rank, unsigned *ret_bits);

// The graph can't run: fails the walk, unless the branch may never run. Always returns false.
bool op_contradiction(const struct op *op, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Unifies two sizes that must be equal: returns the known one; false if they differ.
bool dims_unify(int64_t a, int64_t b, int64_t *ret_dim);

/* The known operators: operators.def has a row for each. */

enum type_rule {     // type of the first output
	TYPE_FIRST,  // type of input 0
	TYPE_SECOND, // type of input 1
	TYPE_BOOL,
	TYPE_INT64,
	TYPE_INT32,
	TYPE_FLOAT,
	TYPE_UINT8,
	TYPE_OWN, // set by the shape function, or unknown
};

struct operator_row {
	const char *domain, *name;             // domain "": ONNX
	void (*shape)(struct op *op);          // NULL: the output's shape is unknown
	void (*fold)(struct op *op);           // computes contents from those of the inputs; NULL: none
	int64_t (*count)(const struct op *op); // multiply-adds; NULL: none; VALUE_MISSING: unknown
	enum type_rule type;
	uint32_t factors;  // bit set of the multiplied inputs: if one is a weight, the multiply-adds count as those of weights
	uint32_t weights;  // bit set of inputs that are always weights, whatever their name and type
	uint32_t settings; // bit set of inputs that are no parameters even if they are stored
};

const struct operator_row *operator_find(const char *domain, const char *name); // NULL: unknown
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
// Strides in elements; only for values whose size is known and small.
void strides_of(const struct value *value, int64_t *ret_strides);
// Fills an output: each element is the input's element at start + the sum of coordinate * stride.
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

// Additional multiply-adds between a node's own activations: onnxruntime's Attention.
int64_t count_inside(const struct op *op);

/* The equation of an Einsum, with the size of each letter. */

enum {
	EINSUM_LETTERS = 52 + VALUE_RANK_MAX
}; // after the letters: the dimensions of "...", last one last

struct einsum {
	int64_t sizes[EINSUM_LETTERS]; // VALUE_MISSING: unknown
	uint64_t used;                 // bit set of the inputs' letters
	uint64_t kept;                 // bit set of the output's letters
	int out_rank;
	unsigned char out[VALUE_RANK_MAX]; // letter of each dimension of the output
};

// false: unsupported equation, or an input's shape is unknown.
bool einsum_read(const struct op *op, struct einsum *ret_sum);
