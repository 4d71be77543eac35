/* The documents of one look as responses of the library, each made when it is first asked for and kept until the next
 * look: however many clients ask however often, each is made once a look. */
#pragma once

#include "serve/mhd.h"
#include "serve/view.h"

enum answer { ANSWER_PAGE, ANSWER_FIGURES, ANSWER_NOW, ANSWER_TRAIL, ANSWER_TEXT, ANSWER_OPENMETRICS, ANSWERS };

struct answers {
	const struct mhd *mhd;
	void (*telling)(void *data); // called before metrics are made
	void *data;
	struct MHD_Response *responses[ANSWERS]; // owned; NULL: not asked for since the last look
};

// NULL: no memory. Borrowed until the next look.
struct MHD_Response *answers_get(struct answers *answers, enum answer which, const struct view *view);
void answers_forget(struct answers *answers);
// A short text of its own: what is wrong with a request. NULL: no memory; the caller drops it.
struct MHD_Response *answer_text(const struct mhd *mhd, const char *text);
