/* What NVTX calls things: domains, registered strings, categories and messages, as names of spans. Handles stay good after
 * nvtxDomainDestroy, and a domain that is created again by its name is the same one: programs that do so without end, and
 * threads that come late, harm nobody. */
#pragma once

#include "span/capture/nvtx_abi.h"
#include "span/capture/texts.h"
#include "span/ring.h"

#include <stdbool.h>

struct text *nvtx_domain_create(const char *name);
// NULL is the default domain. False: no handle of ours.
bool nvtx_domain_of(const void *handle, const struct text **ret_domain);
// A string is kept as the name that it gives, "domain/string".
const void *nvtx_string_register(const struct text *domain, const char *string);
void nvtx_category_name(const struct text *domain, uint32_t category, const char *name);

struct nvtx_name {
	const char *text;                   // the program's own, a kept one, or room
	char room[SPAN_NAME_BYTES_MAX + 1]; // not cleared: it is large, and rarely needed
};
void nvtx_name_ascii(struct nvtx_name *name, const struct text *domain, const char *message);
void nvtx_name_wide(struct nvtx_name *name, const struct text *domain, const wchar_t *message);
void nvtx_name_of(struct nvtx_name *name, const struct text *domain, const struct nvtx_attributes *attributes);

enum { NVTX_CATEGORY_TEXT = 12 };
// The category's name, or its number in room where it has none; NULL: no category.
const char *nvtx_category_of(const struct text *domain, uint32_t category, char room[NVTX_CATEGORY_TEXT]);
