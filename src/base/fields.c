#include "base/fields.h"

#include "base/util.h"

#include <math.h>

static const char *place(const struct field *field, const struct object_at *at)
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

// What lies in a struct; NULL: nothing.
static struct field_value stored(enum field_type type, const char *from)
{
	if (from == NULL)
		return (struct field_value){.type = type};
	if (type == FIELD_IS_NUMBER)
		return number_value(*(const double *)from);
	if (type == FIELD_IS_INTEGER)
		return integer_value(*(const int64_t *)from);
	if (type == FIELD_IS_COUNT)
		return integer_value((int64_t) * (const size_t *)from);
	if (type == FIELD_IS_BOOLEAN)
		return boolean_value(*(const bool *)from);
	if (type == FIELD_IS_CHARS)
		return text_value(*from != '\0' ? from : NULL);
	return text_value(*(const char *const *)from);
}

struct field_value field_value(const struct field *field, const struct object_at *at, struct buf *scratch)
{
	struct object_at asked = *at;
	asked.field = field;
	buf_clear(scratch);
	if (field->get.number == NULL)
		return stored(field->type, place(field, at));
	if (field->type == FIELD_IS_NUMBER)
		return number_value(field->get.number(&asked));
	if (field->type == FIELD_IS_INTEGER)
		return integer_value(field->get.integer(&asked));
	if (field->type == FIELD_IS_UNSIGNED)
		return unsigned_value(field->get.unsigned_number(&asked));
	if (field->type == FIELD_IS_BOOLEAN)
		return boolean_value(field->get.boolean(&asked));
	return text_value(field->get.text(&asked, scratch));
}

const void *field_object(const struct field *field, const struct object_at *at)
{
	return field->item != NULL ? field->item(at, 0) : place(field, at);
}

bool field_present(const struct field *field, const struct object_at *at)
{
	return field->present == NULL || field->present(at);
}
