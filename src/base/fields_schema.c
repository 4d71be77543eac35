#include "base/fields.h"

#include "base/jsonw.h"
#include "base/util.h"

#include <string.h>

void object_types_collect(struct object_types *types, const struct object_type *type)
{
	for (size_t i = 0; i < types->n; i++)
		if (types->types[i] == type)
			return;
	if (types->n == OBJECT_TYPES_MAX)
		return;
	types->types[types->n++] = type;
	for (size_t i = 0; i < type->n_fields; i++)
		for (const struct field *field = &type->fields[i]; field != NULL; field = field->value)
			if (field->object != NULL)
				object_types_collect(types, field->object);
}

static const char *json_type(const struct field *field)
{
	static const char *const names[] = {
		[FIELD_IS_NUMBER] = "number",
		[FIELD_IS_INTEGER] = "integer",
		[FIELD_IS_UNSIGNED] = "integer",
		[FIELD_IS_BOOLEAN] = "boolean",
		[FIELD_IS_TEXT] = "string",
	};
	return names[field_value_type(field)];
}

static bool always_known(const struct field *field)
{
	return field->null_if == NULL &&
		(field->known || field->type == FIELD_IS_COUNT || field->type == FIELD_IS_UNSIGNED ||
			field->type == FIELD_IS_INT || field->type == FIELD_IS_UINT || field->type == FIELD_IS_BOOLEAN);
}

static void describe(struct jsonw *j, const struct field *field)
{
	struct buf text;
	if (field->meaning == NULL)
		return;
	buf_init(&text, 1 << 12);
	buf_str(&text, field->meaning);
	if (field->unit != NULL)
		buf_printf(&text, " (%s)", field->unit);
	jsonw_key_string(j, "description", text.data);
	buf_finish(&text);
}

static void reference(struct jsonw *j, const struct object_type *type)
{
	char text[128] = "#/$defs/";
	strncat(text, type->name, sizeof(text) - strlen(text) - 1);
	jsonw_key_string(j, "$ref", text);
}

static void type_name(struct jsonw *j, const char *name, bool is_known)
{
	jsonw_key(j, "type");
	if (is_known) {
		jsonw_string(j, name);
		return;
	}
	jsonw_begin_array(j);
	jsonw_string(j, name);
	jsonw_string(j, "null");
	jsonw_end_array(j);
}

static void choices(struct jsonw *j, const struct field *field)
{
	if (field->get.text == field_argument)
		jsonw_key_string(j, "const", field->argument);
	if (field->one_of == NULL)
		return;
	jsonw_key(j, "enum");
	jsonw_begin_array(j);
	for (const char *const *text = field->one_of; *text != NULL; text++)
		jsonw_string(j, *text);
	if (!always_known(field))
		jsonw_null(j);
	jsonw_end_array(j);
}

static void shape(struct jsonw *j, const struct field *field);

static void maybe_null(struct jsonw *j, const struct object_type *type, bool can_be_null)
{
	if (!can_be_null) {
		reference(j, type);
		return;
	}
	jsonw_key(j, "anyOf");
	jsonw_begin_array(j);
	jsonw_begin_object(j);
	reference(j, type);
	jsonw_end_object(j);
	jsonw_begin_object(j);
	jsonw_key_string(j, "type", "null");
	jsonw_end_object(j);
	jsonw_end_array(j);
}

static void item_shape(struct jsonw *j, const struct field *field)
{
	if (field->object != NULL)
		reference(j, field->object);
	else
		shape(j, field->value);
}

// Writes the schema keywords of one value, without the braces.
static void shape(struct jsonw *j, const struct field *field)
{
	bool is_map = field->type == FIELD_IS_MAP;
	describe(j, field);
	if (field->type == FIELD_IS_OBJECT) {
		maybe_null(j, field->object, field->null_if != NULL || (field->item != NULL && !field->known));
	} else if (is_map || field->type == FIELD_IS_LIST) {
		type_name(j, is_map ? "object" : "array", field->null_if == NULL);
		jsonw_key(j, is_map ? "additionalProperties" : "items");
		jsonw_begin_object(j);
		item_shape(j, field);
		jsonw_end_object(j);
	} else if (field->type != FIELD_IS_ANY) {
		type_name(j, json_type(field), always_known(field));
		choices(j, field);
	}
}

// Whether the field is a map whose items are merged into the fields.
static bool is_open(const struct field *field)
{
	return field->type == FIELD_IS_MAP && field->key == NULL;
}

static void property(struct jsonw *j, const char *key, const struct field *field)
{
	struct field described = *field;
	struct buf meaning;
	bool is_old = key == field->old_key;
	buf_init(&meaning, 1 << 12);
	buf_printf(&meaning, "deprecated, use %s", field->key);
	if (is_old) {
		described.meaning = meaning.data;
		described.unit = NULL;
	}
	jsonw_key(j, key);
	jsonw_begin_object(j);
	if (is_old)
		jsonw_key_bool(j, "deprecated", true);
	shape(j, &described);
	jsonw_end_object(j);
	buf_finish(&meaning);
}

static void properties(struct jsonw *j, const struct object_type *type)
{
	for (size_t i = 0; i < type->n_fields; i++) {
		const struct field *field = &type->fields[i];
		if (field->type == FIELD_IS_INLINE) {
			properties(j, field->object);
			continue;
		}
		if (is_open(field))
			continue;
		property(j, field->key, field);
		if (field->old_key != NULL)
			property(j, field->old_key, field);
	}
}

static void required(struct jsonw *j, const struct object_type *type)
{
	for (size_t i = 0; i < type->n_fields; i++) {
		const struct field *field = &type->fields[i];
		if (field->present != NULL || is_open(field))
			continue;
		if (field->type == FIELD_IS_INLINE)
			required(j, field->object);
		else
			jsonw_string(j, field->key);
	}
}

// Schema of keys without a field: those of a map merged into the fields.
static void other_keys(struct jsonw *j, const struct object_type *type)
{
	const struct field *open = NULL;
	for (size_t i = 0; i < type->n_fields; i++)
		if (is_open(&type->fields[i]))
			open = &type->fields[i];
	if (open == NULL) {
		jsonw_key_bool(j, "additionalProperties", false);
		return;
	}
	jsonw_key(j, "additionalProperties");
	jsonw_begin_object(j);
	item_shape(j, open);
	jsonw_end_object(j);
}

static void definition(struct jsonw *j, const struct object_type *type)
{
	jsonw_key(j, type->name);
	jsonw_begin_object(j);
	if (object_as_list(type) != NULL) {
		shape(j, object_as_list(type));
		jsonw_end_object(j);
		return;
	}
	jsonw_key_string(j, "description", type->meaning);
	jsonw_key_string(j, "type", "object");
	jsonw_key(j, "properties");
	jsonw_begin_object(j);
	properties(j, type);
	jsonw_end_object(j);
	jsonw_key(j, "required");
	jsonw_begin_array(j);
	required(j, type);
	jsonw_end_array(j);
	other_keys(j, type);
	jsonw_end_object(j);
}

void document_schema(struct buf *out, const char *name, const struct object_type *type)
{
	struct object_types types = {.n = 0};
	struct jsonw j;
	char id[64] = "https://wattle/schemas/";
	strncat(id, name, sizeof(id) - strlen(id) - 1);
	object_types_collect(&types, type);
	jsonw_init(&j, out, true);
	jsonw_begin_object(&j);
	jsonw_key_string(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	jsonw_key_string(&j, "$id", id);
	jsonw_key_string(&j, "title", type->meaning);
	reference(&j, type);
	jsonw_key(&j, "$defs");
	jsonw_begin_object(&j);
	for (size_t i = 0; i < types.n; i++)
		definition(&j, types.types[i]);
	jsonw_end_object(&j);
	jsonw_end_object(&j);
}
