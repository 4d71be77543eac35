/* JSON Schema (draft 2020-12) of what fields_json.h writes, from the same tables. */
#pragma once

#include "base/fields.h"

// $id is "wattle/NAME". Each type of object is one definition, named as the type.
void document_schema(struct buf *out, const char *name, const struct object_type *type);
