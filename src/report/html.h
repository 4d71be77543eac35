/* Escapes text for HTML: names from programs and machines must not become markup. */
#pragma once

#include "base/buf.h"

// For element content and for quoted attribute values. Control characters become U+FFFD; NULL writes nothing.
void html_text(struct buf *out, const char *text);
/* Embeds data for the script as JSON that no browser executes: <script type="application/json" id="ID">. Sequences that
 * could close the block early are escaped as \u003c etc., so any JSON is safe. */
void html_json(struct buf *out, const char *id, const char *json, size_t size);
