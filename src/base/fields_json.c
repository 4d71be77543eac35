#include "base/fields.h"

enum { SCRATCH_CEILING = 1 << 22 };

struct writer {
	struct jsonw *j;
	struct buf scratch; // owned: texts from getters
};

static void object(struct writer *w, const struct object_at *at);

static void number(struct jsonw *j, double value, int digits)
{
	if (digits == FIELD_DIGITS_OF_INSTANT)
		digits = value < 1e4 ? 9 : 11;
	if (digits > 0)
		jsonw_rounded(j, value, digits);
	else
		jsonw_double(j, value);
}

static void plain(struct writer *w, const struct field *field, const struct object_at *at)
{
	struct field_value value = field_value(field, at, &w->scratch);
	if (!value.known)
		jsonw_null(w->j);
	else if (value.type == FIELD_IS_NUMBER)
		number(w->j, value.number, value.digits != 0 ? value.digits : field->digits);
	else if (value.type == FIELD_IS_INTEGER)
		jsonw_i64(w->j, value.integer);
	else if (value.type == FIELD_IS_UNSIGNED)
		jsonw_u64(w->j, value.unsigned_number);
	else if (value.type == FIELD_IS_BOOLEAN)
		jsonw_bool(w->j, value.boolean);
	else
		jsonw_string(w->j, value.text);
}

static void held(struct writer *w, const struct object_type *type, const void *data, const struct object_at *outer,
	size_t index)
{
	if (data == NULL)
		jsonw_null(w->j);
	else
		object(w, &(struct object_at){type, data, outer, index, NULL});
}

static void items(struct writer *w, const struct field *field, const struct object_at *at);

static void item(struct writer *w, const struct field *field, const struct object_at *at, size_t i)
{
	// A plain value is evaluated as a field of the same data with the index of the item, or as a field of an array item.
	const struct object_at each = {at->type, field->item_size > 0 ? field_item(field, at, i) : at->data, at, i,
		NULL};
	if (field->object != NULL)
		held(w, field->object, field_item(field, at, i), at, i);
	else if (field->value->type == FIELD_IS_LIST || field->value->type == FIELD_IS_MAP)
		items(w, field->value, &each);
	else
		plain(w, field->value, &each);
}

// Writes the content between the braces or brackets.
static void inner_items(struct writer *w, const struct field *field, const struct object_at *around)
{
	struct object_at asked = *around;
	asked.field = field;
	size_t n = field_count(field, &asked);
	for (size_t i = 0; i < n; i++) {
		if (field->type == FIELD_IS_MAP)
			jsonw_key(w->j, field->name(&asked, i));
		item(w, field, &asked, i);
	}
}

static void items(struct writer *w, const struct field *field, const struct object_at *at)
{
	bool is_map = field->type == FIELD_IS_MAP, pretty = w->j->pretty;
	if (field_is_null(field, at)) {
		jsonw_null(w->j);
		return;
	}
	if (is_map)
		jsonw_begin_object(w->j);
	else
		jsonw_begin_array(w->j);
	w->j->pretty = pretty && !field->one_line;
	inner_items(w, field, at);
	if (is_map)
		jsonw_end_object(w->j);
	else
		jsonw_end_array(w->j);
	w->j->pretty = pretty;
}

static void member(struct writer *w, const char *key, const struct field *field, const struct object_at *at)
{
	jsonw_key(w->j, key);
	if (field->type == FIELD_IS_OBJECT)
		held(w, field->object, field_object(field, at), at, 0);
	else if (field->type == FIELD_IS_LIST || field->type == FIELD_IS_MAP)
		items(w, field, at);
	else
		plain(w, field, at);
}

static void fields(struct writer *w, const struct object_at *at)
{
	for (size_t i = 0; i < at->type->n_fields; i++) {
		const struct field *field = &at->type->fields[i];
		if (!field_present(field, at))
			continue;
		if (field->type == FIELD_IS_INLINE) {
			fields(w, &(struct object_at){field->object, field_object(field, at),
					 field->by_pointer ? at : at->outer, at->index, NULL});
			continue;
		}
		if (field->type == FIELD_IS_MAP && field->key == NULL) {
			inner_items(w, field, at);
			continue;
		}
		member(w, field->key, field, at);
		if (field->old_key != NULL)
			member(w, field->old_key, field, at);
	}
}

static void object(struct writer *w, const struct object_at *at)
{
	const struct field *list = object_as_list(at->type);
	if (list != NULL) {
		items(w, list, at);
		return;
	}
	jsonw_begin_object(w->j);
	fields(w, at);
	jsonw_end_object(w->j);
}

void object_json(struct jsonw *j, const struct object_type *type, const void *data, const struct object_at *outer)
{
	struct writer w = {.j = j};
	buf_init(&w.scratch, SCRATCH_CEILING);
	held(&w, type, data, outer, 0);
	if (w.scratch.failed != 0)
		j->out->failed = j->out->failed != 0 ? j->out->failed : w.scratch.failed;
	buf_finish(&w.scratch);
}

void document_json(struct buf *out, const struct object_type *type, const void *data, bool pretty)
{
	struct jsonw j;
	jsonw_init(&j, out, pretty);
	object_json(&j, type, data, NULL);
}
