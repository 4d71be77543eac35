/* Text into HTML: what programs and machines call things is no markup. */
#pragma once

#include "base/buf.h"

// For element content and for values in quotes. Control characters become U+FFFD; NULL is nothing.
void html_text(struct buf *out, const char *text);
