/* Each joule in one row. */
#pragma once

#include "analysis/findings.h"

struct ledger ledger_unknown(void); // all NaN
void ledger_add(struct ledger *sum, const struct ledger *part);
double ledger_sum(const struct ledger *ledger);
