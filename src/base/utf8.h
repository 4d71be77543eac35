/* UTF-8, for those who hand texts of other people's programs to readers that insist on it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" // U+FFFD, for each byte that belongs to no character

// Bytes of the character at `bytes`, which ends with a NUL; 0: there is no valid one.
size_t utf8_length(const char *bytes);

// The character of so many bytes that utf8_length has found, 1 to 4.
uint32_t utf8_code(const char *bytes, size_t length);

// Something of it is seen where it is written: it is no blank, no control character, and nothing that only tells how others are to be
// written (Unicode's Default_Ignorable_Code_Point).
bool utf8_is_seen(uint32_t code);
