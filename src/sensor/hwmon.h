/* The parts of the hwmon sensor: it owns domains and meters, one file for each family of chips fills them. */
#pragma once

#include "base/file.h"
#include "sensor/hwmon_chip.h"
#include "sensor/privileged.h"
#include "sensor/sensor.h"

enum { HWMON_TERMS_MAX = 3 };

// One addend of a reading: a file's number, or the product of two files' (volts and amperes), in units of `unit`.
struct hwmon_term {
	struct file_kept value, factor;
	bool has_factor;
	double unit; // mW of one
};

struct hwmon_meter {
	struct hwmon_term terms[HWMON_TERMS_MAX];
	size_t n_terms;
	int counter; // in hwmon->counters, instead of terms; -1: none
};

// meters[i] feeds domains[i].
struct hwmon {
	const struct wattle_env *env; // borrowed
	struct domain *domains;       // owned
	struct hwmon_meter *meters;   // owned
	struct privileged counters;   // those that count energy
	size_t n, capacity;
	bool no_memory; // sticky
};

static const double HWMON_UW = 1e-3; // also of mV · mA
static const double HWMON_MW = 1;

/* Appends a domain, derived from power and with nothing to read yet; its index in hwmon->domains, or -1. Pointers into
 * the arrays do not survive it. */
int hwmon_add(struct hwmon *hwmon, enum domain_kind kind, const char *name, const char *device);
// Adds what an attribute of the chip shows, times what `factor` shows unless that is NULL.
void hwmon_add_term(struct hwmon *hwmon, int at, const struct hwmon_chip *chip, const char *attribute,
	const char *factor, double unit);
/* The domain is fed by a counter of energy in µJ, which may be for root only; in the helper's table it is called after the chip
 * and the attribute. */
void hwmon_add_counter(struct hwmon *hwmon, int at, const struct hwmon_chip *chip, const char *attribute);
// Tries to read it: from now on the domain is readable and used, or says why not.
void hwmon_try(struct hwmon *hwmon, int at);
// The index of the domain of that name, used or not, or -1.
int hwmon_find(const struct hwmon *hwmon, const char *name);

/* Each looks through all chips and adds the domains of its own. */
void hwmon_add_amd_energy(struct hwmon *hwmon, const struct hwmon_chips *chips); // hwmon_amd_energy.c
void hwmon_add_acpi(struct hwmon *hwmon, const struct hwmon_chips *chips);       // hwmon_acpi.c: boards, NVIDIA Grace
void hwmon_add_ina3221(struct hwmon *hwmon, const struct hwmon_chips *chips);    // hwmon_ina3221.c: NVIDIA Jetson
void hwmon_add_arm(struct hwmon *hwmon, const struct hwmon_chips *chips);        // hwmon_arm.c: X-Gene, Ampere Altra
