#include "cli/sensors.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <sys/stat.h>

// A tree of a large server has a few thousand files of a few bytes each; these limits stop runaway captures.
enum { FILES_MAX = 20000, FILE_MAX = 4 << 20, LINKS_MAX = 40, NAMES_MAX = 4096, PATH_SIZE = 1024 };

/* ---- writing ---- */

static void make_parents(int out_fd, const char *path)
{
	char part[PATH_SIZE];
	text_copy(part, sizeof(part), path);
	for (char *at = part; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		mkdirat(out_fd, part, 0755);
		*at = '/';
	}
}

static void put_link(struct capture_tree *tree, const char *path, const char *target)
{
	make_parents(tree->out_fd, path);
	tree->n_links += symlinkat(target, tree->out_fd, path) == 0; // on failure it exists already
}

/* The copy has the original's mode, so that its readability is the same. The mode is set after writing, because the original
 * may not be writable. */
static void put_file(struct capture_tree *tree, const char *path, const struct buf *contents, mode_t mode)
{
	make_parents(tree->out_fd, path);
	wattle_cleanup_close int fd = openat(tree->out_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		0600);
	if (fd < 0)
		return; // already saved by another path
	buf_write_fd(contents, fd);
	fchmod(fd, mode & 0777);
	tree->n_files++;
	tree->n_bytes += contents->size;
}

static bool is_there(const struct capture_tree *tree, const char *path)
{
	return faccessat(tree->out_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void put_unreadable(struct capture_tree *tree, const char *path, mode_t mode, const char *why)
{
	struct buf nothing;
	buf_init(&nothing, 1);
	put_file(tree, path, &nothing, mode);
	buf_finish(&nothing);
	buf_printf(tree->unreadable, "%s/%s\t%04o\t%s\n", tree->name, path, (unsigned)(mode & 07777), why);
	tree->n_unreadable++;
}

/* ---- finding ---- */

// "a/b" becomes "a", "a" becomes "".
static void drop_last(char *path)
{
	char *slash = strrchr(path, '/');
	*(slash != NULL ? slash : path) = '\0';
}

static bool append(char *path, size_t size, const char *name, size_t length)
{
	size_t used = strlen(path);
	int n = snprintf(path + used, size - used, "%s%.*s", used > 0 ? "/" : "", (int)length, name);
	return n >= 0 && (size_t)n < size - used;
}

/* Resolves a path component by component, saves the symbolic links on the way, and stores the real path inside the root in
 * ret_path. A link that leads above the root ends at the root, as with RESOLVE_IN_ROOT. */
static int resolve(struct capture_tree *tree, const char *path, char *ret_path, struct stat *ret_stat)
{
	char left[2 * PATH_SIZE], rest[2 * PATH_SIZE], target[PATH_SIZE];
	int links = 0;
	ret_path[0] = '\0';
	text_copy(left, sizeof(left), path);
	while (left[0] != '\0') {
		size_t length = strcspn(left, "/"), skip = length + strspn(left + length, "/");
		text_copy(rest, sizeof(rest), left + skip);
		if (length == 2 && memcmp(left, "..", 2) == 0) {
			drop_last(ret_path);
		} else if (length > 0 && !(length == 1 && left[0] == '.')) {
			if (!append(ret_path, PATH_SIZE, left, length))
				return -ENAMETOOLONG;
			if (fstatat(tree->root_fd, ret_path, ret_stat, AT_SYMLINK_NOFOLLOW) != 0)
				return -errno;
		}
		if (length > 0 && ret_path[0] != '\0' && S_ISLNK(ret_stat->st_mode)) {
			ssize_t n = readlinkat(tree->root_fd, ret_path, target, sizeof(target) - 1);
			if (n <= 0 || ++links > LINKS_MAX)
				return -ELOOP;
			target[n] = '\0';
			put_link(tree, ret_path, target);
			if (target[0] == '/')
				ret_path[0] = '\0';
			else
				drop_last(ret_path);
			ret_stat->st_mode = S_IFDIR;
			int whole = snprintf(left, sizeof(left), "%s/%s", target, rest);
			if (whole < 0 || (size_t)whole >= sizeof(left))
				return -ENAMETOOLONG;
			continue;
		}
		text_copy(left, sizeof(left), rest);
	}
	return 0;
}

/* ---- saving ---- */

static void scrub(struct capture_tree *tree, const char *path, const char *text, size_t size, struct buf *out)
{
	// Files with fixed words of the kernel, which may coincide with a host name.
	static const char *const plain[] = {"name", "type", "uevent", "status"};
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
	bool with_host = true;
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		with_host = with_host && strcmp(name, plain[i]) != 0;
	bool is_serial = strcmp(name, "unique_id") == 0 || strstr(name, "serial") != NULL;
	size_t length = strcspn(text, "\n");
	if (memchr(text, '\0', size) != NULL) { // binary content: gpu_metrics
		buf_add(out, text, size);
	} else if (is_serial && length > 0) {
		anonymize_put(tree->anonymizer, PSEUDONYM_SERIAL, text, length, out);
		buf_str(out, text + length);
	} else {
		anonymize_scrub(tree->anonymizer, text, size, with_host, out);
	}
}

static void save(struct capture_tree *tree, const char *path, bool asleep, capture_filter filter)
{
	char real[PATH_SIZE];
	struct stat st = {.st_mode = S_IFDIR};
	if (tree->n_files >= FILES_MAX || resolve(tree, path, real, &st) < 0 || is_there(tree, real))
		return;
	if (S_ISDIR(st.st_mode)) {
		make_parents(tree->out_fd, real);
		mkdirat(tree->out_fd, real, 0755);
		return;
	}
	// Reading anything but a regular file may block or have side effects.
	if (!S_ISREG(st.st_mode) || asleep) {
		put_unreadable(tree, real, st.st_mode & 0777,
			asleep ? "the device is suspended" : "not a regular file");
		return;
	}
	wattle_cleanup_free char *text = NULL;
	size_t size = 0;
	int r = file_read_all_in(tree->root_fd, real, FILE_MAX, &text, &size);
	if (r < 0) {
		put_unreadable(tree, real, st.st_mode, strerror(-r));
		return;
	}
	struct buf contents;
	buf_init(&contents, 2 * FILE_MAX);
	if (filter != NULL)
		filter(tree->anonymizer, text, size, &contents);
	else
		scrub(tree, path, text, size, &contents);
	put_file(tree, real, &contents, st.st_mode);
	buf_finish(&contents);
}

/* ---- patterns ---- */

typedef void (*on_match)(struct capture_tree *tree, const char *path, const struct capture_request *request);

static int by_name(const void *left, const void *right)
{
	return strverscmp(*(const char *const *)left, *(const char *const *)right);
}

// Sorted, so that pseudonyms have the same numbers in each capture; the caller frees each name and the array.
static size_t list(struct capture_tree *tree, const char *folder, const char *pattern, char ***ret_names)
{
	wattle_cleanup_close int fd = file_open_in(tree->root_fd, folder[0] != '\0' ? folder : ".",
		O_RDONLY | O_DIRECTORY);
	wattle_cleanup_dir DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	char **names = calloc_array(NAMES_MAX, sizeof(names[0]));
	size_t n = 0;
	*ret_names = names;
	if (dir == NULL || names == NULL)
		return 0;
	take_fd(&fd);
	for (struct dirent *entry; n < NAMES_MAX && (entry = readdir(dir)) != NULL;) {
		if (fnmatch(pattern, entry->d_name, FNM_PERIOD | FNM_EXTMATCH) != 0)
			continue;
		if (anonymize_has_mac(entry->d_name))
			tree->n_left_out++;
		else if ((names[n] = strdup(entry->d_name)) != NULL)
			n++;
	}
	if (n > 0)
		qsort(names, n, sizeof(names[0]), by_name);
	return n;
}

// Expands the pattern component by component; `path` is the part expanded so far.
static void expand(struct capture_tree *tree, const char *path, const char *pattern, on_match matched,
	const struct capture_request *request)
{
	char next[PATH_SIZE], part[256];
	if (*pattern == '\0') {
		matched(tree, path, request);
		return;
	}
	size_t length = strcspn(pattern, "/"), skip = length + (pattern[length] == '/');
	snprintf(part, sizeof(part), "%.*s", (int)length, pattern);
	text_copy(next, sizeof(next), path);
	if (strpbrk(part, "*?[") == NULL) {
		if (append(next, sizeof(next), part, length))
			expand(tree, next, pattern + skip, matched, request);
		return;
	}
	char **names;
	size_t n = list(tree, path, part, &names);
	for (size_t i = 0; i < n; i++) {
		text_copy(next, sizeof(next), path);
		if (append(next, sizeof(next), names[i], strlen(names[i])))
			expand(tree, next, pattern + skip, matched, request);
		free(names[i]);
	}
	free(names);
}

static void save_matched(struct capture_tree *tree, const char *path, const struct capture_request *request)
{
	save(tree, path, false, request->filter);
}

static void note_asleep(struct capture_tree *tree, const char *path, const struct capture_request *request)
{
	save(tree, path, true, request->filter);
}

// "suspended", "suspending", "resuming"; a device without power management reports "unsupported".
static bool is_asleep(const struct capture_tree *tree, const char *folder, const char *power_status_file)
{
	char path[PATH_SIZE], status[32];
	int length = snprintf(path, sizeof(path), "%s/%s", folder, power_status_file);
	return length > 0 && (size_t)length < sizeof(path) &&
		file_read_line_in(tree->root_fd, path, status, sizeof(status)) > 0 && strcmp(status, "active") != 0 &&
		strcmp(status, "unsupported") != 0;
}

static void read_folder(struct capture_tree *tree, const char *folder, const struct capture_request *request)
{
	if (request->wanted != NULL && !request->wanted(tree->root_fd, folder))
		return;
	bool asleep = request->power_status_file != NULL && is_asleep(tree, folder, request->power_status_file);
	expand(tree, folder, request->file, asleep ? note_asleep : save_matched, request);
}

void capture_tree_add(struct capture_tree *tree, const struct capture_request *request)
{
	expand(tree, "", request->folder, read_folder, request);
}
