/* Declarations shared by the files of this folder. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "base/util.h"
#include "proto/client.h"
#include "sensor/sensor.h"
#include "sensor/sysfs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Conversion of device time stamps to CLOCK_MONOTONIC, and handling of counter restarts. */

struct stamp_clock {
	const struct wattle_env *env; // borrowed
	int64_t offset_ns;            // device clock minus CLOCK_MONOTONIC
	int64_t last_stamp_ns, last_ns;
	bool anchored, foreign;
};

void stamp_clock_init(struct stamp_clock *clock, const struct wattle_env *env);
/* Returns the CLOCK_MONOTONIC time of the reading with this stamp, first seen at now_ns. One stamp always gives one result,
 * and no result lies in the future. A stamp within the last minute of our wall clock or uptime is trusted. Any other stamp
 * has a foreign epoch (`foreign`): the reading with the least delay so far is then assumed to have no delay. Differences are
 * then exact on the device's clock, and absolute times are off by the delay. */
int64_t stamp_to_monotonic(struct stamp_clock *clock, int64_t stamp_ns, int64_t now_ns);

/* An increase that no plausible power explains. Added to a restarted counter, it makes the sampler detect the restart for any
 * values, and treat the energy in between as unknown. running_ns: minimum time since the last change. */
int64_t counter_restart_jump_uj(double max_power_w, int64_t running_ns);

/* Energy counters that only root may read: from the file if this process may read it, else through the helper, which reads
 * them for the clients that its policy permits. Sensors see a counter in both cases.
 *
 * The helper is contacted only after the first file is refused. One request per tick returns all of its counters. The helper
 * may be killed, hang or restart at any time. An unanswered request costs one short wait, and requests are then repeated only
 * occasionally. Until the helper answers, its counters are missing, and the notes of their domains report it. */

struct privileged_counter {
	struct file_kept file;
	bool is_helped;             // access to its file is denied
	char name[PROTO_NAME_SIZE]; // in the helper's counter table
	int number;                 // index in that table; -1: not in the table of the current helper
	struct proto_reading last;
};

struct privileged {
	const struct wattle_env *env;        // borrowed
	struct privileged_counter *counters; // owned; do not move after the last privileged_add
	size_t n, capacity, n_helped;

	struct proto_client client;
	struct proto_hello hello;
	int code;                   // error of the last contact with the helper; 0: it answers
	int64_t retry_ns, pause_ns; // time of the next attempt, and the pause after it
};

void privileged_init(struct privileged *set, const struct wattle_env *env);
void privileged_close(struct privileged *set);
// path: of the file in /sys; name: in the helper's table. Returns the counter's index or -ENOMEM. Does not contact the
// helper.
int privileged_add(struct privileged *set, const char *path, const char *name);

// Reads all counters that come from the helper, if there are any.
void privileged_refresh(struct privileged *set);
/* Returns the current number from the file, or the result of the last refresh. *ret_t_ns is the time at which the helper read
 * it, which may be earlier because the helper limits its read rate; VALUE_MISSING: now. Returns a negative errno on failure:
 * -EACCES or -EPERM for a refused file until a helper serves it. */
int privileged_read(struct privileged *set, size_t index, uint64_t *ret_uj, int64_t *ret_t_ns);
// Fills DEVICE_ENERGY_RAW and DEVICE_ENERGY_TIME.
void privileged_fill(struct privileged *set, size_t index, int64_t row[DEVICE_COUNT]);

/* Describes a domain that such a counter feeds, after its first reading returned `code`: sets readable, used, why, remedy,
 * note, and the helper's read period. */
void privileged_describe(const struct privileged *set, size_t index, int code, struct domain *domain);
// Updates the note; call after each refresh.
void privileged_note(const struct privileged *set, size_t index, struct domain *domain);

/* Temperature of CPU packages: hwmon coretemp ("Package id N"), k10temp and zenpower (Tdie, else Tctl), thermal zones of type
 * x86_pkg_temp and of ARM machines. It is not a sensor: it fills DEVICE_TEMPERATURE of package domains that other sensors
 * meter. */

struct cpu_temperature;

// Returns NULL if there is nothing to read (or no memory). Keeps files open.
struct cpu_temperature *cpu_temperature_open(const struct wattle_env *env);
void cpu_temperature_close(struct cpu_temperature *temperature);
// Returns the temperature in °C of socket `index` (domain.index of a package; -1: the hottest), VALUE_MISSING if it could not
// be read. A value is reused for 100 ms.
int64_t cpu_temperature_read(struct cpu_temperature *temperature, int index);

/* Ratings of CPU models. */

struct cpu_power {
	double tdp_w; // thermal design power of one socket
	int cores;    // of one socket
};

// model_name as in /proc/cpuinfo; returns false if the model is not in the table.
bool cpu_power_find(const char *model_name, struct cpu_power *ret_power);

/* The kernel's description of a perf PMU in bus/event_source/devices: conversion of event names to numbers. */

struct perf_event_code {
	uint64_t config, config1, config2;
};

// terms: "event=0x02,umask=0x1" as in events/NAME; FOLDER/format/TERM has the bit positions of each term ("config:0-7,21").
// Returns -EINVAL for terms that are invalid or out of range.
int perf_pmu_encode(int root_fd, const char *folder, const char *terms, struct perf_event_code *ret_code);

// events/NAME.scale: value of one count in the unit of events/NAME.unit; returns -EINVAL for any unit other than joules.
int perf_pmu_read_scale(int root_fd, const char *folder, const char *event, double *ret_joules);

/* Parser of the CSV that OmegaWatt's reader writes, line by line; it handles text, not files.
 *
 *	#timestamp,#frame_is_ok,#U1,#U2,#U3,#current1,#activepow1,#current2,#activepow2,…
 *	1671527189.304214184,false,,,,,,
 *	1671527189.314471465,true,232.3,0.0,0.0,0.1,20.9,0.0,0.0
 *
 * Columns are seconds since the Unix epoch, volts, amperes and watts; channel N is the machine on socket N. */

enum { WALL_COLUMNS_MAX = 128 };

struct wall_columns {
	int timestamp, frame_is_ok;
	bool is_power[WALL_COLUMNS_MAX]; // columns whose power is counted
	size_t n_power;
};

struct wall_frame {
	int64_t stamp_ns; // epoch of the meter's clock
	int64_t power_mw; // sum of all counted channels
};

// Returns whether the line is the header. channels: bit mask of counted channels (bit 1: channel 1); 0: all. n_power is
// smaller if some of these channels are absent.
bool wall_csv_header(const char *line, uint64_t channels, struct wall_columns *ret_columns);
// Returns false for a frame that is marked invalid, is truncated, or has a field that is not a number.
bool wall_csv_frame(const char *line, const struct wall_columns *columns, struct wall_frame *ret_frame);

/* Shared declarations of the powercap sensor. */

// Counter i feeds domains[i]; there are n of both.
struct powercap {
	struct domain *domains;     // owned
	struct privileged counters; // energy_uj
	size_t n;
};

/* powercap_domains.c: derives the domains from the names and parents of the zones. Fills name, kind, inside, device, index,
 * and `used` with `why` for zones that repeat another one's counter. `readable` must already be set. zones[i] describes
 * domains[i]. */
void powercap_name_domains(const struct zone *zones, struct domain *domains, size_t n, bool dies_share_counter);
// Whether a zone's name is that of an energy domain.
bool powercap_zone_is_known(const struct zone *zone);

/* powercap.c: polls the counters for at most limit_ns and sets update_period_ns where enough changes were seen. */
void powercap_measure_periods(struct powercap *powercap, const struct wattle_env *env, int64_t limit_ns);

/* Shared declarations of the hwmon sensor: it owns domains and meters, and one file per chip family fills them. */

enum { HWMON_TERMS_MAX = 3 };

// One term of a reading: the number in one file, or the product of two (volts and amperes), in units of `unit`.
struct hwmon_term {
	struct file_kept value, factor;
	bool has_factor;
	double unit; // in mW
};

struct hwmon_meter {
	struct hwmon_term terms[HWMON_TERMS_MAX];
	size_t n_terms;
	int counter; // index in hwmon->counters, used instead of terms; -1: none
};

// meters[i] feeds domains[i].
struct hwmon {
	const struct wattle_env *env; // borrowed
	struct domain *domains;       // owned
	struct hwmon_meter *meters;   // owned
	struct privileged counters;   // domains with an energy counter
	size_t n, capacity;
	bool no_memory; // an allocation failed; stays set
};

static const double HWMON_UW = 1e-3; // also of mV · mA
static const double HWMON_MW = 1;

/* Appends a domain that is derived from power and has no terms yet. Returns its index in hwmon->domains, or -1. Invalidates
 * pointers into the arrays. */
int hwmon_add(struct hwmon *hwmon, enum domain_kind kind, const char *name, const char *device);
// Adds the value of an attribute of the chip, times the value of `factor` unless that is NULL.
void hwmon_add_term(struct hwmon *hwmon, int at, const struct hwmon_chip *chip, const char *attribute,
	const char *factor, double unit);
/* Feeds the domain from an energy counter in µJ, which may be readable by root only. Its name in the helper's table is built
 * from the chip and the attribute. */
void hwmon_add_counter(struct hwmon *hwmon, int at, const struct hwmon_chip *chip, const char *attribute);
// Tries a reading: afterwards the domain is readable and used, or has a reason.
void hwmon_try(struct hwmon *hwmon, int at);
// Returns the index of the domain with that name, used or not, or -1.
int hwmon_find(const struct hwmon *hwmon, const char *name);

/* Each scans all chips and adds the domains of its family. */
void hwmon_add_amd_energy(struct hwmon *hwmon, const struct hwmon_chips *chips); // hwmon_amd_energy.c
void hwmon_add_acpi(struct hwmon *hwmon, const struct hwmon_chips *chips);       // hwmon_acpi.c: boards, NVIDIA Grace
void hwmon_add_ina3221(struct hwmon *hwmon, const struct hwmon_chips *chips);    // hwmon_ina3221.c: NVIDIA Jetson
void hwmon_add_arm(struct hwmon *hwmon, const struct hwmon_chips *chips);        // hwmon_arm.c: X-Gene, Ampere Altra
