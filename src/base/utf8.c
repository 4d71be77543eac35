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

struct code_range {
	uint32_t first, last;
};

static bool is_in(const struct code_range *ranges, size_t n, uint32_t code)
{
	for (size_t i = 0; i < n && code >= ranges[i].first; i++)
		if (code <= ranges[i].last)
			return true;
	return false;
}

bool utf8_is_seen(uint32_t code)
{
	static const struct code_range unseen[] = {{0, ' '}, {0x7f, 0xa0}, {0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c},
		{0x115f, 0x1160}, {0x1680, 0x1680}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x2000, 0x200f},
		{0x2028, 0x202f}, {0x205f, 0x206f}, {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164},
		{0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3},
		{0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
	return !is_in(unseen, ARRAY_SIZE(unseen), code);
}

static size_t columns_of(uint32_t code)
{
	static const struct code_range none[] = {{0x300, 0x36f}, {0x483, 0x489}, {0x591, 0x5bd}, {0x610, 0x61a},
		{0x64b, 0x65f}, {0x1160, 0x11ff}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
		{0x202a, 0x202e}, {0x2060, 0x206f}, {0x20d0, 0x20ff}, {0x302a, 0x302d}, {0x3099, 0x309a},
		{0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0000, 0xe0fff}};
	static const struct code_range wide[] = {{0x1100, 0x115f}, {0x231a, 0x231b}, {0x23e9, 0x23ec}, {0x2e80, 0x303e},
		{0x3041, 0x4dbf}, {0x4e00, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff},
		{0xfe10, 0xfe19}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x18aff},
		{0x1b000, 0x1b2ff}, {0x1f18e, 0x1f19a}, {0x1f200, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7eb},
		{0x1f900, 0x1faff}, {0x20000, 0x3fffd}};
	return is_in(none, ARRAY_SIZE(none), code) ? 0 : is_in(wide, ARRAY_SIZE(wide), code) ? 2 : 1;
}

size_t utf8_character(const char *bytes, size_t *ret_columns)
{
	size_t length = utf8_length(bytes);
	*ret_columns = length > 0 ? columns_of(utf8_code(bytes, length)) : 1;
	return length > 0 ? length : 1;
}

size_t utf8_text_columns(const char *text, size_t size)
{
	size_t columns = 0, width;
	for (size_t i = 0; i < size; columns += width)
		i += utf8_character(text + i, &width);
	return columns;
}
