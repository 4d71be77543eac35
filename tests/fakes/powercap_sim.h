/* Options of powercap_sim. */
#pragma once

#include "powercap_load.h"

#include <stdbool.h>
#include <stdint.h>

enum { ZONES_MAX = 64, PATH_SIZE = 1024 };

struct window {
	double from_s, to_s; // NaN: never
};

struct zone {
	char name[64], id[64], folder[PATH_SIZE - 64];
	struct zone *parent;
	int n_children;
	struct load load;
	uint64_t range_uj, start_uj, quantum_uj;
	struct window vanish, garbage, stuck;
	double reset_s, busy_w; // busy_w: for each CPU of the machine that is busy, beside the load
	int fd; // -1: energy_uj is missing
};

struct sim {
	const char *dir;
	struct zone zones[ZONES_MAX];
	int n_zones, n_top;
	double seconds, tick_s;
	bool by_rename, has_manual_clock; // clock: standard input sets the time
	const char *history_path; // NULL: none
	int busy_file; // -1: not open yet
	bool busy_is_exact;
	double busy_origin_s, busy_s; // CPU time of the machine at the origin, and since
	int64_t origin_ns;
};

// Fills *sim from the command line, or prints the error and exits.
void sim_parse_options(struct sim *sim, int argc, char **argv);
__attribute__((noreturn, format(printf, 1, 2))) void sim_fail(const char *format, ...);
