/* Who used the energy of a domain: divided window by window, so that the parts add up to the whole.
 *
 *   package, core, uncore, psys and other CPU-like domains: by share of busy CPU time
 *   dram: by share of memory in use, PSS where it is fresh, else RSS
 *   gpu: by share of SM time, else of device memory, else by who is on it at all
 *
 * A window in which nothing is known leaves its energy unattributed. */
#pragma once

#include "analysis/curve.h"
#include "analysis/findings.h"
#include "analysis/window.h"

enum method { // weakest last; names in attribute.c
	METHOD_CPU_TIME,
	METHOD_CPU_TIME_ACTIVE,
	METHOD_CPU_TIME_NO_BASELINE,
	METHOD_SM_TIME,
	METHOD_PSS,
	METHOD_RSS,
	METHOD_GPU_MEMORY,
	METHOD_EXCLUSIVE,
	METHOD_IDLE,
	METHOD_NONE,
	METHODS
};

struct shares { // of a window's energy; the rest is the other programs'
	double target, wattle, idle, unattributed;
	enum method method;
};

/* The target's part of the memory in use, at each sample of the run. */
struct memory_use {
	double *share;       // NaN unknown
	enum method *method; // METHOD_PSS or METHOD_RSS
};

struct attribution { // one domain's
	const struct run *run;
	const struct run_device *device;
	const struct curve *curve;
	const struct windows *windows;
	const struct memory_use *memory;
	double idle_w;           // "active": power of the domain when the machine was idle; NaN unknown
	bool active;             // --attribution active
	double *target_share;    // of each window
	double *target_before_j; // the target's energy before each window
	double *before_j;        // the domain's
};

// Fills attribution->target_* and *ret_ledger; *ret_method is the one that divided most joules. -ENOMEM.
int attribute(struct attribution *attribution, struct arena *arena, struct ledger *ret_ledger, enum method *ret_method);
const char *method_name(enum method method);
// The target's part of the energy up to an instant.
double attribution_target_at(const struct attribution *attribution, int64_t t_ns);

int memory_use_make(const struct run *run, struct arena *arena, struct memory_use *ret_use); // -ENOMEM

struct shares shares_cpu(const struct attribution *attribution, const struct window *window);
struct shares shares_memory(const struct attribution *attribution, const struct window *window);
struct shares shares_gpu(const struct attribution *attribution, const struct window *window);
// Lowest power of the domain in windows in which less than 5 % of the machine was busy; NaN: there was none.
double idle_power_w(const struct attribution *attribution);
