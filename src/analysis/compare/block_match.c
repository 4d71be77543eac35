#include "analysis/compare/block_match.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { NAME_CEILING = 1 << 24 };

int block_warn(struct block_warnings *warnings, const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (warnings->n == warnings->capacity) {
		size_t capacity = warnings->capacity > 0 ? warnings->capacity * 2 : 16;
		const char **larger = arena_alloc(warnings->arena, capacity, sizeof(*larger));
		if (larger == NULL)
			return -ENOMEM;
		if (warnings->n > 0)
			memcpy(larger, warnings->texts, warnings->n * sizeof(*larger));
		warnings->texts = larger;
		warnings->capacity = capacity;
	}
	warnings->texts[warnings->n] = arena_text(warnings->arena, text);
	return warnings->texts[warnings->n++] != NULL ? 0 : -ENOMEM;
}

/* Names */

// The digits after the last colon, without leading zeros; NULL: the name does not end in a line number.
static const char *line_of(const char *name)
{
	const char *colon = strrchr(name, ':');
	if (colon == NULL || colon[1] == '\0' || colon[1 + strspn(colon + 1, "0123456789")] != '\0')
		return NULL;
	return colon + 1 + strspn(colon + 1, "0");
}

// Length of the name without its line number.
static size_t base_size(const char *name)
{
	return line_of(name) != NULL ? (size_t)(strrchr(name, ':') - name) : strlen(name);
}

static int compare_lines(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return (a != NULL) - (b != NULL);
	size_t n = strlen(a), m = strlen(b);
	return n != m ? (n < m ? -1 : 1) : strcmp(a, b);
}

static int by_base_and_line(const void *left, const void *right)
{
	const char *a = (*(const struct saved_block *const *)left)->name;
	const char *b = (*(const struct saved_block *const *)right)->name;
	size_t n = base_size(a), m = base_size(b);
	int bases = memcmp(a, b, n < m ? n : m);
	if (bases != 0 || n != m)
		return bases != 0 ? bases : n < m ? -1 : 1;
	int lines = compare_lines(line_of(a), line_of(b));
	return lines != 0 ? lines : strcmp(a, b);
}

static bool differ_by_line_only(const char *a, const char *b)
{
	return line_of(a) != NULL && line_of(b) != NULL && base_size(a) == base_size(b) &&
		memcmp(a, b, base_size(a)) == 0;
}

/* Sessions */

static const struct saved_block **sorted(const struct saved_blocks *results, struct arena *arena)
{
	const struct saved_block **blocks = arena_alloc(arena, results->n_blocks, sizeof(const struct saved_block *));
	for (size_t b = 0; blocks != NULL && b < results->n_blocks; b++)
		blocks[b] = &results->blocks[b];
	if (blocks != NULL && results->n_blocks > 0)
		qsort(blocks, results->n_blocks, sizeof(const struct saved_block *), by_base_and_line);
	return blocks;
}

struct side {
	const char *session;
	const struct saved_block **blocks;
	size_t n;
};

static int match(const struct side *a, const struct side *b, struct block_warnings *warnings,
	struct wattle_error *reterr)
{
	if (a->n != b->n)
		return error_set(reterr, -EINVAL,
			"all sessions must have the same number of code blocks: \"%.80s\" has %zu and \"%.80s\" has %zu",
			a->session, a->n, b->session, b->n);
	for (size_t k = 0; k < a->n; k++) {
		const char *x = a->blocks[k]->name, *y = b->blocks[k]->name;
		if (strcmp(x, y) == 0)
			continue;
		if (!differ_by_line_only(x, y))
			return error_set(reterr, -EINVAL,
				"code block \"%.160s\" of \"%.80s\" does not match code block \"%.160s\" of \"%.80s\"",
				x, a->session, y, b->session);
		if (block_warn(warnings,
			    "code block \"%.160s\" of \"%.80s\" is matched with \"%.160s\" of \"%.80s\": they differ by "
			    "line number only; give them names if they are not the same",
			    x, a->session, y, b->session) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

// All distinct names of block k, in alphabetical order, joined by arrows.
static const char *merged_name(const struct saved_block ***blocks, size_t n_sessions, size_t k, struct arena *arena)
{
	wattle_cleanup_free const char **names = calloc_array(n_sessions, sizeof(const char *));
	if (names == NULL)
		return NULL;
	for (size_t s = 0; s < n_sessions; s++)
		names[s] = blocks[s][k]->name;
	qsort(names, n_sessions, sizeof(const char *), by_text);
	struct buf text;
	buf_init(&text, NAME_CEILING);
	buf_str(&text, names[0]);
	for (size_t s = 1; s < n_sessions; s++)
		if (strcmp(names[s], names[s - 1]) != 0)
			buf_printf(&text, " -> %s", names[s]);
	const char *merged = text.failed == 0 ? arena_text(arena, text.data != NULL ? text.data : "") : NULL;
	buf_finish(&text);
	return merged;
}

int block_match(const struct compare_session *sessions, size_t n_sessions, size_t first,
	const struct saved_block ****ret_blocks, const char ***ret_names, struct block_warnings *warnings,
	struct wattle_error *reterr)
{
	struct arena *arena = warnings->arena;
	size_t n_blocks = sessions[first].results->n_blocks;
	const struct saved_block ***blocks = arena_alloc(arena, n_sessions, sizeof(*blocks));
	const char **names = arena_alloc(arena, n_blocks, sizeof(const char *));
	if (blocks == NULL || names == NULL)
		return -ENOMEM;
	for (size_t s = 0; s < n_sessions; s++)
		if ((blocks[s] = sorted(sessions[s].results, arena)) == NULL)
			return -ENOMEM;
	const struct side one = {sessions[first].name, blocks[first], n_blocks};
	int r = 0;
	for (size_t s = 0; r == 0 && s < n_sessions; s++) {
		const struct side other = {sessions[s].name, blocks[s], sessions[s].results->n_blocks};
		r = s != first ? match(&one, &other, warnings, reterr) : 0;
	}
	for (size_t k = 0; r == 0 && k < n_blocks; k++)
		if ((names[k] = merged_name(blocks, n_sessions, k, arena)) == NULL)
			r = -ENOMEM;
	*ret_blocks = blocks;
	*ret_names = names;
	return r;
}
