/* What sensors, limits and the helper share of /sys: words for what can't be read, topology, zones of powercap, chips of hwmon,
 * small files of numbers. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Which domain contains which, where the names alone say it. */

// The used domain of that name among n, or NULL.
struct domain *domain_find_used(struct domain *domains, size_t n, const char *name);
// Packages lie inside their socket's psys, else inside the one of the machine. Analysis adds packages, not psys: that
// one lies inside the other is for people to see.
void domains_put_packages_inside_psys(struct domain *domains, size_t n);

/* Why a domain is not used, in words for people: a file that should hold a reading can't be read, with the command that
 * mends it, or another domain is better. */

// path: of the file, relative to /sys; code: the negative errno of opening or reading it. Leaves the domain neither
// readable nor used, with `why` and, where a command helps, `remedy`.
void domain_set_unreadable(struct domain *domain, const struct wattle_env *env, const char *path, int code);
// A domain that is listed but not used, whether it can be read or not: there is nothing to mend about it.
__attribute__((format(printf, 2, 3))) void domain_leave_out(struct domain *domain, const char *why, ...);

/* Which socket and die a CPU belongs to, and what kind of CPU it is; read once, at open. */

struct cpu_place {
	int package, die; // as the kernel numbers them; -1: not said
};

struct cpu_place cpu_place_read(int sysfs_fd, int cpu);
// "0,16" or "0-1,64": the CPUs of a list as the kernel writes it, at most `size` of them; how many were stored.
size_t cpu_list_parse(const char *text, int *ret_cpus, size_t size);
// Sockets of the machine by cpuinfo, at least 1.
int cpu_count_packages(const struct wattle_env *env);
// AMD and Hygon count energy once a socket, however many dies it has.
bool cpu_dies_share_counter(const struct wattle_env *env);
// A guest: whatever counters it shows may be the hypervisor's inventions.
bool cpu_is_virtual(const struct wattle_env *env);

/* Every zone of a powercap tree exactly once, whatever the tree's shape. Knows folders, not energy. */

enum { ZONE_LEVELS_MAX = 6 };

struct zone {
	char id[64];                  // name of its folder: "intel-rapl:0:1"
	char path[160];               // of its folder, relative to the root
	char name[40];                // text of its `name` file: "dram"; "" if that is empty
	char type[32];                // control type: "intel-rapl"
	uint32_t at[ZONE_LEVELS_MAX]; // 0, 1
	size_t n_levels;
	int parent; // index in the list, -1: top level or not there
};

struct zone_list {
	struct zone *zones; // owned; by type, then by number, so that a parent stands before its children
	size_t n, capacity;
};

// A tree that is missing, empty or odd gives fewer zones, not an error; -ENOMEM only. *ret_list is always valid.
int zone_list_find(int root_fd, struct zone_list *ret_list);
// Drops the zones that `wanted` says no to; parents that are dropped leave their children at the top level.
void zone_list_keep(struct zone_list *list, bool (*wanted)(const struct zone *zone));
void zone_list_finish(struct zone_list *list);

/* The chips of /sys/class/hwmon (and INA3221 monitors where only their bus shows them), each once, known by name:
 * the N of hwmonN is the order in which drivers were loaded and means nothing. */

enum { HWMON_PATH_SIZE = 200 };

struct hwmon_chip {
	char name[32];  // of its driver: "coretemp"
	char path[128]; // of its folder, relative to the root
	char device
		[64]; // what the kernel calls the hardware: "ACPI000D:00", "0000:00:18.3"; the folder's name if unknown
	dev_t st_dev;
	ino_t st_ino;
};

struct hwmon_chips {
	struct hwmon_chip *chips; // owned; by name, then by device
	size_t n, capacity;
};

// -ENOMEM only; *ret_chips is always valid.
int hwmon_chips_find(int root_fd, struct hwmon_chips *ret_chips);
void hwmon_chips_finish(struct hwmon_chips *chips);

// Where the attribute is: in the chip's folder or, as drivers of old registered it, in its device's. False: nowhere.
bool hwmon_attribute_path(int root_fd, const struct hwmon_chip *chip, const char *attribute,
	char ret_path[HWMON_PATH_SIZE]);
// Its text without newline; false if there is none.
bool hwmon_attribute_read(int root_fd, const struct hwmon_chip *chip, const char *attribute, char *out, size_t size);

/* Small files of a device in /sys that hold one number each, as tables: which file fills which metric, in what unit. */

struct gauge {
	enum device_metric metric;
	bool in_hwmon;        // in the device's hwmon folder, not in its own
	int64_t divisor;      // from the file's unit to the metric's
	const char *names[3]; // the first of them that gives a number is read ever after
};

struct gauge_file {
	struct file_kept file; // .path "": there is no such file
	const struct gauge *gauge;
};

// Opens the files of a table; `hwmon` may be "". Reads nothing if `asleep`: the first file that exists is taken then.
void gauges_open(struct gauge_file *files, const struct gauge *gauges, size_t n, int root_fd, const char *device,
	const char *hwmon, bool asleep);
void gauges_close(struct gauge_file *files, size_t n);
// Fills the row; what can't be read stays as it is. Returns the last failure: 0 if there was none.
int gauges_read(struct gauge_file *files, size_t n, int64_t *row);
// The file of a metric; NULL: there is none.
struct gauge_file *gauges_find(struct gauge_file *files, size_t n, enum device_metric metric);
// One number in such a file, read once; VALUE_MISSING if it can't be.
int64_t gauge_read_once(int root_fd, const char *folder, const char *name);
