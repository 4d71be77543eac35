#include "cli/sensors.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/util.h"
#include "cli/command.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- filters of file contents ---- */

static bool starts_with_any(const char *line, const char *const *keys)
{
	for (; *keys != NULL; keys++)
		if (strncmp(line, *keys, strlen(*keys)) == 0)
			return true;
	return false;
}

static void keep_lines(const char *text, const char *const *keys, struct buf *out)
{
	for (const char *line = text; *line != '\0';) {
		size_t length = strcspn(line, "\n");
		size_t whole = length + (line[length] == '\n');
		if (length == 0 || starts_with_any(line, keys))
			buf_add(out, line, whole);
		line += whole;
	}
}

// Keeps the CPU model and drops its identity: ARM boards have a Serial line. Empty lines separate the CPUs.
static void filter_cpuinfo(struct anonymizer *anonymizer, const char *text, size_t size, struct buf *out)
{
	static const char *const keys[] = {"processor", "vendor_id", "cpu family", "model", "stepping", "physical id",
		"siblings", "core id", "cpu cores", "apicid", "flags", "Features", "CPU ", NULL};
	keep_lines(text, keys, out);
}

static void filter_stat(struct anonymizer *anonymizer, const char *text, size_t size, struct buf *out)
{
	static const char *const keys[] = {"cpu", NULL};
	keep_lines(text, keys, out);
}

// topology/nodes/N/properties of AMD's compute driver contains a line "unique_id 1234".
static void filter_properties(struct anonymizer *anonymizer, const char *text, size_t size, struct buf *out)
{
	static const char key[] = "unique_id ";
	const char *found = strstr(text, key);
	if (found == NULL || strncmp(found + strlen(key), "0\n", 2) == 0) {
		buf_add(out, text, size);
		return;
	}
	const char *id = found + strlen(key);
	size_t length = strspn(id, "0123456789");
	buf_add(out, text, (size_t)(id - text));
	anonymize_put(anonymizer, PSEUDONYM_SERIAL, id, length, out);
	buf_str(out, id + length);
}

// cgroup paths show a container and its engine; the long hexadecimal names in them identify the container.
static void filter_cgroup(struct anonymizer *anonymizer, const char *text, size_t size, struct buf *out)
{
	enum { ID_LENGTH = 12 };
	while (*text != '\0') {
		size_t length = strspn(text, "0123456789abcdef");
		if (length >= ID_LENGTH)
			anonymize_put(anonymizer, PSEUDONYM_SERIAL, text, length, out);
		else
			buf_add(out, text, length > 0 ? length : 1);
		text += length > 0 ? length : 1;
	}
}

/* ---- list of saved files ---- */

enum { FILES_PER_ROW = 26 };

struct row {
	const char *title, *folder;
	const char *power_status_file; // this member and the next two: see sensors.h
	capture_filter filter;
	const char *files[FILES_PER_ROW];
	bool (*wanted)(int root_fd, const char *folder);
};

// Display controllers and processing accelerators.
static bool is_gpu(int root_fd, const char *folder)
{
	char path[512], class[32];
	int length = snprintf(path, sizeof(path), "%s/class", folder);
	if (length < 0 || (size_t)length >= sizeof(path) || file_read_line_in(root_fd, path, class, sizeof(class)) <= 0)
		return false;
	return strncmp(class, "0x03", 4) == 0 || strncmp(class, "0x12", 4) == 0;
}

#define HWMON_FILES                                                                                                    \
	"name", "label", "update_interval", "power*_*", "energy*_*", "curr*_*", "in*_input", "in*_label",              \
		"in*_enable", "temp*_input", "temp*_label"
#define CARD "class/drm/card+([0-9])" // excludes card0-DP-1, which is a connector
static const char pci_status[] = "device/power/runtime_status", own_status[] = "power/runtime_status";

// Every file that wattle's sensors read, and no file that identifies the machine, its user or connected devices.
static const struct row sys_rows[] = {
	{"powercap zones", "class/powercap/*", NULL, NULL,
		{"name", "enabled", "energy_uj", "max_energy_range_uj", "constraint_*_name", "constraint_*_uw",
			"constraint_*_us"}},
	{"powercap zones", "devices/virtual/powercap/*/*", NULL, NULL, {"name", "energy_uj", "max_energy_range_uj"}},
	{"perf power events", "bus/event_source/devices/power*", NULL, NULL,
		{"type", "cpumask", "format/*", "events/*"}},
	{"hardware monitoring chips", "class/hwmon/hwmon*", NULL, NULL, {"device", "name"}},
	{"hardware monitoring chips", "class/hwmon/hwmon*", pci_status, NULL, {HWMON_FILES}},
	{"hardware monitoring chips", "class/hwmon/hwmon*/device", own_status, NULL,
		{"name", "power*_*", "in*_input", "in*_label", "curr*_*"}},
	{"hardware monitoring chips", "bus/i2c/drivers/ina3221/*-*/hwmon/hwmon*", NULL, NULL, {"device", HWMON_FILES}},
	{"hardware monitoring chips", "bus/i2c/drivers/ina3221x/*-*/iio:device*", NULL, NULL,
		{"name", "rail_name_*", "in_power*_input", "in_voltage*_input", "in_current*_input"}},
	{"graphics cards", CARD, NULL, NULL,
		{"device/vendor", "device/device", "device/class", "device/subsystem_vendor", "device/subsystem_device",
			"device/revision", "device/uevent", "device/driver", "device/power/runtime_status",
			"device/power/control",
			// the driver keeps these in memory; it reads those below from the card
			"device/unique_id", "device/product_name", "device/mem_info_vram_total",
			"device/hwmon/hwmon*/name", "device/hwmon/hwmon*/*_label"}},
	{"graphics cards", CARD, pci_status, NULL,
		{"device/gpu_busy_percent", "device/mem_busy_percent", "device/mem_info_*", "device/gpu_metrics",
			"device/current_compute_partition", "device/hwmon/hwmon*/name", "device/hwmon/hwmon*/power*_*",
			"device/hwmon/hwmon*/energy*_*", "device/hwmon/hwmon*/temp*_input",
			"device/hwmon/hwmon*/temp*_label", "device/hwmon/hwmon*/in*_input",
			"device/hwmon/hwmon*/in*_label", "device/hwmon/hwmon*/freq*_input"}},
	{"graphics cards", "bus/pci/devices/*", NULL, NULL,
		{"class", "vendor", "device", "uevent", "driver", "power/runtime_status", "power/control"}, is_gpu},
	{"AMD compute driver nodes", "class/kfd/kfd/topology/nodes/*", NULL, NULL, {"gpu_id", "name"}},
	{"AMD compute driver nodes", "class/kfd/kfd/topology/nodes/*", NULL, filter_properties, {"properties"}},
	{"Cray counters", "cray/pm_counters", NULL, NULL, {"*"}},
	{"batteries and mains", "class/power_supply/*", NULL, NULL,
		{"type", "status", "scope", "present", "online", "technology", "power_now", "current_now",
			"voltage_now", "voltage_min_design", "energy_now", "energy_full", "energy_full_design",
			"charge_now", "charge_full", "charge_full_design", "capacity"}},
	{"thermal zones", "class/thermal/thermal_zone*", NULL, NULL, {"type", "temp"}},
	{"CPU topology", "devices/system/node/node[0-9]*", NULL, NULL, {"cpulist"}},
	{"CPU topology", "devices/system/cpu", NULL, NULL, {"online", "possible", "present"}},
	{"CPU topology", "devices/system/cpu/cpu[0-9]*/topology", NULL, NULL,
		{"physical_package_id", "die_id", "core_id", "cluster_id", "package_cpus_list", "die_cpus_list",
			"core_cpus_list", "thread_siblings_list", "core_siblings_list"}},
};

static const struct row proc_rows[] = {
	{"files of /proc", ".", NULL, filter_cpuinfo, {"cpuinfo"}},
	{"files of /proc", ".", NULL, filter_stat, {"stat"}},
	{"files of /proc", ".", NULL, NULL, {"meminfo", "sys/kernel/osrelease", "sys/kernel/perf_event_paranoid"}},
	{"files of /proc", "1", NULL, filter_cgroup, {"cgroup"}},
};

static size_t entries_in(const struct capture_tree *tree)
{
	return tree->n_files + tree->n_links;
}

static void add_rows(struct capture_tree *tree, const struct row *rows, size_t n, struct buf *listed)
{
	size_t before = entries_in(tree);
	for (size_t i = 0; i < n; i++) {
		for (const char *const *file = rows[i].files; *file != NULL; file++) {
			const struct capture_request request = {rows[i].folder, *file, rows[i].power_status_file,
				rows[i].filter, rows[i].wanted};
			capture_tree_add(tree, &request);
		}
		bool is_last = i + 1 == n || strcmp(rows[i].title, rows[i + 1].title) != 0;
		if (!is_last || entries_in(tree) == before)
			continue;
		buf_printf(listed, "  %-34s %zu\n", rows[i].title, entries_in(tree) - before);
		before = entries_in(tree);
	}
}

/* ---- the folder ---- */

static bool is_empty(int fd)
{
	char text[FOLDER_TEXT_SIZE] __attribute__((aligned(8)));
	struct folder_walk walk = folder_walk_begin(fd, text, sizeof(text));
	return folder_walk_next(&walk, NULL) == NULL;
}

static int open_folder(const char *path, struct wattle_error *reterr)
{
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return error_set(reterr, -errno, "--capture: can't create %s: %s", path, strerror(errno));
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_set(reterr, -errno, "--capture: %s: %s", path, strerror(errno));
	if (!is_empty(fd))
		return error_set(reterr, -ENOTEMPTY,
			"--capture: %s is not empty; give a new or empty folder", path);
	return take_fd(&fd);
}

static int open_below(int folder_fd, const char *name)
{
	if (mkdirat(folder_fd, name, 0777) != 0)
		return -1;
	return openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int write_below(int folder_fd, const char *name, const struct buf *contents)
{
	wattle_cleanup_close int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return fd < 0 ? -errno : buf_write_fd(contents, fd);
}

/* ---- the command ---- */

struct capture {
	int folder_fd;
	struct anonymizer anonymizer;
	struct capture_tree sys, proc;
	struct buf unreadable, listed;
};

static int save(struct capture *c, const struct wattle_env *env)
{
	c->sys = (struct capture_tree){.name = "sys",
		.root_fd = env->sysfs_fd,
		.out_fd = open_below(c->folder_fd, "sys")};
	c->proc = (struct capture_tree){.name = "proc",
		.root_fd = env->procfs_fd,
		.out_fd = open_below(c->folder_fd, "proc")};
	if (c->sys.out_fd < 0 || c->proc.out_fd < 0)
		return -errno;
	c->sys.anonymizer = c->proc.anonymizer = &c->anonymizer;
	c->sys.unreadable = c->proc.unreadable = &c->unreadable;
	add_rows(&c->sys, sys_rows, ARRAY_SIZE(sys_rows), &c->listed);
	add_rows(&c->proc, proc_rows, ARRAY_SIZE(proc_rows), &c->listed);
	struct buf cards;
	buf_init(&cards, 1 << 20);
	size_t n_gpus = capture_nvml(env, &c->anonymizer, &cards);
	int r = n_gpus > 0 ? write_below(c->folder_fd, "nvml.cards", &cards) : 0;
	if (n_gpus > 0)
		buf_printf(&c->listed, "  %-34s %zu in nvml.cards\n", "NVIDIA GPUs", n_gpus);
	buf_finish(&cards);
	if (r == 0 && c->unreadable.size > 0)
		r = write_below(c->folder_fd, "unreadable", &c->unreadable);
	return r;
}

static int print_summary(struct capture *c, const char *folder)
{
	struct buf out = cli_buf();
	buf_printf(&out, "Saved in %s: %zu files, ", folder, c->sys.n_files + c->proc.n_files);
	human_bytes(&out, (double)(c->sys.n_bytes + c->proc.n_bytes));
	buf_printf(&out, "\n%s", c->listed.data != NULL ? c->listed.data : "");
	if (c->sys.n_unreadable + c->proc.n_unreadable > 0)
		buf_printf(&out, "%zu files could not be read and are empty; %s/unreadable has the reasons.\n",
			c->sys.n_unreadable + c->proc.n_unreadable, folder);
	buf_printf(&out, "%zu serial numbers, UUIDs and the like were replaced", c->anonymizer.n);
	if (c->sys.n_left_out > 0)
		buf_printf(&out, ", %zu devices whose names contain their address were left out", c->sys.n_left_out);
	buf_printf(&out, ".\nReview the files before you share them:\n  grep -rI . %s | less\n", folder);
	buf_printf(&out, "To run wattle on this tree:\n  WATTLE_SYSFS=%s/sys WATTLE_PROCFS=%s/proc wattle sensors\n",
		folder, folder);
	return cli_finish(&out, "-");
}

int capture_machine(const struct wattle_env *env, const char *folder)
{
	struct wattle_error error = {0};
	struct capture c = {.folder_fd = open_folder(folder, &error)};
	char host[256] = "";
	if (c.folder_fd < 0)
		return cli_fail(EXIT_FAILED, &error);
	gethostname(host, sizeof(host) - 1);
	anonymizer_init(&c.anonymizer, host);
	buf_init(&c.unreadable, 1 << 22);
	buf_init(&c.listed, 1 << 16);
	int r = save(&c, env);
	int status = EXIT_FAILED;
	if (r < 0)
		fprintf(stderr, "wattle: --capture: can't write to %s: %s\n", folder, strerror(-r));
	else
		status = print_summary(&c, folder);
	buf_finish(&c.listed);
	buf_finish(&c.unreadable);
	anonymizer_finish(&c.anonymizer);
	if (c.sys.out_fd >= 0)
		close(c.sys.out_fd);
	if (c.proc.out_fd >= 0)
		close(c.proc.out_fd);
	close(c.folder_fd);
	return status;
}
