#include "sensor/container.h"

#include "base/file.h"
#include "base/util.h"

#include <fcntl.h>
#include <unistd.h>

/* The class holds links into devices/virtual, so both are needed. Since 2023 container engines also put an empty
 * folder over the latter (CVE-2020-8694), after everything that was mounted, unless they are told not to. */
#define MOUNTS                                                                                                         \
	"-v /sys/class/powercap:/sys/class/powercap:ro -v /sys/devices/virtual/powercap:/sys/devices/virtual/powercap:ro"

static const struct {
	const char *powercap, *perf;
} remedies[] = {
	[CONTAINER_NONE] = {"", ""},
	[CONTAINER_DOCKER] = {"docker run " MOUNTS " --security-opt systempaths=unconfined …",
		"docker run --cap-add PERFMON …"},
	[CONTAINER_PODMAN] = {"podman run " MOUNTS " --security-opt unmask=ALL …", "podman run --cap-add PERFMON …"},
	[CONTAINER_OTHER] = {"mount the host's /sys/class/powercap and /sys/devices/virtual/powercap into the container, "
			     "read-only, and unmask the latter",
		"give the container the capability CAP_PERFMON"},
};

const char *container_powercap_remedy(enum container container)
{
	return remedies[container].powercap;
}

const char *container_perf_remedy(enum container container)
{
	return remedies[container].perf;
}

// What engines write into the name of a process's cgroup.
static enum container by_cgroup(int procfs_fd)
{
	static const struct {
		const char *word;
		enum container container;
	} words[] = {
		{"kubepods", CONTAINER_OTHER}, // before docker: it may start them
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

// " / / rw,… - overlay": the root folder itself is layers, as only containers (and live media) have it.
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

enum container container_detect(const struct wattle_env *env)
{
	// With another /proc the question is what that tree tells, not where this process runs.
	if (!env->procfs_replaced && access("/run/.containerenv", F_OK) == 0)
		return CONTAINER_PODMAN;
	if (!env->procfs_replaced && access("/.dockerenv", F_OK) == 0)
		return CONTAINER_DOCKER;
	enum container container = by_cgroup(env->procfs_fd);
	if (container == CONTAINER_NONE && root_is_layers(env->procfs_fd))
		return CONTAINER_OTHER;
	return container;
}
