#include "span/ring.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int ring_address_format(const struct ring_address *address, char *out, size_t size)
{
	int n = snprintf(out, size, "%d:%" PRIu32 ":%" PRIu32 ":%016" PRIx64 ":@%s", RING_VERSION, address->flags,
		address->n_records, address->token, address->name);
	return n >= 0 && (size_t)n < size ? 0 : -ERANGE;
}

/* Parses the digits before a colon. The standard functions for numbers may use the locale, which a signal handler must
 * not. NULL: no number, too large, or no colon after it. */
static const char *field(const char *text, unsigned base, uint64_t most, uint64_t *ret)
{
	uint64_t value = 0;
	const char *at = text;
	for (; *at != ':'; at++) {
		unsigned digit = *at >= '0' && *at <= '9' ? (unsigned)(*at - '0')
			: *at >= 'a' && *at <= 'f'        ? (unsigned)(*at - 'a') + 10
							  : base;
		if (digit >= base || value > (most - digit) / base)
			return NULL;
		value = value * base + digit;
	}
	*ret = value;
	return at > text ? at + 1 : NULL;
}

static bool is_power_of_two(uint64_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

int ring_address_parse(const char *text, struct ring_address *ret_address)
{
	uint64_t version, flags, n_records, token;
	if ((text = field(text, 10, UINT32_MAX, &version)) == NULL || version != RING_VERSION)
		return -EINVAL;
	if ((text = field(text, 10, UINT32_MAX, &flags)) == NULL)
		return -EINVAL;
	if ((text = field(text, 10, RING_RECORDS_MAX, &n_records)) == NULL)
		return -EINVAL;
	if (n_records < RING_RECORDS_MIN || !is_power_of_two(n_records))
		return -EINVAL;
	if ((text = field(text, 16, UINT64_MAX, &token)) == NULL)
		return -EINVAL;
	size_t length = *text == '@' ? strlen(text + 1) : 0;
	if (length == 0 || length >= sizeof(ret_address->name))
		return -EINVAL;
	*ret_address = (struct ring_address){.flags = (uint32_t)flags,
		.n_records = (uint32_t)n_records,
		.token = token};
	memcpy(ret_address->name, text + 1, length);
	return 0;
}
