/* A stand-in for NVIDIA's management library: cards from a text file, see README.md.
 *
 * It is written from the documented interface and shares no header with wattle, so that a wrong data layout cannot be hidden
 * by the same mistake here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { GPUS_MAX = 16, MIG_MAX = 7, PROCESSES_MAX = 32, ERRORS_MAX = 32, FIELDS_MAX = 16, PIDS_MAX = 256 };

#define FAKE_FOREVER_MS INT64_MAX

struct fake_window { // in ms since the epoch, the end excluded
	int64_t from_ms, until_ms;
};

struct fake_error {
	char function[64];
	int code;
	struct fake_window when;
};

struct fake_field { // GetFieldValues returns `code` for this field and scope
	unsigned int id, scope;
	int code;
};

struct fake_mig {
	char uuid[96], name[96];
	unsigned int gpu_instance, compute_instance;
	unsigned int slices; // 0: GetAttributes is not supported
	unsigned int multiprocessors;
	uint64_t memory_bytes;
};

struct fake_process {
	int instance;  // of MIG; -1: none
	char who[256]; // "1234", "self", "parent", "children", "descendants", "env:NAME", "file:PATH"
	char kinds[8]; // of C, G, M
	unsigned int sm_percent;
	uint64_t memory_bytes; // UINT64_MAX: unknown
	struct fake_window when;
};

enum fake_shape { SHAPE_CONSTANT, SHAPE_STEP, SHAPE_SINE, SHAPE_SPEED };

/* A busy card: the clock is the highest that fits under the limit, power and speed follow from it (speed.c). Clocks
 * are fractions of the highest one. */
struct fake_speed {
	double idle_mw, full_mw; // at no clock, and at the highest
	double exponent;         // of power over clock
	double memory_share;     // of a step's time at full clock that does not depend on the clock
};

struct fake_power {
	enum fake_shape shape;
	double low_mw, high_mw;       // step
	double mean_mw, amplitude_mw; // constant (mean) and sine
	double period_s, duty;        // duty: fraction of the period at high_mw, at its end
	struct fake_speed speed;
};

struct fake_gpu {
	char name[96], uuid[96];
	char pci[32]; // "00000000:01:00.0"
	unsigned int minor;
	struct fake_mig mig[MIG_MAX];
	unsigned int n_mig, mig_max;
	bool mig_off;           // the instances are for the next boot: the mode is 0
	bool mig_lists_by_part; // processes are listed for handles of instances only
	uint64_t memory_total_bytes, memory_reserved_bytes, memory_used_bytes;
	struct fake_power power;
	double power_average_s; // the power reading is the mean over this; 0: instantaneous
	double energy_start_mj, energy_period_s;
	double energy_reset_s; // the counter restarts at 0 then; negative: never
	unsigned int memory_temperature_c; // 0: no such sensor
	unsigned int temperature_c, gpu_percent, memory_percent;
	unsigned int sm_clock_mhz, memory_clock_mhz, max_sm_clock_mhz, cores;
	uint64_t throttle_bits;
	unsigned int limit_min_mw, limit_max_mw, limit_default_mw, limit_mw;
	unsigned int limit_step_mw;                 // limits are rounded down to a multiple of it
	unsigned int enforced_mw;                   // another limiter, visible only in the enforced limit
	int64_t limit_delay_ms;                     // until a limit affects power and speed
	double limit_approach_s;                    // then: time constant of an exponential approach; 0: at once
	bool rests;                                 // at its lowest clock, unless a gpu_worker is at work
	int64_t set_delay_ms;                       // duration of a call that sets a limit
	int64_t set_uid;                            // the only user who may set limits; negative: anybody
	unsigned int clock_min_mhz, clock_step_mhz; // of the supported clocks, up to max_sm_clock_mhz
	bool clock_stairs;                          // the card has no clocks between these
	bool persistence_off;
	struct fake_window lost;
	char lost_when_file[256];             // lost while this file, relative to the cards, exists; "": none
	struct fake_field fields[FIELDS_MAX]; // refused fields
	unsigned int n_fields;
	double module_mw;        // power of scope 1; negative: not supported
	double memory_mw;        // power of scope 2; negative: not supported
	bool energy_by_field;    // the energy counter is available by field only
	bool field_times;        // a field's timestamp is the time of its update, not of the query
	int64_t power_sample_ms; // of the power buffer; 0: not supported
	unsigned int power_ring; // its capacity
	bool accounting;
	struct fake_process processes[PROCESSES_MAX];
	unsigned int n_processes;
	struct fake_error errors[ERRORS_MAX];
	unsigned int n_errors;
	int64_t sample_period_ms; // of the samples of SM use
	unsigned int samples;     // newest ones returned for each process
	bool garbage;             // invalid samples, as real drivers return
};

struct fake_config {
	char path[512];
	char driver[80];
	int64_t epoch_ns; // CLOCK_MONOTONIC; the time at which power functions are at 0
	bool takes_signals;
	struct fake_gpu gpus[GPUS_MAX];
	unsigned int n_gpus;
	struct fake_error errors[ERRORS_MAX]; // for all GPUs
	unsigned int n_errors;
};

// The subject of a call: one card.
struct fake_view {
	const struct fake_config *config;
	const struct fake_logs *logs;
	const struct fake_gpu *gpu;
	unsigned int index;
	int instance; // of MIG, when the handle is one's; -1: the whole card
	int64_t t_ns; // since the epoch
};

// config.c: reads a file; false, and a line on stderr, if it does not follow README.md.
bool fake_config_read(const char *path, int64_t default_epoch_ns, struct fake_config *config);
bool fake_within(const struct fake_window *when, int64_t t_ms);

// Constraints of the card's clock: a limit, a locked clock (INFINITY: none), and idleness.
struct fake_bound {
	double limit_mw, clock_mhz;
	bool rests;
};

// power.c: under a limit, power is the smaller of function and limit; energy is its exact integral from 0.
double fake_power_mw(const struct fake_gpu *gpu, struct fake_bound bound, double t_s);
double fake_energy_mj(const struct fake_gpu *gpu, struct fake_bound bound, double t_s);

// speed.c: for a card of SHAPE_SPEED. Clock as a fraction of the highest; speed as a fraction of that at full clock.
double fake_clock(const struct fake_gpu *gpu, struct fake_bound bound);
double fake_speed(const struct fake_gpu *gpu, struct fake_bound bound);
double fake_speed_mw(const struct fake_gpu *gpu, struct fake_bound bound);

/* log.c: limits set so far, in FILE.limits and FILE.clocks so that other processes see them, one line for each
 * change: "T_NS INDEX MW PID" and "T_NS INDEX MAX_MHZ PID MIN_MHZ" (0: unlocked). FILE.work has the begin (1) and
 * end (0) of each gpu_worker: "T_NS INDEX 1 PID". */
struct fake_change {
	int64_t t_ns; // CLOCK_MONOTONIC
	unsigned int index, value;
};
struct fake_log {
	const char *suffix;          // ".limits"
	struct fake_change *changes; // as long as the process lives, and never moved
	size_t n;
	unsigned long inode;
	long read_bytes; // of the file
	int kept_fd;     // 0: none. For a program that restricts itself: it cannot open the file afterwards
};
/* The time of a change is read and its line written under an exclusive lock on the cards' file. A reader that reads the logs
 * and then the time under a shared lock (LOCK_SH) therefore knows all changes up to that time. Otherwise the energy could
 * decrease when a late line appears. Returns the lock for fake_logs_unlock; -1: the file can't be opened. */
int fake_logs_lock(const char *config_path, int operation);
void fake_logs_unlock(int lock_fd);
void fake_log_keep(const char *config_path, struct fake_log *log);
void fake_log_read(const char *config_path, struct fake_log *log);
bool fake_log_add(const char *config_path, const struct fake_log *log, unsigned int index, const char *words);

enum { FAKE_LIMITS, FAKE_CLOCKS, FAKE_WORK, FAKE_LOGS };
struct fake_logs {
	struct fake_log of[FAKE_LOGS];
};
#define FAKE_NO_LOGS                                                                                                   \
	{                                                                                                              \
		.of = { {.suffix = ".limits"}, {.suffix = ".clocks"}, {.suffix = ".work"} }                            \
	}
void fake_logs_read(const char *config_path, struct fake_logs *logs);

// limits.c: the last limit that was set; and the effective one, which may follow later.
unsigned int fake_limit_mw(const struct fake_view *view);
struct fake_bound fake_bound_at(const struct fake_view *view, double t_s);
// Calls `each` for every interval without a change.
typedef void fake_stretch(const struct fake_gpu *gpu, struct fake_bound bound, double from_s, double until_s,
	void *data);
void fake_stretches(const struct fake_view *view, double from_s, double until_s, fake_stretch *each, void *data);
// Integral over 0..t_s with the limits as they changed.
double fake_limited_energy_mj(const struct fake_view *view, double t_s);

// nvml_power.c: current value of the energy counter.
double fake_counter_mj(const struct fake_view *view);

// caps.c: whether the caller may set limits of this card; writes a line into a log, in the duration of such a call.
bool fake_may_set(const struct fake_view *view);
int fake_set(const struct fake_view *view, const struct fake_log *log, const char *words);

// pids.c: the processes that `who` currently means, seen from the caller of the library.
size_t fake_pids(const char *who, const char *config_path, pid_t *ret_pids, size_t max);

// calls.c: how often each function was called, and CPU time of the library itself.
void fake_count(const char *function);
void fake_write_counts(void); // to the file that WATTLE_FAKE_NVML_CALLS names, if set
void fake_begin(void);        // CPU time until fake_end is the library's own
void fake_end(void);

// nvml.c: counts the call and applies the errors of the file. For the handle of an instance that is NOT_SUPPORTED unless
// `parts_too`.
int fake_enter(const char *function, const void *device, bool parts_too, struct fake_view *ret_view);
void fake_leave(struct fake_view *view);
int64_t fake_now_ns(void);                           // CLOCK_MONOTONIC, or the time set by a test
int fake_energy_error(const struct fake_view *view); // the file's error for the energy call
const void *fake_whole(unsigned int gpu);            // handles
const void *fake_part(unsigned int gpu, unsigned int instance);
__attribute__((visibility("default"))) int64_t fake_wall_us(
	int64_t t_ns); // the driver's timestamps are wall-clock times
