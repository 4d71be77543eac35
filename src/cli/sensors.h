/* wattle sensors, in parts. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fields.h"
#include "metric/metric.h"
#include "energy/counter.h"
#include "sensor/sensor.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What `wattle sensors` finds out: a row for every domain, used, beaten, hidden or missing, and what a run on this
 * machine would make of them. */

struct doctor_row {
	const char *sensor;
	const struct domain *domain; // of the set, or doctor.missing
	const struct idle_power *idle; // stored; NULL: none
	struct update_period period;   // as its sensor states it, or as it was seen
	double last;                   // NaN: none
	const char *last_unit;         // "J" or "W"; NULL: none
};

enum doctor_state { DOCTOR_USED, DOCTOR_NOT_USED, DOCTOR_UNREADABLE };

struct doctor {
	struct sensor_set set;
	struct update_period *periods; // owned, of each device
	struct idle_power *idle;       // owned, of each device
	struct domain missing;   // powercap, where the sensor itself has nothing to show
	struct doctor_row *rows; // owned
	size_t n_rows;
	char baseline_note[200]; // why a stored baseline is not used; "" it is, or there is none
	bool is_open;
};

// Opens all sensors as `wattle run` would in this environment, and watches their counters for up to about 1.5 s.
int doctor_open(struct doctor *doctor, const struct wattle_env *env, struct wattle_error *reterr);
void doctor_close(struct doctor *doctor);

enum doctor_state doctor_state(const struct domain *domain);
// Whether a run's total holds this domain.
bool doctor_in_total(const struct doctor *doctor, const struct domain *domain);
// Whether anything that would be sampled is more than an estimate and has given a reading.
bool doctor_measures(const struct doctor *doctor);
/* A command that mends what is unreadable beyond the next boot, where `remedy` holds until then only; NULL: the remedy
 * lasts, or there is none. */
const char *doctor_lasting_remedy(const struct doctor_row *row);

// doctor_verdict.c: sentences without line breaks; the second may say nothing.
void doctor_verdict(const struct doctor *doctor, struct buf *text);
void doctor_idle_power(const struct doctor *doctor, struct buf *text);
void doctor_calibration(const struct doctor *doctor, struct buf *text); // of GPUs; nothing where none is measured

// doctor_json.c, doctor_text.c
extern const struct object_type sensors_type; // data: struct doctor
void doctor_json(const struct doctor *doctor, struct buf *out);
void doctor_text(const struct doctor *doctor, struct buf *out);

/* doctor_missing.c: why a machine without a single powercap zone has none. False where there is nothing to tell: the
 * CPU is none that has such counters. */
bool doctor_explain_powercap(const struct wattle_env *env, struct domain *ret_domain);

/* The idle power of each domain, measured when the machine was provably idle and kept in the state folder as idle.json:
 *
 *	{"schema": "wattle-idle/1", "host": "…", "date": "2026-01-31T12:00:00Z", "temperature_c": 38,
 *	 "domains": [{"domain", "source", "device", "uuid", "idle_w", "error_w", "seconds", "temperature_c", "date"}…]}
 *
 * `host` is a hash that tells machines apart and names none. date and temperature_c of the whole are those of the last
 * calibration; a domain that it did not meet keeps its older one. */

enum { IDLE_BASELINE_MAX = 256, IDLE_BASELINE_DAYS = 90 };

struct idle_entry {
	char domain[48], source[16], device[96], uuid[96];
	char date[32]; // RFC 3339, UTC
	double idle_w, error_w, seconds;
	double temperature_c; // NaN unknown
};

struct idle_baseline {
	char host[20];
	char date[32];        // of the last calibration
	double temperature_c; // then; NaN unknown
	struct idle_entry *entries;
	size_t n;
	struct arena *arena; // owns the entries
};

extern const struct object_type idle_baseline_type;

// Where the file is: env->state_dir/idle.json. False if the path does not fit.
bool idle_baseline_path(const struct wattle_env *env, char *ret_path, size_t size);
// -ENOENT: none is stored; -EINVAL with a sentence: the file is not what it should be. *ret_baseline is always valid.
int idle_baseline_load(const struct wattle_env *env, struct idle_baseline *ret_baseline, struct wattle_error *reterr);
// Replaces the entries of the same domain, source, device and uuid, keeps the others, and writes the file whole; what
// was stored for another machine is dropped.
int idle_baseline_store(const struct wattle_env *env, const struct idle_entry *entries, size_t n,
	struct wattle_error *reterr);
int idle_baseline_folder(const struct wattle_env *env, struct wattle_error *reterr); // makes the state folder
void idle_baseline_finish(struct idle_baseline *baseline);

void idle_baseline_host(char *ret_host, size_t size); // of this machine
void idle_baseline_date(int64_t wall_ns, char *ret_date, size_t size);

/* The stored idle power of each device of the set, in an array with room for all of them; what has none stays. What is stored
 * but does not count (too old, another machine, broken) leaves a sentence in ret_note, "" else. Returns the number of domains that
 * got one. */
size_t idle_baseline_of(const struct wattle_env *env, const struct sensor_set *set, struct idle_power *ret_idle,
	char *ret_note, size_t size);

/* One domain while the machine is to be idle: its mean power, how sure that is, and whether it stayed the same. Pure: no
 * clock, no file. */

enum { IDLE_WINDOWS_MAX = 3600 };

struct idle_edge { // an update of the counter
	int64_t t_ns;
	double energy_j;
	double blur_s; // it was made within so much time before t_ns
};

struct idle_watch {
	const struct domain *domain; // borrowed
	struct counter counter;
	bool has_edge;
	struct idle_edge first, last, window_start;
	int64_t last_look_ns;
	double power_sum_w, temperature_sum_c; // of the current window, and of all
	size_t n_powers, n_temperatures;
	double windows_w[IDLE_WINDOWS_MAX]; // mean power of each; NaN: no update in it
	size_t n_windows;
	bool was_reset; // the counter started anew: nothing before it counts
};

struct idle_result {
	double idle_w, error_w; // half of a 95 % interval
	double seconds;
	double temperature_c;       // NaN unknown
	double lowest_w, highest_w; // of the windows
};

void idle_watch_init(struct idle_watch *watch, const struct domain *domain, int64_t t_ns);
// values: a row of the set; power and temperature are taken where they are there.
void idle_watch_feed(struct idle_watch *watch, int64_t t_ns, const int64_t values[DEVICE_COUNT]);
void idle_watch_end_window(struct idle_watch *watch);
// False if the domain never moved, so that nothing can be said.
bool idle_watch_result(const struct idle_watch *watch, struct idle_result *ret_result);
// Whether the power of the windows so far stayed within what an idle domain's wanders.
bool idle_watch_is_steady(const struct idle_watch *watch, struct idle_result *ret_result);

/* Which programs kept the processors busy meanwhile: two looks at /proc and the difference. */

struct busy_process {
	pid_t pid;
	uint64_t start_ticks;
	int64_t cpu_ns;
	char name[32];
};

struct busy_processes {
	struct busy_process *all; // owned; ascending pids
	size_t n, capacity;
};

// What can't be read is left out; never fails.
void busy_processes_look(struct busy_processes *processes, const struct wattle_env *env);
void busy_processes_finish(struct busy_processes *processes);
// "cc1plus (4711), python3 (99)": those that used most CPU time between the two looks, at most three and none that used
// less than a tenth of what the first one did; wattle itself is left out. Nothing if nobody used any.
void busy_processes_name(const struct busy_processes *before, const struct busy_processes *after, struct buf *out);

/* wattle sensors --calibrate-idle: the idle power of every measured domain, stored only if the machine was idle all the
 * time. */

/* Wants `seconds` of idleness in one piece and waits for them up to three times as long; says on stdout what was stored
 * or on stderr what is busy. EXIT_DONE or EXIT_FAILED. */
int calibrate_idle(const struct wattle_env *env, double seconds);

/* A GPU's calibration from phases of power: idle, loaded, idle, loaded … idle. Pure: no clock, no file.
 *
 * Each loaded phase is compared with the mean of the two idle phases around it, so that slow drift (temperature, fans) cancels.
 * A meter before the power supply sees
 *
 *	efficiency · Δwall = factor · Δgpu + Δothers
 *
 * with Δothers what packages, memory and the other GPUs used more. A meter in the supply lines of the card alone (efficiency 1,
 * without error) sees the card's part only. The factor is the mean over the loaded phases. Its error (half of a 95 % interval) is
 * the root of the sum of the squares of
 *
 *	scatter     Student's 95 % limit of the mean over the phases
 *	efficiency  its stated error
 *	others      10 % of what counters say they used, what the load model states where they are estimated
 *	meter       1 % of the difference: what a wall meter of class 1 may be off
 *	offset      3 W of the GPU's reading, which a difference can't see and a factor can't mend */

enum { GPU_FIT_CYCLES = 4, GPU_FIT_PHASES = 2 * GPU_FIT_CYCLES + 1 }; // the first and the last are idle

struct gpu_phase {
	double wall_w, gpu_w;          // as the meters read them
	double others_w, others_error; // of all other domains; relative error of what they change by
};

struct gpu_supply {
	double efficiency, error; // 0.91, 0.05; error 0: the meter is behind the supply, on the card alone
};

struct gpu_fit {
	double factor, error;                              // error relative
	double delta_w;                                    // of the GPU between idle and loaded, as it reads
	double scatter, efficiency, others, meter, offset; // of error, relative
};

// -ERANGE with the reason: the phases can't support a calibration.
int gpu_fit_make(const struct gpu_phase phases[GPU_FIT_PHASES], const struct gpu_supply *supply,
	struct gpu_fit *ret_fit, struct wattle_error *reterr);

/* wattle sensors --calibrate-gpu INDEX --wall-meter FILE -- CMD: the factor of a GPU's power sensor against a meter outside,
 * stored in the state folder (sensor/gpu/gpu_gain.h). CMD, which loads the GPU, is started and ended four times, with idle
 * phases around. */

struct calibrate_gpu {
	int index;
	const char *wall_meter;
	struct gpu_supply supply;
	double seconds; // of a phase, without what is left out after each change
	char *const *argv;
};

// "92±2", as --gpu-gain has it; 100: the meter is on the card alone. -EINVAL with a sentence.
int calibrate_gpu_supply(const char *text, struct gpu_supply *ret_supply, struct wattle_error *reterr);
// An exit status.
int calibrate_gpu(const struct wattle_env *env, const struct calibrate_gpu *how);

/* What names a machine or a part of it (serial numbers, UUIDs, MAC addresses, the host's name) becomes a number in the
 * order of appearance: the same one each time within a capture, and nothing that leads back. */

enum pseudonym_kind { PSEUDONYM_HOST, PSEUDONYM_UUID, PSEUDONYM_MAC, PSEUDONYM_SERIAL, PSEUDONYM_KINDS };

struct pseudonyms {
	struct pseudonym {
		enum pseudonym_kind kind;
		unsigned number; // from 1, of its kind
		char *original;  // owned
	} * all;                 // owned
	size_t n, capacity;
	char host[256]; // "" none
};

void pseudonyms_init(struct pseudonyms *pseudonyms, const char *host);
void pseudonyms_finish(struct pseudonyms *pseudonyms);
// The pseudonym of a whole word; for SERIAL as long as the word, in digits.
void pseudonym_put(struct pseudonyms *pseudonyms, enum pseudonym_kind kind, const char *word, size_t length,
	struct buf *out);
// The text with the UUIDs and MAC addresses in it replaced; with_host: the host's name as a word of its own, too.
void pseudonym_scrub(struct pseudonyms *pseudonyms, const char *text, size_t size, bool with_host, struct buf *out);
// Whether there is a MAC address in the text: such names of devices are left out whole.
bool pseudonym_has_mac(const char *text);

/* Copies chosen files of one root (/sys or /proc) into a folder, so that the copy has the same shape: a link on the way to
 * a file becomes a link, what it leads to a folder of its own. Nothing outside of the root is followed or read. */

struct capture_tree {
	const char *name; // "sys": of the folder
	int root_fd;      // borrowed
	int out_fd;       // owned: the folder
	struct pseudonyms *pseudonyms;
	struct buf *unreadable; // a line a file: "sys/path<TAB>mode<TAB>why"
	size_t n_files, n_bytes, n_links, n_unreadable, n_left_out;
};

// How the contents of a file are changed before they are saved.
typedef void (*capture_filter)(struct pseudonyms *pseudonyms, const char *text, size_t size, struct buf *out);

/* All files that match `folder`/`file`, both with shell patterns. `sleeper`: file below `folder` with the runtime status
 * of a device that reading would wake; NULL: none. `filter` NULL: what names the machine is replaced. `wanted` NULL: all
 * folders. */
struct capture_request {
	const char *folder, *file, *sleeper;
	capture_filter filter;
	bool (*wanted)(int root_fd, const char *folder);
};
void capture_tree_add(struct capture_tree *tree, const struct capture_request *request);

/* What NVML says of this machine's GPUs, as a file of cards for the fake library (tests/fakes/nvml/README.md). */

// Returns the number of GPUs described; 0 where there is no library, no driver or no GPU.
size_t capture_nvml(const struct wattle_env *env, struct pseudonyms *pseudonyms, struct buf *out);

/* wattle sensors --capture DIR: this machine as a tree for tests, without what names it. */

// Says on stdout what was saved. EXIT_DONE, or EXIT_FAILED with a message.
int capture_machine(const struct wattle_env *env, const char *folder);
