#include "sensor/internal.h"

#include "base/num.h"
#include "base/util.h"
#include "sensor/sysfs.h"

#include <stdio.h>

/* amd_energy (Linux 5.8 to 5.12, and out of tree since): the package counter of each "socket" as Esocket0, Esocket1 …,
 * extended to 64 bits by the driver, and a counter of each core, which are parts of it. Mode 0440 (CVE-2020-12912).
 *
 * The driver calls every NUMA node a socket. With several nodes per socket (NPS2, NPS4) it shows the single package counter
 * once for each node. Nodes are therefore mapped to packages, and each package counts once. */

enum { INPUTS_MAX = 1024 };

// Package of the first CPU of NUMA node `node`; the node's own number if the kernel does not report it.
static int package_of_node(int sysfs_fd, int node)
{
	char path[64], text[256];
	int cpu;
	snprintf(path, sizeof(path), "devices/system/node/node%d/cpulist", node);
	if (file_read_line_in(sysfs_fd, path, text, sizeof(text)) <= 0 || cpu_list_parse(text, &cpu, 1) == 0)
		return node;
	int package = cpu_location_read(sysfs_fd, cpu).package;
	return package >= 0 ? package : node;
}

static void add_socket(struct hwmon *hwmon, const struct hwmon_chip *chip, int input, int node)
{
	char name[32], attribute[32], device[64];
	int package = package_of_node(hwmon->env->sysfs_fd, node);
	snprintf(name, sizeof(name), "package-%d", package);
	snprintf(attribute, sizeof(attribute), "energy%d_input", input);
	snprintf(device, sizeof(device), "amd_energy Esocket%d", node);
	int at = hwmon_add(hwmon, DOMAIN_PACKAGE, name, device);
	if (at < 0)
		return;
	struct domain *d = &hwmon->domains[at];
	d->index = package;
	d->provenance = PROVENANCE_MEASURED;
	hwmon_add_counter(hwmon, at, chip, attribute);
}

// Tries all sockets together, because one request to the helper returns all root-only counters.
static void try_sockets(struct hwmon *hwmon, size_t begin)
{
	privileged_refresh(&hwmon->counters);
	for (size_t i = begin; i < hwmon->n; i++) {
		int first = hwmon_find(hwmon, hwmon->domains[i].name);
		hwmon_try(hwmon, (int)i);
		if (first < (int)i && hwmon->domains[first].used)
			domain_leave_out(&hwmon->domains[i], "%s reads the same counter of the whole socket",
				hwmon->domains[first].device);
	}
}

void hwmon_add_amd_energy(struct hwmon *hwmon, const struct hwmon_chips *chips)
{
	static const char socket[] = "Esocket";
	size_t begin = hwmon->n;
	for (size_t i = 0; i < chips->n; i++) {
		if (strcmp(chips->chips[i].name, "amd_energy") != 0)
			continue;
		for (int input = 1; input <= INPUTS_MAX; input++) {
			char attribute[32], label[32];
			uint64_t node;
			snprintf(attribute, sizeof(attribute), "energy%d_label", input);
			if (!hwmon_attribute_read(hwmon->env->sysfs_fd, &chips->chips[i], attribute, label,
				    sizeof(label)))
				break;
			if (strncmp(label, socket, strlen(socket)) == 0 &&
				num_parse_u64(label + strlen(socket), &node) == 0 && node < INPUTS_MAX)
				add_socket(hwmon, &chips->chips[i], input, (int)node);
		}
	}
	try_sockets(hwmon, begin);
}
