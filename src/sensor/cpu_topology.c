#include "sensor/sysfs.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/num.h"
#include "base/util.h"

#include <stdio.h>

enum { CPUINFO_CEILING = 16 << 20, CPUS_MAX = 1 << 16 };

static int read_id(int sysfs_fd, int cpu, const char *name)
{
	char path[96];
	uint64_t id;
	snprintf(path, sizeof(path), "devices/system/cpu/cpu%d/topology/%s", cpu, name);
	// Kernels without the information write -1; some virtual machines write 65535 as the socket.
	return file_read_u64_in(sysfs_fd, path, &id) == 0 && id < 65535 ? (int)id : -1;
}

struct cpu_location cpu_location_read(int sysfs_fd, int cpu)
{
	return (struct cpu_location){
		.package = read_id(sysfs_fd, cpu, "physical_package_id"),
		.die = read_id(sysfs_fd, cpu, "die_id"),
	};
}

static bool read_cpu(const char **at, int *ret_cpu)
{
	int cpu = 0, digits = 0;
	for (; **at >= '0' && **at <= '9' && cpu < CPUS_MAX; (*at)++, digits++)
		cpu = cpu * 10 + (**at - '0');
	*ret_cpu = cpu;
	return digits > 0;
}

size_t cpu_list_parse(const char *text, int *ret_cpus, size_t size)
{
	size_t n = 0;
	const char *at = text;
	int first, last;
	while (read_cpu(&at, &first)) {
		last = first;
		if (*at == '-') {
			at++;
			if (!read_cpu(&at, &last))
				break;
		}
		for (int cpu = first; cpu <= last && n < size; cpu++)
			ret_cpus[n++] = cpu;
		if (*at != ',')
			break;
		at++;
	}
	return n;
}

// Copies the rest of the first line that starts with `key`, truncated to `size`; "" if there is none.
static void find_line(const char *cpuinfo, const char *key, char *out, size_t size)
{
	out[0] = '\0';
	const char *at = cpuinfo;
	while (at != NULL && strncmp(at, key, strlen(key)) != 0) {
		at = strchr(at, '\n');
		at = at != NULL ? at + 1 : NULL;
	}
	if (at == NULL)
		return;
	size_t length = strcspn(at, "\n");
	length = length < size ? length : size - 1;
	memcpy(out, at, length);
	out[length] = '\0';
}

static void read_line(const struct wattle_env *env, const char *key, char *out, size_t size)
{
	char text[16384]; // the first CPU's block; its flags alone take 2 KiB
	out[0] = '\0';
	if (file_read_in(env->procfs_fd, "cpuinfo", text, sizeof(text)) > 0)
		find_line(text, key, out, size);
}

bool cpu_dies_share_counter(const struct wattle_env *env)
{
	char vendor[64];
	read_line(env, "vendor_id", vendor, sizeof(vendor));
	return strstr(vendor, "AuthenticAMD") != NULL || strstr(vendor, "HygonGenuine") != NULL;
}

bool cpu_is_virtual(const struct wattle_env *env)
{
	char flags[8192];
	read_line(env, "flags", flags, sizeof(flags));
	return strstr(flags, " hypervisor") != NULL;
}

int cpu_count_packages(const struct wattle_env *env)
{
	wattle_cleanup_free char *text = NULL;
	size_t size;
	uint64_t highest = 0;
	if (file_read_all_in(env->procfs_fd, "cpuinfo", CPUINFO_CEILING, &text, &size) < 0)
		return 1;
	for (const char *at = strstr(text, "physical id"); at != NULL; at = strstr(at, "physical id")) {
		uint64_t id = 0;
		at += strcspn(at, ":\n");
		at += strspn(at, ": \t");
		for (; *at >= '0' && *at <= '9' && id < CPUS_MAX; at++)
			id = id * 10 + (uint64_t)(*at - '0');
		highest = id > highest ? id : highest;
	}
	return (int)highest + 1;
}
