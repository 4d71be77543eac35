/* Field tables: each public object (a run, a domain, a GPU, a block …) is described once, by a table with one row per field:
 * key, type, unit, meaning and location in memory. Generic code generates JSON, JSON Schema and the other outputs from the
 * table, so a new field appears in all of them.
 *
 *	static const struct field fields[] = {
 *		FIELD(struct gpu_finding, energy_j, "J", "energy of the GPU over the run"),
 *		FIELD_AS(struct gpu_finding, "cap", cap_w, "W", "power limit"),
 *		FIELD_NUMBER("share_percent", share_percent, "%", "share of the run's energy"),
 *	};
 *	const struct object_type gpu_type = OBJECT_TYPE("gpu", "One measured GPU.", fields);
 *
 * A value comes from a struct member or from a getter. Getters are pure; they have access to the object and to the objects
 * that contain it. An unknown value is NaN, VALUE_MISSING, NULL or an empty character array, and null in every output. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/jsonw.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t; // from jansson
struct object_type;
struct field_value;

/* An object that is written or read, with the objects that contain it. */
struct object_at {
	const struct object_type *type;
	const void *data;
	const struct object_at *outer; // containing object; NULL: this is the document
	size_t index;                  // index in the containing list or map
	const struct field *field;     // field whose function is called; for an item, outer->field is its list
};

// Data of the document that contains an object.
static inline const void *object_document(const struct object_at *at)
{
	while (at->outer != NULL)
		at = at->outer;
	return at->data;
}

enum field_type {
	FIELD_IS_NUMBER,  // double; NaN: unknown
	FIELD_IS_INTEGER, // int64_t; VALUE_MISSING: unknown
	FIELD_IS_COUNT,   // size_t, always known
	FIELD_IS_UNSIGNED, // uint64_t, always known
	FIELD_IS_INT,     // int32_t, always known
	FIELD_IS_UINT,    // uint32_t, always known; an enum becomes text through .one_of
	FIELD_IS_BOOLEAN, // bool, always known
	FIELD_IS_TEXT,    // const char *; NULL: unknown
	FIELD_IS_CHARS,   // char[]; "": unknown, unless .known
	FIELD_IS_ANY,     // the getter returns one of the types above
	FIELD_IS_OBJECT,  // .object: of a member, of a pointer's target, or of the result of .item; NULL: null
	FIELD_IS_INLINE,  // the fields of .object, of the same data or of a pointer's target, are merged into these
	FIELD_IS_LIST,    // .count items: objects (.object and .item), or values (.value)
	FIELD_IS_MAP,     // a list with a name for each item, by .name; without a key, its items are merged into the fields
};

struct field {
	const char *key;
	const char *old_key; // deprecated name: JSON has the value under both keys; NULL: none
	enum field_type type;
	const char *unit;    // "J", "W", "s", "bytes", "%"; NULL: none
	const char *meaning; // one sentence without the period
	const char *title;   // short column header; NULL: in no table
	/* Location of the value: at `offset` in the object, or in the target of the pointer at `pointer`. For a list of plain
	 * values `offset` is used by the getter of its items, which reads it as at->outer->field. */
	size_t offset;
	size_t size; // for a character array
	bool by_pointer;
	size_t pointer;
	/* Alternatively a getter of the field's type. `scratch` is for a text that is not stored anywhere: append to it and
	 * return its data. */
	union {
		double (*number)(const struct object_at *at);
		int64_t (*integer)(const struct object_at *at);
		uint64_t (*unsigned_number)(const struct object_at *at);
		bool (*boolean)(const struct object_at *at);
		const char *(*text)(const struct object_at *at, struct buf *scratch);
		struct field_value (*any)(const struct object_at *at);
	} get;
	const char *argument; // constant that the getter reads as at->field->argument: a key, a name
	double scale;         // for a stored integer: factor applied on output; 0: none
	int digits; // for a number: significant digits after rounding, or FIELD_DIGITS_OF_INSTANT; 0: not rounded
	/* For an object, a list or a map. */
	const struct object_type *object;
	const struct field *value;                                // for a list or map of plain values: its getter, with at->index
	size_t (*count)(const struct object_at *at);              // number of items of a list or map
	const void *(*item)(const struct object_at *at, size_t i); // data of an item, or of an object with i = 0; NULL: null
	const char *(*name)(const struct object_at *at, size_t i); // name of a map item
	/* Used without .count and .item: the pointer at `offset` leads to an array of items of this size; their number is the
	 * size_t at `n_offset`. Such lists can be read back. A plain value, or a list of them, is at the offset of .value in
	 * its item. */
	size_t item_size, n_offset;
	bool one_line;                                            // each item of the list is written on one line
	/* Whether the key is present; NULL: always. */
	bool (*present)(const struct object_at *at);
	// Whether an existing value, object or list is written as null; NULL: never.
	bool (*null_if)(const struct object_at *at);
	bool known;                // never null, although its type allows it
	const char *const *one_of; // permitted texts, NULL-terminated, in the order of the enum; NULL: any
};

// A time in seconds: to a microsecond, or to nine digits if that is more.
enum { FIELD_DIGITS_OF_INSTANT = -1 };

// A document that is a list has a single field, a list without a key.
struct object_type {
	const char *name;    // name of its JSON Schema definition
	const char *meaning; // one sentence
	const struct field *fields;
	size_t n_fields;
};

#define OBJECT_TYPE(name_, meaning_, fields_)                                                                          \
	{                                                                                                              \
		.name = (name_), .meaning = (meaning_), .fields = (fields_),                                           \
		.n_fields = sizeof(fields_) / sizeof((fields_)[0])                                                     \
	}

// Derives the field's type from the member's type. (size_t is uint32_t on some machines.)
#define FIELD_TYPE_OF(struct_, member_)                                                                                \
	_Generic(&((struct_ *)0)->member_,                                                                             \
		double *: FIELD_IS_NUMBER,                                                                             \
		int64_t *: FIELD_IS_INTEGER,                                                                           \
		int32_t *: FIELD_IS_INT,                                                                               \
		uint32_t *: FIELD_IS_UINT,                                                                             \
		bool *: FIELD_IS_BOOLEAN,                                                                              \
		const char **: FIELD_IS_TEXT,                                                                          \
		char **: FIELD_IS_TEXT,                                                                                \
		default: _Generic(&((struct_ *)0)->member_,                                                            \
			size_t *: FIELD_IS_COUNT,                                                                      \
			default: _Generic(&((struct_ *)0)->member_,                                                    \
				uint64_t *: FIELD_IS_UNSIGNED,                                                         \
				default: FIELD_IS_CHARS)))
// A member, with its own name or another key; further arguments are designated initialisers of struct field.
#define FIELD_AS(struct_, key_, member_, unit_, meaning_, ...)                                                         \
	{                                                                                                              \
		.key = (key_), .type = FIELD_TYPE_OF(struct_, member_), .offset = offsetof(struct_, member_),          \
		.size = sizeof(((struct_ *)0)->member_), .unit = (unit_), .meaning = (meaning_), ##__VA_ARGS__         \
	}
#define FIELD(struct_, member_, unit_, meaning_, ...)                                                                  \
	FIELD_AS(struct_, #member_, member_, unit_, meaning_, ##__VA_ARGS__)
// A member of a pointer's target.
#define FIELD_BY(struct_, pointer_, key_, target_, member_, unit_, meaning_, ...)                                      \
	{                                                                                                              \
		.key = (key_), .type = FIELD_TYPE_OF(target_, member_), .offset = offsetof(target_, member_),          \
		.by_pointer = true, .pointer = offsetof(struct_, pointer_), .unit = (unit_), .meaning = (meaning_),    \
		##__VA_ARGS__                                                                                          \
	}
// Values from a getter.
#define FIELD_GETTER(type_, which_, key_, getter_, unit_, meaning_, ...)                                               \
	{                                                                                                              \
		.key = (key_), .type = (type_), .get.which_ = (getter_), .unit = (unit_), .meaning = (meaning_),       \
		##__VA_ARGS__                                                                                          \
	}
#define FIELD_NUMBER(key_, getter_, ...) FIELD_GETTER(FIELD_IS_NUMBER, number, key_, getter_, __VA_ARGS__)
#define FIELD_INTEGER(key_, getter_, ...) FIELD_GETTER(FIELD_IS_INTEGER, integer, key_, getter_, __VA_ARGS__)
#define FIELD_UNSIGNED(key_, getter_, ...) FIELD_GETTER(FIELD_IS_UNSIGNED, unsigned_number, key_, getter_, __VA_ARGS__)
#define FIELD_BOOLEAN(key_, getter_, ...) FIELD_GETTER(FIELD_IS_BOOLEAN, boolean, key_, getter_, __VA_ARGS__)
#define FIELD_TEXT(key_, getter_, ...) FIELD_GETTER(FIELD_IS_TEXT, text, key_, getter_, __VA_ARGS__)
// Name and version of a document, its first field.
#define FIELD_SCHEMA(name_)                                                                                            \
	FIELD_TEXT("schema", field_argument, NULL, "name and version of this document", .argument = (name_),           \
		.known = true)
// An object of the same data, of a member, or from .item.
#define FIELD_SELF(key_, type_, meaning_, ...)                                                                         \
	{                                                                                                              \
		.key = (key_), .type = FIELD_IS_OBJECT, .object = (type_), .meaning = (meaning_), ##__VA_ARGS__        \
	}
#define FIELD_OBJECT(struct_, key_, member_, type_, meaning_, ...)                                                     \
	FIELD_SELF(key_, type_, meaning_, .offset = offsetof(struct_, member_), ##__VA_ARGS__)
// The object that a pointer of the struct leads to.
#define FIELD_POINTER(struct_, key_, pointer_, type_, meaning_, ...)                                                   \
	FIELD_SELF(key_, type_, meaning_, .by_pointer = true, .pointer = offsetof(struct_, pointer_), ##__VA_ARGS__)
#define FIELD_FOUND(key_, type_, item_, meaning_, ...) FIELD_SELF(key_, type_, meaning_, .item = (item_), ##__VA_ARGS__)
#define FIELD_INLINE(type_)                                                                                            \
	{                                                                                                              \
		.type = FIELD_IS_INLINE, .object = (type_)                                                             \
	}
// The fields of a pointer's target.
#define FIELD_INLINE_OF(struct_, pointer_, type_)                                                                      \
	{                                                                                                              \
		.type = FIELD_IS_INLINE, .object = (type_), .by_pointer = true, .pointer = offsetof(struct_, pointer_) \
	}
// The fields of the result of .item.
#define FIELD_INLINE_FOUND(type_, item_)                                                                               \
	{                                                                                                              \
		.type = FIELD_IS_INLINE, .object = (type_), .item = (item_)                                            \
	}
#define FIELD_LIST(key_, type_, count_, item_, meaning_, ...)                                                          \
	{                                                                                                              \
		.key = (key_), .type = FIELD_IS_LIST, .object = (type_), .count = (count_), .item = (item_),           \
		.meaning = (meaning_), ##__VA_ARGS__                                                                   \
	}
// Objects in an array that a pointer of the struct leads to, or plain values in one (value_ is the offset in the item).
#define FIELD_ITEMS(struct_, key_, array_, n_, type_, meaning_, ...)                                                   \
	FIELD_LIST(key_, type_, NULL, NULL, meaning_, .offset = offsetof(struct_, array_),                             \
		.item_size = sizeof(*((struct_ *)0)->array_), .n_offset = offsetof(struct_, n_), ##__VA_ARGS__)
#define FIELD_ITEM_VALUES(struct_, key_, array_, n_, value_, meaning_, ...)                                            \
	FIELD_VALUES(key_, value_, NULL, meaning_, .offset = offsetof(struct_, array_),                                \
		.item_size = sizeof(*((struct_ *)0)->array_), .n_offset = offsetof(struct_, n_), ##__VA_ARGS__)
#define FIELD_VALUES(key_, value_, count_, meaning_, ...)                                                              \
	{                                                                                                              \
		.key = (key_), .type = FIELD_IS_LIST, .value = (value_), .count = (count_), .meaning = (meaning_),     \
		##__VA_ARGS__                                                                                          \
	}
#define FIELD_MAP(key_, value_, count_, name_, meaning_, ...)                                                          \
	{                                                                                                              \
		.key = (key_), .type = FIELD_IS_MAP, .value = (value_), .count = (count_), .name = (name_),            \
		.meaning = (meaning_), ##__VA_ARGS__                                                                   \
	}
#define FIELD_OBJECT_MAP(key_, type_, count_, name_, item_, meaning_, ...)                                             \
	{                                                                                                              \
		.key = (key_), .type = FIELD_IS_MAP, .object = (type_), .count = (count_), .name = (name_),            \
		.item = (item_), .meaning = (meaning_), ##__VA_ARGS__                                                  \
	}
/* Items of a list in an array: defines the functions NAME_count and NAME_item for FIELD_LIST. */
#define FIELD_ARRAY_OF(name_, struct_, array_, n_)                                                                     \
	static size_t name_##_count(const struct object_at *at)                                                        \
	{                                                                                                              \
		return ((const struct_ *)at->data)->n_;                                                                \
	}                                                                                                              \
	static const void *name_##_item(const struct object_at *at, size_t i)                                          \
	{                                                                                                              \
		return &((const struct_ *)at->data)->array_[i];                                                        \
	}

/* One field value read from an object, for outputs that work field by field. */
struct field_value {
	enum field_type type; // result of field_value_type
	bool known;
	int digits; // for FIELD_IS_ANY: as in struct field
	union {
		double number;
		int64_t integer;
		uint64_t unsigned_number;
		bool boolean;
		const char *text; // valid as long as the object, or until `scratch` changes
	};
};
// Maps other value types to NUMBER, INTEGER, UNSIGNED, BOOLEAN or TEXT; objects, lists and maps are unchanged.
enum field_type field_value_type(const struct field *field);
// Not for objects, lists and maps. Clears `scratch`.
struct field_value field_value(const struct field *field, const struct object_at *at, struct buf *scratch);
// Whether .null_if makes the field's value, object or list null.
bool field_is_null(const struct field *field, const struct object_at *at);
// Data of an object field; NULL: null.
const void *field_object(const struct field *field, const struct object_at *at);
bool field_present(const struct field *field, const struct object_at *at);
// For a list or map: the number of items, and the data of an item of a list of objects (NULL: null) or of an array of plain
// values.
size_t field_count(const struct field *field, const struct object_at *at);
const void *field_item(const struct field *field, const struct object_at *at, size_t i);
// Getter of a constant text.
const char *field_argument(const struct object_at *at, struct buf *scratch);
// Items of FIELD_ITEM_VALUES that consist of the value only.
extern const struct field number_item, text_item;
// The list that forms the document; NULL: the document is an object.
const struct field *object_as_list(const struct object_type *type);

/* JSON output of objects with field tables. */

// Writes the whole object with braces; data NULL: null. outer: containing objects for the getters; NULL: none.
void object_json(struct jsonw *j, const struct object_type *type, const void *data, const struct object_at *outer);
// Writes a document: an object, indented or on one line, without a trailing newline.
void document_json(struct buf *out, const struct object_type *type, const void *data, bool pretty);

/* Reads JSON back into the struct that a field table describes. It reads members stored in the struct: at an offset, in its
 * objects, in inline fields, in lists of FIELD_ITEMS. It does not read getters, maps and pointer targets. */

/* Every such member is written: unknown if its key is missing or null, and false or 0 if the type has no unknown value.
 * Unknown keys are ignored. Texts and arrays are in the arena. Returns -EINVAL with a sentence that names the key if a value
 * has another type or is out of range, or -ENOMEM. Members read before the error keep their values. */
int fields_read(const struct json_t *object, const struct object_type *type, void *data, struct arena *arena,
	struct wattle_error *reterr);

/* JSON Schema (draft 2020-12) of those documents, generated from the same tables. */

enum { OBJECT_TYPES_MAX = 512 };

struct object_types {
	const struct object_type *types[OBJECT_TYPES_MAX];
	size_t n;
};
// Adds a type and those of the objects in it, each once, in the order in which they are met.
void object_types_collect(struct object_types *types, const struct object_type *type);

// $id is "wattle/NAME". Each object type is one definition with the name of the type.
void document_schema(struct buf *out, const char *name, const struct object_type *type);
