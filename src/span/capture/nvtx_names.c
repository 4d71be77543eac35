#include "span/capture/capture.h"

#include <stdatomic.h>
#include <string.h>

enum kind { DOMAIN, STRING, CATEGORY };
enum { CATEGORIES_MAX = 4096, CATEGORY_PROBES = 32 };

struct category {
	_Atomic uint64_t key; // domain and number; 0: free
	_Atomic(struct text *) name;
};

static struct text_table texts;
static struct category categories[CATEGORIES_MAX];

static const char no_message[] = "(no message)";

struct text *nvtx_domain_create(const char *name)
{
	return string_table_add(&texts, DOMAIN, name != NULL ? name : "", NULL);
}

bool nvtx_domain_of(const void *handle, const struct text **ret_domain)
{
	*ret_domain = handle != NULL ? string_table_find(&texts, DOMAIN, handle) : NULL;
	return handle == NULL || *ret_domain != NULL;
}

static const char *or_none(const char *message)
{
	return message != NULL && message[0] != '\0' ? message : no_message;
}

void nvtx_name_ascii(struct nvtx_name *name, const struct text *domain, const char *message)
{
	name->text = or_none(message);
	if (domain == NULL || domain->length == 0)
		return;
	text_join(name->buffer, domain->bytes, domain->length, name->text);
	name->text = name->buffer;
}

void nvtx_name_wide(struct nvtx_name *name, const struct text *domain, const wchar_t *message)
{
	char utf8[SPAN_NAME_BYTES_MAX + 1];
	text_from_wide(utf8, message != NULL ? message : L"");
	text_join(name->buffer, domain != NULL ? domain->bytes : "", domain != NULL ? domain->length : 0,
		or_none(utf8));
	name->text = name->buffer;
}

const void *nvtx_string_register(const struct text *domain, const char *string)
{
	struct nvtx_name name;
	nvtx_name_ascii(&name, domain, string);
	return string_table_add(&texts, STRING, name.text, NULL);
}

void nvtx_name_of(struct nvtx_name *name, const struct text *domain, const struct nvtx_attributes *attributes)
{
	const struct text *text;
	switch ((enum nvtx_message)attributes->message_type) {
	case NVTX_MESSAGE_ASCII:
		nvtx_name_ascii(name, domain, attributes->message.ascii);
		return;
	case NVTX_MESSAGE_WIDE:
		nvtx_name_wide(name, domain, attributes->message.wide);
		return;
	case NVTX_MESSAGE_REGISTERED:
		text = string_table_find(&texts, STRING, attributes->message.registered);
		if (text == NULL)
			break;
		name->text = text->bytes;
		return;
	case NVTX_MESSAGE_NONE:
		break;
	}
	nvtx_name_ascii(name, domain, NULL);
}

static uint64_t category_key(const struct text *domain, uint32_t category)
{
	return ((uint64_t)(domain != NULL ? domain->number + 1 : 1) << 32) | category;
}

// The slot of a key; claim: takes a free one if the key has none. NULL: none.
static struct category *category_slot(uint64_t key, bool claim)
{
	uint64_t hash = key * 0x9e3779b97f4a7c15u >> 32;
	for (uint64_t i = 0; i < CATEGORY_PROBES; i++) {
		struct category *slot = &categories[(hash + i) % CATEGORIES_MAX];
		uint64_t there = atomic_load_explicit(&slot->key, memory_order_acquire);
		if (there == 0 && claim &&
			atomic_compare_exchange_strong_explicit(&slot->key, &there, key, memory_order_acq_rel,
				memory_order_acquire))
			return slot;
		if (there == key)
			return slot;
		if (there == 0)
			return NULL;
	}
	return NULL;
}

void nvtx_category_name(const struct text *domain, uint32_t category, const char *name)
{
	struct category *slot = category != 0 && name != NULL ? category_slot(category_key(domain, category), true)
							      : NULL;
	if (slot != NULL)
		atomic_store_explicit(&slot->name, string_table_add(&texts, CATEGORY, name, NULL),
			memory_order_release);
}

static const char *decimal(uint32_t number, char buffer[NVTX_CATEGORY_TEXT])
{
	char *at = buffer + NVTX_CATEGORY_TEXT - 1;
	*at = '\0';
	do
		*--at = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	return at;
}

const char *nvtx_category_of(const struct text *domain, uint32_t category, char buffer[NVTX_CATEGORY_TEXT])
{
	if (category == 0)
		return NULL;
	struct category *slot = category_slot(category_key(domain, category), false);
	const struct text *name = slot != NULL ? atomic_load_explicit(&slot->name, memory_order_acquire) : NULL;
	return name != NULL ? name->bytes : decimal(category, buffer);
}
