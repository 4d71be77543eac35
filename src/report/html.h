/* Text into HTML: what programs and machines call things is no markup. */
#pragma once

#include "base/buf.h"

// For element content and for values in quotes. Control characters become U+FFFD; NULL is nothing.
void html_text(struct buf *out, const char *text);
/* Data for the script: JSON in a block that no browser runs, <script type="application/json" id="ID">. What could end the block early is
 * written as \u003c and the like, so the JSON may hold any text. */
void html_json(struct buf *out, const char *id, const char *json, size_t size);
