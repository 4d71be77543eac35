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
