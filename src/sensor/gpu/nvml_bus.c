#include "sensor/gpu/nvml_api.h"

#include "base/folder.h"
#include "base/num.h"
#include "base/util.h"
#include "sensor/gpu/drm_cards.h"

#include <errno.h>
#include <stdio.h>

static const char pci_folder[] = "bus/pci/devices";
// Display controllers: VGA, 3D and others. Audio and USB functions of the board have the same vendor but are not GPUs.
static const unsigned long display_class = 0x03;
enum { NVIDIA = 0x10de };

static bool read_hex(const struct wattle_env *env, const char *address, const char *file, unsigned long *ret_value)
{
	char path[160], text[32], *end;
	snprintf(path, sizeof(path), "%s/%s/%s", pci_folder, address, file);
	if (file_read_line_in(env->sysfs_fd, path, text, sizeof(text)) <= 0)
		return false;
	*ret_value = strtoul(text, &end, 16);
	return end != text && *end == '\0';
}

static bool is_gpu(const struct wattle_env *env, const char *address)
{
	unsigned long vendor, class;
	return read_hex(env, address, "vendor", &vendor) && vendor == NVIDIA &&
		read_hex(env, address, "class", &class) && class >> 16 == display_class;
}

static void add_gpu(struct nvml_bus *bus, const struct wattle_env *env, const char *address, const char *device)
{
	char path[160];
	struct nvml_bus_gpu *gpu = &bus->gpus[bus->n];
	int length = snprintf(path, sizeof(path), "%s/power/runtime_status", device);
	if (bus->n == NVML_BUS_MAX || length < 0 || (size_t)length >= sizeof(path))
		return;
	text_copy(gpu->address, sizeof(gpu->address), address);
	(void)file_kept_open(&gpu->status, env->sysfs_fd, path); // without the file: awake
	bus->n++;
}

static int find_on_bus(struct nvml_bus *bus, const struct wattle_env *env)
{
	struct folder folder;
	char device[128];
	int r = folder_list(env->sysfs_fd, pci_folder, "", &folder);
	bus->is_listed = folder.n > 0;
	for (size_t i = 0; r == 0 && i < folder.n; i++) {
		if (!is_gpu(env, folder.names[i]))
			continue;
		snprintf(device, sizeof(device), "%s/%s", pci_folder, folder.names[i]);
		add_gpu(bus, env, folder.names[i], device);
	}
	folder_finish(&folder);
	return r;
}

static bool has_cards(const struct wattle_env *env)
{
	struct folder folder;
	bool any = folder_list(env->sysfs_fd, "class/drm", "card", &folder) == 0 && folder.n > 0;
	folder_finish(&folder);
	return any;
}

// A tree without the bus may still have the DRM cards.
static int find_cards(struct nvml_bus *bus, const struct wattle_env *env)
{
	struct drm_cards cards;
	int r = drm_cards_find(env, NVIDIA, &cards);
	bus->is_listed = bus->is_listed || has_cards(env);
	for (size_t i = 0; r == 0 && i < cards.n; i++)
		add_gpu(bus, env, cards.cards[i].pci, cards.cards[i].device);
	drm_cards_finish(&cards);
	return r;
}

// Compares as numbers: addresses have a fixed width except those with long domains, which come last.
static int by_address(const void *a, const void *b)
{
	const struct nvml_bus_gpu *first = a, *second = b;
	size_t first_length = strlen(first->address), second_length = strlen(second->address);
	if (first_length != second_length)
		return first_length < second_length ? -1 : 1;
	return strcasecmp(first->address, second->address);
}

int nvml_bus_open(struct nvml_bus *bus, const struct wattle_env *env)
{
	*bus = (struct nvml_bus){0};
	if (env->sysfs_fd < 0)
		return 0;
	bus->gpus = calloc_array(NVML_BUS_MAX, sizeof(*bus->gpus));
	if (bus->gpus == NULL)
		return -ENOMEM;
	int r = find_on_bus(bus, env);
	if (r == 0 && bus->n == 0)
		r = find_cards(bus, env);
	qsort(bus->gpus, bus->n, sizeof(bus->gpus[0]), by_address);
	return r;
}

void nvml_bus_close(struct nvml_bus *bus)
{
	for (size_t i = 0; i < bus->n; i++)
		file_kept_close(&bus->gpus[i].status);
	free(bus->gpus);
	*bus = (struct nvml_bus){0};
}

bool nvml_bus_is_asleep(struct nvml_bus *bus, size_t i)
{
	char status[32];
	if (file_kept_read(&bus->gpus[i].status, status, sizeof(status)) <= 0)
		return false;
	return strncmp(status, "suspended", 9) == 0 || strncmp(status, "suspending", 10) == 0;
}

bool nvml_bus_has_none(const struct nvml_bus *bus)
{
	return bus->is_listed && bus->n == 0;
}

bool nvml_bus_all_asleep(struct nvml_bus *bus)
{
	bool all = bus->n > 0;
	for (size_t i = 0; i < bus->n && all; i++)
		all = nvml_bus_is_asleep(bus, i);
	return all;
}

int nvml_bus_find(const struct nvml_bus *bus, const struct nvml_pci *pci)
{
	char address[24];
	snprintf(address, sizeof(address), "%04x:%02x:%02x.0", pci->domain, pci->bus, pci->device);
	for (size_t i = 0; i < bus->n; i++)
		if (strcasecmp(bus->gpus[i].address, address) == 0)
			return (int)i;
	return -1;
}

int nvml_bus_numa_node(const struct nvml_bus *bus, const struct wattle_env *env, size_t i)
{
	char path[160], text[32];
	int64_t node;
	snprintf(path, sizeof(path), "%s/%s/numa_node", pci_folder, bus->gpus[i].address);
	bool is_read = file_read_line_in(env->sysfs_fd, path, text, sizeof(text)) > 0;
	return is_read && num_parse_i64(text, &node) == 0 && node >= 0 && node <= 1024 ? (int)node : -1;
}
