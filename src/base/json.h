/* A streaming JSON writer onto a struct buf. Commas, indentation and escaping are its business; NaN and infinities
 * are written as null, because "unknown" is null everywhere in wattle. Invalid UTF-8 becomes U+FFFD.
 *
 * No name here may be one of jansson's (json_string, json_null …), which reads JSON for us in the same program. */
#pragma once

#include "base/buf.h"

enum { JSON_DEPTH_MAX = 24 };

struct json {
	struct buf *out; // borrowed
	int depth;
	bool pretty;                   // two blanks of indentation; else one line
	bool has_item[JSON_DEPTH_MAX]; // something stands at this depth already
	bool after_key;
};

void json_init(struct json *j, struct buf *out, bool pretty);
void json_begin_object(struct json *j);
void json_end_object(struct json *j);
void json_begin_array(struct json *j);
void json_end_array(struct json *j);
void json_key(struct json *j, const char *key);
void json_str(struct json *j, const char *text); // NULL -> null
void json_i64(struct json *j, int64_t value);
void json_u64(struct json *j, uint64_t value);
void json_double(struct json *j, double value);
void json_bool(struct json *j, bool value);
void json_unknown(struct json *j);

// key and value in one go
void json_key_string(struct json *j, const char *key, const char *text);
void json_key_i64(struct json *j, const char *key, int64_t value);
void json_key_double(struct json *j, const char *key, double value);
void json_key_bool(struct json *j, const char *key, bool value);
