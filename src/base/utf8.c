#include "base/utf8.h"

#include "base/util.h"

size_t utf8_length(const char *bytes)
{
	const unsigned char *text = (const unsigned char *)bytes;
	static const struct {
		unsigned char mask, value;
		size_t length;
		unsigned min;
	} forms[] = {{0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};
	if (text[0] < 0x80)
		return 1;
	for (size_t f = 0; f < ARRAY_SIZE(forms); f++) {
		if ((text[0] & forms[f].mask) != forms[f].value)
			continue;
		unsigned code = text[0] & (unsigned char)~forms[f].mask;
		for (size_t i = 1; i < forms[f].length; i++) {
			if ((text[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (text[i] & 0x3fu);
		}
		bool surrogate = code >= 0xd800 && code <= 0xdfff;
		return code >= forms[f].min && code <= 0x10ffff && !surrogate ? forms[f].length : 0;
	}
	return 0;
}

uint32_t utf8_code(const char *bytes, size_t length)
{
	static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t code = (unsigned char)bytes[0] & masks[length];
	for (size_t i = 1; i < length; i++)
		code = code << 6 | ((unsigned char)bytes[i] & 0x3f);
	return code;
}

bool utf8_is_seen(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} unseen[] = {{0, ' '}, {0x7f, 0xa0}, {0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c}, {0x115f, 0x1160},
		{0x1680, 0x1680}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x2000, 0x200f}, {0x2028, 0x202f},
		{0x205f, 0x206f}, {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164}, {0xfe00, 0xfe0f},
		{0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
		{0xe0000, 0xe0fff}};
	for (size_t i = 0; i < ARRAY_SIZE(unseen) && code >= unseen[i].first; i++)
		if (code <= unseen[i].last)
			return false;
	return true;
}
