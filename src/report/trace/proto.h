/* Protobuf's wire format: fields one after the other, each with its number; a message is a field that holds fields.
 *
 *	size_t track = proto_begin(out, 60);
 *	proto_uint(out, 1, uuid);
 *	proto_text(out, 2, "power");
 *	proto_end(out, track); */
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

void proto_uint(struct buf *out, uint32_t field, uint64_t value); // also booleans, enums, int64
void proto_double(struct buf *out, uint32_t field, double value);
void proto_text(struct buf *out, uint32_t field, const char *text); // what is no UTF-8 becomes U+FFFD; NULL: ""
// A message, until proto_end gets what this returned. Between the two nothing but fields may be done to `out`.
size_t proto_begin(struct buf *out, uint32_t field);
void proto_end(struct buf *out, size_t begun);
