#include "sensor/container.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/util.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Container engines mount an empty folder over the container's /sys/devices/virtual/powercap, the target of the class links
 * (CVE-2020-8694; Docker since 2023). They do so after all other mounts. Mounts at other paths are left alone. */
#define MOUNT "-v /sys:/host/sys:ro -e WATTLE_SYSFS=/host/sys …"

static const struct {
	const char *powercap, *perf;
} remedies[] = {
	[CONTAINER_NONE] = {"", ""},
	[CONTAINER_DOCKER] = {"docker run " MOUNT, "docker run --cap-add PERFMON …"},
	[CONTAINER_PODMAN] = {"podman run " MOUNT, "podman run --cap-add PERFMON …"},
	[CONTAINER_OTHER] = {"mount the host's /sys at /host/sys, read-only, and set WATTLE_SYSFS=/host/sys",
		"give the container the capability CAP_PERFMON"},
};

const char *container_perf_remedy(enum container container)
{
	return remedies[container].perf;
}

static bool has_zone(int sysfs_fd)
{
	struct folder zones;
	bool found = false;
	folder_list(sysfs_fd, "class/powercap", "", &zones);
	for (size_t i = 0; i < zones.n && !found; i++) {
		char path[128];
		snprintf(path, sizeof(path), "class/powercap/%s/energy_uj", zones.names[i]);
		wattle_cleanup_close int fd = file_open_in(sysfs_fd, path, O_PATH);
		found = fd >= 0;
	}
	folder_finish(&zones);
	return found;
}

bool container_hides_powercap(const struct wattle_env *env, const char **ret_why, const char **ret_remedy)
{
	enum container container = container_detect(env);
	if (container == CONTAINER_NONE || has_zone(env->sysfs_fd))
		return false;
	*ret_why = "the host's /sys/class/powercap is not visible in this container";
	*ret_remedy = remedies[container].powercap;
	return true;
}

// Strings that container engines write into the cgroup name of a process.
static enum container by_cgroup(int procfs_fd)
{
	static const struct {
		const char *word;
		enum container container;
	} words[] = {
		{"kubepods", CONTAINER_OTHER}, // before docker, which may start these
		{"docker", CONTAINER_DOCKER},
		{"libpod", CONTAINER_PODMAN},
		{"/lxc", CONTAINER_OTHER},
		{"crio-", CONTAINER_OTHER},
		{"containerd", CONTAINER_OTHER},
	};
	char text[4096];
	if (file_read_in(procfs_fd, "1/cgroup", text, sizeof(text)) <= 0)
		return CONTAINER_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strstr(text, words[i].word) != NULL)
			return words[i].container;
	return CONTAINER_NONE;
}

// " / / rw,… - overlay": only containers and live media have an overlay as their root.
static bool root_is_layers(int procfs_fd)
{
	char text[16384];
	if (file_read_in(procfs_fd, "self/mountinfo", text, sizeof(text)) <= 0)
		return false;
	for (const char *line = text; line != NULL && *line != '\0';) {
		const char *end = strchr(line, '\n');
		const char *root = strstr(line, " / / "), *type = strstr(line, " - overlay ");
		if (root != NULL && type != NULL && (end == NULL || (root < end && type < end)))
			return true;
		line = end != NULL ? end + 1 : NULL;
	}
	return false;
}

// The initial pid namespace has this inode on every kernel (PROC_PID_INIT_INO of proc_ns.h).
static bool in_pid_namespace(int procfs_fd)
{
	static const char initial[] = "pid:[4026531836]";
	char target[64];
	ssize_t length = procfs_fd >= 0 ? readlinkat(procfs_fd, "self/ns/pid", target, sizeof(target) - 1) : -1;
	target[length > 0 ? length : 0] = '\0';
	return strncmp(target, "pid:[", 5) == 0 && strcmp(target, initial) != 0;
}

enum container container_detect(const struct wattle_env *env)
{
	bool own_sys = strcmp(env->sysfs, "/sys") == 0;
	if (!env->procfs_replaced && !own_sys)
		return CONTAINER_NONE;
	if (!env->procfs_replaced && access("/run/.containerenv", F_OK) == 0)
		return CONTAINER_PODMAN;
	if (!env->procfs_replaced && access("/.dockerenv", F_OK) == 0)
		return CONTAINER_DOCKER;
	enum container container = by_cgroup(env->procfs_fd);
	if (container == CONTAINER_NONE && (root_is_layers(env->procfs_fd) || in_pid_namespace(env->procfs_fd)))
		return CONTAINER_OTHER;
	return container;
}
