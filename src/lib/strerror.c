#include "wattle.h"

#include "base/util.h"

#include <errno.h>
#include <string.h>

// Messages for codes returned by this library, where the system's text would mislead.
static const struct {
	int code;
	const char *text;
} meanings[] = {
	{0, "no error"},
	{-EALREADY, "the tracker is started already"},
	{-EBADF, "the tracker belongs to the process that started it"},
	{-EINVAL, "an argument is not valid"},
	{-EIO, "the recorder failed or died"},
	{-EMSGSIZE, "too many spans are open in this thread"},
	{-ENOBUFS, "no room left in the ring, the span is lost"},
	{-ENODEV, "nothing that could be read gives energy"},
	{-ENOENT, "there is no such thing: no open span, no range of that number, no program wattle, no folder"},
	{-ENOMEM, "out of memory"},
	{-EPERM, "not possible in this state: it has not been started, or has been stopped already"},
};

const char *wattle_strerror(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (meanings[i].code == code)
			return meanings[i].text;
	const char *text = code < 0 && code >= -4095 ? strerrordesc_np(-code) : NULL;
	return text != NULL ? text : "unknown error";
}
