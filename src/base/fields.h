/* Field tables: each public object (a run, a domain, a GPU, a block …) is described once, by a table with a row for each
 * field: key, type, unit, meaning and where the value lies in memory. Generic code makes JSON, JSON Schema
 * and the other outputs from the table, so a field that is added to a table appears in all of them.
 *
 *	static const struct field fields[] = {
 *		FIELD(struct gpu_finding, energy_j, "J", "energy of the GPU over the run"),
 *		FIELD_AS(struct gpu_finding, "cap", cap_w, "W", "power limit"),
 *		FIELD_NUMBER("share_percent", share_percent, "%", "share of the run's energy"),
 *	};
 *	const struct object_type gpu_type = OBJECT_TYPE("gpu", "One measured GPU.", fields);
 *
 * A value comes from a member of a struct or from a getter. Getters are pure; they see the object and the objects around it.
 * Unknown is NaN, VALUE_MISSING, NULL or an empty array of characters, and null in every output. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/jsonw.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t; // of jansson
struct object_type;
struct field_value;

/* An object that is written or read, and the objects that contain it. */
struct object_at {
	const struct object_type *type;
	const void *data;
	const struct object_at *outer; // the object that holds this one; NULL: this is the document
	size_t index;                  // of this one in the list or map that holds it
	const struct field *field;     // the one whose function is called; the list of an item: outer->field
};

// Data of the document that an object stands in.
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
	FIELD_IS_UINT,    // uint32_t, always known; an enum, which .one_of makes a text
	FIELD_IS_BOOLEAN, // bool, always known
	FIELD_IS_TEXT,    // const char *; NULL: unknown
	FIELD_IS_CHARS,   // char[]; "": unknown, unless .known
	FIELD_IS_ANY,     // the getter says which of the above
	FIELD_IS_OBJECT,  // .object: of a member, of what a pointer leads to, or of what .item returns; NULL: null
	FIELD_IS_INLINE,  // the fields of .object, of the same data or of a pointer's, stand among these
	FIELD_IS_LIST,    // .count items: objects (.object and .item), or values (.value)
	FIELD_IS_MAP,     // the same with a name for each, by .name; without a key, its items stand among the fields
};

struct field {
	const char *key;
	enum field_type type;
	const char *unit;    // "J", "W", "s", "bytes", "%"; NULL: none
	const char *meaning; // one sentence without the full stop
	const char *title;   // a word or two for the head of a table's column; NULL: no table has it
	/* Where the value lies: at `offset` of the object, or of what the pointer at `pointer` leads to. Of a list of plain values
	 * `offset` is for the getter of its items, which sees it as at->outer->field. */
	size_t offset;
	size_t size; // of an array of characters
	bool by_pointer;
	size_t pointer;
	/* Or who makes it; the one of the field's type. `scratch` is for a text that lies nowhere: append to it, return its data. */
	union {
		double (*number)(const struct object_at *at);
		int64_t (*integer)(const struct object_at *at);
		uint64_t (*unsigned_number)(const struct object_at *at);
		bool (*boolean)(const struct object_at *at);
		const char *(*text)(const struct object_at *at, struct buf *scratch);
		struct field_value (*any)(const struct object_at *at);
	} get;
	const char *argument; // constant that the getter reads as at->field->argument: a key, a name
	double scale;         // of an integer that lies somewhere: times this it is the number that is written; 0: as it is
	int digits; // of a number: it is rounded to so many significant digits, or FIELD_DIGITS_OF_INSTANT; 0: not rounded
	/* Of an object, a list and a map. */
	const struct object_type *object;
	const struct field *value;                                // of a list or map of plain values: its getter, with at->index
	size_t (*count)(const struct object_at *at);              // of the items of a list or a map
	const void *(*item)(const struct object_at *at, size_t i); // data of an item, or (i is 0) of an object; NULL: null
	const char *(*name)(const struct object_at *at, size_t i); // of an item of a map
	/* Without .count and .item: the pointer at `offset` leads to an array of items of this size, whose number is the size_t at
	 * `n_offset`. Such lists can be read back; a plain value, or a list of them, lies at the offset of .value in its item. */
	size_t item_size, n_offset;
	bool one_line;                                            // this list's items stand in one line each
	/* Whether the key is there at all; NULL: always. */
	bool (*present)(const struct object_at *at);
	// Whether the value, object or list is null although there is one; NULL: never.
	bool (*null_if)(const struct object_at *at);
	bool known;                // never null, though its type could be
	const char *const *one_of; // the texts that it may be, NULL-terminated; of an enum, in its order; NULL: any
};

// A time in seconds: exact to a microsecond, and to nine digits where that is more.
enum { FIELD_DIGITS_OF_INSTANT = -1 };

// A document that is a list has one field, a list without a key.
struct object_type {
	const char *name;    // of the JSON Schema's definition
	const char *meaning; // one sentence
	const struct field *fields;
	size_t n_fields;
};

#define OBJECT_TYPE(name_, meaning_, fields_)                                                                          \
	{                                                                                                              \
		.name = (name_), .meaning = (meaning_), .fields = (fields_),                                           \
		.n_fields = sizeof(fields_) / sizeof((fields_)[0])                                                     \
	}

// The type of a field from the type of the member: nothing to get wrong. (size_t is uint32_t on some machines.)
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
// A member, under its own name or another key; the rest are designated initialisers of struct field.
#define FIELD_AS(struct_, key_, member_, unit_, meaning_, ...)                                                         \
	{                                                                                                              \
		.key = (key_), .type = FIELD_TYPE_OF(struct_, member_), .offset = offsetof(struct_, member_),          \
		.size = sizeof(((struct_ *)0)->member_), .unit = (unit_), .meaning = (meaning_), ##__VA_ARGS__         \
	}
#define FIELD(struct_, member_, unit_, meaning_, ...) FIELD_AS(struct_, #member_, member_, unit_, meaning_, ##__VA_ARGS__)
// A member of what a pointer leads to.
#define FIELD_BY(struct_, pointer_, key_, target_, member_, unit_, meaning_, ...)                                      \
	{                                                                                                              \
		.key = (key_), .type = FIELD_TYPE_OF(target_, member_), .offset = offsetof(target_, member_),          \
		.by_pointer = true, .pointer = offsetof(struct_, pointer_), .unit = (unit_), .meaning = (meaning_),    \
		##__VA_ARGS__                                                                                          \
	}
// Values that a getter makes.
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
	FIELD_TEXT("schema", field_argument, NULL, "name and version of this document", .argument = (name_), .known = true)
// An object of the same data, of a member, or of what .item finds.
#define FIELD_HERE(key_, type_, meaning_, ...)                                                                         \
	{                                                                                                              \
		.key = (key_), .type = FIELD_IS_OBJECT, .object = (type_), .meaning = (meaning_), ##__VA_ARGS__        \
	}
#define FIELD_OBJECT(struct_, key_, member_, type_, meaning_, ...)                                                     \
	FIELD_HERE(key_, type_, meaning_, .offset = offsetof(struct_, member_), ##__VA_ARGS__)
// What a pointer of the struct leads to.
#define FIELD_POINTER(struct_, key_, pointer_, type_, meaning_, ...)                                                   \
	FIELD_HERE(key_, type_, meaning_, .by_pointer = true, .pointer = offsetof(struct_, pointer_), ##__VA_ARGS__)
#define FIELD_FOUND(key_, type_, item_, meaning_, ...) FIELD_HERE(key_, type_, meaning_, .item = (item_), ##__VA_ARGS__)
#define FIELD_INLINE(type_)                                                                                            \
	{                                                                                                              \
		.type = FIELD_IS_INLINE, .object = (type_)                                                             \
	}
// The fields of what a pointer leads to.
#define FIELD_INLINE_OF(struct_, pointer_, type_)                                                                      \
	{                                                                                                              \
		.type = FIELD_IS_INLINE, .object = (type_), .by_pointer = true, .pointer = offsetof(struct_, pointer_) \
	}
// The fields of what .item finds.
#define FIELD_INLINE_FOUND(type_, item_)                                                                               \
	{                                                                                                              \
		.type = FIELD_IS_INLINE, .object = (type_), .item = (item_)                                            \
	}
#define FIELD_LIST(key_, type_, count_, item_, meaning_, ...)                                                          \
	{                                                                                                              \
		.key = (key_), .type = FIELD_IS_LIST, .object = (type_), .count = (count_), .item = (item_),           \
		.meaning = (meaning_), ##__VA_ARGS__                                                                   \
	}
// Of objects in an array that a pointer of the struct leads to; of plain values in one (value_ lies in the item).
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
/* Items of a list that lie in an array: defines the two functions that FIELD_LIST wants, NAME_count and NAME_item. */
#define FIELD_ARRAY_OF(name_, struct_, array_, n_)                                                                     \
	static size_t name_##_count(const struct object_at *at)                                                        \
	{                                                                                                              \
		return ((const struct_ *)at->data)->n_;                                                                \
	}                                                                                                              \
	static const void *name_##_item(const struct object_at *at, size_t i)                                          \
	{                                                                                                              \
		return &((const struct_ *)at->data)->array_[i];                                                        \
	}

/* A value of a field, read out of an object: for outputs that go field by field. */
struct field_value {
	enum field_type type; // as field_value_type says
	bool known;
	int digits; // of FIELD_IS_ANY: as in struct field
	union {
		double number;
		int64_t integer;
		uint64_t unsigned_number;
		bool boolean;
		const char *text; // as long as the object, or until `scratch` changes
	};
};
// NUMBER, INTEGER, UNSIGNED, BOOLEAN or TEXT: what the other types become; those of objects, lists and maps stay.
enum field_type field_value_type(const struct field *field);
// Not of objects, lists and maps. `scratch` is cleared.
struct field_value field_value(const struct field *field, const struct object_at *at, struct buf *scratch);
// Whether a field's value, object or list is null by .null_if.
bool field_is_null(const struct field *field, const struct object_at *at);
// Data of a field that is an object; NULL: null.
const void *field_object(const struct field *field, const struct object_at *at);
bool field_present(const struct field *field, const struct object_at *at);
// Of a list or a map: the number of items; data of an item of a list of objects (NULL: null) or of an array of plain values.
size_t field_count(const struct field *field, const struct object_at *at);
const void *field_item(const struct field *field, const struct object_at *at, size_t i);
// Getter of a constant text.
const char *field_argument(const struct object_at *at, struct buf *scratch);
// Items of FIELD_ITEM_VALUES that are nothing but the value.
extern const struct field number_item, text_item;
// The list that a document is; NULL: it is an object.
const struct field *object_as_list(const struct object_type *type);

/* Objects of field tables as JSON. */

// The whole object, braces included; data NULL: null. outer: what the getters may ask for; NULL: nothing.
void object_json(struct jsonw *j, const struct object_type *type, const void *data, const struct object_at *outer);
// A document: an object, pretty or in one line, without what stands after it.
void document_json(struct buf *out, const struct object_type *type, const void *data, bool pretty);

/* JSON that a field table describes, read back into the struct. Read are the members that lie in the struct: at an offset, in its objects,
 * in fields that stand inline, in lists of FIELD_ITEMS. Getters, maps and what pointers lead to are not. */

/* Every such member is written: unknown where its key is missing or null, and false or 0 where the type knows no unknown. Keys that
 * no field has are ignored. Texts and arrays are in the arena. -EINVAL with a sentence that names the key: a value of another type, or
 * out of its range. -ENOMEM. The members read before then keep their values. */
int fields_read(const struct json_t *object, const struct object_type *type, void *data, struct arena *arena,
	struct wattle_error *reterr);
// The objects of an array, each `size` bytes; NULL or null: none.
int fields_read_list(const struct json_t *array, const struct object_type *type, size_t size, struct arena *arena,
	void **ret_items, size_t *ret_n, struct wattle_error *reterr);

/* JSON Schema (draft 2020-12) of those documents, from the same tables. */

enum { OBJECT_TYPES_MAX = 512 };

struct object_types {
	const struct object_type *types[OBJECT_TYPES_MAX];
	size_t n;
};
// Adds a type and those of the objects in it, each once, in the order in which they are met.
void object_types_collect(struct object_types *types, const struct object_type *type);

// $id is "wattle/NAME". Each type of object is one definition, named as the type.
void document_schema(struct buf *out, const char *name, const struct object_type *type);
