#include "sensor/internal.h"

#include "one_sensor.h"
#include "sensor/container.h"

#define H(n) "class/hwmon/hwmon" #n "/"
#define Z(n) "class/thermal/thermal_zone" #n "/"
#define TWO_SOCKETS                                                                                                    \
	{                                                                                                              \
		"cpuinfo", "processor\t: 0\nphysical id\t: 0\n\nprocessor\t: 1\nphysical id\t: 1\n"                    \
	}

static const struct row {
	const char *teaches;
	struct one_file files[ONE_FILES_MAX];
	int64_t expected_c[3]; // of package 0, package 1, the hottest
} rows[] = {
	{"no sensor", {{"kernel/x", ""}}, {VALUE_MISSING, VALUE_MISSING, VALUE_MISSING}},
	{"coretemp: the package's value, whatever the number of its chip",
		{{H(1) "name", "coretemp\n"}, {H(1) "temp1_label", "Package id 1\n"}, {H(1) "temp1_input", "61000\n"},
			{H(2) "name", "coretemp\n"}, {H(2) "temp2_label", "Core 0\n"}, {H(2) "temp2_input", "99000\n"},
			{H(2) "temp1_label", "Package id 0\n"}, {H(2) "temp1_input", "47500\n"}},
		{48, 61, 61}},
	{"k10temp: Tdie, not the value for fan control",
		{{H(0) "name", "k10temp\n"}, {H(0) "temp1_label", "Tctl\n"}, {H(0) "temp1_input", "75000\n"},
			{H(0) "temp2_label", "Tdie\n"}, {H(0) "temp2_input", "65000\n"},
			{H(0) "temp3_label", "Tccd1\n"}, {H(0) "temp3_input", "90000\n"}},
		{65, VALUE_MISSING, 65}},
	{"k10temp: Tctl without Tdie, temp1 without labels",
		{TWO_SOCKETS, {H(0) "name", "k10temp\n"}, {H(0) "temp1_label", "Tctl\n"},
			{H(0) "temp1_input", "75000\n"}, {H(1) "name", "k10temp\n"}, {H(1) "temp1_input", "50000\n"}},
		{75, 50, 75}},
	{"four k10temps of two sockets: the hotter of two for each",
		{TWO_SOCKETS, {H(0) "name", "k10temp\n"}, {H(0) "temp1_input", "40000\n"}, {H(1) "name", "k10temp\n"},
			{H(1) "temp1_input", "41000\n"}, {H(2) "name", "k10temp\n"}, {H(2) "temp1_input", "52000\n"},
			{H(3) "name", "k10temp\n"}, {H(3) "temp1_input", "51000\n"}},
		{41, 52, 52}},
	{"zenpower in place of k10temp",
		{{H(0) "name", "zenpower\n"}, {H(0) "temp1_label", "Tdie\n"}, {H(0) "temp1_input", "55000\n"}},
		{55, VALUE_MISSING, 55}},
	{"x86 thermal zone by type, never just zone 0",
		{{Z(0) "type", "acpitz\n"}, {Z(0) "temp", "27800\n"}, {Z(1) "type", "x86_pkg_temp\n"},
			{Z(1) "temp", "52000\n"}},
		{52, VALUE_MISSING, 52}},
	{"ARM: the hottest of the CPU's zones",
		{{Z(0) "type", "CPU-therm\n"}, {Z(0) "temp", "41000\n"}, {Z(1) "type", "GPU-therm\n"},
			{Z(1) "temp", "60000\n"}, {Z(2) "type", "cpu1-thermal\n"}, {Z(2) "temp", "43000\n"}},
		{43, VALUE_MISSING, 43}},
	{"only a board sensor: no temperature",
		{{Z(0) "type", "acpitz\n"}, {Z(0) "temp", "27800\n"}, {H(0) "name", "acpitz\n"},
			{H(0) "temp1_input", "27800\n"}},
		{VALUE_MISSING, VALUE_MISSING, VALUE_MISSING}},
	{"impossible value: no temperature", {{Z(0) "type", "x86_pkg_temp\n"}, {Z(0) "temp", "255000\n"}},
		{VALUE_MISSING, VALUE_MISSING, VALUE_MISSING}},
	{"below zero: valid", {{Z(0) "type", "x86_pkg_temp\n"}, {Z(0) "temp", "-4600\n"}}, {-5, VALUE_MISSING, -5}},
};

static void look(void **state)
{
	static const int indices[] = {0, 1, -1};
	const struct row *row = *state;
	struct one_sensor one;
	one_make(&one, row->files);
	struct cpu_temperature *temperature = cpu_temperature_open(&one.env);
	for (size_t i = 0; i < ARRAY_SIZE(indices); i++)
		assert_int_equal(temperature != NULL ? cpu_temperature_read(temperature, indices[i]) : VALUE_MISSING,
			row->expected_c[i]);
	cpu_temperature_close(temperature);
	env_close(&one.env);
	tree_finish(&one.tree);
}

static void goes_and_comes_back(void **state)
{
	const struct one_file files[] = {{Z(0) "type", "x86_pkg_temp\n"}, {Z(0) "temp", "50000\n"}, {0}};
	struct one_sensor one;
	one_make(&one, files);
	struct cpu_temperature *temperature = cpu_temperature_open(&one.env);
	assert_non_null(temperature);
	assert_int_equal(cpu_temperature_read(temperature, 0), 50);
	one_write(&one, &(struct one_file){Z(0) "temp", "60000\n"});
	assert_int_equal(cpu_temperature_read(temperature, 0), 50); // the previous value
	one.now_ns += 100 * NS_PER_MS;
	assert_int_equal(cpu_temperature_read(temperature, 0), 60);
	one_write(&one, &(struct one_file){Z(0) "temp", NULL});
	one.now_ns += 100 * NS_PER_MS;
	assert_int_equal(cpu_temperature_read(temperature, 0), VALUE_MISSING);
	one_write(&one, &files[1]);
	one.now_ns += 100 * NS_PER_MS;
	assert_int_equal(cpu_temperature_read(temperature, 0), 50);
	cpu_temperature_close(temperature);
	env_close(&one.env);
	tree_finish(&one.tree);
}

/* ---- containers, recognised from /proc ---- */

static const struct kind {
	const char *teaches, *path, *text;
	enum container expected;
} kinds[] = {
	{"a machine", "1/cgroup", "0::/init.scope\n", CONTAINER_NONE},
	{"Docker by its cgroup", "1/cgroup", "12:cpu:/docker/4f1c6ff0\n", CONTAINER_DOCKER},
	{"Podman by its cgroup", "1/cgroup", "0::/machine.slice/libpod-4f1c.scope\n", CONTAINER_PODMAN},
	{"a pod", "1/cgroup", "0::/kubepods.slice/kubepods-burstable.slice/docker-1.scope\n", CONTAINER_OTHER},
	{"cgroup namespace hides the name: recognised by the layered root", "self/mountinfo",
		"600 500 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/x\n601 600 0:4 / /proc rw - proc proc rw\n",
		CONTAINER_OTHER},
	{"bare OCI container: recognised by its namespaces", "self/ns/pid", "@pid:[4026532201]", CONTAINER_OTHER},
	{"first pid namespace: the machine itself", "self/ns/pid", "@pid:[4026531836]", CONTAINER_NONE},
	{"layers elsewhere than the root: no container", "self/mountinfo",
		"20 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n90 20 0:50 / /var/lib/x rw - overlay overlay rw\n",
		CONTAINER_NONE},
};

static void detect(void **state)
{
	const struct kind *row = *state;
	const struct one_file files[] = {{row->path, row->text}, {0}};
	struct one_sensor one;
	const char *why = "", *remedy = "";
	one_make(&one, files);
	assert_int_equal(container_detect(&one.env), row->expected);
	assert_int_equal(container_hides_powercap(&one.env, &why, &remedy), row->expected != CONTAINER_NONE);
	assert_int_equal(strstr(remedy, "/sys") != NULL, row->expected != CONTAINER_NONE);
	one_write(&one, &(struct one_file){"class/powercap/intel-rapl:0/energy_uj", "5\n"});
	assert_false(container_hides_powercap(&one.env, &why, &remedy)); // exists: nothing to mount
	env_close(&one.env);
	tree_finish(&one.tree);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, look);
	ROWS_ADD_ONE(&tests, "value: kept for 100 ms, disappears and returns", goes_and_comes_back);
	ROWS_ADD(&tests, kinds, detect);
	return rows_run(&tests, "temperature");
}
