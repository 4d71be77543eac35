/* Lists the cgroup hierarchies of this machine or of a test tree. */
#include "process/internal.h"

#include "base/cleanup.h"
#include "base/folder.h"
#include "base/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { MOUNTINFO_CEILING = 1 << 24 };

static void add_mount(struct cgroup_mounts *mounts, const char *point, const char *root, int rank)
{
	if (mounts->n == CGROUP_MOUNTS_MAX)
		return;
	struct cgroup_mount *mount = &mounts->list[mounts->n];
	char real[PATH_MAX];
	mount->rank = rank;
	// Use real paths for comparisons: /sys/fs/cgroup/cpu is a link to cpu,cpuacct.
	if (realpath(point, real) != NULL && text_copy(mount->point, sizeof(mount->point), real) &&
		text_copy(mount->root, sizeof(mount->root), root))
		mounts->n++;
}

// Whether a comma-separated list contains this word.
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; (at = strstr(at, word)) != NULL; at += length) {
		bool begins = at == list || at[-1] == ',';
		if (begins && (at[length] == ',' || at[length] == '\0'))
			return true;
	}
	return false;
}

// Replaces \040 by blanks, in place.
static void unescape(char *text)
{
	char *out = text;
	for (const char *at = text; *at != '\0'; at++) {
		if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[3] >= '0') {
			*out++ = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
			at += 3;
		} else {
			*out++ = *at;
		}
	}
	*out = '\0';
}

// "36 35 98:0 /root /point rw,noatime shared:1 - cgroup cgroup rw,cpu,cpuacct"
static void take_mount(struct cgroup_mounts *mounts, char *line)
{
	char root[512], point[512], type[32], options[256];
	const char *rest = strstr(line, " - ");
	if (rest == NULL || sscanf(line, "%*s %*s %*s %511s %511s", root, point) != 2 ||
		sscanf(rest, " - %31s %*s %255s", type, options) != 2)
		return;
	unescape(root);
	unescape(point);
	if (strcmp(type, "cgroup2") == 0)
		add_mount(mounts, point, root, CGROUP_RANK_UNIFIED);
	else if (strcmp(type, "cgroup") == 0)
		add_mount(mounts, point, root, has_word(options, "cpuacct") ? CGROUP_RANK_CPUACCT : CGROUP_RANK_OTHER);
}

static void read_mountinfo(struct cgroup_mounts *mounts, const struct wattle_env *env)
{
	wattle_cleanup_free char *text = NULL;
	size_t size;
	if (file_read_all_in(env->procfs_fd, "self/mountinfo", MOUNTINFO_CEILING, &text, &size) < 0)
		return;
	char *state;
	for (char *line = strtok_r(text, "\n", &state); line != NULL; line = strtok_r(NULL, "\n", &state))
		take_mount(mounts, line);
}

bool cgroup_has_file(const char *folder, const char *name)
{
	char path[PATH_MAX + 32];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

static void hierarchy_found(struct cgroup_mounts *mounts, const char *top, const char *name, unsigned char type)
{
	char point[PATH_MAX];
	int length = snprintf(point, sizeof(point), "%s/%s", top, name);
	if (type == DT_REG || length < 0 || (size_t)length >= sizeof(point) || !cgroup_has_file(point, "cgroup.procs"))
		return;
	bool unified = strcmp(name, "unified") == 0 || cgroup_has_file(point, "cgroup.controllers");
	add_mount(mounts, point, "/",
		unified                             ? CGROUP_RANK_UNIFIED
			: has_word(name, "cpuacct") ? CGROUP_RANK_CPUACCT
						    : CGROUP_RANK_OTHER);
}

/* Test tree, or mountinfo can't be read: uses the standard folders below fs/cgroup. Either the tree is version 2, or
 * each folder is a version 1 hierarchy. */
static void scan_sysfs(struct cgroup_mounts *mounts, const struct wattle_env *env)
{
	char top[sizeof(env->sysfs) + 16], text[FOLDER_TEXT_SIZE] __attribute__((aligned(8)));
	snprintf(top, sizeof(top), "%s/fs/cgroup", env->sysfs);
	if (cgroup_has_file(top, "cgroup.controllers") || cgroup_has_file(top, "cgroup.procs")) {
		add_mount(mounts, top, "/", CGROUP_RANK_UNIFIED);
		return;
	}
	wattle_cleanup_close int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	struct folder_walk walk = folder_walk_begin(fd, text, sizeof(text));
	unsigned char type;
	for (const char *name; (name = folder_walk_next(&walk, &type)) != NULL;)
		hierarchy_found(mounts, top, name, type);
}

bool cgroup_is_made(const struct wattle_env *env)
{
	return strcmp(env->sysfs, "/sys") != 0;
}

void cgroup_find_mounts(struct cgroup_mounts *mounts, const struct wattle_env *env)
{
	mounts->n = 0;
	if (!cgroup_is_made(env))
		read_mountinfo(mounts, env);
	if (mounts->n == 0)
		scan_sysfs(mounts, env);
}
