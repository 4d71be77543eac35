#include "cli/sensors.h"

#include "base/util.h"

#include <ctype.h>
#include <string.h>

void anonymizer_init(struct anonymizer *anonymizer, const char *host)
{
	*anonymizer = (struct anonymizer){0};
	text_copy(anonymizer->host, sizeof(anonymizer->host), host);
}

void anonymizer_finish(struct anonymizer *anonymizer)
{
	for (size_t i = 0; i < anonymizer->n; i++)
		free(anonymizer->all[i].original);
	free(anonymizer->all);
	*anonymizer = (struct anonymizer){0};
}

/* ---- recognition ---- */

// Length of a UUID at the start of the text, "8-4-4-4-12" hexadecimal digits; 0: none.
static size_t uuid_length(const char *text, size_t size)
{
	static const size_t groups[] = {8, 4, 4, 4, 12};
	size_t at = 0;
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		if (g > 0 && (at >= size || text[at++] != '-'))
			return 0;
		for (size_t i = 0; i < groups[g]; i++, at++)
			if (at >= size || !isxdigit((unsigned char)text[at]))
				return 0;
	}
	return at < size && isxdigit((unsigned char)text[at]) ? 0 : at;
}

// Length of a MAC address at the start of the text: six or more pairs of hexadecimal digits with colons (InfiniBand's are
// longer); 0: none.
static size_t mac_length(const char *text, size_t size)
{
	size_t pairs = 0, at = 0;
	for (;;) {
		bool pair = at + 2 <= size && isxdigit((unsigned char)text[at]) &&
			isxdigit((unsigned char)text[at + 1]);
		if (!pair)
			break;
		pairs++;
		at += 2;
		if (at + 3 > size || text[at] != ':' || !isxdigit((unsigned char)text[at + 1]))
			break;
		at++;
	}
	return pairs >= 6 ? at : 0;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static size_t host_length(const struct anonymizer *anonymizer, const char *text, size_t size)
{
	size_t length = strlen(anonymizer->host);
	if (length < 2 || length > size || memcmp(text, anonymizer->host, length) != 0)
		return 0;
	return length < size && is_word(text[length]) ? 0 : length;
}

bool anonymize_has_mac(const char *text)
{
	for (; *text != '\0'; text++)
		if (mac_length(text, strlen(text)) > 0)
			return true;
	return false;
}

/* ---- replacement ---- */

static unsigned number_of(struct anonymizer *anonymizer, enum anonymize_kind kind, const char *word, size_t length)
{
	unsigned number = 1;
	for (size_t i = 0; i < anonymizer->n; i++) {
		const struct pseudonym *known = &anonymizer->all[i];
		if (known->kind != kind)
			continue;
		if (strlen(known->original) == length && memcmp(known->original, word, length) == 0)
			return known->number;
		number++;
	}
	struct pseudonym *larger = array_reserve(anonymizer->all, anonymizer->n, &anonymizer->capacity, sizeof(*larger),
		16);
	if (larger == NULL)
		return 0; // out of memory: all further words share one number, which reveals nothing
	anonymizer->all = larger;
	char *original = strndup(word, length);
	if (original == NULL)
		return 0;
	anonymizer->all[anonymizer->n++] = (struct pseudonym){kind, number, original};
	return number;
}

void anonymize_put(struct anonymizer *anonymizer, enum anonymize_kind kind, const char *word, size_t length,
	struct buf *out)
{
	unsigned number = number_of(anonymizer, kind, word, length);
	switch (kind) {
	case PSEUDONYM_HOST:
		buf_str(out, "host");
		break;
	case PSEUDONYM_UUID:
		buf_printf(out, "00000000-0000-4000-8000-%012u", number);
		break;
	case PSEUDONYM_MAC: // a locally administered address
		buf_printf(out, "02:00:00:00:%02x:%02x", number >> 8 & 0xff, number & 0xff);
		break;
	case PSEUDONYM_SERIAL:
		buf_printf(out, "%0*u", (int)(length < 64 ? length : 64), number);
		break;
	case PSEUDONYM_KINDS:
		break;
	}
}

void anonymize_scrub(struct anonymizer *anonymizer, const char *text, size_t size, bool with_host, struct buf *out)
{
	bool at_start = true; // the previous byte is not part of a word
	for (size_t at = 0; at < size;) {
		size_t left = size - at, length = 0;
		enum anonymize_kind kind = PSEUDONYM_KINDS;
		// "GPU-" may precede a UUID, so a dash is a valid boundary.
		bool after_hex = at > 0 && isxdigit((unsigned char)text[at - 1]);
		if (!after_hex && (length = uuid_length(text + at, left)) > 0)
			kind = PSEUDONYM_UUID;
		else if (at_start && (length = mac_length(text + at, left)) > 0)
			kind = PSEUDONYM_MAC;
		else if (at_start && with_host && (length = host_length(anonymizer, text + at, left)) > 0)
			kind = PSEUDONYM_HOST;
		if (length > 0) {
			anonymize_put(anonymizer, kind, text + at, length, out);
			at += length;
			at_start = false;
			continue;
		}
		at_start = !is_word(text[at]);
		buf_char(out, text[at++]);
	}
}
