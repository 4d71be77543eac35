/* Names of the frames of a profile: from perf maps (stored in the run), from ELF symbols, or of their address. */
#include "task/task.h"

#include "base/dl.h"
#include "base/intern.h"
#include "base/util.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { NAME_MAX_BYTES = 4096, MANGLED_MAX_BYTES = 2048 };

/* The C++ library's demangler, which every machine with C++ programs has; without it names stay mangled. It bounds its own
 * depth; the length of its input is bounded here. */
struct demangler {
	char *(*demangle)(const char *mangled, char *out, size_t *size, int *status);
};

struct work {
	const struct run_profile_data *profile;
	struct arena *arena;
	struct intern functions; // keys: name, NUL, module
	struct function_names *out;
	size_t capacity;
	struct module_symbols {
		bool is_read;
		struct elf_symbols symbols;
	} * modules; // owned
	struct demangler demangler;
	void *library;
};

/* ---- demangling ---- */

static void open_demangler(struct work *work)
{
	static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1", NULL};
	static const struct dl_symbol symbols[] = {
		{{"__cxa_demangle"}, offsetof(struct demangler, demangle), DL_REQUIRED}};
	if (dl_open(libraries, symbols, ARRAY_SIZE(symbols), &work->demangler, &work->library, NULL) < 0)
		work->demangler.demangle = NULL;
}

// Older Rust names are C++ names that end in a hash: "::h0123456789abcdef".
static void drop_rust_hash(char *name)
{
	enum { HASH_SIZE = 19 };
	size_t length = strlen(name);
	char *hash = length > HASH_SIZE ? name + length - HASH_SIZE : NULL;
	if (hash != NULL && strncmp(hash, "::h", 3) == 0 && strspn(hash + 3, "0123456789abcdef") == HASH_SIZE - 3)
		*hash = '\0';
}

// Symbols of a library may have a version: "clock_gettime@@GLIBC_2.17".
static void drop_version(char *name)
{
	char *at = strchr(name, '@');
	if (at != NULL && at > name)
		*at = '\0';
}

static void readable_name(const struct work *work, const char *mangled, char *out, size_t size)
{
	int status = -1;
	char *name = NULL;
	text_copy(out, size, mangled);
	drop_version(out);
	if (strncmp(mangled, "_Z", 2) != 0 || work->demangler.demangle == NULL ||
		strnlen(mangled, MANGLED_MAX_BYTES) == MANGLED_MAX_BYTES)
		return;
	name = work->demangler.demangle(out, NULL, NULL, &status);
	if (status == 0 && name != NULL)
		text_copy(out, size, name);
	free(name);
	drop_rust_hash(out);
}

/* ---- frames ---- */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

// From a perf map; NULL: unknown.
static const char *generated_name(const struct run_profile_data *profile, const struct run_profile_node *node)
{
	size_t low = 0, high = profile->n_symbols;
	while (low < high) { // the first one after the address
		size_t middle = low + (high - low) / 2;
		const struct run_profile_symbol *symbol = &profile->symbols[middle];
		bool is_before = symbol->module < node->module ||
			(symbol->module == node->module && symbol->begin <= node->offset);
		low = is_before ? middle + 1 : low;
		high = is_before ? high : middle;
	}
	const struct run_profile_symbol *symbol = low > 0 ? &profile->symbols[low - 1] : NULL;
	bool is_in = symbol != NULL && symbol->module == node->module && node->offset - symbol->begin < symbol->size;
	return is_in ? symbol->name : NULL;
}

static const char *symbol_name(struct work *work, const struct run_profile_node *node)
{
	struct module_symbols *module = &work->modules[node->module];
	if (!module->is_read)
		(void)elf_symbols_read(&work->profile->modules[node->module], &module->symbols);
	module->is_read = true;
	return elf_symbols_find(&module->symbols, node->offset);
}

static void name_of(struct work *work, const struct run_profile_node *node, char *out, size_t size)
{
	const char *path = work->profile->modules[node->module].path;
	const char *name = path[0] == '[' ? path : generated_name(work->profile, node);
	const char *symbol = name == NULL ? symbol_name(work, node) : NULL;
	if (name != NULL)
		text_copy(out, size, name);
	else if (symbol != NULL)
		readable_name(work, symbol, out, size);
	else
		snprintf(out, size, "[%s+0x%" PRIx64 "]", file_name(path), node->offset);
}

/* ---- functions ---- */

static bool add_function(struct work *work, const char *name, const char *module)
{
	struct function_names *out = work->out;
	if (out->n == work->capacity) {
		size_t capacity = work->capacity > 0 ? 2 * work->capacity : 256;
		const char **names = arena_alloc(work->arena, capacity, sizeof(*names));
		const char **modules = arena_alloc(work->arena, capacity, sizeof(*modules));
		if (names == NULL || modules == NULL)
			return false;
		if (out->n > 0) {
			memcpy(names, out->names, out->n * sizeof(*names));
			memcpy(modules, out->modules, out->n * sizeof(*modules));
		}
		out->names = names;
		out->modules = modules;
		work->capacity = capacity;
	}
	out->names[out->n] = name;
	out->modules[out->n++] = module;
	return true;
}

static int add_node(struct work *work, size_t i)
{
	char key[2 * NAME_MAX_BYTES];
	const struct run_profile_node *node = &work->profile->nodes[i];
	const char *module = work->profile->modules[node->module].path;
	name_of(work, node, key, NAME_MAX_BYTES);
	size_t length = strlen(key) + 1;
	text_copy(key + length, sizeof(key) - length, module);
	int64_t number = intern_number(&work->functions, key, length + strlen(key + length));
	if (number < 0)
		return -ENOMEM;
	work->out->of_node[i] = (uint32_t)number;
	bool is_new = (size_t)number == work->out->n;
	const char *name = work->functions.keys[number].bytes;
	return !is_new || add_function(work, name, module) ? 0 : -ENOMEM;
}

int function_names_make(const struct run_profile_data *profile, struct arena *arena, struct function_names *ret_names)
{
	*ret_names = (struct function_names){
		.of_node = arena_alloc(arena, profile->n_nodes, sizeof(*ret_names->of_node))};
	struct work work = {.profile = profile,
		.arena = arena,
		.out = ret_names,
		.modules = calloc_array(profile->n_modules, sizeof(*work.modules))};
	int r = ret_names->of_node != NULL && work.modules != NULL ? 0 : -ENOMEM;
	intern_init(&work.functions, arena);
	open_demangler(&work);
	for (size_t i = 0; r == 0 && i < profile->n_nodes; i++)
		r = add_node(&work, i);
	for (size_t i = 0; work.modules != NULL && i < profile->n_modules; i++)
		elf_symbols_finish(&work.modules[i].symbols);
	intern_finish(&work.functions);
	free(work.modules);
	if (work.library != NULL)
		dlclose(work.library);
	return r;
}
