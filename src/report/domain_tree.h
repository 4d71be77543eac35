// A run's domains as a table has them: each under the one that contains it, and each once.
#pragma once

#include "analysis/findings.h"

typedef void domain_tree_row(void *data, const struct domain_finding *domain, int depth);
void domain_tree(const struct findings *findings, domain_tree_row *row, void *data);
int domain_depth(const struct findings *findings, const struct domain_finding *domain); // at most 3
