#include "sensor/internal.h"

#include "base/num.h"
#include "base/util.h"

#include <stdio.h>

/* ACPI power meters (driver acpi_power_meter, chip "power_meter"): an average over power1_average_interval, often a second or
 * more, of a circuit chosen by the board's maker.
 *
 * A meter without a label is assumed to measure the machine's input. NVIDIA Grace labels its meters, which are nested: Module
 * contains Grace and, on a superchip, the GPU; Grace contains CPU and SysIO. */

static const struct label {
	const char *text; // the socket's number follows
	enum domain_kind kind, inside;
} labels[] = {
	{"Module Power Socket ", DOMAIN_MODULE, DOMAIN_KINDS},
	{"Grace Power Socket ", DOMAIN_PACKAGE, DOMAIN_MODULE},
	{"CPU Power Socket ", DOMAIN_CORE, DOMAIN_PACKAGE},
	{"SysIO Power Socket ", DOMAIN_UNCORE, DOMAIN_PACKAGE},
};

// Parses "99.5%". The driver prints thousandths of a percent without leading zeros after the point, so 99.50% means 99.050 %.
static double parse_error(const char *text)
{
	char copy[32];
	uint64_t percent, thousandths;
	text_copy(copy, sizeof(copy), text);
	char *point = strchr(copy, '.'), *sign = strchr(copy, '%');
	if (point == NULL || sign == NULL || sign < point)
		return 0;
	*point = *sign = '\0';
	if (num_parse_u64(copy, &percent) < 0 || num_parse_u64(point + 1, &thousandths) < 0 || percent >= 100 ||
		thousandths >= 1000)
		return 0;
	// One integer division: it gives 0.05 for 95 %, which 1 - 0.95 does not.
	return (double)(100000 - percent * 1000 - thousandths) / 1e5;
}

static void read_properties(struct hwmon *hwmon, const struct hwmon_chip *chip, struct domain *d)
{
	char text[32];
	uint64_t interval_ms;
	int root_fd = hwmon->env->sysfs_fd;
	if (hwmon_attribute_read(root_fd, chip, "power1_average_interval", text, sizeof(text)) &&
		num_parse_u64(text, &interval_ms) == 0 && interval_ms < 3600000)
		d->update_period_ns = (int64_t)interval_ms * NS_PER_MS;
	if (hwmon_attribute_read(root_fd, chip, "power1_accuracy", text, sizeof(text)))
		d->relative_error = parse_error(text);
}

static int add_meter(struct hwmon *hwmon, const struct hwmon_chip *chip, enum domain_kind kind, const char *name,
	const char *label)
{
	char device[96];
	snprintf(device, sizeof(device), "power_meter %.40s%s%.40s", chip->device, label[0] != '\0' ? ": " : "", label);
	int at = hwmon_add(hwmon, kind, name, device);
	if (at < 0)
		return at;
	read_properties(hwmon, chip, &hwmon->domains[at]);
	hwmon_add_term(hwmon, at, chip, "power1_average", NULL, HWMON_UW);
	hwmon_try(hwmon, at);
	return at;
}

static bool label_of(struct hwmon *hwmon, const struct hwmon_chip *chip, char *out, size_t size)
{
	out[0] = '\0';
	return strcmp(chip->name, "power_meter") == 0 &&
		(hwmon_attribute_read(hwmon->env->sysfs_fd, chip, "power1_oem_info", out, size) || true);
}

static void add_labelled(struct hwmon *hwmon, const struct hwmon_chip *chip, const char *text,
	const struct label *label)
{
	char name[48];
	uint64_t socket;
	enum domain_kind kind = label->kind, inside = label->inside;
	if (num_parse_u64(text + strlen(label->text), &socket) < 0 || socket > 1024)
		return;
	snprintf(name, sizeof(name), "package-%d", (int)socket);
	if (kind == DOMAIN_CORE && hwmon_find(hwmon, name) < 0) { // no meter of the whole Grace, so this one is its package
		kind = DOMAIN_PACKAGE;
		inside = DOMAIN_MODULE;
	}
	snprintf(name, sizeof(name), "%s-%d", domain_kind_name(kind), (int)socket);
	if (hwmon_find(hwmon, name) >= 0) // the same meter, registered twice
		return;
	int at = add_meter(hwmon, chip, kind, name, text);
	if (at < 0)
		return;
	hwmon->domains[at].index = (int)socket;
	if (inside == DOMAIN_KINDS)
		return;
	snprintf(name, sizeof(name), "%s-%d", domain_kind_name(inside), (int)socket);
	int container = hwmon_find(hwmon, name);
	if (container >= 0 && hwmon->domains[container].used)
		text_copy(hwmon->domains[at].inside, sizeof(hwmon->domains[at].inside), name);
}

// Adds containing meters before contained ones, which refer to them by name.
static void add_grace(struct hwmon *hwmon, const struct hwmon_chips *chips)
{
	for (size_t k = 0; k < ARRAY_SIZE(labels); k++)
		for (size_t i = 0; i < chips->n; i++) {
			char text[64];
			if (label_of(hwmon, &chips->chips[i], text, sizeof(text)) &&
				strncmp(text, labels[k].text, strlen(labels[k].text)) == 0)
				add_labelled(hwmon, &chips->chips[i], text, &labels[k]);
		}
}

static bool is_known_label(const char *text)
{
	for (size_t k = 0; k < ARRAY_SIZE(labels); k++)
		if (strncmp(text, labels[k].text, strlen(labels[k].text)) == 0)
			return true;
	return false;
}

/* Nothing shows how several unlabelled meters are nested (the supplies and their sum, the machine and its memory). One is
 * therefore used and the others are only listed. */
static void add_boards(struct hwmon *hwmon, const struct hwmon_chips *chips)
{
	bool has_node = false;
	for (size_t i = 0; i < chips->n; i++) {
		char text[64], battery[8];
		const struct hwmon_chip *chip = &chips->chips[i];
		if (!label_of(hwmon, chip, text, sizeof(text)) || is_known_label(text))
			continue;
		int at = add_meter(hwmon, chip, DOMAIN_NODE, "node", text);
		if (at < 0 || !hwmon->domains[at].used)
			continue;
		if (hwmon_attribute_read(hwmon->env->sysfs_fd, chip, "power1_is_battery", battery, sizeof(battery)) &&
			strcmp(battery, "1") == 0)
			domain_leave_out(&hwmon->domains[at], "it measures a battery");
		else if (text[0] != '\0')
			domain_leave_out(&hwmon->domains[at], "unknown what the meter labelled %.40s measures", text);
		else if (has_node)
			domain_leave_out(&hwmon->domains[at],
				"the first meter is used for the machine; unknown what this one measures");
		else
			has_node = true;
	}
}

void hwmon_add_acpi(struct hwmon *hwmon, const struct hwmon_chips *chips)
{
	add_grace(hwmon, chips);
	add_boards(hwmon, chips);
}
