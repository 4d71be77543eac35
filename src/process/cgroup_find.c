/* Finds the folder of a cgroup from the user's text, and reads its initial state before the first sample. */
#include "process/internal.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "process/machine.h"
#include "process/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { PIDS_COMPARED = 4096 };

/* ---- candidates ---- */

// Returns the rest of `path` after `prefix` if `prefix` is the same folder or a parent; else NULL.
static const char *path_below(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);
	while (length > 0 && prefix[length - 1] == '/')
		length--;
	if (strncmp(path, prefix, length) != 0 || (path[length] != '/' && path[length] != '\0'))
		return NULL;
	return path + length;
}

// Folder of a cgroup path in one hierarchy; "" if the path is outside of it.
static void folder_in(const struct cgroup_mount *mount, const char *path, char ret_folder[PATH_MAX])
{
	const char *below = path_below(path, mount->root);
	const char *rest = below != NULL ? below : path;
	int length = snprintf(ret_folder, PATH_MAX, "%s%s%s", mount->point,
		rest[0] == '/' || rest[0] == '\0' ? "" : "/", rest);
	if (length < 0 || length >= PATH_MAX)
		ret_folder[0] = '\0';
}

static void name_it(struct cgroup *cgroup, const struct cgroup_mounts *mounts)
{
	const struct cgroup_mount *best = NULL;
	const char *best_rest = NULL;
	for (size_t i = 0; i < mounts->n; i++) {
		const char *rest = path_below(cgroup->folder, mounts->list[i].point);
		bool deeper = best == NULL || strlen(mounts->list[i].point) > strlen(best->point);
		if (rest == NULL || !deeper)
			continue;
		best = &mounts->list[i];
		best_rest = rest;
	}
	if (best == NULL) {
		text_copy(cgroup->path, sizeof(cgroup->path), cgroup->folder);
		return;
	}
	const char *root = strcmp(best->root, "/") == 0 ? "" : best->root;
	snprintf(cgroup->path, sizeof(cgroup->path), "%s%s", root, best_rest);
	if (cgroup->path[0] == '\0')
		text_copy(cgroup->path, sizeof(cgroup->path), "/");
}

static void count_found(void *data, pid_t pid)
{
	*(int64_t *)data += pid != getpid();
}

// Opens the folder. 0 if it is a cgroup.
static int try_folder(struct cgroup *cgroup, const char *folder)
{
	char real[PATH_MAX];
	if (folder[0] == '\0' || realpath(folder, real) == NULL)
		return folder[0] == '\0' ? -ENOENT : -errno;
	if (!cgroup_has_file(real, "cgroup.procs"))
		return -ENOENT;
	int fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (cgroup->fd >= 0)
		close(cgroup->fd);
	cgroup->fd = fd;
	text_copy(cgroup->folder, sizeof(cgroup->folder), real);
	return 0;
}

static bool is_populated(struct cgroup *cgroup)
{
	int64_t processes = 0;
	return cgroup_each_process(cgroup, count_found, &processes) > 0 && processes > 0;
}

/* Several version 1 hierarchies and version 2 may each have a cgroup of this name. Takes the first one with processes;
 * if none has any, the first one. */
static int try_hierarchies(struct cgroup *cgroup, const struct cgroup_mounts *mounts, const char *path)
{
	char folder[PATH_MAX], first[PATH_MAX] = "";
	for (int rank = 0; rank < CGROUP_RANKS; rank++) {
		for (size_t i = 0; i < mounts->n; i++) {
			folder_in(&mounts->list[i], path, folder);
			if (mounts->list[i].rank != rank || try_folder(cgroup, folder) < 0)
				continue;
			if (is_populated(cgroup))
				return 0;
			if (first[0] == '\0')
				text_copy(first, sizeof(first), folder);
		}
	}
	return try_folder(cgroup, first);
}

// Also accepts whole lines of /proc/PID/cgroup, such as "0::/path" and "4:cpu,cpuacct:/path".
static const char *without_hierarchy(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	const char *colon = digits > 0 && text[digits] == ':' ? strchr(text + digits + 1, ':') : NULL;
	return colon != NULL && colon[1] == '/' ? colon + 1 : text;
}

static int find(struct cgroup *cgroup, const struct wattle_env *env, const struct cgroup_mounts *mounts,
	const char *text)
{
	const char *path = without_hierarchy(text);
	const char *in_sys = cgroup_is_made(env) ? path_below(path, "/sys") : NULL;
	char folder[PATH_MAX];
	int length = snprintf(folder, sizeof(folder), "%s%s", in_sys != NULL ? env->sysfs : "",
		in_sys != NULL ? in_sys : path);
	if (length > 0 && (size_t)length < sizeof(folder) && try_folder(cgroup, folder) == 0)
		return 0;
	return path[0] != '\0' ? try_hierarchies(cgroup, mounts, path) : -ENOENT;
}

/* ---- CPU account in another hierarchy ---- */

struct pids {
	pid_t list[PIDS_COMPARED];
	size_t n;
};

static void pid_found(void *data, pid_t pid)
{
	struct pids *pids = data;
	if (pids->n < PIDS_COMPARED)
		pids->list[pids->n++] = pid;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;
	return (x > y) - (x < y);
}

// Both lists use the scratch buffer of the cgroup.
static void list_pids(struct cgroup *cgroup, int folder_fd, struct pids *ret_pids)
{
	struct cgroup there = {.fd = folder_fd, .text = cgroup->text};
	ret_pids->n = 0;
	cgroup_each_process(&there, pid_found, ret_pids);
	qsort(ret_pids->list, ret_pids->n, sizeof(*ret_pids->list), compare_pids);
}

/* A job usually has cgroups of the same name in all hierarchies of version 1. But its processes may be elsewhere in one
 * of them, and then the account of that name belongs to other processes. */
static bool same_processes(struct cgroup *cgroup, int folder_fd)
{
	wattle_cleanup_free struct pids *both = calloc(2, sizeof(*both));
	if (both == NULL)
		return false;
	for (int tries = 0; tries < 3; tries++) { // processes may start or end between the two lists
		list_pids(cgroup, cgroup->fd, &both[0]);
		list_pids(cgroup, folder_fd, &both[1]);
		if (both[0].n == both[1].n &&
			memcmp(both[0].list, both[1].list, both[0].n * sizeof(*both[0].list)) == 0)
			return true;
	}
	return false;
}

static void find_account(struct cgroup *cgroup, const struct cgroup_mounts *mounts)
{
	if (cgroup_take_account(cgroup, cgroup->fd))
		return;
	for (size_t i = 0; i < mounts->n; i++) {
		char folder[PATH_MAX];
		folder_in(&mounts->list[i], cgroup->path, folder);
		wattle_cleanup_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || !same_processes(cgroup, fd) || !cgroup_take_account(cgroup, fd))
			continue;
		cgroup->cpu_folder_fd = take_fd(&fd);
		return;
	}
}

/* ---- initial state ---- */

struct search {
	struct cgroup *cgroup;
	const struct wattle_env *env;
	struct process_units units;
	uint64_t first_ticks;
	int64_t n;
};

static void check_process(void *data, pid_t pid)
{
	struct search *search = data;
	char path[32], text[1024];
	struct process_stat stat;
	if (!search->env->procfs_replaced && pid == getpid()) {
		search->cgroup->has_self = true;
		return;
	}
	snprintf(path, sizeof(path), "%d/stat", pid);
	ssize_t n = file_read_in(search->env->procfs_fd, path, text, sizeof(text));
	if (n <= 0 || process_stat_parse(text, (size_t)n, &search->units, &stat) < 0)
		return;
	search->n++;
	if (search->cgroup->main_pid != 0 && stat.start_ticks >= search->first_ticks)
		return;
	search->cgroup->main_pid = pid;
	search->first_ticks = stat.start_ticks;
}

static int search(struct cgroup *cgroup, const struct wattle_env *env, struct wattle_error *reterr)
{
	if (proc_is_foreign(env->procfs_fd))
		return error_set(reterr, -ENOTSUP,
			"--cgroup: /proc belongs to another PID namespace, so processes can't be identified; "
			"mount /proc of this namespace (unshare --mount-proc)");
	struct search search = {.cgroup = cgroup, .env = env, .units = process_units_get()};
	int64_t n = cgroup_each_process(cgroup, check_process, &search);
	if (n == -EOPNOTSUPP)
		return error_set(reterr, (int)n,
			"--cgroup: %s contains threads; give its parent cgroup that contains the processes",
			cgroup->path);
	if (n < 0)
		return error_set(reterr, (int)n, "--cgroup: can't read %s/cgroup.procs: %s", cgroup->folder,
			strerror((int)-n));
	if (search.n > 0)
		return 0;
	if (n > cgroup->has_self)
		return error_set(reterr, -ESRCH,
			"--cgroup: the processes of %s are not visible; run wattle where they are visible "
			"(on the host, or with --pid=host)",
			cgroup->path);
	return error_set(reterr, -ESRCH, "--cgroup: %s is empty: neither it nor a cgroup below it has a process",
		cgroup->path);
}

int cgroup_open(struct cgroup *cgroup, const struct wattle_env *env, const char *text, struct wattle_error *reterr)
{
	*cgroup = (struct cgroup){
		.fd = -1,
		.cpu_folder_fd = -1,
		.events_fd = -1,
		.cpu_file.fd = -1,
		.text = malloc(CGROUP_TEXT_SIZE),
	};
	wattle_cleanup_free struct cgroup_mounts *mounts = calloc(1, sizeof(*mounts));
	if (cgroup->text == NULL || mounts == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	cgroup_find_mounts(mounts, env);
	if (find(cgroup, env, mounts, text) < 0)
		return error_set(reterr, -ENOENT,
			"--cgroup: '%s' is not a cgroup: it is neither a folder with cgroup.procs nor a path "
			"from /proc/PID/cgroup",
			text);
	name_it(cgroup, mounts);
	int r = search(cgroup, env, reterr);
	if (r < 0)
		return r;
	find_account(cgroup, mounts);
	cgroup->events_fd = file_open_in(cgroup->fd, "cgroup.events", O_RDONLY);
	if (cgroup->events_fd < 0)
		cgroup->events_fd = -1;
	return 0;
}
