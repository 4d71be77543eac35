#include "sensor/sensor.h"

#include "one_sensor.h"

#define P "class/power_supply/"

struct row {
	const char *teaches;
	struct one_file files[ONE_FILES_MAX];
	const char *expected;
};

#define BAT(n, status)                                                                                                 \
	{P "BAT" #n "/type", "Battery\n"},                                                                             \
	{                                                                                                              \
		P "BAT" #n "/status", status "\n"                                                                      \
	}

// clang-format off
static const struct row rows[] = {
	{"no battery: a desktop, or mains only", {{P "AC/type", "Mains\n"}}, ""},
	{"microwatts", {BAT(0, "Discharging"), {P "BAT0/power_now", "8450000\n"}}, "battery - yes - 8450\n"},
	{"driver that reports discharge as negative", {BAT(0, "Discharging"), {P "BAT0/power_now", "-8450000\n"}},
		"battery - yes - 8450\n"},
	{"microamperes and microvolts", {BAT(1, "Discharging"), {P "BAT1/current_now", "700000\n"},
		{P "BAT1/voltage_now", "11500000\n"}}, "battery - yes - 8050\n"},
	{"two discharging batteries: one domain", {BAT(0, "Discharging"), {P "BAT0/power_now", "8000000\n"},
		BAT(1, "Discharging"), {P "BAT1/power_now", "2000000\n"}}, "battery - yes - 10000\n"},
	{"one discharging, one idle", {BAT(0, "Not charging"), {P "BAT0/power_now", "8000000\n"},
		BAT(1, "Discharging"), {P "BAT1/power_now", "2000000\n"}}, "battery - yes - 2000\n"},
	{"one charges from the other: the machine's power is unknown", {BAT(0, "Charging"),
		{P "BAT0/power_now", "8000000\n"}, BAT(1, "Discharging"), {P "BAT1/power_now", "9000000\n"}},
		"battery - no (status is Charging: a battery reports the machine's power only while it discharges)\n"},
	{"charger connected: no power", {BAT(0, "Full"), {P "BAT0/power_now", "0\n"}},
		"battery - no (status is Full: a battery reports the machine's power only while it discharges)\n"},
	{"0 W while discharging: missing", {BAT(0, "Discharging"), {P "BAT0/power_now", "0\n"}},
		"battery - no (power_now: No data available)\n"},
	{"neither power nor current: missing", {BAT(0, "Discharging")}, "battery - no (power_now is missing)\n"},
	{"a mouse's battery, an empty bay and a UPS: no batteries of the machine", {
		{P "hid/type", "Battery\n"}, {P "hid/scope", "Device\n"}, {P "hid/status", "Discharging\n"},
		{P "hid/power_now", "1\n"}, BAT(2, "Discharging"), {P "BAT2/present", "0\n"}, {P "ups/type", "UPS\n"}}, ""},
	{"status unknown: missing", {BAT(0, ""), {P "BAT0/power_now", "8000000\n"}},
		"battery - no (status is Unknown: a battery reports the machine's power only while it discharges)\n"},
};
// clang-format on

static void look(void **state)
{
	const struct row *row = *state;
	one_compare(&sensor_battery, row->files, row->expected);
}

// The charger is connected during a run and disconnected again.
static void plugged_in(void **state)
{
	const struct one_file files[] = {BAT(0, "Discharging"), {P "BAT0/power_now", "8000000\n"}, {0}};
	struct one_sensor one;
	one_make(&one, files);
	assert_int_equal(one_open(&one, &sensor_battery, NULL, NULL), 0);
	one_read(&one);
	assert_int_equal(one.rows[0][DEVICE_POWER], 8000);
	assert_string_equal(one.domains[0].note, "");
	one_write(&one, &(struct one_file){P "BAT0/status", "Charging\n"});
	one_read(&one);
	assert_int_equal(one.rows[0][DEVICE_POWER], VALUE_MISSING);
	assert_string_equal(one.domains[0].note,
		"Charging, so its power is not the machine's: unknown until it discharges again");
	one_write(&one, &files[1]);
	one_read(&one);
	assert_int_equal(one.rows[0][DEVICE_POWER], 8000);
	one_write(&one, &(struct one_file){P "BAT0/power_now", NULL}); // and the driver disappears
	one_read(&one);
	assert_int_equal(one.rows[0][DEVICE_POWER], VALUE_MISSING);
	one_finish(&one);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, look);
	ROWS_ADD_ONE(&tests, "charger connected and disconnected during a run", plugged_in);
	return rows_run(&tests, "battery");
}
