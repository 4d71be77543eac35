/* Parts of /sys shared by sensors, power limits and the helper: messages for unreadable files, topology, powercap zones,
 * hwmon chips, small files of numbers. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Nesting of domains, where it follows from their names. */

// Returns the used domain with that name among n, or NULL.
struct domain *domain_find_used(struct domain *domains, size_t n, const char *name);
// Places packages inside the psys of their socket, else inside that of the machine. The nesting is for display only: the
// analysis adds packages, not psys.
void domains_put_packages_inside_psys(struct domain *domains, size_t n);

/* Reasons why a domain is not used, for messages: its file can't be read (with the command that enables it), or another
 * domain is better. */

// path: of the file, relative to /sys; code: negative errno of opening or reading it. Sets the domain to neither readable nor
// used, with `why` and, if a command helps, `remedy`.
void domain_set_unreadable(struct domain *domain, const struct wattle_env *env, const char *path, int code);
// Lists a domain without using it, readable or not, and without a remedy.
__attribute__((format(printf, 2, 3))) void domain_leave_out(struct domain *domain, const char *why, ...);

/* Socket and die of each CPU, and the kind of CPU; read once, at open. */

struct cpu_location {
	int package, die; // kernel numbers; -1: not reported
};

struct cpu_location cpu_location_read(int sysfs_fd, int cpu);
// Parses a kernel CPU list such as "0,16" or "0-1,64" into at most `size` numbers; returns how many were stored.
size_t cpu_list_parse(const char *text, int *ret_cpus, size_t size);
// Number of sockets according to cpuinfo, at least 1.
int cpu_count_packages(const struct wattle_env *env);
// True for AMD and Hygon, which count energy once per socket, whatever its number of dies.
bool cpu_dies_share_counter(const struct wattle_env *env);
// True in a guest, whose counters may be invented by the hypervisor.
bool cpu_is_virtual(const struct wattle_env *env);

/* Every zone of a powercap tree exactly once, whatever the tree's shape. Handles folders, not energy. */

enum { ZONE_LEVELS_MAX = 6 };

struct zone {
	char id[64];                  // name of its folder: "intel-rapl:0:1"
	char path[160];               // of its folder, relative to the root
	char name[40];                // content of its `name` file: "dram"; "" if that is empty
	char type[32];                // control type: "intel-rapl"
	uint32_t at[ZONE_LEVELS_MAX]; // 0, 1
	size_t n_levels;
	int parent; // index in the list; -1: top level, or parent missing
};

struct zone_list {
	struct zone *zones; // owned; by type, then by number, so that parents come before children
	size_t n, capacity;
};

// A tree that is missing, empty or malformed gives fewer zones, not an error; fails with -ENOMEM only. *ret_list is always
// valid.
int zone_list_find(int root_fd, struct zone_list *ret_list);
// Removes the zones that `wanted` rejects; children of removed parents become top-level zones.
void zone_list_keep(struct zone_list *list, bool (*wanted)(const struct zone *zone));
void zone_list_finish(struct zone_list *list);

/* The chips of /sys/class/hwmon (and INA3221 chips that only the bus lists), each once, identified by name: the N of hwmonN
 * is the order in which drivers were loaded. */

enum { HWMON_PATH_SIZE = 200 };

struct hwmon_chip {
	char name[32];  // of its driver: "coretemp"
	char path[128]; // of its folder, relative to the root
	char device
		[64]; // kernel's name of the hardware: "ACPI000D:00", "0000:00:18.3"; the folder's name if unknown
	dev_t st_dev;
	ino_t st_ino;
};

struct hwmon_chips {
	struct hwmon_chip *chips; // owned; by name, then by device
	size_t n, capacity;
};

// Fails with -ENOMEM only; *ret_chips is always valid.
int hwmon_chips_find(int root_fd, struct hwmon_chips *ret_chips);
void hwmon_chips_finish(struct hwmon_chips *chips);

// Finds the attribute in the chip's folder or, for old drivers, in that of its device. Returns false if it is in neither.
bool hwmon_attribute_path(int root_fd, const struct hwmon_chip *chip, const char *attribute,
	char ret_path[HWMON_PATH_SIZE]);
// Reads the attribute without its newline; returns false if there is none.
bool hwmon_attribute_read(int root_fd, const struct hwmon_chip *chip, const char *attribute, char *out, size_t size);

/* Small files in a device's /sys folder, one number each, as tables that map files to metrics and units. */

struct gauge {
	enum device_metric metric;
	bool in_hwmon;        // in the device's hwmon folder, not in its own
	int64_t divisor;      // converts the file's unit to the metric's
	const char *names[3]; // candidates; the first that yields a number is used from then on
};

struct gauge_file {
	struct file_kept file; // path "": no such file
	const struct gauge *gauge;
};

// Opens the files of a table; `hwmon` may be "". If `asleep`, reads nothing and selects the first file that exists.
void gauges_open(struct gauge_file *files, const struct gauge *gauges, size_t n, int root_fd, const char *device,
	const char *hwmon, bool asleep);
void gauges_close(struct gauge_file *files, size_t n);
// Fills the row; unreadable values are left unchanged. Returns the last error, or 0.
int gauges_read(struct gauge_file *files, size_t n, int64_t *row);
// Returns the file of a metric; NULL: none.
struct gauge_file *gauges_find(struct gauge_file *files, size_t n, enum device_metric metric);
// Opens, reads and closes one such file; VALUE_MISSING if it can't be read.
int64_t gauge_read_once(int root_fd, const char *folder, const char *name);
