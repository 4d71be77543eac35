#include "sensor/gpu/drm_cards.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static bool is_card(const char *name)
{
	const char *digits = name + strlen("card");
	return *digits != '\0' && strspn(digits, "0123456789") == strlen(digits);
}

// Reads a file with a value such as "0x1002".
static bool read_hex(int root_fd, const char *folder, const char *name, uint32_t *ret_value)
{
	char path[96], text[32], *end;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (file_read_line_in(root_fd, path, text, sizeof(text)) <= 0)
		return false;
	unsigned long value = strtoul(text, &end, 16);
	if (*end != '\0' || value > UINT32_MAX)
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

// Copies the value of KEY=value from `text`, truncated to fit.
static void copy_value(const char *text, const char *key, char *out, size_t size)
{
	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		line += strlen(key);
		snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
		return;
	}
}

// Copies the last component of the link target of folder/name.
static void copy_link(int root_fd, const char *folder, const char *name, char *out, size_t size)
{
	char target[512];
	wattle_cleanup_close int fd = file_open_in(root_fd, folder, O_RDONLY | O_DIRECTORY);
	ssize_t length = fd >= 0 ? readlinkat(fd, name, target, sizeof(target) - 1) : -1;
	if (length <= 0)
		return;
	target[length] = '\0';
	const char *slash = strrchr(target, '/');
	text_copy(out, size, slash != NULL ? slash + 1 : target);
}

static void read_identity(int root_fd, struct drm_card *card)
{
	char path[96], text[1024], folder[48];
	snprintf(path, sizeof(path), "%s/uevent", card->device);
	if (file_read_in(root_fd, path, text, sizeof(text)) > 0) {
		copy_value(text, "DRIVER=", card->driver, sizeof(card->driver));
		copy_value(text, "PCI_SLOT_NAME=", card->pci, sizeof(card->pci));
	}
	if (card->driver[0] == '\0')
		copy_link(root_fd, card->device, "driver", card->driver, sizeof(card->driver));
	snprintf(folder, sizeof(folder), "class/drm/%s", card->name);
	if (card->pci[0] == '\0')
		copy_link(root_fd, folder, "device", card->pci, sizeof(card->pci));
	if (strchr(card->pci, ':') == NULL) // "device" in a test tree, or for a chip that is not on PCI
		card->pci[0] = '\0';
	if (!read_hex(root_fd, card->device, "device", &card->product))
		card->product = 0;
}

// Finds the hwmon with the driver's name; i915 has further ones for its tiles.
static int find_hwmon(int root_fd, struct drm_card *card)
{
	char path[72], name_path[176], name[32];
	struct folder folder;
	snprintf(path, sizeof(path), "%s/hwmon", card->device);
	int r = folder_list(root_fd, path, "hwmon", &folder);
	for (size_t i = 0; i < folder.n && card->hwmon[0] == '\0'; i++) {
		snprintf(name_path, sizeof(name_path), "%s/%s/name", path, folder.names[i]);
		bool named = file_read_line_in(root_fd, name_path, name, sizeof(name)) > 0;
		if (named && card->driver[0] != '\0' && strcmp(name, card->driver) != 0)
			continue;
		int length = snprintf(card->hwmon, sizeof(card->hwmon), "%s/%s", path, folder.names[i]);
		if (length >= (int)sizeof(card->hwmon))
			card->hwmon[0] = '\0';
	}
	folder_finish(&folder);
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct drm_card *first = a, *second = b;
	bool known = first->pci[0] != '\0' && second->pci[0] != '\0';
	int by_pci = known ? strcasecmp(first->pci, second->pci) : 0;
	return by_pci != 0 ? by_pci : strverscmp(first->name, second->name);
}

int drm_cards_find(const struct wattle_env *env, uint32_t vendor, struct drm_cards *ret_cards)
{
	struct folder folder;
	*ret_cards = (struct drm_cards){0};
	int r = folder_list(env->sysfs_fd, "class/drm", "card", &folder);
	if (r == 0 && folder.n > 0)
		ret_cards->cards = calloc_array(folder.n, sizeof(*ret_cards->cards));
	if (r == 0 && folder.n > 0 && ret_cards->cards == NULL)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < folder.n; i++) {
		struct drm_card card = {0};
		if (!is_card(folder.names[i]) || !text_copy(card.name, sizeof(card.name), folder.names[i]))
			continue;
		snprintf(card.device, sizeof(card.device), "class/drm/%s/device", card.name);
		if (!read_hex(env->sysfs_fd, card.device, "vendor", &card.vendor) || card.vendor != vendor)
			continue;
		read_identity(env->sysfs_fd, &card);
		r = find_hwmon(env->sysfs_fd, &card);
		ret_cards->cards[ret_cards->n++] = card;
	}
	folder_finish(&folder);
	if (ret_cards->n > 1)
		qsort(ret_cards->cards, ret_cards->n, sizeof(*ret_cards->cards), compare);
	return r;
}

void drm_cards_finish(struct drm_cards *cards)
{
	free(cards->cards);
	*cards = (struct drm_cards){0};
}

static bool is_same(const struct drm_card *a, const struct drm_card *b)
{
	return a->pci[0] != '\0' ? strcmp(a->pci, b->pci) == 0 : strcmp(a->name, b->name) == 0;
}

bool drm_cards_find_again(const struct wattle_env *env, struct drm_card *card)
{
	struct drm_cards cards;
	bool found = false;
	drm_cards_find(env, card->vendor, &cards);
	for (size_t i = 0; i < cards.n && !found; i++) {
		found = is_same(card, &cards.cards[i]);
		if (found)
			*card = cards.cards[i];
	}
	drm_cards_finish(&cards);
	return found;
}

static bool is_driver(const struct drm_card *card, const char *name)
{
	return strcmp(card->driver, name) == 0;
}

// Integrated GPUs have always been on the root bus at 00:02.0.
bool drm_card_is_integrated(const struct drm_card *card)
{
	const char *bus = strchr(card->pci, ':');
	return card->vendor == DRM_INTEL && bus != NULL && strncmp(bus, ":00:", 4) == 0;
}

bool drm_card_is_gpu(const struct drm_card *card)
{
	if (card->vendor == DRM_AMD) // not radeon, not vfio-pci
		return card->driver[0] == '\0' || is_driver(card, "amdgpu");
	bool is_known = card->driver[0] == '\0' || is_driver(card, "i915") || is_driver(card, "xe");
	return is_known && !drm_card_is_integrated(card);
}

void drm_card_describe(const struct wattle_env *env, const struct drm_card *card, char *out, size_t size)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/product_name", card->device);
	if (card->device[0] != '\0' && file_read_line_in(env->sysfs_fd, path, out, size) > 0)
		return;
	snprintf(out, size, "%s GPU %04x:%04x%s%s", card->vendor == DRM_AMD ? "AMD" : "Intel", card->vendor,
		card->product, card->pci[0] != '\0' ? " at " : "", card->pci);
}

bool drm_is_gone(int code)
{
	return code == -ENOENT || code == -ENODEV || code == -ENOTDIR;
}

static const char *const notes[] = {
	[DRM_AWAKE] = "",
	[DRM_ASLEEP] = "suspended (runtime power management): not read, to avoid waking it",
	[DRM_GONE] = "removed from the machine; wattle checks for it once a second",
};

void drm_power_open(struct drm_power *power, const struct wattle_env *env, const char *device)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/power/runtime_status", device);
	if (file_kept_open(&power->status, env->sysfs_fd, path) < 0)
		power->status.path[0] = '\0';
}

void drm_power_close(struct drm_power *power)
{
	file_kept_close(&power->status);
}

bool drm_power_sleeps(struct drm_power *power)
{
	char text[32];
	if (power->status.path[0] == '\0' || file_kept_read(&power->status, text, sizeof(text)) <= 0)
		return false;
	return strncmp(text, "suspend", strlen("suspend")) == 0; // "suspended", "suspending"
}

void drm_state_describe(struct domain *domain, enum drm_state state)
{
	bool reported = strcmp(domain->note, notes[DRM_ASLEEP]) == 0 || strcmp(domain->note, notes[DRM_GONE]) == 0;
	if (state != DRM_AWAKE || reported) // keep another note until there is a state to report
		text_copy(domain->note, sizeof(domain->note), notes[state]);
}
