#include "sensor/internal.h"

#include "base/util.h"

#include <stdio.h>

/* ARM servers whose management processor measures the rails of the chip; one hwmon chip per socket.
 *
 * X-Gene (xgene-hwmon.c): "CPU power" of the core modules and "IO power" of the rest, not nested. Ampere Altra
 * (smpro-hwmon.rst): the regulators of cores, SoC and root complex, whose sum is the package, and two of the memory. */

struct rail {
	enum domain_kind kind;
	const char *inside; // "" or the name of a domain without its number
	const char *attributes[HWMON_TERMS_MAX], *what;
};

static const struct rail xgene[] = {
	{DOMAIN_PACKAGE, "", {"power1_input"}, "CPU power"},
	{DOMAIN_UNCORE, "", {"power2_input"}, "IO power"},
};

static const struct rail altra[] = {
	{DOMAIN_PACKAGE, "", {"power1_input", "power2_input", "power5_input"}, "core, SoC and RCA regulators"},
	{DOMAIN_CORE, "package", {"power1_input"}, "core regulator"},
	{DOMAIN_UNCORE, "package", {"power2_input", "power5_input"}, "SoC and RCA regulators"},
	{DOMAIN_DRAM, "", {"power3_input", "power4_input"}, "DIMM regulators"},
};

static const struct family {
	const char *name;
	const struct rail *rails;
	size_t n_rails;
} families[] = {
	{"apm_xgene", xgene, ARRAY_SIZE(xgene)},
	{"xgene", xgene, ARRAY_SIZE(xgene)},
	{"smpro_hwmon", altra, ARRAY_SIZE(altra)},
	{"smpro", altra, ARRAY_SIZE(altra)},
};

static void add_rail(struct hwmon *hwmon, const struct hwmon_chip *chip, const struct rail *rail, int socket)
{
	char name[48], device[96];
	snprintf(name, sizeof(name), "%s-%d", domain_kind_name(rail->kind), socket);
	snprintf(device, sizeof(device), "%s %.24s: %s", chip->name, chip->device, rail->what);
	int at = hwmon_add(hwmon, rail->kind, name, device);
	if (at < 0)
		return;
	struct domain *d = &hwmon->domains[at];
	d->index = socket;
	if (rail->inside[0] != '\0')
		snprintf(d->inside, sizeof(d->inside), "%s-%d", rail->inside, socket);
	for (size_t i = 0; i < HWMON_TERMS_MAX && rail->attributes[i] != NULL; i++)
		hwmon_add_term(hwmon, at, chip, rail->attributes[i], NULL, HWMON_UW);
	hwmon_try(hwmon, at);
}

void hwmon_add_arm(struct hwmon *hwmon, const struct hwmon_chips *chips)
{
	int socket = 0;
	for (size_t i = 0; i < chips->n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(families); k++) {
			if (strcmp(chips->chips[i].name, families[k].name) != 0)
				continue;
			for (size_t r = 0; r < families[k].n_rails; r++)
				add_rail(hwmon, &chips->chips[i], &families[k].rails[r], socket);
			socket++;
		}
}
