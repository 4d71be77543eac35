#include "model/internal.h"

#include <stdlib.h>

#define shape_none NULL
#define fold_none NULL
#define count_none NULL
#define IN(i) (UINT32_C(1) << (i))
#define OPERATOR(in_domain, called, makes, folds, counts, gives, multiplied, trained, set)                             \
	{.domain = in_domain,                                                                                          \
		.name = called,                                                                                        \
		.shape = shape_##makes,                                                                                \
		.fold = fold_##folds,                                                                                  \
		.count = count_##counts,                                                                               \
		.type = TYPE_##gives,                                                                                  \
		.factors = multiplied,                                                                                 \
		.weights = trained,                                                                                    \
		.settings = set},
static const struct operator_row operators[] = {
#include "model/operators.def"
};
#undef OPERATOR

static int compare(const void *key, const void *item)
{
	const struct operator_row *a = key, *b = item;
	int by_domain = strcmp(a->domain, b->domain);
	return by_domain != 0 ? by_domain : strcmp(a->name, b->name);
}

const struct operator_row *operator_find(const char *domain, const char *name)
{
	const struct operator_row wanted = {.domain = domain, .name = name};
	return bsearch(&wanted, operators, ARRAY_SIZE(operators), sizeof(operators[0]), compare);
}

const struct operator_row *operator_list(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(operators);
	return operators;
}
