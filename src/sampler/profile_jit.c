/* Names of generated code: lines "BEGIN SIZE NAME", both numbers hexadecimal (tools/perf/Documentation/jit-interface.txt). */
#include "sampler/recorder.h"

#include "base/cleanup.h"
#include "base/search.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The target may write anything into the file: lines are bounded, and what lies beyond this size is not read. A perf map of
 * node.js after hours has some 10 MB. */
enum { MAP_BYTES_MAX = 64 << 20, NAME_MAX_BYTES = 1024 };

/* Not through a link; no pipe, because opening one waits for its other end; no file that another user has put into /tmp under
 * this name. */
static FILE *open_map(const char *path)
{
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || (st.st_uid != 0 && st.st_uid != geteuid()))
		return NULL;
	FILE *file = fdopen(fd, "r");
	if (file != NULL)
		(void)take_fd(&fd);
	return file;
}

static bool before_address(const void *item, const void *key)
{
	return *(const uint64_t *)item < *(const uint64_t *)key;
}

static bool has_sample(const uint64_t *addresses, size_t n, uint64_t begin, uint64_t size)
{
	size_t i = search_first(addresses, n, sizeof(*addresses), &begin, before_address);
	return i < n && addresses[i] - begin < size;
}

// "BEGIN SIZE NAME"; false: another line.
static bool parse(char *line, struct store_profile_symbol *symbol)
{
	char *at = line, *end;
	uint64_t *const numbers[] = {&symbol->begin, &symbol->size};
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		errno = 0;
		*numbers[i] = strtoull(at, &end, 16);
		if (errno != 0 || end == at || *end != ' ' || *at == '-')
			return false;
		at = end + 1;
	}
	at[strcspn(at, "\n")] = '\0';
	symbol->name = at;
	return symbol->size > 0 && symbol->begin + symbol->size > symbol->begin && *at != '\0';
}

size_t profile_jit_read(const char *path, const uint64_t *addresses, size_t n, struct arena *arena,
	struct store_profile_symbol *out, size_t max)
{
	char line[NAME_MAX_BYTES + 64];
	size_t n_found = 0, bytes = 0;
	wattle_cleanup_fclose FILE *file = open_map(path);
	bool is_rest = false; // of a line longer than the buffer
	while (file != NULL && n_found < max && bytes < MAP_BYTES_MAX && fgets(line, sizeof(line), file) != NULL) {
		struct store_profile_symbol symbol = {0};
		size_t length = strlen(line);
		bool is_begin = !is_rest;
		is_rest = length > 0 && line[length - 1] != '\n';
		bytes += length > 0 ? length : 1;
		if (!is_begin || !parse(line, &symbol) || !has_sample(addresses, n, symbol.begin, symbol.size))
			continue;
		symbol.name = arena_text(arena, symbol.name);
		if (symbol.name == NULL)
			break;
		out[n_found++] = symbol;
	}
	return n_found;
}
