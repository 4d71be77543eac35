#include "model/internal.h"

#include <errno.h>

void scope_init(struct scope *scope, struct walk *walk, struct scope *outer)
{
	*scope = (struct scope){.outer = outer, .prefix = ""};
	intern_init(&scope->names, walk->arena);
	if (outer != NULL) {
		scope->prefix = outer->prefix;
		scope->opsets = outer->opsets;
		scope->n_opsets = outer->n_opsets;
	}
}

void scope_finish(struct scope *scope)
{
	intern_finish(&scope->names);
	free(scope->values);
	scope->values = NULL;
}

struct value *scope_find_here(struct scope *scope, const char *name)
{
	int64_t number = intern_find(&scope->names, name, strlen(name));
	return number >= 0 ? scope->values[number] : NULL;
}

struct value *scope_find(struct scope *scope, const char *name)
{
	for (; scope != NULL; scope = scope->outer) {
		struct value *value = scope_find_here(scope, name);
		if (value != NULL)
			return value;
	}
	return NULL;
}

struct value *scope_add(struct walk *walk, struct scope *scope, const char *name, const struct value *like)
{
	if (scope_find_here(scope, name) != NULL) {
		walk_fail(walk, -EBADMSG, "%s: two values have the name '%.200s'", walk->path, name);
		return NULL;
	}
	int64_t number = intern_number(&scope->names, name, strlen(name));
	struct value **values = number < 0
		? NULL
		: array_reserve(scope->values, (size_t)number, &scope->n_values, sizeof(struct value *), 16);
	struct value *value = values != NULL ? walk_alloc(walk, 1, sizeof(*value)) : NULL;
	if (values != NULL)
		scope->values = values;
	if (value == NULL) {
		walk_fail(walk, -ENOMEM, "out of memory for the graph of %s", walk->path);
		return NULL;
	}
	if (like != NULL)
		*value = *like;
	value->name = name;
	scope->values[number] = value;
	return value;
}

int64_t scope_opset(const struct scope *scope, const char *domain)
{
	for (size_t i = 0; i < scope->n_opsets; i++) {
		const char *named = scope->opsets[i]->domain != NULL ? scope->opsets[i]->domain : "";
		if (strcmp(strcmp(named, "ai.onnx") == 0 ? "" : named, domain) == 0)
			return scope->opsets[i]->version;
	}
	return 0;
}
