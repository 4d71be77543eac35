/* What the files of this folder share. */
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

/* Time stamps that a device puts on its readings, made into CLOCK_MONOTONIC, and counters that start anew. */

struct stamp_clock {
	const struct wattle_env *env; // borrowed
	int64_t offset_ns;            // the device's clock minus ours
	int64_t last_stamp_ns, last_ns;
	bool anchored, foreign;
};

void stamp_clock_init(struct stamp_clock *clock, const struct wattle_env *env);
/* When, on CLOCK_MONOTONIC, the reading was made that carries this stamp and was seen at now_ns. One stamp gives one
 * answer, and none lies in the future. A stamp of the last minute by our wall clock, or by our uptime, is believed;
 * any other counts from an epoch that is not ours (`foreign`): then the quickest reading so far is taken to have been
 * seen the moment it was made, so that differences are the device's own and the rest is off by what reading takes. */
int64_t stamp_to_monotonic(struct stamp_clock *clock, int64_t stamp_ns, int64_t now_ns);

/* A jump that no power explains: added to a counter that began anew, it makes the sampler see a restart whatever the
 * values are, and take the energy in between for unknown. running_ns: at least the time since the last change. */
int64_t counter_restart_jump_uj(double max_power_w, int64_t running_ns);

/* Energy counters that root alone may read: from the file where this process may, else through the helper, which reads
 * them for those whom its policy lets. Sensors see a counter and do not care which.
 *
 * The helper is looked for when the first file is refused, never before. All its counters come by one question a tick. It
 * may be killed, hang and be started again meanwhile: a question that is not answered costs one short wait, and then it is
 * asked again now and then only; its counters are missing until it answers, which the notes of their domains say. */

struct privileged_counter {
	struct file_kept file;
	bool is_helped;             // its file is refused
	char name[PROTO_NAME_SIZE]; // in the helper's table
	int number;                 // there; -1: not in the table of the helper that answers now
	struct proto_reading last;
};

struct privileged {
	const struct wattle_env *env;        // borrowed
	struct privileged_counter *counters; // owned; do not move after the last privileged_add
	size_t n, capacity, n_helped;

	struct proto_client client;
	struct proto_hello hello;
	int code;                   // of the last try to talk with the helper; 0: it answers
	int64_t retry_ns, pause_ns; // when it is tried again, and how long after that
};

void privileged_init(struct privileged *set, const struct wattle_env *env);
void privileged_close(struct privileged *set);
// path: of the file in /sys; name: in the helper's table. The counter's index, or -ENOMEM. Asks no helper yet.
int privileged_add(struct privileged *set, const char *path, const char *name);

// A new reading of all that come from the helper. Does nothing where none does.
void privileged_refresh(struct privileged *set);
/* The file's number now, or what the last refresh brought. *ret_t_ns: when the helper read it, which may be a while ago as
 * it does not read for everybody as often as they ask; VALUE_MISSING: now. Negative errno; of a refused file -EACCES or
 * -EPERM until a helper has it. */
int privileged_read(struct privileged *set, size_t index, uint64_t *ret_uj, int64_t *ret_t_ns);
// As DEVICE_ENERGY_RAW and DEVICE_ENERGY_TIME.
void privileged_fill(struct privileged *set, size_t index, int64_t row[DEVICE_COUNT]);

/* What is to be said of a domain that such a counter feeds, after its first reading gave `code`: readable or not, used, why,
 * remedy, note, and how often the helper reads it for us. */
void privileged_describe(const struct privileged *set, size_t index, int code, struct domain *domain);
// Keeps the note up; after each refresh.
void privileged_note(const struct privileged *set, size_t index, struct domain *domain);

/* Temperature of CPU packages: hwmon coretemp ("Package id N"), k10temp and zenpower (Tdie, else Tctl), thermal zones
 * of type x86_pkg_temp and of ARM machines. No sensor of its own: it fills DEVICE_TEMPERATURE of package domains that
 * another sensor meters. */

struct cpu_temperature;

// NULL if there is nothing to read (or no memory). Files are kept open.
struct cpu_temperature *cpu_temperature_open(const struct wattle_env *env);
void cpu_temperature_close(struct cpu_temperature *temperature);
// Degrees Celsius of socket `index` (domain.index of a package; -1: the hottest), VALUE_MISSING if it could not be read.
// A value is kept for 100 ms.
int64_t cpu_temperature_read(struct cpu_temperature *temperature, int index);

/* What a CPU model is rated for. */

struct cpu_power {
	double tdp_w; // thermal design power of one socket
	int cores;    // of one socket
};

// model_name as in /proc/cpuinfo; false if the model is not in the table.
bool cpu_power_find(const char *model_name, struct cpu_power *ret_power);

/* The kernel's description of a perf PMU below bus/event_source/devices: how an event's name becomes numbers. */

struct perf_event_code {
	uint64_t config, config1, config2;
};

// terms: "event=0x02,umask=0x1" as in events/NAME; where each goes is in FOLDER/format/TERM ("config:0-7,21").
// -EINVAL for terms that can't be understood or do not fit.
int perf_pmu_encode(int root_fd, const char *folder, const char *terms, struct perf_event_code *ret_code);

// events/NAME.scale: what one count is worth in the unit of events/NAME.unit; -EINVAL for anything that is no joules.
int perf_pmu_read_scale(int root_fd, const char *folder, const char *event, double *ret_joules);

/* The CSV that OmegaWatt's reader writes, line by line; knows text, not files.
 *
 *	#timestamp,#frame_is_ok,#U1,#U2,#U3,#current1,#activepow1,#current2,#activepow2,…
 *	1671527189.304214184,false,,,,,,
 *	1671527189.314471465,true,232.3,0.0,0.0,0.1,20.9,0.0,0.0
 *
 * Seconds since the Unix epoch, volts, amperes, watts; channel N is the machine plugged into socket N. */

enum { WALL_COLUMNS_MAX = 128 };

struct wall_columns {
	int timestamp, frame_is_ok;
	bool is_power[WALL_COLUMNS_MAX]; // its watts count
	size_t n_power;
};

struct wall_frame {
	int64_t stamp_ns; // since the epoch of the meter's clock
	int64_t power_mw; // of all channels that count, together
};

// Whether the line is the header; channels: a bit for each channel that counts (bit 1: channel 1), 0: all. Columns of
// channels that are not there leave n_power smaller.
bool wall_csv_header(const char *line, uint64_t channels, struct wall_columns *ret_columns);
// False for a frame that is not ok, is cut, or holds no number where one belongs.
bool wall_csv_frame(const char *line, const struct wall_columns *columns, struct wall_frame *ret_frame);

/* The parts of the powercap sensor. */

// domains[i] is fed from counter i; there are n of both.
struct powercap {
	struct domain *domains;     // owned
	struct privileged counters; // energy_uj
	size_t n;
};

/* powercap_domains.c: which domains the zones are, from their names and parents alone: fills name, kind, inside,
 * device, index, and `used` with `why` for those that show the counter of another one. `readable` must be known
 * already. zones[i] describes domains[i]. */
void powercap_name_domains(const struct zone *zones, struct domain *domains, size_t n, bool dies_share_counter);
// Whether a zone's name is that of an energy domain.
bool powercap_zone_is_known(const struct zone *zone);

/* powercap_period.c: watches the counters for at most limit_ns and fills update_period_ns where it saw enough. */
void powercap_measure_periods(struct powercap *powercap, const struct wattle_env *env, int64_t limit_ns);

/* The parts of the hwmon sensor: it owns domains and meters, one file for each family of chips fills them. */

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
