/* Layers of the result: nodes that compute, with their parameters and multiply-adds. */
#include "model/internal.h"

#include <errno.h>
#include <stdio.h>

static const char *type_name(const struct op *op)
{
	const char *domain = op->node->domain, *type = op->node->op_type;
	if (domain == NULL || domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0)
		return type;
	size_t size = strlen(domain) + strlen(type) + 3;
	char *name = walk_alloc(op->walk, size, 1);
	if (name != NULL)
		snprintf(name, size, "%s::%s", domain, type);
	return name != NULL ? name : type;
}

static const char *layer_name(const struct op *op)
{
	const char *name = node_name(op->node);
	if (op->scope->prefix[0] == '\0')
		return name;
	size_t size = strlen(op->scope->prefix) + strlen(name) + 1;
	char *whole = walk_alloc(op->walk, size, 1);
	if (whole != NULL)
		snprintf(whole, size, "%s%s", op->scope->prefix, name);
	return whole != NULL ? whole : name;
}

void layer_add(struct walk *walk, const struct model_layer *layer)
{
	struct model_layer *layers = array_reserve(walk->layers, walk->n_layers, &walk->layer_capacity, sizeof(*layers),
		64);
	if (layers == NULL) {
		walk_fail(walk, -ENOMEM, "out of memory for the graph of %s", walk->path);
		return;
	}
	walk->layers = layers;
	layers[walk->n_layers++] = *layer;
}

static void note_unknown(struct walk *walk, const char *type)
{
	int64_t number = intern_number(&walk->unknown_types, type, strlen(type));
	if (number >= 0 && (size_t)number < walk->n_unknown) {
		walk->unknown[number].count++;
		return;
	}
	struct model_operator *unknown = array_reserve(walk->unknown, walk->n_unknown, &walk->unknown_capacity,
		sizeof(*unknown), 8);
	if (unknown != NULL)
		walk->unknown = unknown;
	if (number < 0 || unknown == NULL) {
		walk_fail(walk, -ENOMEM, "out of memory for the graph of %s", walk->path);
		return;
	}
	unknown[walk->n_unknown++] = (struct model_operator){type, 1};
}

static bool has_weight(const struct op *op)
{
	for (size_t i = 0; i < op->n_in; i++)
		if (op->in[i] != NULL && op->in[i]->fixed && (i >= 32 || (op->what->factors >> i & 1) != 0))
			return true;
	return false;
}

// Multiply-adds of a node over all runs of its graph.
static int64_t in_all_runs(struct walk *walk, const struct op *op, int64_t count)
{
	int64_t all;
	if (!dims_multiply(count, walk->runs, &all)) {
		walk_fail(walk, -EOVERFLOW, "%s: node '%.100s' has more multiply-adds than 64 bits can count",
			walk->path, node_name(op->node));
		return VALUE_MISSING;
	}
	return all;
}

static void count_layer(struct op *op, struct model_layer *layer)
{
	struct walk *walk = op->walk;
	if (op->what == NULL) {
		layer->multiply_adds = VALUE_MISSING;
		layer->other_multiply_adds = VALUE_MISSING;
		layer->why = "the operator is unknown";
		note_unknown(walk, layer->type);
		return;
	}
	if (op->what->count == NULL)
		return;
	int64_t once = op->what->count(op);
	*(has_weight(op) ? &layer->multiply_adds : &layer->other_multiply_adds) = in_all_runs(walk, op, once);
	if (op->what->count == count_attention)
		layer->other_multiply_adds = in_all_runs(walk, op, count_inside(op));
	if (!value_ok(once))
		layer->why = "a shape is unknown";
	else if (!value_ok(layer->multiply_adds) || !value_ok(layer->other_multiply_adds))
		layer->why = walk->unknown_runs != NULL ? walk->unknown_runs : "a shape is unknown";
}

void layer_make(struct op *op)
{
	const struct value *out = op_out(op, 0);
	bool counts = op->what == NULL || op->what->count != NULL;
	if (op->walk->silent > 0 || (!counts && (op->n_out == 0 || (out != NULL && out->number))))
		return;
	struct model_layer layer = {.name = layer_name(op), .type = type_name(op)};
	layer.parameters = stored_claim(op);
	count_layer(op, &layer);
	if (out != NULL) {
		layer.output.known = out->ranked;
		layer.output.rank = out->rank;
		memcpy(layer.output.dims, out->dims, sizeof(layer.output.dims));
	}
	layer_add(op->walk, &layer);
}

void layer_add_unused(struct walk *walk)
{
	struct model_layer layer = {.name = "tensors that no node uses", .type = "Initializer"};
	layer.parameters = stored_unused(walk);
	if (layer.parameters > 0)
		layer_add(walk, &layer);
}
