#include "sensor/sensor.h"

#include "base/buf.h"
#include "base/util.h"
#include "tree.h"

#include <errno.h>

/* Simulated trees: every layout of zones and every kind of file. In place of content: "@TARGET" is a link, "DIR" a
 * folder, "FIFO" a pipe without a writer, "0000" a file without permissions. */

enum { FILES_MAX = 16 };

struct file {
	const char *path, *text;
};

struct row {
	const char *teaches;
	struct file files[FILES_MAX];
	const char *expected; // "name inside readable used range_uj raw" for each domain; raw: the value of a reading
};

#define CLASS "class/powercap/"
#define RAPL CLASS "intel-rapl:"
#define VIRTUAL "devices/virtual/powercap/"
#define ZONE(folder, name_text, energy_text)                                                                           \
	{folder "/name", name_text "\n"}, {folder "/energy_uj", energy_text "\n"},                                     \
	{                                                                                                              \
		folder "/max_energy_range_uj", "262143328850\n"                                                        \
	}

static const char two_zones[] = "package-0 - yes yes 262143328850 100\ncore-0 package-0 yes yes 262143328850 30\n";

// clang-format off
static const struct row shapes[] = {
	{"plain folders in the class, flat", {
		ZONE(RAPL "0", "package-0", "100"),
		ZONE(RAPL "0:0", "core", "30"),
	}, two_zones},
	{"plain folders, nested", {
		ZONE(RAPL "0", "package-0", "100"),
		ZONE(RAPL "0/intel-rapl:0:0", "core", "30"),
	}, two_zones},
	{"nested below the control type", {
		ZONE(CLASS "intel-rapl/intel-rapl:0", "package-0", "100"),
		ZONE(CLASS "intel-rapl/intel-rapl:0/intel-rapl:0:0", "core", "30"),
	}, two_zones},
	{"no class, only devices", {
		ZONE(VIRTUAL "intel-rapl/intel-rapl:0", "package-0", "100"),
		ZONE(VIRTUAL "intel-rapl/intel-rapl:0/intel-rapl:0:0", "core", "30"),
	}, two_zones},
	{"nested and linked flat, as the kernel does: each zone once", {
		ZONE(VIRTUAL "intel-rapl/intel-rapl:0", "package-0", "100"),
		ZONE(VIRTUAL "intel-rapl/intel-rapl:0/intel-rapl:0:0", "core", "30"),
		{CLASS "intel-rapl", "@../../" VIRTUAL "intel-rapl"},
		{RAPL "0", "@../../" VIRTUAL "intel-rapl/intel-rapl:0"},
		{RAPL "0:0", "@../../" VIRTUAL "intel-rapl/intel-rapl:0/intel-rapl:0:0"},
	}, two_zones},
	{"only the package is linked into the class: its part is found inside it", {
		ZONE(VIRTUAL "intel-rapl/intel-rapl:0", "package-0", "100"),
		ZONE(VIRTUAL "intel-rapl/intel-rapl:0/intel-rapl:0:0", "core", "30"),
		{RAPL "0", "@../../" VIRTUAL "intel-rapl/intel-rapl:0"},
	}, two_zones},
	{"dangling link: does not hide an existing zone", {
		{RAPL "0", "@/nowhere"},
		ZONE(VIRTUAL "intel-rapl/intel-rapl:0", "package-0", "100"),
		ZONE(VIRTUAL "intel-rapl/intel-rapl:0/intel-rapl:0:0", "core", "30"),
	}, two_zones},
	{"zone that contains itself: visited once", {
		ZONE(RAPL "0", "package-0", "100"),
		{RAPL "0/intel-rapl:0", "@../intel-rapl:0"},
		{RAPL "0/device", "@.."},
		ZONE(RAPL "0:0", "core", "30"),
		{RAPL "0:0/intel-rapl:0", "@../intel-rapl:0"},
	}, two_zones},
	{"link out of the tree: resolved inside it", {
		ZONE(VIRTUAL "intel-rapl/intel-rapl:0", "package-0", "100"),
		{RAPL "0", "@/" VIRTUAL "intel-rapl/intel-rapl:0"},
	}, "package-0 - yes yes 262143328850 100\n"},
	{"folders that are no zones: skipped", {
		ZONE(RAPL "0", "package-0", "100"),
		ZONE(RAPL "", "package-1", "1"),
		ZONE(RAPL "0:", "package-2", "1"),
		ZONE(RAPL "xyz", "package-3", "1"),
	}, "package-0 - yes yes 262143328850 100\n"},
	{"no powercap: no domains", {{"kernel/x", ""}}, ""},
	{"powercap is a file: no domains", {{"class/powercap", "x"}}, ""},
	{"powercap is empty: no domains", {{CLASS ".keep", ""}}, ""},
};

static const struct row names[] = {
	{"zone numbers don't matter, parents do", {
		ZONE(RAPL "0", "package-1", "1"), ZONE(RAPL "0:0", "dram", "2"),
		ZONE(RAPL "1", "package-0", "3"), ZONE(RAPL "1:0", "dram", "4"),
	}, "package-1 - yes yes 262143328850 1\ndram-1 - yes yes 262143328850 2\n"
	   "package-0 - yes yes 262143328850 3\ndram-0 - yes yes 262143328850 4\n"},
	{"hexadecimal numbers: sorted by value, 10 after 9", {
		ZONE(RAPL "10", "package-2", "3"), ZONE(RAPL "9", "package-0", "1"),
		ZONE(RAPL "a", "package-1", "2"),
	}, "package-0 - yes yes 262143328850 1\npackage-1 - yes yes 262143328850 2\n"
	   "package-2 - yes yes 262143328850 3\n"},
	{"unknown zone names: no domains", {
		ZONE(RAPL "0", "package-0", "1"), ZONE(RAPL "1", "package-", "2"),
		ZONE(RAPL "2", "package-0-die-", "3"), ZONE(RAPL "3", "cores", "4"),
		ZONE(RAPL "4", "package-99999999999", "5"),
	}, "package-0 - yes yes 262143328850 1\n"},
	{"empty name, and a folder in place of the name: no domains", {
		ZONE(RAPL "0", "package-0", "1"), {RAPL "1/name", ""}, {RAPL "2/name", "DIR"},
	}, "package-0 - yes yes 262143328850 1\n"},
	{"two zones of one name: distinct domain names", {
		ZONE(RAPL "0", "package-0", "1"), ZONE(RAPL "1", "psys", "2"),
		ZONE(RAPL "2", "psys", "3"),
	}, "package-0 psys yes yes 262143328850 1\npsys - yes yes 262143328850 2\npsys-2 - yes yes 262143328850 3\n"},
	{"part without its package: keeps its bare name", {
		ZONE(RAPL "0:0", "dram", "1"),
	}, "dram - yes yes 262143328850 1\n"},
	{"unreadable psys: contains no readable domain", {
		ZONE(RAPL "0", "package-0", "1"), {RAPL "1/name", "psys\n"},
	}, "package-0 - yes yes 262143328850 1\npsys - no no 0 -\n"},
	{"register unreadable: the MMIO twin is used", {
		{RAPL "0/name", "package-0\n"}, {RAPL "0/energy_uj", "DIR"},
		ZONE(CLASS "intel-rapl-mmio:0", "package-0", "7"),
	}, "package-0 - no no 0 -\npackage-0 - yes yes 262143328850 7\n"},
	{"idle injection and dtpm: zones without energy", {
		ZONE(CLASS "dtpm:0", "package-0", "1"), ZONE(CLASS "idle-injection:0", "package-0", "1"),
	}, ""},
};

static const struct row files[] = {
	{"no counter", {{RAPL "0/name", "package-0\n"}}, "package-0 - no no 0 -\n"},
	{"empty counter: unreadable", {ZONE(RAPL "0", "package-0", "")}, "package-0 - no no 262143328850 -\n"},
	{"counter that is no number: unreadable", {ZONE(RAPL "0", "package-0", "many")}, "package-0 - no no 262143328850 -\n"},
	{"negative counter: unreadable", {ZONE(RAPL "0", "package-0", "-1")}, "package-0 - no no 262143328850 -\n"},
	{"counter with too many digits: unreadable", {ZONE(RAPL "0", "package-0", "99999999999999999999999")},
		"package-0 - no no 262143328850 -\n"},
	{"counter beyond 63 bits: read, never stored", {{RAPL "0/name", "package-0\n"},
		{RAPL "0/energy_uj", "18446744073709551615\n"}}, "package-0 - yes yes 0 -\n"},
	{"folder in place of a counter: unreadable", {{RAPL "0/name", "package-0\n"}, {RAPL "0/energy_uj", "DIR"}},
		"package-0 - no no 0 -\n"},
	{"pipe without a writer in place of a counter: does not hang", {{RAPL "0/name", "package-0\n"},
		{RAPL "0/energy_uj", "FIFO"}}, "package-0 - no no 0 -\n"},
	{"pipe in place of a name: does not hang", {{RAPL "0/name", "FIFO"}}, ""},
	{"link to itself: unreadable", {{RAPL "0/name", "package-0\n"}, {RAPL "0/energy_uj", "@energy_uj"}},
		"package-0 - no no 0 -\n"},
	{"no range: the counter is used and cannot wrap", {{RAPL "0/name", "package-0\n"},
		{RAPL "0/energy_uj", "5\n"}}, "package-0 - yes yes 0 5\n"},
	{"range that is no number: no range", {{RAPL "0/name", "package-0\n"}, {RAPL "0/energy_uj", "5\n"},
		{RAPL "0/max_energy_range_uj", "infinite\n"}}, "package-0 - yes yes 0 5\n"},
	{"range below the counter's value: no range", {{RAPL "0/name", "package-0\n"},
		{RAPL "0/energy_uj", "5000\n"}, {RAPL "0/max_energy_range_uj", "1000\n"}},
		"package-0 - yes yes 0 5000\n"},
	{"disabled zone: still counts", {ZONE(RAPL "0", "package-0", "5"),
		{RAPL "0/enabled", "0\n"}}, "package-0 - yes yes 262143328850 5\n"},
	{"one unreadable zone: the others are read", {
		ZONE(RAPL "0", "package-0", "bad"), ZONE(RAPL "0:0", "dram", "6"),
		ZONE(RAPL "1", "package-1", "7"),
	}, "package-0 - no no 262143328850 -\ndram-0 - yes yes 262143328850 6\npackage-1 - yes yes 262143328850 7\n"},
};
// clang-format on

static void make_file(const struct tree *tree, const struct file *file)
{
	char path[512];
	tree_path(tree, path, "%s", file->path);
	if (strcmp(file->text, "DIR") == 0 || strcmp(file->text, "FIFO") == 0) {
		tree_make_parents(tree, file->path);
		assert_int_equal(file->text[0] == 'D' ? mkdir(path, 0755) : mkfifo(path, 0644), 0);
	} else if (file->text[0] == '@') {
		tree_link(tree, file->path, file->text + 1);
	} else {
		tree_write(tree, file->path, file->text);
	}
}

static void open_env(struct wattle_env *env, const struct tree *tree)
{
	setenv("WATTLE_SYSFS", tree->root, 1);
	setenv("WATTLE_PROCFS", tree->root, 1);
	assert_int_equal(env_open(env, NULL), 0);
}

static void print_domain(struct buf *out, const struct domain *d, int64_t raw_uj)
{
	buf_printf(out, "%s %s %s %s ", d->name, d->inside[0] != '\0' ? d->inside : "-", d->readable ? "yes" : "no",
		d->used ? "yes" : "no");
	buf_u64(out, d->energy_range_uj);
	buf_char(out, ' ');
	if (value_ok(raw_uj))
		buf_i64(out, raw_uj);
	else
		buf_char(out, '-');
	buf_char(out, '\n');
	assert_true(d->used || d->why[0] != '\0');
}

static void look_at_tree(void **state)
{
	const struct row *row = *state;
	struct tree tree;
	tree_make(&tree);
	for (size_t i = 0; i < FILES_MAX && row->files[i].path != NULL; i++)
		make_file(&tree, &row->files[i]);
	struct wattle_env env;
	open_env(&env, &tree);

	void *sensor = calloc(1, sensor_powercap.state_size);
	assert_int_equal(sensor_powercap.open(sensor, &env, &(struct sensor_options){0}, NULL), 0);
	size_t n;
	const struct domain *domains = sensor_powercap.domains(sensor, &n);
	int64_t(*rows)[DEVICE_COUNT] = calloc(n + 1, sizeof(rows[0]));
	for (size_t i = 0; i < n; i++)
		rows[i][DEVICE_ENERGY_RAW] = VALUE_MISSING;
	sensor_powercap.read(sensor, &(struct sensor_context){0}, rows);
	struct buf seen;
	buf_init(&seen, 1 << 16);
	buf_str(&seen, "");
	for (size_t i = 0; i < n; i++)
		print_domain(&seen, &domains[i], rows[i][DEVICE_ENERGY_RAW]);
	assert_string_equal(seen.size > 0 ? seen.data : "", row->expected);

	buf_finish(&seen);
	free(rows);
	sensor_powercap.close(sensor);
	free(sensor);
	env_close(&env);
	tree_finish(&tree);
}

// The suggested command is complete and names the file's real path.
static void unreadable_says_what_to_do(void **state)
{
	static const struct file zone[] = {ZONE(RAPL "0", "package-0", "5")};
	struct tree tree;
	tree_make(&tree);
	for (size_t i = 0; i < ARRAY_SIZE(zone); i++)
		make_file(&tree, &zone[i]);
	char path[512], command[600];
	tree_path(&tree, path, RAPL "0/energy_uj");
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(chmod(tree.root, 0755), 0);
	struct wattle_env env;
	struct sensor_set set;
	open_env(&env, &tree);
	env.helper = "off";
	bool is_root = geteuid() == 0; // a privilege to read any file, dropped for now
	if (is_root && seteuid(65534) != 0)
		SKIP_BECAUSE("this process may not become another user");
	int r = sensor_set_open(&set, &env, &(struct sensor_options){0}, NULL);
	if (is_root)
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(r, 0);
	snprintf(command, sizeof(command), "sudo chmod a+r %s", path);
	assert_false(set.slots[0].domains[0].readable);
	assert_string_equal(set.slots[0].domains[0].remedy, command);
	assert_string_equal(set.slots[0].domains[0].why, "energy_uj is readable by root only");
	sensor_set_close(&set);
	env_close(&env);
	tree_finish(&tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, shapes, look_at_tree);
	ROWS_ADD(&tests, names, look_at_tree);
	ROWS_ADD(&tests, files, look_at_tree);
	ROWS_ADD_ONE(&tests, "counter without permission: the message names the command that grants it",
		unreadable_says_what_to_do);
	return rows_run(&tests, "powercap");
}
