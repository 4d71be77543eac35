/* Each joule in one row. idle_j is NaN where idle energy cannot be separated from the rest: the other rows hold it then, and a
 * sum of ledgers has the idle energy of those that know theirs. */
#pragma once

#include "analysis/findings.h"

struct ledger ledger_unknown(void); // all NaN
struct ledger ledger_empty(void);   // to add to
void ledger_add(struct ledger *sum, const struct ledger *part);
double ledger_sum(const struct ledger *ledger);
