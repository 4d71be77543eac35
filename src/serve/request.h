/* What a request is answered with: may it ask, what does it ask for. */
#pragma once

#include "serve/answers.h"
#include "serve/token.h"

struct request_rules {
	const struct mhd *mhd;
	const char *name;          // under which we were told to listen; "" none
	const struct token *token; // length 0: none is asked for
	bool checks_host;          // without a token, on an address of this machine: by which name it comes matters
};

bool request_is_reading(const char *method); // GET, HEAD
// Queues the answer. MHD_NO: hang up. *ret_is_scrape: who may ask gets metrics.
enum MHD_Result request_answer(const struct request_rules *rules, struct answers *answers, const struct view *view,
	struct MHD_Connection *connection, const char *path, const char *method, bool *ret_is_scrape);
