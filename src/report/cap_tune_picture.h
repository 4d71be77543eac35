/* The picture of a search: what was measured under each limit, with its interval, the model's curve and the chosen limit. */
#pragma once

#include "report/cap_tune.h"

// An <svg> with a title and a description in words. `number` makes its ids differ from those of others on the page.
void cap_tune_picture(const struct cap_tune_report *report, struct buf *out, size_t number);
