#include "base/fields.h"

#include "base/util.h"

#include <math.h>

static const char *address_of(const struct field *field, const struct object_at *at)
{
	const char *data = at->data;
	if (field->by_pointer)
		data = *(const char *const *)(data + field->pointer);
	return data != NULL ? data + field->offset : NULL;
}

static struct field_value text_value(const char *text)
{
	return (struct field_value){.type = FIELD_IS_TEXT, .known = text != NULL, .text = text};
}

static struct field_value integer_value(int64_t integer)
{
	return (struct field_value){.type = FIELD_IS_INTEGER, .known = integer != INT64_MIN, .integer = integer};
}

static struct field_value unsigned_value(uint64_t value)
{
	return (struct field_value){.type = FIELD_IS_UNSIGNED, .known = true, .unsigned_number = value};
}

static struct field_value number_value(double number)
{
	return (struct field_value){.type = FIELD_IS_NUMBER, .known = isfinite(number), .number = number};
}

static struct field_value boolean_value(bool boolean)
{
	return (struct field_value){.type = FIELD_IS_BOOLEAN, .known = true, .boolean = boolean};
}

static struct field_value enum_value(const char *const *names, uint32_t value)
{
	for (uint32_t i = 0; i < value && *names != NULL; i++)
		names++;
	return text_value(*names);
}

static struct field_value scaled(const struct field *field, struct field_value value)
{
	if (field->scale == 0 || value.type != FIELD_IS_INTEGER)
		return value;
	return number_value(value.known ? (double)value.integer * field->scale : (double)NAN);
}

// Value of a struct member; NULL: none.
static struct field_value stored(const struct field *field, const char *from)
{
	if (from == NULL)
		return (struct field_value){.type = field_value_type(field)};
	if (field->type == FIELD_IS_NUMBER)
		return number_value(*(const double *)from);
	if (field->type == FIELD_IS_INTEGER)
		return integer_value(*(const int64_t *)from);
	if (field->type == FIELD_IS_COUNT)
		return unsigned_value(*(const size_t *)from);
	if (field->type == FIELD_IS_UNSIGNED)
		return unsigned_value(*(const uint64_t *)from);
	if (field->type == FIELD_IS_INT)
		return integer_value(*(const int32_t *)from);
	if (field->type == FIELD_IS_UINT && field->one_of != NULL)
		return enum_value(field->one_of, *(const uint32_t *)from);
	if (field->type == FIELD_IS_UINT)
		return integer_value(*(const uint32_t *)from);
	if (field->type == FIELD_IS_BOOLEAN)
		return boolean_value(*(const bool *)from);
	if (field->type == FIELD_IS_CHARS)
		return text_value(*from != '\0' || field->known ? from : NULL);
	return text_value(*(const char *const *)from);
}

enum field_type field_value_type(const struct field *field)
{
	switch (field->type) {
	case FIELD_IS_COUNT:
		return FIELD_IS_UNSIGNED;
	case FIELD_IS_INTEGER:
	case FIELD_IS_INT:
	case FIELD_IS_UINT:
		return field->scale != 0 ? FIELD_IS_NUMBER : field->one_of != NULL ? FIELD_IS_TEXT : FIELD_IS_INTEGER;
	case FIELD_IS_CHARS:
		return FIELD_IS_TEXT;
	case FIELD_IS_NUMBER:
	case FIELD_IS_UNSIGNED:
	case FIELD_IS_BOOLEAN:
	case FIELD_IS_TEXT:
	case FIELD_IS_ANY:
	case FIELD_IS_OBJECT:
	case FIELD_IS_INLINE:
	case FIELD_IS_LIST:
	case FIELD_IS_MAP:
		break;
	}
	return field->type;
}

bool field_is_null(const struct field *field, const struct object_at *at)
{
	if (field->null_if == NULL)
		return false;
	struct object_at asked = *at;
	asked.field = field;
	return field->null_if(&asked);
}

struct field_value field_value(const struct field *field, const struct object_at *at, struct buf *scratch)
{
	buf_clear(scratch);
	if (field_is_null(field, at))
		return (struct field_value){.type = field_value_type(field)};
	if (field->get.number == NULL)
		return scaled(field, stored(field, address_of(field, at)));
	struct object_at asked = *at;
	asked.field = field;
	if (field->type == FIELD_IS_NUMBER)
		return number_value(field->get.number(&asked));
	if (field->type == FIELD_IS_INTEGER)
		return integer_value(field->get.integer(&asked));
	if (field->type == FIELD_IS_UNSIGNED)
		return unsigned_value(field->get.unsigned_number(&asked));
	if (field->type == FIELD_IS_BOOLEAN)
		return boolean_value(field->get.boolean(&asked));
	if (field->type == FIELD_IS_ANY)
		return field->get.any(&asked);
	return text_value(field->get.text(&asked, scratch));
}

const void *field_object(const struct field *field, const struct object_at *at)
{
	struct object_at asked = *at;
	asked.field = field;
	if (field_is_null(field, at))
		return NULL;
	return field->item != NULL ? field->item(&asked, 0) : address_of(field, at);
}

size_t field_count(const struct field *field, const struct object_at *at)
{
	struct object_at asked = *at;
	asked.field = field;
	return field->item_size == 0 ? field->count(&asked)
				     : *(const size_t *)((const char *)at->data + field->n_offset);
}

const void *field_item(const struct field *field, const struct object_at *at, size_t i)
{
	struct object_at asked = *at;
	asked.field = field;
	if (field->item_size == 0)
		return field->item(&asked, i);
	return *(const char *const *)((const char *)at->data + field->offset) + i * field->item_size;
}

const char *field_argument(const struct object_at *at, struct buf *scratch)
{
	return at->field->argument;
}

const struct field number_item = {.type = FIELD_IS_NUMBER, .meaning = "one of them"};
const struct field text_item = {.type = FIELD_IS_TEXT, .meaning = "one of them"};

bool field_present(const struct field *field, const struct object_at *at)
{
	if (field->present == NULL)
		return true;
	struct object_at asked = *at;
	asked.field = field;
	return field->present(&asked);
}

const struct field *object_as_list(const struct object_type *type)
{
	return type->n_fields == 1 && type->fields[0].type == FIELD_IS_LIST && type->fields[0].key == NULL
		? &type->fields[0]
		: NULL;
}
