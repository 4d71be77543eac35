/* Which program image this is: the same number for all threads and all copies of the writer, after a fork too; another one
 * after exec. */
#pragma once

#include <stdint.h>

uint32_t span_image(void);
