#include "sensor/sensor.h"

#include "one_sensor.h"

/* Chips as drivers present them, regular and irregular. Whole machines are in tests/machines/. */

#define H(n) "class/hwmon/hwmon" #n "/"

struct row {
	const char *teaches;
	struct one_file files[ONE_FILES_MAX];
	const char *expected;
};

// clang-format off
static const struct row rows[] = {
	{"no chips", {{"kernel/x", ""}}, ""},
	{"chips of GPUs, disks and boards are skipped", {
		{H(0) "name", "amdgpu\n"}, {H(0) "power1_average", "25000000\n"},
		{H(1) "name", "i915\n"}, {H(1) "energy1_input", "7\n"},
		{H(2) "name", "nvme\n"}, {H(3) "name", "coretemp\n"}, {H(4) "power1_average", "1\n"},
	}, ""},
	{"old ACPI meter: attributes in the device's folder", {
		{H(0) "device/name", "power_meter\n"}, {H(0) "device/power1_average", "120500000\n"},
	}, "node - yes - 120500\n"},
	{"ACPI meter with an unknown label: listed, not added", {
		{H(0) "name", "power_meter\n"}, {H(0) "power1_average", "1000000\n"}, {H(0) "power1_oem_info", "PSU 1\n"},
		{H(1) "name", "power_meter\n"}, {H(1) "power1_average", "9000000\n"},
	}, "node - no (unknown what the meter labelled PSU 1 measures)\nnode - yes - 9000\n"},
	{"meter without an answer, empty, and with words", {
		{H(0) "name", "power_meter\n"}, {H(0) "power1_average", "DIR"},
		{H(1) "name", "power_meter\n"}, {H(1) "power1_average", ""},
		{H(2) "name", "power_meter\n"}, {H(2) "power1_average", "many\n"},
		{H(3) "name", "power_meter\n"},
	}, "node - no (power1_average: Is a directory)\n"
	   "node - no (power1_average contains no number, or the kernel can't read it)\n"
	   "node - no (power1_average contains no number, or the kernel can't read it)\n"
	   "node - no (power1_average is missing)\n"},
	{"Grace without a module meter: the CPU's meter is the package", {
		{H(0) "name", "power_meter\n"}, {H(0) "power1_oem_info", "SysIO Power Socket 0\n"}, {H(0) "power1_average", "30000000\n"},
		{H(1) "name", "power_meter\n"}, {H(1) "power1_oem_info", "CPU Power Socket 0\n"}, {H(1) "power1_average", "90000000\n"},
	}, "package-0 - yes - 90000\nuncore-0 package-0 yes - 30000\n"},
	{"module whose meter is unreadable contains no readable domain", {
		{H(0) "name", "power_meter\n"}, {H(0) "power1_oem_info", "Module Power Socket 1\n"}, {H(0) "power1_average", "DIR"},
		{H(1) "name", "power_meter\n"}, {H(1) "power1_oem_info", "Grace Power Socket 1\n"}, {H(1) "power1_average", "90000000\n"},
	}, "module-1 - no (power1_average: Is a directory)\npackage-1 - yes - 90000\n"},
	{"amd_energy: without topology the driver's sockets count; cores are parts", {
		{H(3) "name", "amd_energy\n"}, {H(3) "energy1_label", "Ecore000\n"}, {H(3) "energy1_input", "5\n"},
		{H(3) "energy2_label", "Esocket0\n"}, {H(3) "energy2_input", "123456789012345\n"},
		{H(3) "energy3_label", "Esocket1\n"}, {H(3) "energy3_input", "77\n"},
	}, "package-0 - yes 123456789012345 -\npackage-1 - yes 77 -\n"},
	{"amd_energy: a failing NUMA node is replaced by its twin with the same counter", {
		{H(0) "name", "amd_energy\n"}, {H(0) "energy1_label", "Esocket0\n"}, {H(0) "energy1_input", "DIR"},
		{H(0) "energy2_label", "Esocket1\n"}, {H(0) "energy2_input", "9\n"},
		{"devices/system/node/node0/cpulist", "0-3\n"}, {"devices/system/node/node1/cpulist", "4-7\n"},
		{"devices/system/cpu/cpu0/topology/physical_package_id", "0\n"},
		{"devices/system/cpu/cpu4/topology/physical_package_id", "0\n"},
	}, "package-0 - no (energy1_input: Is a directory)\npackage-0 - yes 9 -\n"},
	{"INA3221 found by its bus, channels without a name or without a current", {
		{"bus/i2c/drivers/ina3221/7-0040/hwmon/hwmon6/in1_label", "VDD_IN\n"},
		{"bus/i2c/drivers/ina3221/7-0040/hwmon/hwmon6/in1_input", "5000\n"},
		{"bus/i2c/drivers/ina3221/7-0040/hwmon/hwmon6/curr1_input", "2000\n"},
		{"bus/i2c/drivers/ina3221/7-0040/hwmon/hwmon6/in2_label", "VDD_SOC\n"},
		{"bus/i2c/drivers/ina3221/7-0040/hwmon/hwmon6/in2_input", "5000\n"},
		{"bus/i2c/drivers/ina3221/7-0040/hwmon/hwmon6/in3_label", "NC\n"},
	}, "node - yes - 10000\nuncore-0 node no (curr2_input is missing)\n"},
	{"INA3221 of Jetson's old kernels: milliwatts, in the class iio", {
		{"bus/i2c/drivers/ina3221x/6-0040/iio:device0/name", "ina3221x\n"},
		{"bus/i2c/drivers/ina3221x/6-0040/iio:device0/rail_name_0", "POM_5V_IN\n"},
		{"bus/i2c/drivers/ina3221x/6-0040/iio:device0/in_power0_input", "3210\n"},
		{"bus/i2c/drivers/ina3221x/6-0040/iio:device0/rail_name_1", "POM_5V_GPU\n"},
		{"bus/i2c/drivers/ina3221x/6-0040/iio:device0/in_power1_input", "40\n"},
		{"bus/i2c/drivers/ina3221x/6-0040/iio:device0/rail_name_2", "POM_5V_CPU\n"},
		{"bus/i2c/drivers/ina3221x/6-0040/iio:device0/in_power2_input", "700\n"},
	}, "node - yes - 3210\ngpu-0 node yes - 40\npackage-0 node yes - 700\n"},
	{"X-Gene: cores and the rest are separate domains", {
		{H(1) "name", "apm_xgene\n"}, {H(1) "power1_input", "31000000\n"}, {H(1) "power2_input", "9500000\n"},
	}, "package-0 - yes - 31000\nuncore-0 - yes - 9500\n"},
	{"two Altras in the order of their devices", {
		{H(0) "name", "smpro_hwmon\n"}, {H(0) "device", "@../../../devices/smpro.10"}, {"devices/smpro.10/x", ""},
		{H(0) "power1_input", "2000000\n"}, {H(0) "power2_input", "0\n"}, {H(0) "power5_input", "0\n"},
		{H(0) "power3_input", "0\n"}, {H(0) "power4_input", "0\n"},
		{H(1) "name", "smpro_hwmon\n"}, {H(1) "device", "@../../../devices/smpro.9"}, {"devices/smpro.9/x", ""},
		{H(1) "power1_input", "1000000\n"}, {H(1) "power2_input", "DIR"}, {H(1) "power5_input", "0\n"},
		{H(1) "power3_input", "0\n"}, {H(1) "power4_input", "0\n"},
	}, "package-0 - no (power2_input: Is a directory)\ncore-0 package-0 yes - 1000\n"
	   "uncore-0 package-0 no (power2_input: Is a directory)\ndram-0 - yes - 0\n"
	   "package-1 - yes - 2000\ncore-1 package-1 yes - 2000\nuncore-1 package-1 yes - 0\ndram-1 - yes - 0\n"},
};
// clang-format on

static void look(void **state)
{
	const struct row *row = *state;
	one_compare(&sensor_hwmon, row->files, row->expected);
}

// Values of a meter during a run; the domain stays, the reading disappears and returns.
static const struct film {
	const char *teaches, *text;
	int64_t expected_mw;
} films[] = {
	{"a number", "50000000\n", 50000},
	{"current that is negative for a moment", "-1000\n", VALUE_MISSING},
	{"0xffffffff mW is ACPI's value for unknown", "4294967295000\n", VALUE_MISSING},
	{"number with too many digits", "99999999999999999999\n", VALUE_MISSING},
	{"empty file", "", VALUE_MISSING},
	{"file missing", NULL, VALUE_MISSING},
	{"0 W is a valid reading", "0\n", 0},
};

static void goes_and_comes_back(void **state)
{
	const struct film *film = *state;
	const struct one_file files[] = {{H(0) "name", "power_meter\n"}, {H(0) "power1_average", "42000000\n"}, {0}};
	struct one_sensor one;
	one_make(&one, files);
	assert_int_equal(one_open(&one, &sensor_hwmon, NULL, NULL), 0);
	one_read(&one);
	assert_int_equal(one.rows[0][DEVICE_POWER], 42000);
	one_write(&one, &(struct one_file){H(0) "power1_average", film->text});
	one_read(&one);
	assert_int_equal(one.rows[0][DEVICE_POWER], film->expected_mw);
	one_write(&one, &files[1]);
	one_read(&one);
	assert_int_equal(one.rows[0][DEVICE_POWER], 42000);
	one_finish(&one);
}

static const struct property {
	const char *teaches, *interval, *accuracy;
	int64_t period_ns;
	double error;
} properties[] = {
	{"averaging interval is the period, accuracy is the error", "50\n", "98.0%\n", 50 * NS_PER_MS, 0.02},
	{"driver omits zeros after the point: 99.50 means 99.050 %", "1000\n", "99.50%\n", NS_PER_S, 0.0095},
	{"accuracy of 95 %: error of exactly 0.05", "", "95.0%\n", 0, 0.05},
	{"accuracy of 100 % or missing: no stated error", "", "100.0%\n", 0, 0},
	{"invalid accuracy: no stated error", "soon\n", "fine%\n", 0, 0},
};

static void has_properties(void **state)
{
	const struct property *row = *state;
	const struct one_file files[] = {{H(0) "name", "power_meter\n"}, {H(0) "power1_average", "42000000\n"},
		{H(0) "power1_average_interval", row->interval}, {H(0) "power1_accuracy", row->accuracy}, {0}};
	struct one_sensor one;
	one_make(&one, files);
	assert_int_equal(one_open(&one, &sensor_hwmon, NULL, NULL), 0);
	assert_int_equal(one.domains[0].update_period_ns, row->period_ns);
	assert_true(one.domains[0].relative_error == row->error); // as printed
	assert_int_equal(one.domains[0].provenance, PROVENANCE_DERIVED);
	one_finish(&one);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, look);
	ROWS_ADD(&tests, films, goes_and_comes_back);
	ROWS_ADD(&tests, properties, has_properties);
	return rows_run(&tests, "hwmon");
}
