#include "base/fields.h"

#include "base/util.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

struct reader {
	const struct object_type *type; // type being read, for errors
	struct arena *arena;
	struct wattle_error *reterr;
};

static int refuse(const struct reader *r, const struct field *field, const char *wanted)
{
	return error_set(r->reterr, -EINVAL, "\"%s\" of %s is not %s", field->key != NULL ? field->key : "item",
		r->type->name, wanted);
}

static int out_of_memory(const struct reader *r)
{
	return error_set(r->reterr, -ENOMEM, "out of memory");
}

/* ---- plain values ---- */

static uint32_t names(const struct field *field)
{
	uint32_t n = 0;
	while (field->one_of != NULL && field->one_of[n] != NULL)
		n++;
	return n;
}

static void set_unknown(const struct field *field, char *to)
{
	if (field->type == FIELD_IS_NUMBER)
		*(double *)to = (double)NAN;
	else if (field->type == FIELD_IS_INTEGER)
		*(int64_t *)to = VALUE_MISSING;
	else if (field->type == FIELD_IS_COUNT)
		*(size_t *)to = 0;
	else if (field->type == FIELD_IS_UNSIGNED)
		*(uint64_t *)to = 0;
	else if (field->type == FIELD_IS_INT)
		*(int32_t *)to = 0;
	else if (field->type == FIELD_IS_UINT)
		*(uint32_t *)to = names(field);
	else if (field->type == FIELD_IS_BOOLEAN)
		*(bool *)to = false;
	else if (field->type == FIELD_IS_CHARS)
		*to = '\0';
	else
		*(const char **)to = NULL;
}

static int read_number(const struct reader *r, const struct field *field, const json_t *value, char *to)
{
	if (!json_is_number(value))
		return refuse(r, field, "a number");
	*(double *)to = json_number_value(value);
	return 0;
}

static int read_scaled(const struct reader *r, const struct field *field, const json_t *value, char *to)
{
	double number = json_number_value(value) / field->scale;
	if (!json_is_number(value) || !(fabs(number) < 9e18))
		return refuse(r, field, "a number in the range of a 64-bit integer");
	*(int64_t *)to = llround(number);
	return 0;
}

static int read_integer(const struct reader *r, const struct field *field, const json_t *value, char *to)
{
	int64_t integer = json_integer_value(value);
	bool has_sign = field->type == FIELD_IS_INTEGER, is_count = field->type == FIELD_IS_COUNT;
	if (!json_is_integer(value) || (!has_sign && integer < 0) || (is_count && (uint64_t)integer > SIZE_MAX))
		return refuse(r, field, has_sign ? "a whole number" : "a whole number of 0 or more");
	if (is_count)
		*(size_t *)to = (size_t)integer;
	else if (!has_sign)
		*(uint64_t *)to = (uint64_t)integer;
	else
		*(int64_t *)to = integer;
	return 0;
}

static int read_32_bits(const struct reader *r, const struct field *field, const json_t *value, char *to)
{
	int64_t integer = json_integer_value(value);
	bool has_sign = field->type == FIELD_IS_INT;
	if (!json_is_integer(value) || integer < (has_sign ? INT32_MIN : 0) ||
		integer > (has_sign ? INT32_MAX : UINT32_MAX))
		return refuse(r, field, "a whole number of 32 bits");
	if (has_sign)
		*(int32_t *)to = (int32_t)integer;
	else
		*(uint32_t *)to = (uint32_t)integer;
	return 0;
}

static int read_boolean(const struct reader *r, const struct field *field, const json_t *value, char *to)
{
	if (!json_is_boolean(value))
		return refuse(r, field, "true or false");
	*(bool *)to = json_is_true(value);
	return 0;
}

static int read_text(const struct reader *r, const struct field *field, const json_t *value, char *to)
{
	const char *text = json_string_value(value);
	if (text == NULL)
		return refuse(r, field, "a text");
	if (field->type == FIELD_IS_TEXT)
		return (*(const char **)to = arena_text(r->arena, text)) != NULL ? 0 : out_of_memory(r);
	if (strlen(text) >= field->size)
		return error_set(r->reterr, -EINVAL, "\"%s\" of %s is longer than %zu bytes", field->key, r->type->name,
			field->size - 1);
	memcpy(to, text, strlen(text) + 1);
	return 0;
}

// A name unknown to this version reads as unknown.
static int read_name(const struct reader *r, const struct field *field, const json_t *value, char *to)
{
	const char *text = json_string_value(value);
	uint32_t i = 0;
	if (text == NULL)
		return refuse(r, field, "a text");
	while (field->one_of[i] != NULL && strcmp(field->one_of[i], text) != 0)
		i++;
	*(uint32_t *)to = i;
	return 0;
}

static int read_plain(const struct reader *r, const struct field *field, const json_t *value, char *to)
{
	if (field->type == FIELD_IS_NUMBER)
		return read_number(r, field, value, to);
	if (field->type == FIELD_IS_INTEGER && field->scale != 0)
		return read_scaled(r, field, value, to);
	if (field->type == FIELD_IS_INTEGER || field->type == FIELD_IS_COUNT || field->type == FIELD_IS_UNSIGNED)
		return read_integer(r, field, value, to);
	if (field->type == FIELD_IS_UINT && field->one_of != NULL)
		return read_name(r, field, value, to);
	if (field->type == FIELD_IS_INT || field->type == FIELD_IS_UINT)
		return read_32_bits(r, field, value, to);
	if (field->type == FIELD_IS_BOOLEAN)
		return read_boolean(r, field, value, to);
	return read_text(r, field, value, to);
}

/* ---- objects and lists ---- */

static bool is_plain(const struct field *field)
{
	return field->type != FIELD_IS_OBJECT && field->type != FIELD_IS_INLINE && field->type != FIELD_IS_LIST &&
		field->type != FIELD_IS_MAP;
}

// Whether the value is stored in the struct, so that it can be read.
static bool is_inside_object(const struct field *field)
{
	if (field->by_pointer || field->item != NULL)
		return false;
	if (field->type == FIELD_IS_LIST)
		return field->item_size > 0;
	return field->type != FIELD_IS_MAP && field->get.number == NULL;
}

static void clear(const struct object_type *type, char *data)
{
	for (size_t i = 0; i < type->n_fields; i++) {
		const struct field *field = &type->fields[i];
		if (!is_inside_object(field))
			continue;
		if (field->type == FIELD_IS_LIST) {
			*(void **)(data + field->offset) = NULL;
			*(size_t *)(data + field->n_offset) = 0;
		} else if (is_plain(field)) {
			set_unknown(field, data + field->offset);
		} else {
			clear(field->object, data + field->offset);
		}
	}
}

static int read_object(struct reader *r, const json_t *object, const struct object_type *type, char *data);

static int read_list(struct reader *r, const struct field *field, const json_t *array, void **ret_items, size_t *ret_n);

static int read_item(struct reader *r, const struct field *list, const json_t *value, char *item)
{
	bool is_plain_value = list->object == NULL && list->value->type != FIELD_IS_LIST;
	if (is_plain_value && (value == NULL || json_is_null(value))) {
		set_unknown(list->value, item + list->value->offset);
		return 0;
	}
	if (list->object == NULL && list->value->type == FIELD_IS_LIST)
		return read_list(r, list->value, value, (void **)(item + list->value->offset),
			(size_t *)(item + list->value->n_offset));
	if (list->object == NULL)
		return read_plain(r, list->value, value, item + list->value->offset);
	if (!json_is_object(value))
		return refuse(r, list, "a list of objects");
	clear(list->object, item);
	return read_object(r, value, list->object, item);
}

static int read_list(struct reader *r, const struct field *field, const json_t *array, void **ret_items, size_t *ret_n)
{
	size_t n = json_array_size(array);
	int result = 0;
	if (!json_is_array(array))
		return refuse(r, field, "a list");
	char *items = n > 0 ? arena_alloc(r->arena, n, field->item_size) : NULL;
	if (n > 0 && items == NULL)
		return out_of_memory(r);
	*ret_items = items;
	for (*ret_n = 0; *ret_n < n && result == 0; ++*ret_n)
		result = read_item(r, field, json_array_get(array, *ret_n), items + *ret_n * field->item_size);
	return result;
}

static int read_field(struct reader *r, const struct field *field, const json_t *object, char *data)
{
	if (field->type == FIELD_IS_INLINE)
		return read_object(r, object, field->object, data + field->offset);
	const json_t *value = json_object_get(object, field->key);
	if (value == NULL && field->old_key != NULL)
		value = json_object_get(object, field->old_key);
	if (value == NULL || json_is_null(value))
		return 0;
	if (field->type == FIELD_IS_LIST)
		return read_list(r, field, value, (void **)(data + field->offset), (size_t *)(data + field->n_offset));
	if (is_plain(field))
		return read_plain(r, field, value, data + field->offset);
	return json_is_object(value) ? read_object(r, value, field->object, data + field->offset)
				     : refuse(r, field, "an object");
}

static int read_object(struct reader *r, const json_t *object, const struct object_type *type, char *data)
{
	const struct object_type *outer = r->type;
	int result = 0;
	r->type = type;
	for (size_t i = 0; i < type->n_fields && result == 0; i++)
		if (is_inside_object(&type->fields[i]))
			result = read_field(r, &type->fields[i], object, data);
	r->type = outer;
	return result;
}

int fields_read(const json_t *object, const struct object_type *type, void *data, struct arena *arena,
	struct wattle_error *reterr)
{
	struct reader r = {type, arena, reterr};
	clear(type, data);
	if (!json_is_object(object))
		return error_set(reterr, -EINVAL, "%s is not an object", type->name);
	return read_object(&r, object, type, data);
}
