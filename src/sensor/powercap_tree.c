#include "sensor/sysfs.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>

// Limit against trees that are not those of a real machine.
static const size_t ZONES_MAX = 1024;

/* The kernel's folders are nested in devices/virtual/powercap/TYPE/…; class/powercap has flat links to all of them, at every
 * depth. Test trees have either, both, or plain folders in the class. */
static const char *const tops[] = {"class/powercap", "devices/virtual/powercap"};

static bool read_hex(const char **at, uint32_t *ret_value)
{
	uint32_t value = 0;
	size_t digits = 0;
	for (;; digits++, ++*at) {
		char c = **at;
		uint32_t digit;
		if (c >= '0' && c <= '9')
			digit = (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (uint32_t)(c - 'a') + 10;
		else
			break;
		value = value << 4 | digit;
	}
	*ret_value = value;
	return digits > 0 && digits <= 8;
}

// "intel-rapl:0:1" is a zone; "intel-rapl", "subsystem" and "constraint_0_name" are not.
static bool parse_id(const char *id, struct zone *ret_zone)
{
	const char *at = strchr(id, ':');
	if (at == NULL || at == id || (size_t)(at - id) >= sizeof(ret_zone->type))
		return false;
	struct zone zone = {.parent = -1};
	memcpy(zone.type, id, (size_t)(at - id));
	while (*at == ':') {
		at++;
		if (zone.n_levels == ZONE_LEVELS_MAX || !read_hex(&at, &zone.at[zone.n_levels++]))
			return false;
	}
	if (*at != '\0' || !text_copy(zone.id, sizeof(zone.id), id))
		return false;
	*ret_zone = zone;
	return true;
}

static struct zone *find(const struct zone_list *list, const char *id)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->zones[i].id, id) == 0)
			return &list->zones[i];
	return NULL;
}

static int add(struct zone_list *list, const struct zone *zone)
{
	struct zone *larger = array_reserve(list->zones, list->n, &list->capacity, sizeof(*larger), 16);
	if (larger == NULL)
		return -ENOMEM;
	list->zones = larger;
	list->zones[list->n++] = *zone;
	return 0;
}

static bool join(char *out, size_t size, const char *folder, const char *name)
{
	int length = snprintf(out, size, "%s/%s", folder, name);
	return length > 0 && (size_t)length < size;
}

static bool read_name(int root_fd, struct zone *zone)
{
	char path[sizeof(zone->path) + 8];
	snprintf(path, sizeof(path), "%s/name", zone->path);
	return file_read_line_in(root_fd, path, zone->name, sizeof(zone->name)) >= 0;
}

static int add_zone(int root_fd, const char *folder, const char *id, struct zone_list *list)
{
	struct zone zone;
	if (list->n == ZONES_MAX || !parse_id(id, &zone) || find(list, id) != NULL ||
		!join(zone.path, sizeof(zone.path), folder, id))
		return 0;
	// A dangling link: the folder may be found by another path.
	return read_name(root_fd, &zone) ? add(list, &zone) : 0;
}

// Adds the zones directly in one folder, without recursion.
static int scan(int root_fd, const char *path, struct zone_list *list)
{
	struct folder folder;
	int r = folder_list(root_fd, path, "", &folder);
	for (size_t i = 0; r == 0 && i < folder.n; i++)
		r = add_zone(root_fd, path, folder.names[i], list);
	folder_finish(&folder);
	return r;
}

// A control type is a folder without energy; its zones are inside it.
static int scan_control_types(int root_fd, const char *top, struct zone_list *list)
{
	struct folder folder;
	char path[sizeof(list->zones[0].path)];
	int r = folder_list(root_fd, top, "", &folder);
	for (size_t i = 0; r == 0 && i < folder.n; i++)
		if (strchr(folder.names[i], ':') == NULL && join(path, sizeof(path), top, folder.names[i]))
			r = scan(root_fd, path, list);
	folder_finish(&folder);
	return r;
}

static int by_type_and_number(const void *left, const void *right)
{
	const struct zone *a = left, *b = right;
	int order = strcmp(a->type, b->type);
	if (order != 0)
		return order;
	for (size_t i = 0; i < a->n_levels && i < b->n_levels; i++)
		if (a->at[i] != b->at[i])
			return a->at[i] < b->at[i] ? -1 : 1;
	return (a->n_levels > b->n_levels) - (a->n_levels < b->n_levels);
}

// The id determines the parent; the folder hierarchy does not.
static void find_parents(struct zone_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		char id[sizeof(list->zones[i].id)];
		text_copy(id, sizeof(id), list->zones[i].id);
		*strrchr(id, ':') = '\0';
		const struct zone *parent = find(list, id);
		list->zones[i].parent = parent != NULL ? (int)(parent - list->zones) : -1;
	}
}

int zone_list_find(int root_fd, struct zone_list *ret_list)
{
	*ret_list = (struct zone_list){0};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tops); i++) {
		r = scan(root_fd, tops[i], ret_list);
		if (r == 0)
			r = scan_control_types(root_fd, tops[i], ret_list);
	}
	/* The list is also the work queue: the zones inside a zone are appended and scanned later. The loop ends because no
	 * id is added twice, even if links form a cycle. */
	for (size_t i = 0; r == 0 && i < ret_list->n; i++) {
		char path[sizeof(ret_list->zones[i].path)];
		text_copy(path, sizeof(path), ret_list->zones[i].path);
		r = scan(root_fd, path, ret_list);
	}
	if (ret_list->n > 0)
		qsort(ret_list->zones, ret_list->n, sizeof(ret_list->zones[0]), by_type_and_number);
	find_parents(ret_list);
	return r;
}

void zone_list_keep(struct zone_list *list, bool (*wanted)(const struct zone *zone))
{
	size_t n = 0;
	for (size_t i = 0; i < list->n; i++)
		if (wanted(&list->zones[i]))
			list->zones[n++] = list->zones[i];
	list->n = n;
	find_parents(list);
}

void zone_list_finish(struct zone_list *list)
{
	free(list->zones);
	*list = (struct zone_list){0};
}
