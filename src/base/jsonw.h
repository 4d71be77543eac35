/* A streaming JSON writer onto a struct buf. It handles commas, indentation and escaping. NaN and infinities are written as
 * null, because "unknown" is null everywhere in wattle. Invalid UTF-8 becomes U+FFFD.
 *
 * No name here may match one of jansson's (json_string, json_null …), the JSON reader in the same program. */
#pragma once

#include "base/buf.h"

enum { JSONW_DEPTH_MAX = 24 };

struct jsonw {
	struct buf *out; // borrowed
	int depth;
	bool pretty;                    // indented by two blanks; else one line
	bool has_item[JSONW_DEPTH_MAX]; // this depth already has an item
	bool after_key;
};

void jsonw_init(struct jsonw *j, struct buf *out, bool pretty);
void jsonw_begin_object(struct jsonw *j);
void jsonw_end_object(struct jsonw *j);
void jsonw_begin_array(struct jsonw *j);
void jsonw_end_array(struct jsonw *j);
void jsonw_key(struct jsonw *j, const char *key);
void jsonw_string(struct jsonw *j, const char *text); // NULL -> null
void jsonw_i64(struct jsonw *j, int64_t value);
void jsonw_u64(struct jsonw *j, uint64_t value);
void jsonw_double(struct jsonw *j, double value);
void jsonw_rounded(struct jsonw *j, double value, int digits); // to significant digits; much faster, for large numbers of values
void jsonw_bool(struct jsonw *j, bool value);
void jsonw_null(struct jsonw *j);

// Write a key and its value.
void jsonw_key_string(struct jsonw *j, const char *key, const char *text);
void jsonw_key_i64(struct jsonw *j, const char *key, int64_t value);
void jsonw_key_double(struct jsonw *j, const char *key, double value);
void jsonw_key_bool(struct jsonw *j, const char *key, bool value);
