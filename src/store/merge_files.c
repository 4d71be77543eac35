#include "store/sub_tracking.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Sub-tracking files */

static int copy_row(void *data, const struct sub_tracking_row *row, struct wattle_error *reterr)
{
	return calls_writer_add(data, row, reterr);
}

static int merge_calls(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr)
{
	struct calls_writer writer;
	int r = calls_writer_open(&writer, out, reterr);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = sub_tracking_each(inputs[i], copy_row, &writer, reterr);
	return calls_writer_close(&writer, r, reterr);
}

/* File kinds */

enum kind { KIND_CSV, KIND_SQLITE, KIND_SPANS, KIND_NONE };

static enum kind kind_by_ending(const char *path)
{
	const char *ending = sub_tracking_ending(path);
	if (ending == NULL)
		return KIND_NONE;
	return strcmp(ending, ".csv") == 0 ? KIND_CSV : KIND_SQLITE;
}

static enum kind kind_of(const char *path)
{
	return span_file_probe(path) ? KIND_SPANS : kind_by_ending(path);
}

static const char *kind_name(enum kind kind)
{
	static const char *const names[] = {"a CSV sub-tracking file", "an SQLite sub-tracking file", "a span file",
		"neither a sub-tracking file (.csv, .sqlite) nor a span file"};
	return names[kind];
}

/* Inputs */

struct inputs {
	struct arena *arena;
	const char **paths; // owned
	size_t n, capacity;
};

static int add_input(struct inputs *inputs, const char *path)
{
	const char **larger = array_reserve(inputs->paths, inputs->n, &inputs->capacity, sizeof(*larger), 64);
	if (larger == NULL || path == NULL)
		return -ENOMEM;
	inputs->paths = larger;
	inputs->paths[inputs->n++] = path;
	return 0;
}

static int by_text(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static bool is_file(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

// Adds the files of a kind in a folder; skips hidden files, which may be incomplete.
static int add_folder(struct inputs *inputs, const char *folder, enum kind kind, struct wattle_error *reterr)
{
	wattle_cleanup_dir DIR *dir = opendir(folder);
	if (dir == NULL) {
		int code = -errno;
		return error_set(reterr, code, "%s: %s", folder, strerror(-code));
	}
	int r = 0;
	for (const struct dirent *entry = readdir(dir); r == 0 && entry != NULL; entry = readdir(dir)) {
		if (entry->d_name[0] == '.')
			continue;
		const char *path = arena_printf(inputs->arena, "%s/%s", folder, entry->d_name);
		if (path == NULL)
			r = -ENOMEM;
		else if (is_file(path) && kind_of(path) == kind)
			r = add_input(inputs, path);
	}
	if (inputs->n > 0)
		qsort(inputs->paths, inputs->n, sizeof(const char *), by_text);
	return r;
}

// Adds the files of out's kind; if there are none, adds span files, which convert to any kind.
static int expand_folder(struct inputs *inputs, const char *out, const char *folder, struct wattle_error *reterr)
{
	enum kind wanted = kind_by_ending(out);
	int r = wanted != KIND_NONE ? add_folder(inputs, folder, wanted, reterr) : 0;
	if (r == 0 && inputs->n == 0)
		r = add_folder(inputs, folder, KIND_SPANS, reterr);
	if (r == 0 && inputs->n == 0)
		r = error_set(reterr, -ENOENT, "%s: no %s%sspan file in this folder", folder,
			wanted != KIND_NONE ? sub_tracking_ending(out) : "",
			wanted != KIND_NONE ? " file or " : "");
	return r;
}

static bool is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int gather(struct inputs *inputs, const char *out, const char *const *given, size_t n,
	struct wattle_error *reterr)
{
	if (n == 1 && is_folder(given[0]))
		return expand_folder(inputs, out, given[0], reterr);
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = is_folder(given[i])
			? error_set(reterr, -EISDIR, "%s is a folder: give either one folder or files", given[i])
			: add_input(inputs, given[i]);
	return r;
}

/* Checks */

struct identity {
	dev_t device;
	ino_t inode;
	const char *path;
};

static int by_identity(const void *left, const void *right)
{
	const struct identity *a = left, *b = right;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->inode > b->inode) - (a->inode < b->inode);
}

// Each input exists and is named only once.
static int check_inputs(const struct inputs *inputs, const struct stat *out, const char *out_path,
	struct wattle_error *reterr)
{
	wattle_cleanup_free struct identity *files = calloc_array(inputs->n, sizeof(*files));
	if (files == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < inputs->n; i++) {
		struct stat st;
		if (stat(inputs->paths[i], &st) != 0) {
			int code = -errno;
			return error_set(reterr, code, "%s: %s", inputs->paths[i], strerror(-code));
		}
		files[i] = (struct identity){st.st_dev, st.st_ino, inputs->paths[i]};
		if (out != NULL && out->st_dev == st.st_dev && out->st_ino == st.st_ino)
			return error_set(reterr, -EINVAL,
				"%s is both the output and an input: choose another output name", out_path);
	}
	qsort(files, inputs->n, sizeof(*files), by_identity);
	for (size_t i = 1; i < inputs->n; i++)
		if (by_identity(&files[i - 1], &files[i]) == 0)
			return error_set(reterr, -EINVAL, "%s and %s are the same file: give it once",
				files[i - 1].path, files[i].path);
	return 0;
}

static int check_kinds(const struct inputs *inputs, enum kind *ret_kind, struct wattle_error *reterr)
{
	enum kind kind = kind_of(inputs->paths[0]);
	for (size_t i = 0; i < inputs->n; i++) {
		enum kind other = kind_of(inputs->paths[i]);
		if (other == KIND_NONE)
			return error_set(reterr, -EINVAL, "%s is %s", inputs->paths[i], kind_name(other));
		if (other != kind)
			return error_set(reterr, -EINVAL,
				"%.200s is %s and %.200s is %s: merge files of one kind at a time", inputs->paths[0],
				kind_name(kind), inputs->paths[i], kind_name(other));
	}
	*ret_kind = kind;
	return 0;
}

static int merge_gathered(const char *out, const struct inputs *inputs, struct wattle_error *reterr)
{
	struct stat st;
	bool exists = stat(out, &st) == 0;
	int r = check_inputs(inputs, exists ? &st : NULL, out, reterr);
	if (r == 0 && exists)
		r = error_set(reterr, -EEXIST, "%s exists: choose another name", out);
	enum kind kind = KIND_NONE, wanted = kind_by_ending(out);
	if (r == 0)
		r = check_kinds(inputs, &kind, reterr);
	if (r < 0)
		return r;
	if (kind == KIND_SPANS)
		return wanted == KIND_NONE ? merge_spans(out, inputs->paths, inputs->n, reterr)
					   : merge_spans_into_calls(out, inputs->paths, inputs->n, reterr);
	if (kind != wanted)
		return error_set(reterr, -EINVAL,
			"%.200s is %s: the output's name must also end in %s, but %.200s does not", inputs->paths[0],
			kind_name(kind), kind == KIND_CSV ? ".csv" : ".sqlite", out);
	return merge_calls(out, inputs->paths, inputs->n, reterr);
}

int merge_files(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr)
{
	struct inputs all = {.arena = arena_new()};
	int r = all.arena != NULL ? gather(&all, out, inputs, n, reterr) : -ENOMEM;
	if (r == 0)
		r = merge_gathered(out, &all, reterr);
	free(all.paths);
	arena_free(all.arena);
	return r == -ENOMEM ? error_set(reterr, r, "%s: out of memory", out) : r;
}
