/* What `wattle model` prints. Pure: everything goes to a buffer. */
#pragma once

#include "base/buf.h"
#include "model/model.h"

#include <stdbool.h>

struct object_type; // base/fields.h

extern const struct object_type model_type;                            // struct model_figures
void model_json(const struct model_figures *figures, struct buf *out); // docs/onnx.md has every key
void model_text(const struct model_figures *figures, const char *file, struct buf *out, bool colour);
