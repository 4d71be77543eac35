/* What a wattle_cap call has to say besides its code: the sentences of its thread. */
#pragma once

#include "base/error.h"

// Every call begins so: nothing is said yet. What failed is written into the returned error; NULL: there is no memory for it.
struct wattle_error *cap_words_begin(void);
struct wattle_error *cap_words_error(void); // of the call that is going on
// And ends so: `code`, for which there is a sentence then if it is negative.
int cap_words_end(int code);
void cap_words_notice(const char *text); // added to what was noticed before; "" is nothing
