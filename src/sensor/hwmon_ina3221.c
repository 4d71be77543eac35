#include "sensor/internal.h"

#include "base/num.h"
#include "base/util.h"

#include <ctype.h>
#include <stdio.h>

/* INA3221: three rails with voltage and current each, on NVIDIA Jetson boards with one or two chips. The label names what a
 * rail feeds. Labels differ between boards (NVIDIA's guides and device trees; energymon's JetsonPowerRails.md):
 *
 *	Nano, TX1	POM_5V_IN, POM_5V_GPU, POM_5V_CPU; VDD_IN, VDD_GPU, VDD_CPU
 *	TX2		VDD_IN, VDD_SYS_GPU, VDD_SYS_CPU, VDD_SYS_SOC, VDD_SYS_DDR
 *	Xavier NX, Orin	VDD_IN, VDD_CPU_GPU_CV, VDD_SOC
 *	AGX Xavier	GPU, CPU, SOC, CV, VDDRQ, SYS5V
 *	AGX Orin	VDD_GPU_SOC, VDD_CPU_CV, VIN_SYS_5V0, VDDQ_VDD2_1V8AO
 *
 * A rail that feeds several parts is assigned to the largest of them; its device text lists them all. */

enum { CHANNELS = 3 };

static const char *const inputs[] = {"VDD_IN", "POM_5V_IN", "5V_IN", "VDD_5V_IN", "VIN"};

static const struct {
	const char *word; // in the label
	enum domain_kind kind;
	const char *name;
} rails[] = {
	{"CPU", DOMAIN_PACKAGE, "package-0"},
	{"GPU", DOMAIN_GPU, "gpu-0"},
	{"VDDQ", DOMAIN_DRAM, "dram-0"},
	{"VDDRQ", DOMAIN_DRAM, "dram-0"},
	{"DDR", DOMAIN_DRAM, "dram-0"},
	{"SOC", DOMAIN_UNCORE, "uncore-0"},
	{"CV", DOMAIN_UNCORE, "uncore-0"},
};

struct channel {
	const struct hwmon_chip *chip;
	char label[32];
	char value[24], factor[24]; // attributes; factor "": value is mW
};

// hwmon counts channels from 1, the old iio driver from 0.
static bool find_channel(int root_fd, const struct hwmon_chip *chip, int number, struct channel *ret_channel)
{
	char attribute[24], path[HWMON_PATH_SIZE];
	struct channel channel = {.chip = chip};
	bool is_iio = strcmp(chip->name, "ina3221x") == 0;
	snprintf(attribute, sizeof(attribute), is_iio ? "rail_name_%d" : "in%d_label", is_iio ? number : number + 1);
	if (!hwmon_attribute_read(root_fd, chip, attribute, channel.label, sizeof(channel.label)))
		return false;
	for (char *c = channel.label; *c != '\0'; c++)
		*c = (char)toupper((unsigned char)*c);
	if (is_iio) {
		snprintf(channel.value, sizeof(channel.value), "in_power%d_input", number);
	} else {
		snprintf(channel.value, sizeof(channel.value), "in%d_input", number + 1);
		snprintf(channel.factor, sizeof(channel.factor), "curr%d_input", number + 1);
	}
	*ret_channel = channel;
	// A disabled channel ("NC") has only a label.
	return hwmon_attribute_path(root_fd, chip, channel.value, path);
}

static bool is_input(const char *label)
{
	for (size_t i = 0; i < ARRAY_SIZE(inputs); i++)
		if (strcmp(label, inputs[i]) == 0)
			return true;
	return false;
}

static int find_rail(const char *label)
{
	for (size_t i = 0; i < ARRAY_SIZE(rails); i++)
		if (strstr(label, rails[i].word) != NULL)
			return (int)i;
	return -1;
}

// Two rails of one domain (SOC and CV of AGX Xavier) are added as long as both can be read.
static int add_domain(struct hwmon *hwmon, const struct channel *channel, enum domain_kind kind, const char *name)
{
	char device[96];
	int at = hwmon_find(hwmon, name);
	if (at >= 0 && hwmon->domains[at].used && strncmp(hwmon->domains[at].device, "ina3221", 7) == 0) {
		char *text = hwmon->domains[at].device;
		size_t length = strlen(text);
		snprintf(text + length, sizeof(hwmon->domains[at].device) - length, " + %s", channel->label);
		return at;
	}
	snprintf(device, sizeof(device), "ina3221 %.40s %s", channel->chip->device, channel->label);
	return hwmon_add(hwmon, kind, name, device);
}

static void add_channel(struct hwmon *hwmon, const struct channel *channel)
{
	char text[24], other[48];
	uint64_t interval_ms;
	int rail = find_rail(channel->label);
	bool input = is_input(channel->label);
	snprintf(other, sizeof(other), "node-%s", channel->label);
	int at = input      ? add_domain(hwmon, channel, DOMAIN_NODE, "node")
		: rail >= 0 ? add_domain(hwmon, channel, rails[rail].kind, rails[rail].name)
			    : add_domain(hwmon, channel, DOMAIN_NODE, other);
	if (at < 0)
		return;
	hwmon->domains[at].index = !input && rail >= 0 ? 0 : -1;
	hwmon_add_term(hwmon, at, channel->chip, channel->value, channel->factor[0] != '\0' ? channel->factor : NULL,
		channel->factor[0] != '\0' ? HWMON_UW : HWMON_MW);
	hwmon_try(hwmon, at);
	if (!input && rail < 0)
		domain_leave_out(&hwmon->domains[at], "rail %s supplies other parts of the board", channel->label);
	if (hwmon_attribute_read(hwmon->env->sysfs_fd, channel->chip, "update_interval", text, sizeof(text)) &&
		num_parse_u64(text, &interval_ms) == 0 && interval_ms < 3600000)
		hwmon->domains[at].update_period_ns = (int64_t)interval_ms * NS_PER_MS;
}

void hwmon_add_ina3221(struct hwmon *hwmon, const struct hwmon_chips *chips)
{
	size_t before = hwmon->n;
	for (size_t i = 0; i < chips->n; i++)
		for (int number = 0; number < CHANNELS; number++) {
			struct channel channel;
			if (strncmp(chips->chips[i].name, "ina3221", 7) == 0 &&
				find_channel(hwmon->env->sysfs_fd, &chips->chips[i], number, &channel))
				add_channel(hwmon, &channel);
		}
	int node = hwmon_find(hwmon, "node");
	for (size_t i = before; node >= 0 && hwmon->domains[node].used && i < hwmon->n; i++)
		if ((int)i != node && hwmon->domains[i].kind != DOMAIN_NODE)
			text_copy(hwmon->domains[i].inside, sizeof(hwmon->domains[i].inside), "node");
}
