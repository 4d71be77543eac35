/* What the files of the walk over a graph share. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/util.h"
#include "model/model.h"
#include "model/onnx.h"

/* What is known of a value (a tensor that nodes pass on) without computing it: its shape, and the numbers in it where
 * they are few and follow from shapes and constants. Reshape, Slice and their like take shapes from such numbers. */

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

/* The walk over the nodes of a graph in their order: what the rest of the module shares. */

enum {
	WALK_DEPTH_MAX = 24,         // graphs and functions in each other
	WALK_WORK_MAX = 1000 * 1000, // nodes visited; functions that call functions twice grow as 2^n
	WALK_MEMORY_MAX = 1 << 30,   // bytes; small constants folded again and again
	WALK_WARNINGS_MAX = 20,
};

/* ---- names ---- */

struct operator_row;

struct scope {               // the names of one graph or one call of a function
	struct scope *outer; // whose names are seen too; NULL: none
	struct intern names;
	struct value **values; // of the names, by number; owned
	size_t n_values;
	const struct op *call;     // the node that calls the function that this is; NULL: a graph
	const struct scope *owner; // of `call`
	const char *prefix;        // of the names of its layers: "caller/" or ""
	Onnx__OperatorSetIdProto *const *opsets;
	size_t n_opsets;
	Onnx__AttributeProto *const *defaults; // of a function
	size_t n_defaults;
};

/* ---- stored tensors ---- */

struct stored {
	const char *name;
	int64_t elements; // VALUE_MISSING: an input whose shape is open
	int32_t type;
	bool is_constant; // a Constant node, not an initializer
	bool is_setting;  // running statistics, scales: used, but as no parameter
	bool is_parameter;
};

// A node that makes fixed values: from its outputs one finds the stored tensors that they are made of.
struct call {
	const struct operator_row *what;
	const struct value *const *in;
	size_t n_in;
	unsigned seen; // by which kinds of use it was followed
};

/* ---- the walk ---- */

struct walk {
	// walk_nodes and walk_graph: nodes hold graphs and functions, which are walked in their turn.
	bool (*nodes)(struct walk *walk, struct scope *scope, Onnx__NodeProto *const *nodes, size_t n);
	bool (*graph)(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph);
	struct arena *arena;
	const struct model_options *options;
	const Onnx__ModelProto *model;
	const char *path;
	struct wattle_error *reterr;
	int failed;  // sticky
	int guarded; // > 0: in a branch that may never run, a contradiction only makes things unknown
	int silent;  // > 0: shapes only, no layers
	int depth;
	int64_t work;
	int64_t runs;             // how often the graph at hand runs; VALUE_MISSING: not known
	int64_t stored_batch;     // the batch that is asked for replaces this one; VALUE_MISSING: it is open
	const char *unknown_runs; // why `runs` is not known
	struct intern functions;  // domain, name and overload -> index in the model, the first of that name
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
	size_t n_disagreements; // of shapes stored in the file with those of the nodes
};

struct op { // one node with its values at hand
	struct walk *walk;
	struct scope *scope;
	const Onnx__NodeProto *node;
	const struct operator_row *what; // NULL: not known
	int64_t opset;
	size_t n_in, n_out;
	const struct value *const *in; // NULL: left out
	struct value *const *out;      // NULL: nobody wants it
	int64_t *spare;                // dimensions of outputs that nobody wants
};

/* walk_state.c */
void walk_fail(struct walk *walk, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void walk_warn(struct walk *walk, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *walk_alloc(struct walk *walk, size_t n, size_t size); // NULL: the walk has failed
const char *node_name(const Onnx__NodeProto *node);

/* walk.c */
// The nodes in their order; false when the walk has failed.
bool walk_nodes(struct walk *walk, struct scope *scope, Onnx__NodeProto *const *nodes, size_t n);
bool walk_graph(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph);
bool walk_main_graph(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph,
	struct model_figures *figures);

/* layer.c */
void layer_add(struct walk *walk, const struct model_layer *layer);
// Nodes that only turn weights or compute shapes are no layers; their weights belong to the node that uses them.
void layer_make(struct op *op);
void layer_add_unused(struct walk *walk); // a last layer for stored tensors that no node uses

/* scope.c */
void scope_init(struct scope *scope, struct walk *walk, struct scope *outer);
void scope_finish(struct scope *scope);
struct value *scope_find(struct scope *scope, const char *name); // here or outside; NULL
struct value *scope_find_here(struct scope *scope, const char *name);
// A new value of that name, like another one or blank (NULL). A name that is there already: the walk fails.
struct value *scope_add(struct walk *walk, struct scope *scope, const char *name, const struct value *like);
int64_t scope_opset(const struct scope *scope, const char *domain); // 0: not imported

/* stored.c */
// The value of an initializer or of a Constant's tensor, into *value.
void stored_tensor(struct walk *walk, const Onnx__TensorProto *tensor, bool is_constant, struct value *value);
void stored_sparse(struct walk *walk, const Onnx__SparseTensorProto *tensor, bool is_constant, struct value *value);
// An input that is a weight (exported without parameters).
void stored_input(struct walk *walk, const Onnx__ValueInfoProto *input, struct value *value);
// The parameters that a node uses and that no node before it used.
int64_t stored_claim(const struct op *op);
// Those that no node uses; they count too, as the graph stores them.
int64_t stored_unused(struct walk *walk);
void stored_sum(struct walk *walk, int64_t *ret_parameters, int64_t *ret_bytes);

/* inputs.c */
// The values of all inputs, with the open dimensions as the options say.
bool inputs_add(struct walk *walk, struct scope *scope, const Onnx__GraphProto *graph, struct model_figures *figures);

/* control.c */
void control_if(struct op *op);
void control_loop(struct op *op);
void control_scan(struct op *op);

/* function.c */
bool function_index(struct walk *walk); // those of the file, by name; false: the walk has failed
bool function_run(struct op *op);       // false: no such function in the file
// The scope of the graph or function that a node runs; false: the walk has failed. body_close in any case.
bool body_open(struct scope *scope, const struct op *op, struct scope *outer);
void body_close(struct scope *scope, const struct op *op);
// Output i of the node is that value of the body; either may be NULL.
void body_give(const struct op *op, size_t i, const struct value *from);

/* declared.c */
// Shapes that the file states for values of the graph: fill what is not known, and are compared with what is.
void declared_apply(struct walk *walk, const Onnx__ValueInfoProto *info, struct value *value);

/* What shape functions work with: the attributes, inputs and outputs of one node. */

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

/* The operators that are known: operators.def has a row for each. */

enum type_rule {     // of the first output
	TYPE_FIRST,  // that of input 0
	TYPE_SECOND, // that of input 1
	TYPE_BOOL,
	TYPE_INT64,
	TYPE_INT32,
	TYPE_FLOAT,
	TYPE_UINT8,
	TYPE_OWN, // the shape function says, or it is not known
};

struct operator_row {
	const char *domain, *name;             // domain "": ONNX's own
	void (*shape)(struct op *op);          // NULL: what comes out is not known
	void (*fold)(struct op *op);           // fills contents in where inputs have theirs; NULL: none
	int64_t (*count)(const struct op *op); // multiply-adds; NULL: none; VALUE_MISSING: not known
	enum type_rule type;
	uint32_t factors;  // inputs that are multiplied: with a weight among them the multiply-adds are the weights'
	uint32_t weights;  // inputs that are weights whatever their name and type, one bit each
	uint32_t settings; // inputs that are no parameters even when they are stored
};

const struct operator_row *operator_find(const char *domain, const char *name); // NULL: not known
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
// Distance between neighbours along each dimension; only for values whose size is known and small.
void strides_of(const struct value *value, int64_t *ret_strides);
// Fills an output: element i, by coordinates, comes from start + the sum of coordinate * stride of the input.
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

// What a node multiplies of its own activations besides: onnxruntime's Attention.
int64_t count_inside(const struct op *op);

/* The equation of an Einsum, with the size of each letter. */

enum {
	EINSUM_LETTERS = 52 + VALUE_RANK_MAX
}; // behind the letters: the dimensions that "..." stands for, last one last

struct einsum {
	int64_t sizes[EINSUM_LETTERS]; // VALUE_MISSING: not known
	uint64_t used;                 // letters of the inputs, one bit each
	uint64_t kept;                 // letters of the output
	int out_rank;
	unsigned char out[VALUE_RANK_MAX]; // letter of each dimension of the output
};

// false: the equation can't be followed, or an input's shape is not known.
bool einsum_read(const struct op *op, struct einsum *ret_sum);
