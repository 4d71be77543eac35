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
	{-EALREADY, "the tracker is already started"},
	{-EBADF, "the tracker belongs to the process that started it"},
	{-EINVAL, "invalid argument"},
	{-EIO, "the recorder failed or died"},
	{-EMSGSIZE, "too many spans are open in this thread"},
	{-ENOBUFS, "the ring is full, the span is lost"},
	{-ENODEV, "no readable sensor provides energy"},
	{-ENOENT, "not found: no open span, no range with this number, no program wattle, or no folder"},
	{-ENOMEM, "out of memory"},
	{-EPERM, "not possible in this state: not started, or already stopped"},
};

const char *wattle_strerror(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (meanings[i].code == code)
			return meanings[i].text;
	const char *text = code < 0 && code >= -4095 ? strerrordesc_np(-code) : NULL;
	return text != NULL ? text : "unknown error";
}
