/* Nodes that contain graphs: If, Loop, Scan. */
#include "model/internal.h"

#include <errno.h>

static const Onnx__GraphProto *graph_of(const struct op *op, const char *name)
{
	const Onnx__AttributeProto *attribute = op_attribute(op, name);
	return attribute != NULL ? attribute->g : NULL;
}

// Keeps in `a` what is known and equal in both values.
static void unify(struct value *a, const struct value *b)
{
	if (b == NULL || !a->ranked || !b->ranked || a->rank != b->rank)
		a->ranked = false;
	for (int i = 0; a->ranked && i < a->rank; i++)
		if (a->dims[i] != b->dims[i])
			a->dims[i] = VALUE_MISSING;
	a->ints = NULL;
	a->floats = NULL;
	a->fixed = a->fixed && b != NULL && b->fixed && a->maker == b->maker && a->stored == b->stored;
	a->number = a->number && b != NULL && b->number;
	if (!a->fixed)
		a->stored = NULL;
}

static struct value *output_of(struct scope *scope, const Onnx__GraphProto *graph, size_t i)
{
	const char *name = i < graph->n_output ? graph->output[i]->name : NULL;
	return name != NULL ? scope_find(scope, name) : NULL;
}

/* ---- If ---- */

static void branch(struct op *op, const Onnx__GraphProto *graph, bool is_first)
{
	struct scope scope;
	if (body_open(&scope, op, op->scope) && op->walk->graph(op->walk, &scope, graph))
		for (size_t i = 0; i < op->n_out; i++) {
			const struct value *value = output_of(&scope, graph, i);
			if (is_first)
				body_give(op, i, value);
			else if (op_out(op, i) != NULL)
				unify(op_out(op, i), value);
		}
	body_close(&scope, op);
}

void control_if(struct op *op)
{
	struct walk *walk = op->walk;
	const Onnx__GraphProto *then_graph = graph_of(op, "then_branch"), *else_graph = graph_of(op, "else_branch");
	if (then_graph == NULL || else_graph == NULL) {
		op_contradiction(op, "a branch is missing");
		return;
	}
	int64_t truth = value_lone_int(op_in(op, 0));
	if (value_ok(truth)) {
		branch(op, truth != 0 ? then_graph : else_graph, true);
		return;
	}
	// The branches can be written for different shapes: a branch that contradicts this shape is not the one that
	// runs.
	int64_t runs = walk->runs;
	const char *why = walk->unknown_runs;
	walk->runs = VALUE_MISSING;
	walk->unknown_runs = "the branch that runs depends on the input";
	walk->guarded++;
	branch(op, then_graph, true);
	branch(op, else_graph, false);
	walk->guarded--;
	walk->runs = runs;
	walk->unknown_runs = why;
}

/* ---- Loop and Scan: a body that runs repeatedly on its own results ---- */

struct turning {
	struct op *op;
	const Onnx__GraphProto *body;
	struct value *states; // loop-carried values, with the properties that hold in every iteration
	size_t n_states;
	struct value *given; // further inputs of the body: before the states for Loop, after them for Scan
	size_t n_given;
	bool given_first;
	const char *why; // reason if the number of iterations is unknown
	int64_t turns;
	bool goes_on;       // Loop: the body's condition is always true
	struct value *made; // outputs collected in each iteration
	size_t n_made;
};

static bool bind(struct turning *t, struct scope *scope)
{
	size_t n = t->n_states + t->n_given;
	if (t->body->n_input != n)
		return op_contradiction(t->op, "the body has %zu inputs for %zu values", t->body->n_input, n);
	for (size_t i = 0; i < n; i++) {
		size_t shift = t->given_first ? t->n_given : t->n_states;
		const struct value *first = t->given_first ? t->given : t->states;
		const struct value *second = t->given_first ? t->states : t->given;
		const struct value *like = i < shift ? &first[i] : &second[i - shift];
		const char *name = t->body->input[i]->name;
		if (name == NULL || name[0] == '\0')
			return op_contradiction(t->op, "an input of the body has no name");
		if (scope_add(t->op->walk, scope, name, like) == NULL)
			return false;
	}
	return true;
}

// One iteration; its resulting states are unified with the previous ones.
static bool turn(struct turning *t, bool is_silent)
{
	struct walk *walk = t->op->walk;
	struct scope scope;
	int64_t runs = walk->runs;
	const char *why = walk->unknown_runs;
	bool done = body_open(&scope, t->op, t->op->scope) && bind(t, &scope);
	if (!dims_multiply(runs, t->turns, &walk->runs)) {
		walk_fail(walk, -EOVERFLOW, "%s: node '%.100s': the number of iterations exceeds 64 bits", walk->path,
			node_name(t->op->node));
		done = false;
	}
	if (!value_ok(t->turns) && t->why != NULL)
		walk->unknown_runs = t->why;
	walk->silent += is_silent;
	done = done && walk->graph(walk, &scope, t->body);
	walk->silent -= is_silent;
	size_t condition = t->given_first ? 1 : 0; // a Loop's first output
	int64_t again = done && condition == 1 ? value_lone_int(output_of(&scope, t->body, 0)) : VALUE_MISSING;
	t->goes_on = value_ok(again) && again != 0;
	for (size_t i = 0; done && i < t->n_states; i++)
		unify(&t->states[i], output_of(&scope, t->body, i + condition));
	for (size_t i = 0; done && i < t->n_made; i++) {
		const struct value *made = output_of(&scope, t->body, condition + t->n_states + i);
		if (made != NULL)
			t->made[i] = *made;
	}
	walk->runs = runs;
	walk->unknown_runs = why;
	body_close(&scope, t->op);
	return done;
}

static bool read_states(struct turning *t, size_t first, size_t n)
{
	t->n_states = n;
	t->n_made = t->op->n_out > n ? t->op->n_out - n : 0;
	t->states = walk_alloc(t->op->walk, n + 1, sizeof(*t->states));
	t->made = walk_alloc(t->op->walk, t->n_made + 1, sizeof(*t->made));
	if (t->states == NULL || t->made == NULL)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (op_in(t->op, first + i) != NULL)
			t->states[i] = *t->op->in[first + i];
		t->states[i].ints = NULL; // the numbers change between iterations
		t->states[i].floats = NULL;
		t->states[i].fixed = false;
		t->states[i].stored = NULL;
	}
	return true;
}

static bool all_turns(struct turning *t)
{
	for (int i = 0; i < 2; i++) // the first pass opens dimensions that grow, the second those that depend on them
		if (!turn(t, true))
			return false;
	return turn(t, false);
}

// Stacks the outputs of all iterations into one tensor, along a new axis.
static void stack(struct turning *t, size_t i, int64_t where)
{
	struct value *out = op_out(t->op, t->n_states + i);
	const struct value *made = &t->made[i];
	if (out == NULL)
		return;
	out->type = made->type;
	if (!made->ranked || made->rank >= VALUE_RANK_MAX)
		return;
	int axis;
	if (!op_axis(t->op, where, made->rank + 1, &axis))
		return;
	int64_t *dims = op_shape(t->op, t->n_states + i, made->rank + 1);
	for (int k = 0; k <= made->rank; k++)
		dims[k] = k == axis ? t->turns : made->dims[k > axis ? k - 1 : k];
}

void control_loop(struct op *op)
{
	static const int64_t yes = 1;
	struct value given[2] = {
		{.type = ONNX_INT64, .ranked = true, .number = true},
		{.type = ONNX_BOOL, .ranked = true, .number = true, .ints = &yes},
	};
	struct turning t = {.op = op,
		.body = graph_of(op, "body"),
		.given = given,
		.n_given = 2,
		.given_first = true,
		.why = "the number of iterations depends on the input"};
	if (t.body == NULL) {
		op_contradiction(op, "no body");
		return;
	}
	if (!read_states(&t, 2, op->n_in > 2 ? op->n_in - 2 : 0))
		return;
	t.turns = VALUE_MISSING;
	if (!turn(&t, true) || !turn(&t, true))
		return;
	int64_t most = value_lone_int(op_in(op, 0)), begins = op_in(op, 1) != NULL ? value_lone_int(op->in[1]) : 1;
	if (begins == 0)
		t.turns = 0;
	else if (value_ok(most) && begins == 1 && t.goes_on)
		t.turns = most > 0 ? most : 0;
	if (!turn(&t, false))
		return;
	for (size_t i = 0; i < t.n_states; i++)
		body_give(op, i, &t.states[i]);
	for (size_t i = 0; i < t.n_made; i++)
		stack(&t, i, 0);
}

static int64_t axis_of(const struct op *op, const char *name, size_t i)
{
	const int64_t *axes;
	return i < op_ints(op, name, &axes) ? axes[i] : 0;
}

// The body's view of a scanned input: one slice.
static bool slice_for(struct turning *t, size_t i, const struct value *whole)
{
	struct value *slice = &t->given[i];
	if (whole == NULL)
		return true;
	slice->type = whole->type;
	int axis;
	if (!whole->ranked)
		return true;
	if (!op_axis(t->op, axis_of(t->op, "scan_input_axes", i), whole->rank, &axis))
		return false;
	slice->ranked = true;
	for (int k = 0; k < whole->rank; k++)
		if (k != axis)
			slice->dims[slice->rank++] = whole->dims[k];
	if (!dims_unify(t->turns, whole->dims[axis], &t->turns))
		return op_contradiction(t->op, "the scanned inputs have %lld and %lld slices", (long long)t->turns,
			(long long)whole->dims[axis]);
	return true;
}

void control_scan(struct op *op)
{
	struct turning t = {.op = op,
		.body = graph_of(op, "body"),
		.turns = VALUE_MISSING,
		.why = "the number of iterations is unknown"};
	int64_t n_scanned = op_int(op, "num_scan_inputs", 0);
	if (t.body == NULL || n_scanned < 1 || (size_t)n_scanned > op->n_in) {
		op_contradiction(op, t.body == NULL ? "no body" : "num_scan_inputs is below 1 or exceeds the number of inputs");
		return;
	}
	if (op->opset < 9) // the first version of Scan had a batch axis
		return;
	size_t n_states = op->n_in - (size_t)n_scanned;
	t.n_given = (size_t)n_scanned;
	t.given = walk_alloc(op->walk, t.n_given, sizeof(*t.given));
	if (t.given == NULL || !read_states(&t, 0, n_states))
		return;
	for (size_t i = 0; i < t.n_given; i++)
		if (!slice_for(&t, i, op_in(op, n_states + i)))
			return;
	if (!all_turns(&t))
		return;
	for (size_t i = 0; i < t.n_states; i++)
		body_give(op, i, &t.states[i]);
	for (size_t i = 0; i < t.n_made; i++)
		stack(&t, i, axis_of(op, "scan_output_axes", i));
}
