/* The parts of the sensors of AMD and Intel GPUs. */
#pragma once

#include "base/env.h"
#include "base/file.h"
#include "sensor/gpu/drm_cards.h"
#include "sensor/sensor.h"
#include "sensor/sysfs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the kernel says of a process's open graphics device: /proc/PID/fdinfo/FD, one "key: value" a line, as
 * Documentation/gpu/drm-usage-stats.rst has it. Pure: from text to values. */

// Engines that run shaders. Copy, video and display engines are left out: the driver's busy percent means these.
enum drm_engine { DRM_RENDER, DRM_COMPUTE, DRM_ENGINES };

struct drm_engine_use {
	int64_t busy;     // ns, or cycles where total_cycles is known; VALUE_MISSING: no such engine
	int64_t cycles;   // of the engine's clock altogether; VALUE_MISSING: busy is in ns
	int64_t capacity; // engines of this class that may be busy at the same time; at least 1
};

struct drm_fdinfo {
	char pdev[24];   // PCI address
	uint64_t client; // id of the open device: descriptors that were inherited or copied share it
	bool has_client;
	struct drm_engine_use engines[DRM_ENGINES];
	int64_t memory_bytes; // of the card's own memory; VALUE_MISSING: not told
};

// False if the text is not that of a graphics device. `text` is changed.
bool drm_fdinfo_parse(char *text, struct drm_fdinfo *ret_info);

/* What processes, the target's or all, do on graphics cards, by the descriptors that they have open (drm_fdinfo.h).
 *
 * Which descriptors those are is looked for once a second, a limited number a reading; in between only they are read.
 * Everything is allocated at open. Shared by the sensors of all makers whose drivers speak this format. */

// The target's use of one card, the sum over its processes.
struct drm_use {
	bool known;           // false: the descriptors can't be seen (another user's process, no /proc)
	int64_t processes;    // with the card open
	double busy_percent;  // of the engines that run shaders; NaN: a process does not tell; 0 with no process
	int64_t memory_bytes; // VALUE_MISSING: a process does not tell; 0 with no process
	int64_t main_memory_bytes;
};

struct drm_clients;

// pci: addresses of the n cards, borrowed. NULL: no memory.
struct drm_clients *drm_clients_new(const struct wattle_env *env, const char *const *pci, size_t n);
void drm_clients_free(struct drm_clients *clients); // NULL allowed
// One reading; ret_uses[i] is for card i.
void drm_clients_read(struct drm_clients *clients, const struct sensor_context *context, struct drm_use *ret_uses);

/* Of all processes, one by one, for those who look at the whole machine: clients of their own, which take the numbers from
 * context.all_pids and look through fewer descriptors a reading, as there are so many. Those of other users are seen by root
 * alone. */
void drm_clients_read_all(struct drm_clients *clients, const struct sensor_context *context);
// Who was on a card at the last reading; one that opened it several times stands there as often. Returns how many.
size_t drm_clients_users(const struct drm_clients *clients, size_t card, struct device_user *users, size_t room);

/* Compute processes on AMD GPUs: class/kfd, which ROCm's runtime goes through. It lists those of all users, with their
 * memory, and what fdinfo lacks: their work is not in the engine times there. */

// Processes that hold memory of one GPU, the target's and all others.
struct kfd_use {
	int64_t main_bytes, target_bytes, others_bytes;
	int64_t target_processes, others_processes;
	int64_t target_units, others_units; // compute units in use at the moment; VALUE_MISSING: not told
	int64_t unknown_processes;          // of which it can't be told whose they are: KFD has the host's numbers
};

struct kfd_process { // one of them
	pid_t pid; // as /proc here numbers it; 0: that can't be told
	int64_t bytes, units;
};

struct kfd;

// pci: addresses of the n cards, read now. NULL: no KFD, or no memory.
struct kfd *kfd_new(const struct wattle_env *env, const char *const *pci, size_t n);
void kfd_free(struct kfd *kfd); // NULL allowed
// Whether card i can compute at all: ROCm counts no other. kfd NULL: none can.
bool kfd_has(const struct kfd *kfd, size_t card);
// ret_uses[i] is for card i, all 0 for one without KFD. /sys is asked four times a second at most.
void kfd_read(struct kfd *kfd, const struct sensor_context *context, struct kfd_use *ret_uses);
// The processes on card i at that time. Returns how many.
size_t kfd_processes(const struct kfd *kfd, size_t card, struct kfd_process *processes, size_t room);

/* The binary table `gpu_metrics` of the amdgpu driver: a header that says which layout follows, then numbers in native
 * byte order. Pure: from bytes to values. */

enum { GPU_METRICS_SIZE_MAX = 8192 }; // more than the largest known layout has, v1.8 with 3.9 kB

// An accumulator beyond this (nine million million joules) is garbage; in µJ it would leave 63 bits.
#define GPU_ENERGY_UNITS_MAX INT64_C(600000000000000000)

struct gpu_metrics {
	bool is_apu; // a table of an APU, whose power is that of the whole socket
	// Each is VALUE_MISSING where the layout has no such field or the chip does not fill it.
	int64_t energy_units; // accumulator, in 2^-16 J
	int64_t power_mw;
	int64_t temperature_c; // edge, or hotspot where there is no edge
	int64_t gfx_percent, memory_percent;
};

// -EINVAL: cut short, no table, or of a layout that is not known.
int gpu_metrics_parse(const void *bytes, size_t size, struct gpu_metrics *ret_metrics);

/* AMD's energy accumulator, watched. It counts 2^-16 J; on some boards in 32 bits of a field of 64; on some it stands
 * still for good, or for a while, although the board draws power. Pure: no clock, no file.
 *
 * What it stood still for is made up from the power reading, so that a run does not end with joules missing; when it
 * moves again, what it has caught up is not counted a second time. */

struct gpu_accumulator {
	double max_power_w; // to tell a wrap from a reset
	bool primed;
	bool stood_still;     // it did, at least once; stays set
	uint64_t last_units;  // as read
	uint64_t total_units; // as told: extended, made up parts included
	int64_t last_ns;      // of the last reading
	int64_t power_ns;     // of the last reading with a power
	int64_t moved_ns;     // since when it stands still while there is power
	double waited_units;  // what power says was used since it moved
	double made_up_units; // the part of it that total_units holds
};

void gpu_accumulator_init(struct gpu_accumulator *accumulator, double max_power_w);
// One reading; returns the energy in µJ. power_mw: VALUE_MISSING if it was not read this time.
int64_t gpu_accumulator_feed(struct gpu_accumulator *accumulator, int64_t t_ns, uint64_t units, int64_t power_mw);
// 2^-16 J in µJ, exact to less than one.
int64_t gpu_accumulator_uj(uint64_t units);

/* AMD's management library, ROCm SMI, loaded at run time in our own declarations. Only for figures that the driver's files
 * lack: it reads the same files, and a machine need not have it. */

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

// Loads env->rocm_smi or librocm_smi64.so and initialises it. NULL: it is not there, or has no driver to talk to.
struct rocm_smi *rocm_smi_open(const struct wattle_env *env);
void rocm_smi_close(struct rocm_smi *smi); // NULL allowed
size_t rocm_smi_count(const struct rocm_smi *smi);
// PCI address of GPU i as /sys writes it; "" unknown.
void rocm_smi_address(const struct rocm_smi *smi, size_t gpu, char *out, size_t size);
void rocm_smi_name(const struct rocm_smi *smi, size_t gpu, char *out, size_t size); // "" unknown
// VALUE_MISSING: this library or this GPU has no such figure.
int64_t rocm_smi_read(const struct rocm_smi *smi, size_t gpu, enum rocm_figure figure);

/* Who uses an AMD GPU: what fdinfo and KFD tell, put together. Pure: from figures to a row. */

/* Fills TARGET_ and OTHERS_UTILIZATION, MAIN_, TARGET_ and OTHERS_MEMORY, TARGET_ and OTHERS_PROCESSES from what the row has
 * of the whole GPU. kfd NULL: this GPU has none. */
void amdgpu_use_fill(const struct drm_use *drm, const struct kfd_use *kfd, const struct sensor_context *context,
	int64_t *row);

/* Each process on an AMD GPU: what fdinfo and KFD tell, put together. Pure. */

/* `users` has those that fdinfo knows, n of them, and room for more. Those that compute are KFD's: of them fdinfo has no work, and
 * the same memory once more in newer kernels. busy: of the whole GPU, VALUE_MISSING unknown. What nobody of them does is a user's
 * without a number. Returns how many there are. */
size_t amdgpu_users_merge(struct device_user *users, size_t n, size_t room, const struct kfd_process *processes,
	size_t n_processes, int64_t busy_percent);

/* One GPU behind the amdgpu driver: what it is, and one reading of everything that /sys tells of it. */

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
	const struct rocm_smi *smi; // borrowed; NULL: the driver's files have all
	size_t smi_gpu;             // its number there
	bool counts_energy;         // the accumulator is there and was not found standing still
	bool has_power;             // some power reading is there
};

// Fills card and domain, but for the domain's name and number. Its `used` says that there is something to read. A card
// without a folder in /sys (found->device "") has only what the library tells.
void amdgpu_card_open(struct amdgpu_card *card, const struct wattle_env *env, const struct drm_card *found,
	struct domain *domain);
void amdgpu_card_close(struct amdgpu_card *card);
// Whether the driver's files lack energy or power, as far as can be told without waking it.
bool amdgpu_card_lacks_figures(const struct amdgpu_card *card);
// Takes what the files lack from the library.
void amdgpu_card_assist(struct amdgpu_card *card, const struct rocm_smi *smi, size_t gpu, struct domain *domain);
// Looks for the card again, after it vanished: under another name, with another hwmon.
void amdgpu_card_find_again(struct amdgpu_card *card);

// The accumulator now, in 2^-16 J; VALUE_MISSING if there is none or it can't be read.
int64_t amdgpu_card_units(struct amdgpu_card *card);
// One reading. 0, -EAGAIN for a card that sleeps, -ENODEV for one that is gone.
int amdgpu_card_read(struct amdgpu_card *card, const struct sensor_context *context, int64_t *row);
