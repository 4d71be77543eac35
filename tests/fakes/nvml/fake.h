/* A stand-in for NVIDIA's management library: cards out of a text file, see README.md.
 *
 * It is written from the documented interface and shares no header with wattle, so that a wrong layout there can't hide
 * behind the same mistake here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	GPUS_MAX = 16,
	MIG_MAX = 7,
	PROCESSES_MAX = 32,
	ERRORS_MAX = 32,
	FIELDS_MAX = 8,
	LIMITS_MAX = 1024,
	PIDS_MAX = 256
};

#define FAKE_FOREVER_MS INT64_MAX

struct fake_window { // in ms since the epoch, the end left out
	int64_t from_ms, until_ms;
};

struct fake_error {
	char function[64];
	int code;
	struct fake_window when;
};

struct fake_field { // GetFieldValues answers `code` for this field and scope
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

enum fake_shape { SHAPE_CONSTANT, SHAPE_STEP, SHAPE_SINE };

struct fake_power {
	enum fake_shape shape;
	double low_mw, high_mw;       // step
	double mean_mw, amplitude_mw; // constant (mean) and sine
	double period_s, duty;        // duty: share of the period at high_mw, at its end
};

struct fake_gpu {
	char name[96], uuid[96];
	char pci[32]; // "00000000:01:00.0"
	unsigned int minor;
	struct fake_mig mig[MIG_MAX];
	unsigned int n_mig, mig_max;
	bool mig_off;           // the instances are there for the next boot: the mode is 0
	bool mig_lists_by_part; // processes are told for handles of instances only
	uint64_t memory_total_bytes, memory_reserved_bytes, memory_used_bytes;
	struct fake_power power;
	double power_average_s; // the power reading is the mean over this; 0: the instant
	double energy_start_mj, energy_period_s;
	double energy_reset_s; // the counter starts again at 0 then; negative: never
	unsigned int temperature_c, gpu_percent, memory_percent;
	unsigned int sm_clock_mhz, memory_clock_mhz, max_sm_clock_mhz, cores;
	uint64_t throttle_bits;
	unsigned int limit_min_mw, limit_max_mw, limit_default_mw, limit_mw;
	struct fake_window lost;
	struct fake_field fields[FIELDS_MAX]; // those that are refused
	unsigned int n_fields;
	double module_mw;        // power of scope 1; negative: there is none
	bool energy_by_field;    // the energy counter is told by field only
	bool field_times;        // a field's time stamp is that of its update, not of the query
	int64_t power_sample_ms; // of the power buffer; 0: not supported
	unsigned int power_ring; // how many it holds
	bool accounting;
	struct fake_process processes[PROCESSES_MAX];
	unsigned int n_processes;
	struct fake_error errors[ERRORS_MAX];
	unsigned int n_errors;
	int64_t sample_period_ms; // of the samples of SM use
	unsigned int samples;     // newest ones returned for each process
	bool garbage;             // nonsense among the samples, as real drivers return
};

struct fake_config {
	char path[512];
	char driver[80];
	int64_t epoch_ns; // CLOCK_MONOTONIC; the time at which power functions are at 0
	struct fake_gpu gpus[GPUS_MAX];
	unsigned int n_gpus;
	struct fake_error errors[ERRORS_MAX]; // for all GPUs
	unsigned int n_errors;
};

// What a call is about: a card at a time.
struct fake_view {
	const struct fake_config *config;
	const struct fake_limits *limits;
	const struct fake_gpu *gpu;
	unsigned int index;
	int instance; // of MIG, when the handle is one's; -1: the whole card
	int64_t t_ns; // since the epoch
};

// config.c: reads a file; false, and a line on stderr, if it is not as README.md says.
bool fake_config_read(const char *path, int64_t default_epoch_ns, struct fake_config *config);
bool fake_within(const struct fake_window *when, int64_t t_ms);

// power.c: under a limit, power is the smaller of function and limit; energy is its exact integral from 0.
double fake_power_mw(const struct fake_power *power, double limit_mw, double t_s);
double fake_energy_mj(const struct fake_power *power, double limit_mw, double t_s);

// limits.c: the limits set so far, kept in FILE.limits so that other processes see them: "T_NS INDEX MW PID" a line.
struct fake_limit {
	int64_t t_ns; // CLOCK_MONOTONIC
	unsigned int index, limit_mw;
};
struct fake_limits {
	struct fake_limit limits[LIMITS_MAX];
	size_t n;
};
void fake_limits_read(const char *config_path, struct fake_limits *limits);
bool fake_limits_add(const char *config_path, int64_t t_ns, unsigned int index, unsigned int limit_mw);
unsigned int fake_limit_mw(const struct fake_view *view);
// Integral over 0..t_s with the limits as they changed.
double fake_limited_energy_mj(const struct fake_view *view, double t_s);

// nvml_power.c: what the energy counter shows now.
double fake_counter_mj(const struct fake_view *view);

// pids.c: the processes that `who` means now, seen from the caller of the library.
size_t fake_pids(const char *who, const char *config_path, pid_t *ret_pids, size_t max);

// calls.c: how often each function was called, and how long the library itself was busy.
void fake_count(const char *function);
void fake_write_counts(void); // to the file that WATTLE_FAKE_NVML_CALLS names, if set
void fake_begin(void);        // CPU time until fake_end is the library's own
void fake_end(void);

// nvml.c: counts the call and applies the errors of the file. For the handle of an instance that is NOT_SUPPORTED unless
// `parts_too`.
int fake_enter(const char *function, const void *device, bool parts_too, struct fake_view *ret_view);
void fake_leave(struct fake_view *view);
int fake_energy_error(const struct fake_view *view); // what the file says of the energy call
const void *fake_whole(unsigned int gpu);            // handles
const void *fake_part(unsigned int gpu, unsigned int instance);
__attribute__((visibility("default"))) int64_t fake_wall_us(
	int64_t t_ns); // the driver's time stamps are of the wall clock
