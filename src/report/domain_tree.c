#include "report/phrases.h"

#include <string.h>

enum { DEPTH_MAX = 3 }; // depth supported by the page's styles

struct walk {
	const struct findings *findings;
	domain_tree_row *row;
	void *data;
};

// NULL: no other domain contains it.
static const struct domain_finding *outer_of(const struct findings *f, const struct domain_finding *domain)
{
	for (size_t i = 0; i < f->n_domains; i++)
		if (strcmp(f->domains[i].device->name, domain->device->inside) == 0)
			return &f->domains[i];
	return NULL;
}

static void walk(const struct walk *w, const struct domain_finding *outer, int depth)
{
	const struct findings *f = w->findings;
	for (size_t i = 0; i < f->n_domains && depth <= DEPTH_MAX; i++) {
		if (outer_of(f, &f->domains[i]) != outer)
			continue;
		w->row(w->data, &f->domains[i], depth);
		walk(w, &f->domains[i], depth + 1);
	}
}

void domain_tree(const struct findings *findings, domain_tree_row *row, void *data)
{
	walk(&(struct walk){findings, row, data}, NULL, 0);
}

int domain_depth(const struct findings *findings, const struct domain_finding *domain)
{
	int depth = 0;
	while (depth < DEPTH_MAX && (domain = outer_of(findings, domain)) != NULL)
		depth++;
	return depth;
}
