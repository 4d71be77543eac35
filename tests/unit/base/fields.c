#include "base/fields.h"
#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <jansson.h>

/* A document with a field of every kind. */

struct reading {
	const char *name;
	double power_w;
};

struct device {
	int64_t index;
	const char *vendor;
};

enum color { RED, GREEN, BLUE };

struct made {
	double energy_j;
	int64_t pid;
	size_t runs;
	bool complete;
	const char *host;
	char uuid[8];
	const struct device *device; // NULL: none
	struct reading first;
	struct reading readings[2];
	size_t n_readings;
	double joules[2];
	int32_t pid_of_kernel;
	uint32_t wraps;
	enum color color;
	int64_t cpu_ns;
	char note[8];
};

static double share_percent(const struct object_at *at)
{
	return ((const struct made *)at->data)->energy_j * 10;
}

static const char *made_text(const struct object_at *at, struct buf *scratch)
{
	buf_printf(scratch, "%s %zu", at->field->argument, ((const struct made *)at->data)->runs);
	return scratch->data;
}

static uint64_t seed(const struct object_at *at)
{
	return UINT64_MAX;
}

static bool has_device(const struct object_at *at)
{
	return ((const struct made *)object_document(at))->device != NULL;
}

// Member of the enclosing object: getters can read it.
static int64_t reading_of_pid(const struct object_at *at)
{
	return ((const struct made *)at->outer->data)->pid + (int64_t)at->index;
}

static const struct field reading_fields[] = {
	FIELD(struct reading, name, NULL, "name of the meter"),
	FIELD(struct reading, power_w, "W", "power"),
	FIELD_INTEGER("of", reading_of_pid, NULL, "process id plus place"),
};
static const struct object_type reading_type = OBJECT_TYPE("reading", "A reading.", reading_fields);

static const struct field base_fields[] = {
	FIELD(struct made, host, NULL, "name of the machine"),
	FIELD(struct made, uuid, NULL, "identity"),
};
static const struct object_type base_type = OBJECT_TYPE("base", "What is inlined.", base_fields);

FIELD_ARRAY_OF(reading, struct made, readings, n_readings)

static size_t two(const struct object_at *at)
{
	return 2;
}

static const char *domain_name(const struct object_at *at, size_t i)
{
	return i == 0 ? "package-0" : "dram-0";
}

static double domain_j(const struct object_at *at)
{
	return ((const struct made *)at->data)->joules[at->index];
}

static double grid(const struct object_at *at)
{
	return (double)(10 * at->outer->index + at->index);
}

static const struct field domain_field = FIELD_NUMBER("energy_j", domain_j, "J", "energy");
static const struct field grid_field = FIELD_NUMBER("value", grid, NULL, "a value");
static const struct field line_field = FIELD_VALUES("line", &grid_field, two, "a line", .one_line = true);
// Energy of the domain that owns the list.
static double rounded_j(const struct object_at *at)
{
	const struct made *made = at->data;
	return made->joules[at->outer->field->offset] / (double)(3 + at->index);
}

static const struct field rounded_field = FIELD_NUMBER("value", rounded_j, "J", "a third, and a quarter", .digits = 3);
static const char *const colors[] = {[RED] = "red", [GREEN] = "green", [BLUE] = "blue", NULL};
static const char *const kinds[] = {"a 3", "b 3", NULL};

static const struct field made_fields[] = {
	FIELD(struct made, energy_j, "J", "energy"),
	FIELD_AS(struct made, "process", pid, NULL, "process id"),
	FIELD(struct made, runs, NULL, "number of runs"),
	FIELD(struct made, complete, NULL, "whether it ended"),
	FIELD_INLINE(&base_type),
	FIELD_BY(struct made, device, "vendor", struct device, vendor, NULL, "maker of the device"),
	FIELD_BY(struct made, device, "index", struct device, index, NULL, "number of the device",
		.present = has_device),
	FIELD_NUMBER("share_percent", share_percent, "%", "share"),
	FIELD_TEXT("kind", made_text, NULL, "kind", .argument = "a", .one_of = kinds),
	FIELD_UNSIGNED("seed", seed, NULL, "seed"),
	FIELD_OBJECT(struct made, "first", first, &reading_type, "first reading"),
	FIELD_LIST("readings", &reading_type, reading_count, reading_item, "all readings"),
	FIELD_MAP("domains", &domain_field, two, domain_name, "energy by domain"),
	FIELD_VALUES("grid", &line_field, two, "a list of lists"),
	FIELD(struct made, pid_of_kernel, NULL, "a 32-bit number"),
	FIELD(struct made, wraps, NULL, "one without a sign"),
	FIELD(struct made, color, NULL, "an enum", .one_of = colors),
	FIELD_AS(struct made, "cpu_s", cpu_ns, "s", "nanoseconds as seconds", .scale = 1e-9),
	FIELD(struct made, note, NULL, "a note that may be empty", .known = true),
	FIELD_VALUES("rounded", &rounded_field, two, "rounded values", .offset = 1),
};
static const struct object_type made_type = OBJECT_TYPE("made", "A made document.", made_fields);

static const struct device device = {.index = 7, .vendor = "acme"};
static const struct made known = {1.5, 42, 3, true, "vn0", "GPU-1", &device, {"first", 2}, {{"a", 3}, {"b", 4}}, 2,
	{5, 6}, -2, UINT32_MAX, BLUE, 1500000000, "n"};
static const struct made unknown = {(double)NAN, VALUE_MISSING, 3, false, NULL, "", NULL, {NULL, (double)INFINITY},
	{{0}}, 0, {(double)NAN, 1}, 0, 0, (enum color)3, VALUE_MISSING, ""};

static const struct json_row {
	const char *teaches;
	const struct made *made;
	const char *json;
} json_rows[] = {
	{"JSON: every kind of field", &known,
		"{\"energy_j\": 1.5, \"process\": 42, \"runs\": 3, \"complete\": true, \"host\": \"vn0\", \"uuid\": \"GPU-1\", "
		"\"vendor\": \"acme\", \"index\": 7, \"share_percent\": 15, \"kind\": \"a 3\", \"seed\": 18446744073709551615, "
		"\"first\": {\"name\": \"first\", \"power_w\": 2, \"of\": 42}, "
		"\"readings\": [{\"name\": \"a\", \"power_w\": 3, \"of\": 42}, {\"name\": \"b\", \"power_w\": 4, \"of\": 43}], "
		"\"domains\": {\"package-0\": 5, \"dram-0\": 6}, \"grid\": [[0, 1], [10, 11]], "
		"\"pid_of_kernel\": -2, \"wraps\": 4294967295, \"color\": \"blue\", \"cpu_s\": 1.5, \"note\": \"n\", "
		"\"rounded\": [2, 1.5]}"},
	{"JSON: an unknown value is null, an absent key is left out, an empty list is []", &unknown,
		"{\"energy_j\": null, \"process\": null, \"runs\": 3, \"complete\": false, \"host\": null, \"uuid\": null, "
		"\"vendor\": null, \"share_percent\": null, \"kind\": \"a 3\", \"seed\": 18446744073709551615, "
		"\"first\": {\"name\": null, \"power_w\": null, \"of\": null}, "
		"\"readings\": [], \"domains\": {\"package-0\": null, \"dram-0\": 1}, \"grid\": [[0, 1], [10, 11]], "
		"\"pid_of_kernel\": 0, \"wraps\": 0, \"color\": null, \"cpu_s\": null, \"note\": \"\", "
		"\"rounded\": [0.333, 0.25]}"},
};

static void check_json(void **state)
{
	const struct json_row *row = *state;
	struct buf out;
	buf_init(&out, 1 << 16);
	document_json(&out, &made_type, row->made, false);
	assert_string_equal(out.data, row->json);
	buf_finish(&out);
}

static void check_lines(void **state)
{
	struct buf out;
	buf_init(&out, 1 << 16);
	document_json(&out, &made_type, &known, true);
	assert_non_null(strstr(out.data, "  \"grid\": [\n    [0, 1],\n    [10, 11]\n  ],\n"));
	buf_finish(&out);
}

static const struct field readings_fields[] = {
	FIELD_LIST(NULL, &reading_type, reading_count, reading_item, "all readings")};
static const struct object_type readings_type = OBJECT_TYPE("readings", "A document that is a list.", readings_fields);

static void check_list(void **state)
{
	const struct made none = {.n_readings = 0};
	struct buf out;
	buf_init(&out, 1 << 16);
	document_json(&out, &readings_type, &known, false);
	document_json(&out, &readings_type, &none, false);
	assert_string_equal(out.data,
		"[{\"name\": \"a\", \"power_w\": 3, \"of\": 42}, {\"name\": \"b\", \"power_w\": 4, "
		"\"of\": 43}][]");
	buf_finish(&out);
}

static json_t *schema_of(const struct object_type *type)
{
	struct buf out;
	json_error_t error;
	buf_init(&out, 1 << 16);
	document_schema(&out, type->name, type);
	json_t *schema = json_loads(out.data, 0, &error);
	buf_finish(&out);
	assert_non_null(schema);
	return schema;
}

static const struct schema_row {
	const char *teaches, *key, *json;
} schema_rows[] = {
	{"schema: a number may be null and states its unit", "energy_j",
		"{\"description\": \"energy (J)\", \"type\": [\"number\", \"null\"]}"},
	{"schema: a boolean is always known", "complete",
		"{\"description\": \"whether it ended\", \"type\": \"boolean\"}"},
	{"schema: inlined fields are properties of the parent", "host",
		"{\"description\": \"name of the machine\", \"type\": [\"string\", \"null\"]}"},
	{"schema: a text field lists its allowed values", "kind",
		"{\"description\": \"kind\", \"type\": [\"string\", \"null\"], \"enum\": [\"a 3\", \"b 3\", null]}"},
	{"schema: an object is a reference", "first",
		"{\"description\": \"first reading\", \"$ref\": \"#/$defs/reading\"}"},
	{"schema: a list of objects", "readings",
		"{\"description\": \"all readings\", \"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/reading\"}}"},
	{"schema: an enum lists its allowed values", "color",
		"{\"description\": \"an enum\", \"type\": \"string\", \"enum\": [\"red\", \"green\", \"blue\"]}"},
	{"schema: a scaled integer is a number", "cpu_s",
		"{\"description\": \"nanoseconds as seconds (s)\", \"type\": [\"number\", \"null\"]}"},
	{"schema: a map allows any key", "domains",
		"{\"description\": \"energy by domain\", \"type\": \"object\", \"additionalProperties\": "
		"{\"description\": \"energy (J)\", \"type\": [\"number\", \"null\"]}}"},
};

/* A key with a deprecated name. */

static const struct field renamed_fields[] = {
	FIELD(struct reading, power_w, "W", "power", .old_key = "watts"),
	FIELD_AS(struct reading, "title", name, NULL, "name of the meter"),
};
static const struct object_type renamed_type = OBJECT_TYPE("renamed", "A reading with a renamed key.", renamed_fields);

static void old_keys(void **state)
{
	const struct reading reading = {"a", 2.5};
	struct buf out;
	buf_init(&out, 1 << 10);
	document_json(&out, &renamed_type, &reading, false);
	assert_string_equal(out.data, "{\"power_w\": 2.5, \"watts\": 2.5, \"title\": \"a\"}");
	buf_finish(&out);

	json_t *schema = schema_of(&renamed_type);
	const json_t *renamed = json_object_get(json_object_get(schema, "$defs"), "renamed");
	json_t *expected = json_loads(
		"{\"deprecated\": true, \"description\": \"deprecated, use power_w\", \"type\": [\"number\", \"null\"]}",
		0, NULL);
	assert_true(json_equal(json_object_get(json_object_get(renamed, "properties"), "watts"), expected));
	json_decref(expected);
	expected = json_loads("[\"power_w\", \"title\"]", 0, NULL);
	assert_true(json_equal(json_object_get(renamed, "required"), expected));
	json_decref(expected);
	json_decref(schema);
}

static const struct old_key_row {
	const char *teaches, *json;
	double power_w;
} old_key_rows[] = {
	{"read: the value of a deprecated key", "{\"watts\": 1, \"title\": \"a\"}", 1},
	{"read: the new key takes precedence over the deprecated one", "{\"watts\": 1, \"power_w\": 2}", 2},
};

static void read_old_key(void **state)
{
	const struct old_key_row *row = *state;
	struct reading reading;
	struct arena *arena = arena_new();
	json_t *json = json_loads(row->json, 0, NULL);
	assert_int_equal(fields_read(json, &renamed_type, &reading, arena, NULL), 0);
	assert_true(reading.power_w == row->power_w);
	arena_free(arena);
	json_decref(json);
}

static void check_schema(void **state)
{
	const struct schema_row *row = *state;
	json_t *schema = schema_of(&made_type);
	const json_t *made = json_object_get(json_object_get(schema, "$defs"), "made");
	char *text = json_dumps(json_object_get(json_object_get(made, "properties"), row->key), JSON_PRESERVE_ORDER);
	assert_string_equal(text, row->json);
	free(text);
	json_decref(schema);
}

static void schema_of_a_list(void **state)
{
	json_t *schema = schema_of(&readings_type);
	const json_t *readings = json_object_get(json_object_get(schema, "$defs"), "readings");
	char *text = json_dumps(readings, JSON_PRESERVE_ORDER);
	assert_string_equal(text,
		"{\"description\": \"all readings\", \"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/reading\"}}");
	free(text);
	json_decref(schema);
}

static void requires_what_is_always_present(void **state)
{
	json_t *schema = schema_of(&made_type);
	const json_t *made = json_object_get(json_object_get(schema, "$defs"), "made");
	char *text = json_dumps(json_object_get(made, "required"), 0);
	assert_string_equal(text,
		"[\"energy_j\", \"process\", \"runs\", \"complete\", \"host\", \"uuid\", \"vendor\", \"share_percent\", \"kind\", "
		"\"seed\", \"first\", \"readings\", \"domains\", \"grid\", "
		"\"pid_of_kernel\", \"wraps\", \"color\", \"cpu_s\", \"note\", \"rounded\"]");
	free(text);
	json_decref(schema);
}

/* ---- maps among the fields, nullable lists, values of any type ---- */

static struct field_value any_value(const struct object_at *at)
{
	static const struct field_value values[] = {
		{.type = FIELD_IS_TEXT, .known = true, .text = "a"},
		{.type = FIELD_IS_INTEGER, .known = true, .integer = -7},
		{.type = FIELD_IS_NUMBER, .known = true, .digits = 3, .number = 1.23456},
		{.type = FIELD_IS_NUMBER, .known = false},
	};
	return values[at->index];
}

static size_t four(const struct object_at *at)
{
	return 4;
}

static const char *any_name(const struct object_at *at, size_t i)
{
	static const char *const names[] = {"text", "integer", "number", "unknown"};
	return names[i];
}

static double instant_s(const struct object_at *at)
{
	return at->index == 0 ? 1234.56789012345 : 123456.789012345;
}

static bool is_incomplete(const struct object_at *at)
{
	return !((const struct made *)at->data)->complete;
}

static const void *first(const struct object_at *at, size_t i)
{
	return &((const struct made *)at->data)->first;
}

static const struct field any_field = FIELD_GETTER(FIELD_IS_ANY, any, "value", any_value, NULL, "any value");
static const struct field instant_field = FIELD_NUMBER("at_s", instant_s, "s", "an instant",
	.digits = FIELD_DIGITS_OF_INSTANT);
static const struct field open_fields[] = {
	FIELD(struct made, complete, NULL, "whether it ended"),
	FIELD_MAP(NULL, &any_field, four, any_name, "further keys"),
	FIELD_VALUES("instants_s", &instant_field, two, "instants", .null_if = is_incomplete),
	FIELD_INLINE_FOUND(&reading_type, first),
};
static const struct object_type open_type = OBJECT_TYPE("open", "It has keys that no field has.", open_fields);

static const struct open_row {
	const char *teaches;
	const struct made *made;
	const char *json;
} open_rows[] = {
	{"JSON: the items of a map are written as fields; times are exact to a microsecond", &known,
		"{\"complete\": true, \"text\": \"a\", \"integer\": -7, \"number\": 1.23, \"unknown\": null, "
		"\"instants_s\": [1234.56789, 123456.78901], "},
	{"JSON: an unknown list is null", &unknown,
		"{\"complete\": false, \"text\": \"a\", \"integer\": -7, \"number\": 1.23, \"unknown\": null, "
		"\"instants_s\": null, "},
};

static const struct field outer_fields[] = {FIELD_SELF("open", &open_type, "the object")};
static const struct object_type outer_type = OBJECT_TYPE("outer", "An object around it.", outer_fields);

static void check_open(void **state)
{
	const struct open_row *row = *state;
	struct buf out;
	buf_init(&out, 1 << 16);
	document_json(&out, &outer_type, row->made, false);
	assert_non_null(out.data);
	assert_memory_equal(out.data + strlen("{\"open\": "), row->json, strlen(row->json));
	buf_finish(&out);
}

static void schema_of_open_object(void **state)
{
	json_t *schema = schema_of(&open_type);
	json_t *open = json_object_get(json_object_get(schema, "$defs"), "open");
	json_object_del(open, "description");
	char *text = json_dumps(open, JSON_PRESERVE_ORDER);
	assert_string_equal(text,
		"{\"type\": \"object\", \"properties\": "
		"{\"complete\": {\"description\": \"whether it ended\", \"type\": \"boolean\"}, "
		"\"instants_s\": {\"description\": \"instants\", \"type\": [\"array\", \"null\"], "
		"\"items\": {\"description\": \"an instant (s)\", \"type\": [\"number\", \"null\"]}}, "
		"\"name\": {\"description\": \"name of the meter\", \"type\": [\"string\", \"null\"]}, "
		"\"power_w\": {\"description\": \"power (W)\", \"type\": [\"number\", \"null\"]}, "
		"\"of\": {\"description\": \"process id plus place\", \"type\": [\"integer\", \"null\"]}}, "
		"\"required\": [\"complete\", \"instants_s\", \"name\", \"power_w\", \"of\"], "
		"\"additionalProperties\": {\"description\": \"any value\"}}");
	free(text);
	json_decref(schema);
}

/* ---- reading JSON ---- */

struct point {
	double *coordinates;
	size_t n;
};

struct saved {
	double power_w;
	int64_t pid, cpu_ns;
	size_t runs, n_parts, n_joules, n_words, n_points;
	bool complete;
	const char *host;
	char uuid[8];
	int32_t priority;
	uint32_t wraps;
	enum color color;
	struct reading first;
	struct reading *parts;
	double *joules;
	const char **words;
	struct point *points;
};

static bool is_red(const struct object_at *at)
{
	return ((const struct saved *)at->data)->color == RED;
}

static bool is_not_red(const struct object_at *at)
{
	return !is_red(at);
}

#define S struct saved
static const struct field inline_fields[] = {FIELD(S, wraps, NULL, "wraps"),
	FIELD(S, color, NULL, "color", .one_of = colors)};
static const struct object_type inline_type = OBJECT_TYPE("inline", "What is inlined.", inline_fields);
static const struct field point_field = FIELD_ITEM_VALUES(struct point, NULL, coordinates, n, &number_item,
	"coordinates");
static const struct field saved_fields[] = {
	FIELD_SCHEMA("wattle-saved/1"),
	FIELD(S, power_w, "W", "power", .null_if = is_red),
	FIELD_AS(S, "power_of_red_w", power_w, "W", "power", .null_if = is_not_red, .present = is_red),
	FIELD(S, pid, NULL, "process id"),
	FIELD_AS(S, "cpu_s", cpu_ns, "s", "CPU time", .scale = 1e-9),
	FIELD(S, runs, NULL, "number of runs"),
	FIELD(S, complete, NULL, "whether it ended"),
	FIELD(S, host, NULL, "name of the machine"),
	FIELD(S, uuid, NULL, "identity"),
	FIELD(S, priority, NULL, "priority"),
	FIELD_INLINE(&inline_type),
	FIELD_OBJECT(S, "first", first, &reading_type, "first reading"),
	FIELD_ITEMS(S, "parts", parts, n_parts, &reading_type, "all readings"),
	FIELD_ITEM_VALUES(S, "joules", joules, n_joules, &number_item, "energies"),
	FIELD_ITEM_VALUES(S, "words", words, n_words, &text_item, "words"),
	FIELD_ITEM_VALUES(S, "points", points, n_points, &point_field, "points"),
};
#undef S
static const struct object_type saved_type = OBJECT_TYPE("saved", "What is written and read.", saved_fields);

#define SAVED_REST                                                                                                              \
	"\"pid\": 42, \"cpu_s\": 1.5, \"runs\": 3, \"complete\": true, \"host\": \"vn0\", \"uuid\": \"GPU-1\", "                \
	"\"priority\": -5, \"wraps\": 4000000000, \"color\": \""
#define SAVED_LISTS                                                                                                             \
	"\", \"first\": {\"name\": \"f\", \"power_w\": 1, \"of\": 42}, \"parts\": [{\"name\": \"a\", \"power_w\": null, "            \
	"\"of\": 42}, {\"name\": null, \"power_w\": 2, \"of\": 43}], \"joules\": [1, null], \"words\": [\"x\", null], "         \
	"\"points\": [[1, 2.5], [], [null]]}"

static const struct read_row {
	const char *teaches, *json;
	const char *error, *again; // NULL: no error
} read_rows[] = {
	{"read: a written document is read back unchanged",
		"{\"schema\": \"wattle-saved/1\", \"power_w\": 2.5, " SAVED_REST "blue" SAVED_LISTS, NULL, NULL},
	{"read: one member under two keys",
		"{\"schema\": \"wattle-saved/1\", \"power_w\": null, \"power_of_red_w\": 2.5, " SAVED_REST
		"red" SAVED_LISTS,
		NULL, NULL},
	{"read: a missing key is unknown, an unexpected key is ignored", "{\"pid\": 1, \"other\": {}}", NULL,
		"{\"schema\": \"wattle-saved/1\", \"power_w\": null, \"pid\": 1, \"cpu_s\": null, \"runs\": 0, \"complete\": false, "
		"\"host\": null, \"uuid\": null, \"priority\": 0, \"wraps\": 0, \"color\": null, "
		"\"first\": {\"name\": null, \"power_w\": null, \"of\": 1}, \"parts\": [], \"joules\": [], \"words\": [], \"points\": []}"},
	{"read: a document that is no object: refused", "[]", "saved is not an object", NULL},
	{"read: a text for a number: refused", "{\"power_w\": \"a\"}", "\"power_w\" of saved is not a number", NULL},
	{"read: a fraction for an integer: refused", "{\"pid\": 1.5}", "\"pid\" of saved is not a whole number", NULL},
	{"read: a negative count: refused", "{\"runs\": -1}", "\"runs\" of saved is not a whole number of 0 or more",
		NULL},
	{"read: a number outside the range of the member: refused", "{\"cpu_s\": 1e300}",
		"\"cpu_s\" of saved is not a number in the range of a 64-bit integer", NULL},
	{"read: an integer that is too large: refused", "{\"priority\": 2147483648}",
		"\"priority\" of saved is not a whole number of 32 bits", NULL},
	{"read: a number for a boolean: refused", "{\"complete\": 1}", "\"complete\" of saved is not true or false",
		NULL},
	{"read: a text that is too long: refused", "{\"uuid\": \"GPU-1234\"}",
		"\"uuid\" of saved is longer than 7 bytes", NULL},
	{"read: a text for an object: refused", "{\"first\": \"a\"}", "\"first\" of saved is not an object", NULL},
	{"read: an object for a list: refused", "{\"parts\": {}}", "\"parts\" of saved is not a list", NULL},
	{"read: a number for a list in a list: refused", "{\"points\": [1]}", "\"item\" of saved is not a list", NULL},
	{"read: numbers for objects: refused", "{\"parts\": [1]}", "\"parts\" of saved is not a list of objects", NULL},
	{"read: the error names the type that has the key", "{\"parts\": [{\"name\": 1}]}",
		"\"name\" of reading is not a text", NULL},
};

static void check_read(void **state)
{
	const struct read_row *row = *state;
	struct arena *arena = arena_new();
	json_t *object = json_loads(row->json, 0, NULL);
	struct saved saved;
	struct wattle_error error;
	struct buf out;
	memset(&saved, 0x5a, sizeof(saved));
	assert_non_null(object);
	assert_int_equal(fields_read(object, &saved_type, &saved, arena, &error), row->error != NULL ? -EINVAL : 0);
	json_decref(object);
	if (row->error != NULL) {
		assert_string_equal(error.text, row->error);
	} else {
		buf_init(&out, 1 << 16);
		document_json(&out, &saved_type, &saved, false);
		assert_string_equal(out.data, row->again != NULL ? row->again : row->json);
		buf_finish(&out);
	}
	arena_free(arena);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, json_rows, check_json);
	ROWS_ADD_ONE(&tests, "JSON: each list in a list is on a line of its own", check_lines);
	ROWS_ADD_ONE(&tests, "JSON: the top level of a document may be a list", check_list);
	ROWS_ADD(&tests, schema_rows, check_schema);
	ROWS_ADD_ONE(&tests, "a renamed key: JSON has both, the schema marks the old one as deprecated", old_keys);
	ROWS_ADD(&tests, old_key_rows, read_old_key);
	ROWS_ADD_ONE(&tests, "schema: the top level of a document may be a list", schema_of_a_list);
	ROWS_ADD(&tests, open_rows, check_open);
	ROWS_ADD_ONE(&tests, "schema: an object that allows additional keys", schema_of_open_object);
	ROWS_ADD(&tests, read_rows, check_read);
	ROWS_ADD_ONE(&tests, "schema: fields that are always present are required", requires_what_is_always_present);
	return rows_run(&tests, "field tables");
}
