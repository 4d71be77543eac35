/* The columns of gpu_tracker's tracking file: for its writer, its reader, and the same figures of a run. */
#pragma once

#include <stdbool.h>

enum tracking_column_id {
	TRACKING_MAIN_RAM,
	TRACKING_DESCENDANTS_RAM,
	TRACKING_COMBINED_RAM,
	TRACKING_SYSTEM_RAM,
	TRACKING_MAIN_GPU_RAM,
	TRACKING_DESCENDANTS_GPU_RAM,
	TRACKING_COMBINED_GPU_RAM,
	TRACKING_SYSTEM_GPU_RAM,
	TRACKING_GPU_SUM,
	TRACKING_GPU_HARDWARE,
	TRACKING_MAIN_THREADS,
	TRACKING_DESCENDANTS_THREADS,
	TRACKING_COMBINED_THREADS,
	TRACKING_SYSTEM_SUM,
	TRACKING_SYSTEM_HARDWARE,
	TRACKING_MAIN_SUM,
	TRACKING_MAIN_HARDWARE,
	TRACKING_DESCENDANTS_SUM,
	TRACKING_DESCENDANTS_HARDWARE,
	TRACKING_COMBINED_SUM,
	TRACKING_COMBINED_HARDWARE,
	TRACKING_TIMESTAMP,
	TRACKING_COLUMNS,
	TRACKING_METRICS = TRACKING_TIMESTAMP // those that have statistics
};

struct tracking_column {
	const char *name;
	bool is_integer;
	const char *unit_fact; // of a run: which unit was asked for; the figure is in bytes. NULL: it has no other unit
};
extern const struct tracking_column tracking_columns[TRACKING_COLUMNS];
