/* What a figure was at the last looks. */
#pragma once

#include "now/now.h"

int now_history_open(struct now_history *history, size_t room); // at most NOW_HISTORY; 0: none. -ENOMEM
void now_history_close(struct now_history *history);
void now_history_add(struct now_history *history, double value);
