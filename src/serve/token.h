/* The secret that a client has to know, and how it says so: "Authorization: Bearer TOKEN" (Prometheus, curl), or
 * Basic with the token as the password under any name, which browsers ask people for. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { TOKEN_MAX = 512, TOKEN_SHORT = 16 };

struct token {
	char text[TOKEN_MAX + 1];
	size_t length; // 0: none is asked for
};

/* The one line of a file. -EACCES: somebody else may read it, so it is no secret; -EINVAL: no token; else what open
 * and read have to say. A sentence in all cases. */
int token_read(struct token *ret_token, const char *path, struct wattle_error *reterr);
/* Whether the value of an Authorization header (NULL: there was none) has the token. Takes as long for any wrong
 * value of a length, so that nobody can find it letter by letter. */
bool token_matches(const struct token *token, const char *authorization);
