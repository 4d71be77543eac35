/* A folder in place of /sys or /proc, made by a test and removed at its end. */
#pragma once

#include "rows.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree {
	char root[256];
};

static inline void tree_make(struct tree *tree)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(tree->root, sizeof(tree->root), "%s/wattle-tree-XXXXXX", tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(tree->root));
}

__attribute__((format(printf, 3, 4))) static inline void tree_path(const struct tree *tree, char out[512],
	const char *format, ...)
{
	int length = snprintf(out, 512, "%s/", tree->root);
	va_list args;
	va_start(args, format);
	vsnprintf(out + length, 512 - (size_t)length, format, args);
	va_end(args);
}

// The folders above `path`, which is below the root.
static inline void tree_make_parents(const struct tree *tree, const char *path)
{
	char part[512];
	tree_path(tree, part, "%s", path);
	for (char *at = part + strlen(tree->root) + 1; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		mkdir(part, 0755);
		*at = '/';
	}
}

// In place if it exists, as the kernel's files are: open descriptors stay valid.
static inline void tree_write_bytes(const struct tree *tree, const char *path, const void *bytes, size_t size)
{
	char full[512];
	tree_make_parents(tree, path);
	tree_path(tree, full, "%s", path);
	FILE *file = fopen(full, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static inline void tree_write(const struct tree *tree, const char *path, const char *text)
{
	tree_write_bytes(tree, path, text, strlen(text));
}

static inline void tree_link(const struct tree *tree, const char *path, const char *target)
{
	char full[512];
	tree_make_parents(tree, path);
	tree_path(tree, full, "%s", path);
	assert_int_equal(symlink(target, full), 0);
}

static inline void tree_remove(const struct tree *tree, const char *path)
{
	char full[512];
	tree_path(tree, full, "%s", path);
	assert_int_equal(remove(full), 0);
}

static inline int tree_remove_entry_(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline void tree_finish(struct tree *tree)
{
	nftw(tree->root, tree_remove_entry_, 16, FTW_DEPTH | FTW_PHYS);
}
