/* UTF-8, for those who hand texts of other people's programs to readers that insist on it. */
#pragma once

#include <stddef.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" // U+FFFD, for each byte that belongs to no character

// Bytes of the character at `bytes`, which ends with a NUL; 0: there is no valid one.
size_t utf8_length(const char *bytes);
