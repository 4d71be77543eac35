/* Objects of field tables as JSON. */
#pragma once

#include "base/fields.h"
#include "base/jsonw.h"

// The whole object, braces included; data NULL: null. outer: what the getters may ask for; NULL: nothing.
void object_json(struct jsonw *j, const struct object_type *type, const void *data, const struct object_at *outer);
// A document: an object, pretty or in one line, without what stands after it.
void document_json(struct buf *out, const struct object_type *type, const void *data, bool pretty);
