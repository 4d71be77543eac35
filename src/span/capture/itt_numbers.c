/* Converts metadata and counters to metrics. */
#include "span/capture/itt.h"

#include "span/writer/writer.h"

#include <string.h>

union number {
	uint64_t u64;
	int64_t s64;
	uint32_t u32;
	int32_t s32;
	uint16_t u16;
	int16_t s16;
	float f32;
	double f64;
};

static bool number_of(int type, const void *data, double *ret_value)
{
	static const size_t sizes[] = {0, 8, 8, 4, 4, 2, 2, 4, 8};
	union number number;
	if (data == NULL || type <= ITT_UNKNOWN || type > ITT_DOUBLE)
		return false;
	memcpy(&number, data, sizes[type]); // may be unaligned
	switch ((enum itt_metadata)type) {
	case ITT_UNKNOWN:
		return false;
	case ITT_U64:
		*ret_value = (double)number.u64;
		return true;
	case ITT_S64:
		*ret_value = (double)number.s64;
		return true;
	case ITT_U32:
		*ret_value = number.u32;
		return true;
	case ITT_S32:
		*ret_value = number.s32;
		return true;
	case ITT_U16:
		*ret_value = number.u16;
		return true;
	case ITT_S16:
		*ret_value = number.s16;
		return true;
	case ITT_FLOAT:
		*ret_value = (double)number.f32;
		return true;
	case ITT_DOUBLE:
		*ret_value = number.f64;
		return true;
	}
	return false;
}

static void record_value(const char *name, double value)
{
	if (itt_is_recording())
		span_metric(name, value);
}

static void metadata_add(const struct itt_domain *domain, struct itt_id id, const struct itt_string *key, int type,
	size_t n, const void *data)
{
	double value;
	if (n == 1 && number_of(type, data, &value)) // several values are not a metric
		record_value(itt_or_unnamed(key != NULL ? key->text : NULL), value);
}

static void metadata_add_with_scope(const struct itt_domain *domain, int scope, const struct itt_string *key, int type,
	size_t n, const void *data)
{
	metadata_add(domain, (struct itt_id){0}, key, type, n, data);
}

static void *counter_create_typed(const char *name, const char *domain, int type)
{
	struct itt_name joined;
	itt_name_of(&joined, &(struct itt_domain){.name = domain}, &(struct itt_string){.text = name});
	struct text *counter = string_table_add(&itt_texts, ITT_COUNTER, joined.text, NULL);
	atomic_store_explicit((_Atomic int *)(void *)counter->buffer, type, memory_order_relaxed);
	return counter;
}

static void *counter_create(const char *name, const char *domain)
{
	return counter_create_typed(name, domain, ITT_U64);
}

// An increment is work done: records the increment, so that the sum within a span belongs to that span.
static void counter_add(const void *handle, double change)
{
	const struct text *counter = string_table_find(&itt_texts, ITT_COUNTER, handle);
	if (counter != NULL)
		record_value(counter->bytes, change);
}

static void counter_inc(const void *counter)
{
	counter_add(counter, 1);
}

static void counter_inc_delta(const void *counter, unsigned long long delta)
{
	counter_add(counter, (double)delta);
}

static void counter_dec(const void *counter)
{
	counter_add(counter, -1);
}

static void counter_dec_delta(const void *counter, unsigned long long delta)
{
	counter_add(counter, -(double)delta);
}

static void counter_set(void *handle, const void *data)
{
	struct text *counter = string_table_find(&itt_texts, ITT_COUNTER, handle);
	double value;
	if (counter == NULL)
		return;
	int type = atomic_load_explicit((_Atomic int *)(void *)counter->buffer, memory_order_relaxed);
	if (number_of(type, data, &value))
		record_value(counter->bytes, value);
}

static void counter_set_ex(void *counter, void *clock, unsigned long long timestamp, const void *data)
{
	counter_set(counter, data);
}

static void counter_add_v3(const struct itt_domain *domain, const struct itt_string *string, double change)
{
	struct itt_name name;
	record_value(itt_name_of(&name, domain, string), change);
}

static void counter_inc_v3(const struct itt_domain *domain, const struct itt_string *name)
{
	counter_add_v3(domain, name, 1);
}

static void counter_inc_delta_v3(const struct itt_domain *domain, const struct itt_string *name,
	unsigned long long delta)
{
	counter_add_v3(domain, name, (double)delta);
}

static void counter_dec_v3(const struct itt_domain *domain, const struct itt_string *name)
{
	counter_add_v3(domain, name, -1);
}

static void counter_dec_delta_v3(const struct itt_domain *domain, const struct itt_string *name,
	unsigned long long delta)
{
	counter_add_v3(domain, name, -(double)delta);
}

const struct itt_call itt_number_calls[] = {
	{"__itt_metadata_add", ITT_CALL(metadata_add)},
	{"__itt_metadata_add_with_scope", ITT_CALL(metadata_add_with_scope)},
	{"__itt_counter_create", ITT_CALL(counter_create)},
	{"__itt_counter_create_typed", ITT_CALL(counter_create_typed)},
	{"__itt_counter_inc", ITT_CALL(counter_inc)},
	{"__itt_counter_inc_delta", ITT_CALL(counter_inc_delta)},
	{"__itt_counter_dec", ITT_CALL(counter_dec)},
	{"__itt_counter_dec_delta", ITT_CALL(counter_dec_delta)},
	{"__itt_counter_set_value", ITT_CALL(counter_set)},
	{"__itt_counter_set_value_ex", ITT_CALL(counter_set_ex)},
	{"__itt_counter_inc_v3", ITT_CALL(counter_inc_v3)},
	{"__itt_counter_inc_delta_v3", ITT_CALL(counter_inc_delta_v3)},
	{"__itt_counter_dec_v3", ITT_CALL(counter_dec_v3)},
	{"__itt_counter_dec_delta_v3", ITT_CALL(counter_dec_delta_v3)},
	{NULL, NULL},
};
