#include "analysis/energy/domains.h"

#include "base/nan_sum.h"
#include "base/util.h"

struct ledger ledger_unknown(void)
{
	const double none = (double)NAN;
	return (struct ledger){none, none, none, none, none};
}

struct ledger ledger_empty(void)
{
	return (struct ledger){.idle_j = (double)NAN};
}

void ledger_add(struct ledger *sum, const struct ledger *part)
{
	sum->target_j += part->target_j;
	sum->others_j += part->others_j;
	sum->wattle_j += part->wattle_j;
	sum->idle_j = nan_sum(sum->idle_j, part->idle_j);
	sum->unattributed_j += part->unattributed_j;
}

double ledger_sum(const struct ledger *l)
{
	return nan_sum(l->target_j + l->others_j + l->wattle_j + l->unattributed_j, l->idle_j);
}
