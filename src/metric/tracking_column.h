/* The columns of gpu_tracker's tracking file, shared by its writer, its reader, and the corresponding figures of a run. */
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
	TRACKING_METRICS = TRACKING_TIMESTAMP // columns with statistics
};

struct tracking_column {
	const char *name;
	bool is_integer;
	const char *
		unit_metadata; // metadata of a run: the requested unit; the figure itself is in bytes. NULL: no other unit
};
extern const struct tracking_column tracking_columns[TRACKING_COLUMNS];
