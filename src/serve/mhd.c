#include "serve/http.h"

#include "base/dl.h"
#include "base/util.h"

#include <dlfcn.h>

#define MHD_ROW(member, name) {.names = {#name}, .offset = offsetof(struct mhd, member), .need = DL_REQUIRED},
static const struct dl_symbol symbols[] = {MHD_SYMBOLS(MHD_ROW)};
#undef MHD_ROW

int mhd_open(struct mhd *ret_mhd, struct wattle_error *reterr)
{
	static const char *const libraries[] = {"libmicrohttpd.so.12", NULL};
	struct mhd mhd = {0};
	struct wattle_error why = {0};
	int r = dl_open(libraries, symbols, ARRAY_SIZE(symbols), &mhd, &mhd.handle, &why);
	if (r < 0)
		return error_set(reterr, r, "serve needs libmicrohttpd (Debian: apt install libmicrohttpd12): %.300s",
			why.text);
	*ret_mhd = mhd;
	return 0;
}

void mhd_close(struct mhd *mhd)
{
	if (mhd->handle != NULL)
		dlclose(mhd->handle);
	*mhd = (struct mhd){0};
}
