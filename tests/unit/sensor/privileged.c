/* Counters readable by root only, through a simulated helper: powercap and amd_energy. */
#include "sensor/internal.h"

#include "fake_helper.h"
#include "one_sensor.h"

#include <errno.h>

#define RAPL "class/powercap/intel-rapl:"
#define ZONE(number, name_text)                                                                                        \
	{RAPL number "/name", name_text "\n"}, {RAPL number "/energy_uj", "7\n"},                                      \
	{                                                                                                              \
		RAPL number "/max_energy_range_uj", "262143328850\n"                                                   \
	}

static const struct one_file zones[] = {ZONE("0", "package-0"), ZONE("0:0", "dram"), ZONE("1", "package-1"), {0}};

struct fixture {
	struct fake_helper helper;
	struct one_sensor one;
};

// A file of mode 0 is unreadable for an unprivileged user, as which the sensor opens.
static int open_as_nobody(struct fixture *f, const struct sensor_ops *ops, const struct sensor_options *options)
{
	bool is_root = geteuid() == 0;
	assert_int_equal(chmod(f->one.tree.root, 0755), 0);
	assert_int_equal(chmod(f->helper.folder, 0755), 0);
	assert_int_equal(chmod(f->helper.socket, 0666), 0);
	if (is_root && seteuid(65534) != 0)
		SKIP_BECAUSE("this process may not become another user");
	int r = one_open(&f->one, ops, options, NULL);
	if (is_root)
		assert_int_equal(seteuid(0), 0);
	return r;
}

static void hide(const struct one_sensor *one, const char *file)
{
	char path[512];
	tree_path(&one->tree, path, "%s", file);
	assert_int_equal(chmod(path, 0), 0);
}

static void set_counter(struct fixture *f, size_t number, const char *name, int64_t energy_uj, int64_t t_ns)
{
	text_copy(f->helper.table->names[number], PROTO_NAME_SIZE, name);
	f->helper.table->readings[number] = (struct proto_reading){energy_uj, t_ns};
	if (f->helper.table->n_counters <= number)
		f->helper.table->n_counters = (uint32_t)number + 1;
}

// Three zones that only root can read; the helper's table has them in another order.
static void make(struct fixture *f)
{
	fake_make(&f->helper);
	one_make(&f->one, zones);
	f->one.env.helper = f->helper.socket;
	for (size_t i = 0; i < 3; i++)
		hide(&f->one, zones[3 * i + 1].path);
	set_counter(f, 0, "intel-rapl:1", 300, f->one.now_ns);
	set_counter(f, 1, "intel-rapl:7", 999, f->one.now_ns);
	set_counter(f, 2, "intel-rapl:0", 100, f->one.now_ns);
	set_counter(f, 3, "intel-rapl:0:0", 200, f->one.now_ns);
	fake_start(&f->helper);
}

static void finish(struct fixture *f)
{
	one_finish(&f->one);
	fake_finish(&f->helper);
}

static void expect(const struct fixture *f, const char *expected)
{
	struct buf seen;
	one_print(&f->one, &seen);
	assert_string_equal(seen.data, expected);
	buf_finish(&seen);
}

static const char all_three[] = "package-0 - yes 100 -\ndram-0 - yes 200 -\npackage-1 - yes 300 -\n";
static const char none_now[] = "package-0 - yes - -\ndram-0 - yes - -\npackage-1 - yes - -\n";

static void all_by_one_question(void **state)
{
	struct fixture f;
	make(&f);
	assert_int_equal(open_as_nobody(&f, &sensor_powercap, NULL), 0);
	for (int i = 0; i < 5; i++) {
		uint32_t before = f.helper.table->n_asked[PROTO_READ];
		one_read(&f.one);
		expect(&f, all_three);
		assert_int_equal(f.helper.table->n_asked[PROTO_READ] - before, 1);
	}
	assert_int_equal(f.helper.table->n_connections, 1);
	assert_string_equal(f.one.domains[0].note, "read through the helper, at most every 1 ms");
	finish(&f);
}

static void own_time(void **state)
{
	struct fixture f;
	make(&f);
	assert_int_equal(open_as_nobody(&f, &sensor_powercap, NULL), 0);
	set_counter(&f, 2, "intel-rapl:0", 100, f.one.now_ns - 90 * NS_PER_MS);
	set_counter(&f, 3, "intel-rapl:0:0", 200, f.one.now_ns + 20000);
	one_read(&f.one);
	assert_int_equal(f.one.rows[0][DEVICE_ENERGY_TIME], f.one.now_ns - 90 * NS_PER_MS);
	assert_int_equal(f.one.rows[1][DEVICE_ENERGY_TIME], f.one.now_ns + 20000);
	finish(&f);
}

static void slow_class(void **state)
{
	struct fixture f;
	make(&f);
	f.helper.table->read_period_us = 100000;
	assert_int_equal(open_as_nobody(&f, &sensor_powercap, &(struct sensor_options){.calibrate_ns = 5 * NS_PER_MS}),
		0);
	assert_int_equal(f.one.domains[0].update_period_ns, 100 * NS_PER_MS);
	assert_string_equal(f.one.domains[0].note, "read through the helper, at most every 100 ms");
	finish(&f);
}

static void one_missing(void **state)
{
	struct fixture f;
	make(&f);
	assert_int_equal(open_as_nobody(&f, &sensor_powercap, NULL), 0);
	set_counter(&f, 3, "intel-rapl:0:0", VALUE_MISSING, f.one.now_ns);
	one_read(&f.one);
	expect(&f, "package-0 - yes 100 -\ndram-0 - yes - -\npackage-1 - yes 300 -\n");
	assert_false(value_ok(f.one.rows[1][DEVICE_ENERGY_TIME]));
	finish(&f);
}

static void long_table(void **state)
{
	struct fixture f;
	make(&f);
	for (size_t i = 4; i < 20; i++)
		set_counter(&f, i, "intel-rapl:9", 1, f.one.now_ns);
	set_counter(&f, 0, "intel-rapl:9", 1, f.one.now_ns);
	set_counter(&f, 19, "intel-rapl:1", 300, f.one.now_ns);
	assert_int_equal(open_as_nobody(&f, &sensor_powercap, NULL), 0);
	one_read(&f.one);
	expect(&f, all_three);
	finish(&f);
}

static void not_in_table(void **state)
{
	struct fixture f;
	make(&f);
	set_counter(&f, 0, "intel-rapl:8", 300, f.one.now_ns);
	assert_int_equal(open_as_nobody(&f, &sensor_powercap, NULL), 0);
	one_read(&f.one);
	expect(&f,
		"package-0 - yes 100 -\ndram-0 - yes 200 -\npackage-1 - no "
		"(energy_uj is readable by root only, and the helper does not have intel-rapl:1)\n");
	finish(&f);
}

static void file_first(void **state)
{
	struct fixture f;
	fake_make(&f.helper);
	one_make(&f.one, zones);
	f.one.env.helper = f.helper.socket;
	fake_start(&f.helper);
	assert_int_equal(one_open(&f.one, &sensor_powercap, NULL, NULL), 0);
	one_read(&f.one);
	expect(&f, "package-0 - yes 7 -\ndram-0 - yes 7 -\npackage-1 - yes 7 -\n");
	assert_false(value_ok(f.one.rows[0][DEVICE_ENERGY_TIME]));
	assert_string_equal(f.one.domains[0].note, "");
	assert_int_equal(f.helper.table->n_connections, 0);
	finish(&f);
}

/* ---- without a helper ---- */

static const struct refusal {
	const char *teaches;
	const char *socket; // NULL: the path of the helper
	uint32_t may_read;
	enum fake_manner hello;
	const char *why, *remedy; // beginning of the remedy
} refusals[] = {
	{"no helper: the remedy is to start one", "/nonexistent/wattled.sock", 1, FAKE_HONEST,
		"energy_uj is readable by root only; no helper is running", "sudo "},
	{"helper that does not serve this user: the remedy is its group", NULL, 0, FAKE_HONEST,
		"energy_uj is readable by root only; the helper does not serve this user",
		"sudo usermod -aG wattle \"$USER\" && newgrp wattle"},
	{"helper that hangs", NULL, 1, FAKE_SILENT, "energy_uj is readable by root only; the helper does not respond",
		""},
	{"helper switched off: the remedy is for the file", "off", 1, FAKE_HONEST, "energy_uj is readable by root only",
		"sudo chmod a+r /"},
};

static void check_refusal(void **state)
{
	const struct refusal *row = *state;
	struct fixture f;
	make(&f);
	if (row->socket != NULL)
		f.one.env.helper = row->socket;
	f.helper.table->may_read = row->may_read;
	f.helper.table->hello = row->hello;
	assert_int_equal(open_as_nobody(&f, &sensor_powercap, NULL), 0);
	const struct domain *d = &f.one.domains[0];
	assert_false(d->readable || d->used);
	assert_string_equal(d->why, row->why);
	assert_int_equal(strncmp(d->remedy, row->remedy, strlen(row->remedy)), 0);
	assert_string_equal(d->note, "");
	finish(&f);
}

/* ---- with a helper ---- */

static void hangs_and_is_asked_seldom(void **state)
{
	struct fixture f;
	make(&f);
	assert_int_equal(open_as_nobody(&f, &sensor_powercap, NULL), 0);
	f.helper.table->hello = f.helper.table->other = FAKE_SILENT;
	for (int i = 0; i < 50; i++) { // five seconds
		f.one.now_ns += 100 * NS_PER_MS;
		one_read(&f.one);
		expect(&f, none_now);
	}
	assert_string_equal(f.one.domains[0].note, "not read now: the helper does not respond");
	// At open, then after 1 s and 2 s more.
	assert_in_range(f.helper.table->n_connections, 2, 4);
	assert_int_equal(f.helper.table->n_asked[PROTO_READ], 2);
	f.helper.table->hello = f.helper.table->other = FAKE_HONEST;
	f.one.now_ns += 10 * NS_PER_S;
	one_read(&f.one);
	expect(&f, all_three);
	assert_string_equal(f.one.domains[0].note, "read through the helper, at most every 1 ms");
	finish(&f);
}

static void dies_and_comes_back(void **state)
{
	struct fixture f;
	make(&f);
	assert_int_equal(open_as_nobody(&f, &sensor_powercap, NULL), 0);
	one_read(&f.one);
	fake_kill(&f.helper);
	one_read(&f.one);
	expect(&f, none_now);
	assert_string_equal(f.one.domains[0].note, "not read now: no helper is running");
	// A restarted helper with another table.
	set_counter(&f, 0, "intel-rapl:0", 1100, f.one.now_ns);
	set_counter(&f, 1, "intel-rapl:0:0", 1200, f.one.now_ns);
	set_counter(&f, 2, "intel-rapl:1", 1300, f.one.now_ns);
	f.helper.table->n_counters = 3;
	fake_start(&f.helper);
	one_read(&f.one); // not yet: tried a moment ago
	expect(&f, none_now);
	f.one.now_ns += 250 * NS_PER_MS;
	one_read(&f.one);
	expect(&f, "package-0 - yes 1100 -\ndram-0 - yes 1200 -\npackage-1 - yes 1300 -\n");
	finish(&f);
}

static void started_again_between_two_readings(void **state)
{
	struct fixture f;
	make(&f);
	assert_int_equal(open_as_nobody(&f, &sensor_powercap, NULL), 0);
	fake_kill(&f.helper);
	fake_start(&f.helper);
	one_read(&f.one); // no value is missing, as after a dropped idle connection
	expect(&f, all_three);
	finish(&f);
}

static void forked(void **state)
{
	struct fixture f;
	make(&f);
	assert_int_equal(open_as_nobody(&f, &sensor_powercap, NULL), 0);
	pid_t child = fork();
	if (child == 0) {
		one_read(&f.one);
		_exit(f.one.rows[0][DEVICE_ENERGY_RAW] == 100 ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	one_read(&f.one);
	expect(&f, all_three);
	assert_int_equal(f.helper.table->n_connections, 2);
	finish(&f);
}

/* ---- amd_energy ---- */

static void amd_energy(void **state)
{
	static const struct one_file chip[] = {{"class/hwmon/hwmon3/name", "amd_energy\n"},
		{"class/hwmon/hwmon3/energy1_label", "Ecore000\n"}, {"class/hwmon/hwmon3/energy1_input", "5\n"},
		{"class/hwmon/hwmon3/energy2_label", "Esocket0\n"}, {"class/hwmon/hwmon3/energy2_input", "6\n"},
		{"class/hwmon/hwmon3/energy3_label", "Esocket1\n"}, {"class/hwmon/hwmon3/energy3_input", "7\n"}, {0}};
	struct fixture f;
	fake_make(&f.helper);
	one_make(&f.one, chip);
	f.one.env.helper = f.helper.socket;
	hide(&f.one, chip[4].path);
	hide(&f.one, chip[6].path);
	set_counter(&f, 0, "amd_energy/energy2_input", 4000, f.one.now_ns);
	set_counter(&f, 1, "amd_energy/energy3_input", 5000, f.one.now_ns);
	fake_start(&f.helper);
	assert_int_equal(open_as_nobody(&f, &sensor_hwmon, NULL), 0);
	one_read(&f.one);
	expect(&f, "package-0 - yes 4000 -\npackage-1 - yes 5000 -\n");
	assert_int_equal(f.one.rows[0][DEVICE_ENERGY_TIME], f.one.now_ns);
	assert_int_equal(f.helper.table->n_asked[PROTO_READ], 2); // at open and now
	finish(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "all counters of a reading: one request, matched by name", all_by_one_question);
	ROWS_ADD_ONE(&tests, "reading has its own time, before or after the sample's", own_time);
	ROWS_ADD_ONE(&tests, "slow access: the counter's period is that of the access", slow_class);
	ROWS_ADD_ONE(&tests, "counter that the helper cannot read: missing, the others are not", one_missing);
	ROWS_ADD_ONE(&tests, "table longer than one reply", long_table);
	ROWS_ADD_ONE(&tests, "zone that the helper does not have", not_in_table);
	ROWS_ADD_ONE(&tests, "readable files: the helper is not used", file_first);
	ROWS_ADD(&tests, refusals, check_refusal);
	ROWS_ADD_ONE(&tests, "helper that hangs: retried now and then, and used again",
		hangs_and_is_asked_seldom);
	ROWS_ADD_ONE(&tests, "helper that died: used again after its restart, with its new table", dies_and_comes_back);
	ROWS_ADD_ONE(&tests, "helper restarted between two readings: no reading lost",
		started_again_between_two_readings);
	ROWS_ADD_ONE(&tests, "forked child: has a connection of its own", forked);
	ROWS_ADD_ONE(&tests, "amd_energy: sockets are read through the helper", amd_energy);
	return rows_run(&tests, "privileged");
}
