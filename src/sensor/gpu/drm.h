/* Shared declarations of the AMD and Intel GPU sensors. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "sensor/gpu/drm_cards.h"
#include "sensor/sensor.h"
#include "sensor/sysfs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parser of /proc/PID/fdinfo/FD, the kernel's statistics of an open graphics device, one "key: value" per line
 * (Documentation/gpu/drm-usage-stats.rst). Pure: text to values. */

// Engines that run shaders. Copy, video and display engines are excluded, as in the driver's busy percent.
enum drm_engine { DRM_RENDER, DRM_COMPUTE, DRM_ENGINES };

struct drm_engine_use {
	int64_t busy;     // ns, or cycles if total_cycles is known; VALUE_MISSING: no such engine
	int64_t cycles;   // total cycles of the engine's clock; VALUE_MISSING: busy is in ns
	int64_t capacity; // number of engines of this class that can be busy simultaneously; at least 1
};

struct drm_fdinfo {
	char pdev[24];   // PCI address
	uint64_t client; // id of the open device, shared by inherited and duplicated descriptors
	bool has_client;
	struct drm_engine_use engines[DRM_ENGINES];
	int64_t memory_bytes; // memory of the card; VALUE_MISSING: not reported
};

// Returns false if the text does not describe a graphics device. Modifies `text`.
bool drm_fdinfo_parse(char *text, struct drm_fdinfo *ret_info);

/* Use of graphics cards by processes (the target's or all), read from the fdinfo of their open descriptors.
 *
 * The set of descriptors is refreshed once a second, with a limit per reading. Readings in between use the known descriptors.
 * All memory is allocated at open. Shared by the sensors of all makers whose drivers use this format. */

// Use of one card, summed over the target's processes.
struct drm_use {
	bool known;           // false: the descriptors are not visible (another user's process, no /proc)
	int64_t processes;    // number of processes with the card open
	double busy_percent;  // of the shader engines; NaN: a process does not report it; 0 without a process
	int64_t memory_bytes; // VALUE_MISSING: a process does not report it; 0 without a process
	int64_t main_memory_bytes;
};

struct drm_clients;

// pci: addresses of the n cards, borrowed. Returns NULL without memory.
struct drm_clients *drm_clients_new(const struct wattle_env *env, const char *const *pci, size_t n);
void drm_clients_free(struct drm_clients *clients); // NULL allowed
// Takes one reading; ret_uses[i] is for card i.
void drm_clients_read(struct drm_clients *clients, const struct sensor_context *context, struct drm_use *ret_uses);

/* Variant for the whole machine, with one entry per process. It is a separate set of clients that takes pids from
 * context.all_pids and checks fewer descriptors per reading, because there are so many. Processes of other users are visible
 * to root only. */
void drm_clients_read_all(struct drm_clients *clients, const struct sensor_context *context);
// Lists the users of a card at the last reading, one entry per open of the card. Returns the number of entries.
size_t drm_clients_users(const struct drm_clients *clients, size_t card, struct device_user *users, size_t room);

/* Compute processes on AMD GPUs, from class/kfd, the interface of ROCm's runtime. It lists the processes of all users with
 * their memory. fdinfo lacks their work: its engine times do not include compute. */

// Processes that hold memory of one GPU: the target's and all others.
struct kfd_use {
	int64_t main_bytes, target_bytes, others_bytes;
	int64_t target_processes, others_processes;
	int64_t target_units, others_units; // compute units in use now; VALUE_MISSING: not reported
	int64_t unknown_processes;          // processes without a known side: KFD lists the pids of the host
};

struct kfd_process { // one process
	pid_t pid; // number in this /proc; 0: unknown
	int64_t bytes, units;
};

struct kfd;

// pci: addresses of the n cards, read now. Returns NULL without KFD or without memory.
struct kfd *kfd_new(const struct wattle_env *env, const char *const *pci, size_t n);
void kfd_free(struct kfd *kfd); // NULL allowed
// Returns whether card i can compute; ROCm counts only such cards. With kfd NULL: false.
bool kfd_has(const struct kfd *kfd, size_t card);
// ret_uses[i] is for card i, all 0 for a card without KFD. Reads /sys at most four times a second.
void kfd_read(struct kfd *kfd, const struct sensor_context *context, struct kfd_use *ret_uses);
// Lists the processes on card i at the last kfd_read. Returns their number.
size_t kfd_processes(const struct kfd *kfd, size_t card, struct kfd_process *processes, size_t room);

/* Parser of the amdgpu driver's binary table `gpu_metrics`: a header that names the layout, then numbers in native byte
 * order. Pure: bytes to values. */

enum { GPU_METRICS_SIZE_MAX = 8192 }; // above the size of the largest known layout (v1.8, 3.9 kB)

// A larger accumulator value (9 * 10^12 J) is invalid; converted to µJ it would overflow 63 bits.
#define GPU_ENERGY_UNITS_MAX INT64_C(600000000000000000)

struct gpu_metrics {
	bool is_apu; // table of an APU, whose power is that of the whole socket
	// Each is VALUE_MISSING if the layout lacks the field or the chip does not fill it.
	int64_t energy_units; // accumulator, in 2^-16 J
	int64_t power_mw;
	int64_t temperature_c; // edge, or hotspot where there is no edge
	int64_t gfx_percent, memory_percent;
};

// Returns -EINVAL if the table is truncated or its layout is unknown.
int gpu_metrics_parse(const void *bytes, size_t size, struct gpu_metrics *ret_metrics);

/* AMD's energy accumulator with stall detection. It counts 2^-16 J. On some boards it has 32 bits in a 64-bit field; on some
 * it stops, permanently or for a while, although the board draws power. Pure: no clock, no file.
 *
 * Energy missed during a stall is estimated from the power reading. When the accumulator moves again, the energy that it
 * catches up is not counted twice. */

struct gpu_accumulator {
	double max_power_w; // to distinguish a wrap from a reset
	bool primed;
	bool is_unchanged;    // a stall was detected; stays set
	uint64_t last_units;  // as read
	uint64_t total_units; // reported value: extended, includes estimated parts
	int64_t last_ns;      // time of the last reading
	int64_t power_ns;     // time of the last reading with a power value
	int64_t moved_ns;     // start of the current stall: last change, or last time without power
	double waited_units;  // energy according to power since the last change
	double made_up_units; // part of waited_units that total_units includes
};

void gpu_accumulator_init(struct gpu_accumulator *accumulator, double max_power_w);
// Takes one reading; returns the energy in µJ. power_mw: VALUE_MISSING if it was not read this time.
int64_t gpu_accumulator_feed(struct gpu_accumulator *accumulator, int64_t t_ns, uint64_t units, int64_t power_mw);
// Converts 2^-16 J to µJ, with an error below 1 µJ.
int64_t gpu_accumulator_uj(uint64_t units);

/* AMD's management library ROCm SMI, loaded at run time, with our own declarations. Used only for figures that the driver's
 * files lack: the library reads the same files, and a machine may not have it. */

enum rocm_figure {
	ROCM_ENERGY, // accumulator, in 2^-16 J
	ROCM_POWER,  // mW
	ROCM_POWER_CAP,
	ROCM_BUSY, // percent
	ROCM_MEMORY_USED,
	ROCM_MEMORY_TOTAL, // bytes
	ROCM_TEMPERATURE,  // °C
	ROCM_MEMORY_TEMPERATURE,
	ROCM_UNIQUE_ID,
	ROCM_FIGURES
};

struct rocm_smi;

// Loads env->rocm_smi or librocm_smi64.so and initialises it. Returns NULL if the library or its driver is missing.
struct rocm_smi *rocm_smi_open(const struct wattle_env *env);
void rocm_smi_close(struct rocm_smi *smi); // NULL allowed
size_t rocm_smi_count(const struct rocm_smi *smi);
// PCI address of GPU `gpu` in /sys notation; "" if unknown.
void rocm_smi_address(const struct rocm_smi *smi, size_t gpu, char *out, size_t size);
void rocm_smi_name(const struct rocm_smi *smi, size_t gpu, char *out, size_t size); // "" if unknown
// VALUE_MISSING: the library or the GPU lacks this figure.
int64_t rocm_smi_read(const struct rocm_smi *smi, size_t gpu, enum rocm_figure figure);

/* Combines fdinfo and KFD data of an AMD GPU into one row. Pure. */

/* Fills TARGET_ and OTHERS_UTILIZATION, MAIN_, TARGET_ and OTHERS_MEMORY, TARGET_ and OTHERS_PROCESSES from the row's figures
 * for the whole GPU. kfd NULL: this GPU has none. */
void amdgpu_use_fill(const struct drm_use *drm, const struct kfd_use *kfd, const struct sensor_context *context,
	int64_t *row);

/* Combines fdinfo and KFD data of each process on an AMD GPU. Pure. */

/* `users` has n entries from fdinfo and room for more. Compute processes come from KFD: fdinfo lacks their work, and newer
 * kernels repeat their memory there. busy: percent of the whole GPU, VALUE_MISSING if unknown. Use that no process accounts
 * for goes to a user with pid 0. Returns the number of entries. */
size_t amdgpu_users_merge(struct device_user *users, size_t n, size_t room, const struct kfd_process *processes,
	size_t n_processes, int64_t busy_percent);

/* One GPU of the amdgpu driver: its description, and one reading of all figures in /sys. */

enum { AMDGPU_GAUGES = 9 };

struct amdgpu_card {
	struct drm_card found;
	const struct wattle_env *env; // borrowed
	struct drm_power power;
	struct file_kept metrics;
	struct gauge_file gauges[AMDGPU_GAUGES];
	struct gpu_accumulator accumulator;
	bool is_open;
	bool is_apu;
	const struct rocm_smi *smi; // borrowed; NULL: not needed
	size_t smi_gpu;             // index of the card in the library
	bool counts_energy;         // has an accumulator that was not found stalled
	bool has_power;             // some power reading exists
};

// Fills card and domain, except the domain's name and number. `used` of the domain means that it can be read. A card without
// a folder in /sys (found->device "") has only the figures of the library.
void amdgpu_card_open(struct amdgpu_card *card, const struct wattle_env *env, const struct drm_card *found,
	struct domain *domain);
void amdgpu_card_close(struct amdgpu_card *card);
// Whether the driver's files lack energy or power, as far as is known without waking the card.
bool amdgpu_card_lacks_figures(const struct amdgpu_card *card);
// Uses the library for figures that the files lack.
void amdgpu_card_assist(struct amdgpu_card *card, const struct rocm_smi *smi, size_t gpu, struct domain *domain);
// Searches for a lost card, which may return under another name and with another hwmon.
void amdgpu_card_find_again(struct amdgpu_card *card);

// Current accumulator in 2^-16 J; VALUE_MISSING if there is none or it can't be read.
int64_t amdgpu_card_units(struct amdgpu_card *card);
// Takes one reading. Returns 0, -EAGAIN for a sleeping card, or -ENODEV for a lost card.
int amdgpu_card_read(struct amdgpu_card *card, const struct sensor_context *context, int64_t *row);
