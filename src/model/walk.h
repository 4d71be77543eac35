/* The walk over the nodes of a graph in their order: what the rest of the module shares. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/intern.h"
#include "model/model.h"
#include "model/value.h"

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
