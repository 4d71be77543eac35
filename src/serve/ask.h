/* What headers of a request mean. Pure. */
#pragma once

#include <stdbool.h>

/* Whether a page of somebody else's can't be behind it. A name that an attacker owns may be made to lead to 127.0.0.1
 * once his page is loaded (DNS rebinding); his script then reads what is served here as its own. The browser says by
 * which name it came: only names that can't be made to lead here are well, and `name`, under which we were told to
 * listen ("" none). `host` is the header's value. */
bool ask_host_is_ours(const char *host, const char *name);

/* What browsers say of who asks (Sec-Fetch-Site, Sec-Fetch-Mode; NULL: not said): pages of other sites may lead here,
 * and no more. */
bool ask_is_from_elsewhere(const char *site, const char *mode);

/* Whether OpenMetrics is wanted at least as much as the classic text format, by an Accept header (NULL: none). */
bool ask_wants_openmetrics(const char *accept);
