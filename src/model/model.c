#include "model/model.h"

#include "base/util.h"
#include "model/internal.h"
#include "model/onnx.h"

#include <errno.h>

enum { OPSET_FIRST = 7, OPSET_LAST = 21 };

// Sum over the layers, VALUE_MISSING if one is unknown; *ret_known: the sum of the known ones.
static int64_t sum(struct walk *walk, size_t offset, int64_t *ret_known)
{
	int64_t known = 0;
	bool whole = true;
	for (size_t i = 0; i < walk->n_layers; i++) {
		int64_t count;
		memcpy(&count, (const char *)&walk->layers[i] + offset, sizeof(count));
		whole = whole && value_ok(count);
		if (value_ok(count) && __builtin_add_overflow(known, count, &known))
			walk_fail(walk, -EOVERFLOW, "%s has more multiply-adds than 64 bits can count", walk->path);
	}
	*ret_known = known;
	return whole ? known : VALUE_MISSING;
}

static void *keep(struct walk *walk, const void *items, size_t n, size_t size)
{
	void *copy = walk_alloc(walk, n, size);
	if (copy != NULL && n > 0)
		memcpy(copy, items, n * size);
	return copy;
}

static void note_opset(struct walk *walk, const struct scope *scope)
{
	int64_t opset = scope_opset(scope, "");
	if (opset > 0 && opset < OPSET_FIRST)
		walk_warn(walk,
			"operator set %lld: wattle supports %d and newer; older operators may be misread",
			(long long)opset, OPSET_FIRST);
	else if (opset > OPSET_LAST)
		walk_warn(walk, "operator set %lld: wattle supports up to %d; newer operators are unknown",
			(long long)opset, OPSET_LAST);
	if (walk->n_disagreements > 0)
		walk_warn(walk,
			"%zu sizes stated in the file differ from those computed from its nodes; the "
			"computed sizes are used",
			walk->n_disagreements);
}

static void conclude(struct walk *walk, const struct scope *scope, struct model_figures *figures)
{
	layer_add_unused(walk);
	stored_sum(walk, &figures->parameters, &figures->parameter_bytes);
	figures->multiply_adds = sum(walk, offsetof(struct model_layer, multiply_adds), &figures->known_multiply_adds);
	figures->other_multiply_adds = sum(walk, offsetof(struct model_layer, other_multiply_adds),
		&figures->known_other_multiply_adds);
	note_opset(walk, scope);
	figures->layers = keep(walk, walk->layers, walk->n_layers, sizeof(*walk->layers));
	figures->n_layers = walk->n_layers;
	figures->unknown_operators = keep(walk, walk->unknown, walk->n_unknown, sizeof(*walk->unknown));
	figures->n_unknown_operators = walk->n_unknown;
	figures->warnings = walk->warnings;
	figures->n_warnings = walk->n_warnings;
	figures->opset = scope_opset(scope, "");
	figures->ir_version = walk->model->ir_version;
	figures->producer = walk->model->producer_name;
}

static void walk_finish(struct walk *walk)
{
	intern_finish(&walk->functions);
	intern_finish(&walk->stored_ids);
	intern_finish(&walk->unknown_types);
	free(walk->stored);
	free(walk->layers);
	free(walk->unknown);
}

static int read_graph(struct walk *walk, struct model_figures *ret_figures)
{
	struct model_figures figures = *ret_figures;
	struct scope scope;
	intern_init(&walk->functions, walk->arena);
	intern_init(&walk->stored_ids, walk->arena);
	intern_init(&walk->unknown_types, walk->arena);
	scope_init(&scope, walk, NULL);
	scope.opsets = walk->model->opset_import;
	scope.n_opsets = walk->model->n_opset_import;
	walk->warnings = walk_alloc(walk, WALK_WARNINGS_MAX, sizeof(char *));
	if (walk->warnings != NULL && function_index(walk) &&
		walk_main_graph(walk, &scope, walk->model->graph, &figures))
		conclude(walk, &scope, &figures);
	scope_finish(&scope);
	if (walk->failed == 0)
		*ret_figures = figures;
	return walk->failed;
}

int model_read(const char *path, const struct model_options *options, struct arena *arena,
	struct model_figures *ret_figures, struct wattle_error *reterr)
{
	struct walk walk = {.nodes = walk_nodes,
		.graph = walk_graph,
		.arena = arena,
		.options = options,
		.path = path,
		.reterr = reterr,
		.runs = 1,
		.stored_batch = VALUE_MISSING};
	struct model_figures figures = {.batch = VALUE_MISSING};
	int r = onnx_file_read(path, arena, &walk.model, &figures.read_bytes, reterr);
	if (r < 0)
		return r;
	r = read_graph(&walk, &figures);
	walk_finish(&walk);
	if (r == 0)
		*ret_figures = figures;
	return r;
}
