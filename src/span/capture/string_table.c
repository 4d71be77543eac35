#include "span/capture/capture.h"

#include "base/fnv.h"

#include <stdbool.h>
#include <string.h>

enum { TEXT_MAGIC = 0x58544157 }; // "WATX"

static bool is_text(const struct text *text, uint32_t kind, uint32_t hash, const char *bytes, size_t length)
{
	return text->hash == hash && text->kind == kind && text->length == length &&
		memcmp(text->bytes, bytes, length) == 0;
}

// NULL: full. Memory of a text that lost a race is not reused: races for one name are rare.
static struct text *make(struct text_table *table, uint32_t kind, uint32_t hash, const char *bytes, size_t length,
	size_t reserve)
{
	size_t size = (offsetof(struct text, bytes) + length + 1 + 15) & ~(size_t)15;
	size_t at = atomic_load_explicit(&table->n_bytes, memory_order_relaxed);
	do {
		if (at + size > TEXT_ARENA_BYTES - reserve)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&table->n_bytes, &at, at + size, memory_order_relaxed,
		memory_order_relaxed));
	struct text *text = (struct text *)(void *)(table->arena + at);
	*text = (struct text){.magic = TEXT_MAGIC, .kind = kind, .hash = hash, .length = length};
	memcpy(text->bytes, bytes, length); // the arena is zero-initialised, so the text ends in NUL
	return text;
}

// NULL: full, with `reserve_texts` and `reserve_bytes` kept in reserve.
static struct text *find_or_add(struct text_table *table, uint32_t kind, const char *bytes, size_t length,
	void (*prepare)(struct text *text), uint32_t reserve_texts, size_t reserve_bytes)
{
	uint32_t hash = fnv_u32(FNV_START_U32 ^ kind, bytes, length);
	struct text *made = NULL;
	for (uint32_t i = 0, at = hash % TEXT_SLOTS; i < TEXT_SLOTS; i++, at = (at + 1) % TEXT_SLOTS) {
		struct text *text = atomic_load_explicit(&table->slots[at], memory_order_acquire);
		if (text == NULL) {
			if (made == NULL &&
				atomic_load_explicit(&table->n, memory_order_relaxed) + reserve_texts >= TEXTS_MAX)
				return NULL;
			if (made == NULL && (made = make(table, kind, hash, bytes, length, reserve_bytes)) == NULL)
				return NULL;
			made->number = atomic_fetch_add_explicit(&table->n, 1, memory_order_relaxed) + 1;
			if (prepare != NULL)
				prepare(made);
			if (atomic_compare_exchange_strong_explicit(&table->slots[at], &text, made,
				    memory_order_acq_rel, memory_order_acquire))
				return made;
		}
		if (is_text(text, kind, hash, bytes, length))
			return text;
	}
	return NULL;
}

// noinline: gcc -O3 would see the buffer of text_from_wide in it, and miss that the text ends there.
__attribute__((noinline)) struct text *string_table_add(struct text_table *table, uint32_t kind, const char *bytes,
	void (*prepare)(struct text *text))
{
	// The last texts are reserved for TEXTS_TOO_MANY: one per kind, and some for lost races.
	static const char too_many[] = TEXTS_TOO_MANY;
	size_t length = strnlen(bytes, TEXT_BYTES_MAX);
	struct text *text = find_or_add(table, kind, bytes, length, prepare, 4 * TEXT_KINDS_MAX,
		(sizeof(struct text) + sizeof(too_many) + 16) * 4 * TEXT_KINDS_MAX);
	if (text == NULL)
		text = find_or_add(table, kind, too_many, sizeof(too_many) - 1, prepare, 0, 0);
	return text;
}

struct text *string_table_find(struct text_table *table, uint32_t kind, const void *handle)
{
	uintptr_t first = (uintptr_t)table->arena, at = (uintptr_t)handle;
	if (at < first || at - first > TEXT_ARENA_BYTES - sizeof(struct text) || at % 16 != 0)
		return NULL;
	struct text *text = (struct text *)(void *)(table->arena + (at - first));
	return text->magic == TEXT_MAGIC && text->kind == kind ? text : NULL;
}

void text_join(char buffer[SPAN_NAME_BYTES_MAX + 1], const char *domain, size_t domain_length, const char *message)
{
	size_t at = domain_length < SPAN_NAME_BYTES_MAX ? domain_length : SPAN_NAME_BYTES_MAX;
	memcpy(buffer, domain, at);
	if (at > 0 && at < SPAN_NAME_BYTES_MAX)
		buffer[at++] = '/';
	size_t length = strnlen(message, SPAN_NAME_BYTES_MAX - at);
	memcpy(buffer + at, message, length);
	buffer[at + length] = '\0';
}

static size_t put_utf8(char out[4], uint32_t c)
{
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 0x3f));
	out[0] = (char)(c | (0xf00u >> n)); // 110…, 1110…, 11110…: the lead byte begins with n ones
	return n;
}

void text_from_wide(char buffer[SPAN_NAME_BYTES_MAX + 1], const wchar_t *wide)
{
	size_t at = 0;
	char c[4];
	for (; *wide != L'\0'; wide++) {
		size_t n = put_utf8(c, (uint32_t)*wide);
		if (at + n > SPAN_NAME_BYTES_MAX)
			break;
		memcpy(buffer + at, c, n);
		at += n;
	}
	buffer[at] = '\0';
}
