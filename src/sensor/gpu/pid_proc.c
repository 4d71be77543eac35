#include "sensor/gpu/pid_match.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/num.h"
#include "base/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

// The inode of the initial pid namespace is the same in every kernel since 3.8 (PROC_PID_INIT_INO).
static const char initial_namespace[] = "pid:[4026531836]";

// Returns false without such a link. The names are fixed entries of /proc, so no link has to be followed.
static bool read_link(int root_fd, const char *path, char *out, size_t size)
{
	ssize_t length = readlinkat(root_fd, path, out, size - 1);
	out[length > 0 ? length : 0] = '\0';
	return length > 0;
}

enum pid_view pid_proc_view(const struct wattle_env *env, pid_t *ret_self)
{
	char self[32], namespace[64];
	*ret_self = getpid();
	if (env->procfs_fd < 0 || !read_link(env->procfs_fd, "self/ns/pid", namespace, sizeof(namespace)))
		return PID_VIEW_MADE;
	if (strcmp(namespace, initial_namespace) == 0)
		return PID_VIEW_INITIAL;
	// "self" is our pid in the namespace of this /proc.
	long shown = read_link(env->procfs_fd, "self", self, sizeof(self)) ? strtol(self, NULL, 10) : 0;
	if (shown <= 0 || shown == *ret_self)
		return PID_VIEW_NESTED;
	*ret_self = (pid_t)shown;
	return PID_VIEW_OUTER;
}

/* ---- one process ---- */

// Returns how many pids a line "NSpid:\t4711\t25" has; *ret_inner is the last of them.
static size_t parse_nspid(const char *status, pid_t *ret_inner)
{
	const char *at = strstr(status, "\nNSpid:"); // never the first line, which holds the name
	size_t n = 0;
	for (at = at != NULL ? at + 7 : ""; *at == '\t' || *at == ' ';) {
		char *end;
		long pid = strtol(at, &end, 10);
		if (end == at || pid <= 0 || pid > INT32_MAX)
			break;
		*ret_inner = (pid_t)pid;
		n++;
		at = end;
	}
	return n;
}

static bool read_cgroup(int procfs_fd, const char *who, char *out, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/cgroup", who);
	return file_read_in(procfs_fd, path, out, size) > 0;
}

// Whether any line of the file names a group below the root.
static bool is_below_root(const char *cgroups)
{
	for (const char *line = cgroups; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *path = strchr(line, '/');
		const char *end = strchr(line, '\n');
		if (path != NULL && (end == NULL || path < end) && path[1] != '\0' && path[1] != '\n')
			return true;
	}
	return false;
}

enum similarity { DIFFERENT, SAME, UNDECIDED };

static enum similarity compare_cgroups(const struct pid_match *match, const char *who, const char *main)
{
	char theirs[2048], ours[2048];
	if (!read_cgroup(match->env->procfs_fd, who, theirs, sizeof(theirs)) ||
		!read_cgroup(match->env->procfs_fd, main, ours, sizeof(ours)))
		return UNDECIDED;
	return strcmp(theirs, ours) == 0 && is_below_root(ours) ? SAME : DIFFERENT;
}

static bool read_namespace(const struct pid_match *match, const char *who, char *out, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/ns/pid", who);
	return read_link(match->env->procfs_fd, path, out, size);
}

static enum similarity compare_namespaces(const struct pid_match *match, const char *who, const char *main)
{
	char theirs[64], ours[64];
	if (!read_namespace(match, who, theirs, sizeof(theirs)) || !read_namespace(match, main, ours, sizeof(ours)))
		return UNDECIDED;
	return strcmp(theirs, ours) == 0 ? SAME : DIFFERENT;
}

static bool read_status(const struct wattle_env *env, pid_t pid, char *out, size_t size)
{
	char path[32];
	snprintf(path, sizeof(path), "%d/status", (int)pid);
	return env->procfs_fd >= 0 && file_read_in(env->procfs_fd, path, out, size) > 0;
}

pid_t pid_proc_inner(const struct wattle_env *env, pid_t pid)
{
	char status[4096];
	pid_t inner = 0;
	if (read_status(env, pid, status, sizeof(status)))
		parse_nspid(status, &inner);
	return inner;
}

void pid_proc_scan(const struct pid_match *match, struct pid_seen *seen)
{
	char who[16], main[16], status[4096];
	pid_t inner = 0;
	if (!read_status(match->env, seen->pid, status, sizeof(status)))
		return;
	seen->visible = true;
	if (match->view == PID_VIEW_NESTED)
		return; // only its pid is needed
	snprintf(who, sizeof(who), "%d", (int)seen->pid);
	snprintf(main, sizeof(main), "%d", (int)match->main_pid);
	size_t n = parse_nspid(status, &inner);
	seen->inner = inner;
	enum similarity cgroup = compare_cgroups(match, who, main), namespace = compare_namespaces(match, who, main);
	seen->same_cgroup = cgroup == SAME;
	// The namespace is stronger evidence, but reading it requires ptrace access; the cgroup is readable by all.
	seen->is_ours = n > 1 && (namespace == SAME || (namespace == UNDECIDED && cgroup != DIFFERENT));
}

/* ---- descriptors ---- */

static const char device_prefix[] = "/dev/nvidia";

struct devices { // devices that a process has open
	uint64_t minors;
	bool shared_memory; // nvidia-uvm
	bool any;
};

static void take_link(const char *link, struct devices *devices)
{
	uint64_t minor;
	if (strncmp(link, device_prefix, sizeof(device_prefix) - 1) != 0)
		return;
	const char *rest = link + sizeof(device_prefix) - 1;
	if (num_parse_u64(rest, &minor) == 0 && minor < PID_MINORS_MAX)
		devices->minors |= UINT64_C(1) << minor;
	if (strcmp(rest, "-uvm") == 0)
		devices->shared_memory = true;
	devices->any = true;
}

// Returns an empty result if access to the process is denied.
static struct devices read_devices(int procfs_fd, const char *who)
{
	struct devices devices = {0};
	char path[272], link[64];
	char text[FOLDER_TEXT_SIZE] __attribute__((aligned(8)));
	snprintf(path, sizeof(path), "%s/fd", who);
	wattle_cleanup_close int fd = file_open_in(procfs_fd, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return devices;
	struct folder_walk walk = folder_walk_begin(fd, text, sizeof(text));
	for (const char *name; (name = folder_walk_next(&walk, NULL)) != NULL;)
		if (read_link(fd, name, link, sizeof(link)))
			take_link(link, &devices);
	return devices;
}

static void count_holder(struct pid_match *match, pid_t pid, const struct devices *devices)
{
	bool is_target = false;
	for (size_t i = 0; i < match->n_last && !is_target; i++)
		is_target = match->last_pids[i] == pid;
	for (unsigned int minor = 0; minor < PID_MINORS_MAX; minor++) {
		bool holds = (devices->minors >> minor & 1) != 0;
		// Shared memory without a GPU descriptor: the GPU is unknown, so it may be any of them.
		if (!holds && !(devices->shared_memory && devices->minors == 0))
			continue;
		match->holders[minor].target += is_target;
		match->holders[minor].others += !is_target;
	}
}

void pid_proc_find_holders(struct pid_match *match)
{
	int procfs_fd = match->env->procfs_fd;
	char text[FOLDER_TEXT_SIZE] __attribute__((aligned(8)));
	memset(match->holders, 0, sizeof(match->holders));
	wattle_cleanup_close int fd = procfs_fd >= 0 ? file_open_in(procfs_fd, ".", O_RDONLY | O_DIRECTORY) : -1;
	if (fd < 0)
		return;
	// This process has the devices open once the library is initialised, so its own entry shows whether they are visible.
	bool can_decide = read_devices(procfs_fd, "self").any;
	struct folder_walk walk = folder_walk_begin(fd, text, sizeof(text));
	for (const char *name; (name = folder_walk_next(&walk, NULL)) != NULL;) {
		uint64_t pid;
		if (num_parse_u64(name, &pid) < 0 || pid > INT32_MAX || (pid_t)pid == match->own_pid)
			continue;
		struct devices devices = read_devices(procfs_fd, name);
		if (devices.any)
			count_holder(match, (pid_t)pid, &devices);
		can_decide = can_decide || devices.any;
	}
	for (unsigned int minor = 0; minor < PID_MINORS_MAX; minor++)
		match->holders[minor].can_decide = can_decide;
}
