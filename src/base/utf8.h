/* UTF-8 validation, for passing texts of other programs to readers that require it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" // U+FFFD, replaces each invalid byte

// Number of bytes of the character at `bytes`, which is NUL-terminated; 0: not valid.
size_t utf8_length(const char *bytes);

// Code point of a character whose length (1 to 4) utf8_length returned.
uint32_t utf8_code(const char *bytes, size_t length);

// Whether the character is visible: not a blank, not a control character, and not one that only affects the rendering of
// others (Unicode's Default_Ignorable_Code_Point).
bool utf8_is_seen(uint32_t code);

// Length of the character at `bytes`, at least 1, and the columns of a terminal that it takes: 0 (combining, invisible), 1, or 2
// (East Asian wide characters, emoji). An invalid byte is shown as one character.
size_t utf8_character(const char *bytes, size_t *ret_columns);
size_t utf8_text_columns(const char *text, size_t size);
