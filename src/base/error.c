#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct wattle_error *reterr, int code, const char *format, ...)
{
	if (reterr == NULL)
		return code;
	reterr->code = code;
	va_list args;
	va_start(args, format);
	vsnprintf(reterr->text, sizeof(reterr->text), format, args);
	va_end(args);
	return code;
}
