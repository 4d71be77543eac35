#include "base/dl.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

static void *find(void *handle, const struct dl_symbol *symbol)
{
	for (size_t i = 0; i < sizeof(symbol->names) / sizeof(symbol->names[0]) && symbol->names[i] != NULL; i++) {
		void *address = dlsym(handle, symbol->names[i]);
		if (address != NULL)
			return address;
	}
	return NULL;
}

int dl_open(const char *const *libraries, const struct dl_symbol *symbols, size_t n_symbols, void *table,
	void **ret_handle, struct wattle_error *reterr)
{
	void *handle = NULL;
	const char *loaded = NULL;
	for (size_t i = 0; libraries[i] != NULL && handle == NULL; i++) {
		loaded = libraries[i];
		handle = dlopen(loaded, RTLD_NOW | RTLD_LOCAL);
	}
	if (handle == NULL) {
		const char *why = dlerror();
		return error_set(reterr, -ENOENT, "%s", why != NULL ? why : libraries[0]);
	}
	for (size_t i = 0; i < n_symbols; i++) {
		void *address = find(handle, &symbols[i]);
		if (address == NULL && symbols[i].need == DL_REQUIRED) {
			dlclose(handle);
			return error_set(reterr, -ENOSYS, "%s has no %s", loaded, symbols[i].names[0]);
		}
		memcpy((unsigned char *)table + symbols[i].offset, &address, sizeof(address));
	}
	*ret_handle = handle;
	return 0;
}
