#include "live/curses_library.h"

#include "base/dl.h"
#include "base/util.h"

#define CURSES_ROW(name) {.names = {#name}, .offset = offsetof(struct curses, name), .need = DL_REQUIRED},
static const struct dl_symbol symbols[] = {CURSES_SYMBOLS(CURSES_ROW)};
#undef CURSES_ROW

int curses_open(struct curses *ret_curses, struct wattle_error *reterr)
{
	static const char *const libraries[] = {"libncursesw.so.6", NULL};
	struct wattle_error why = {0};
	int r = dl_open(libraries, symbols, ARRAY_SIZE(symbols), ret_curses, &ret_curses->handle, &why);
	return r < 0 ? error_set(reterr, r, "top needs ncurses (Debian: apt install libncursesw6): %.300s", why.text)
		     : 0;
}
