#include "metric/tracking_column.h"

#include <stddef.h>

// Column names of gpu_tracker's tracking files, as its analyzer expects them.
const struct tracking_column tracking_columns[TRACKING_COLUMNS] = {
	[TRACKING_MAIN_RAM] = {"main_ram", .unit_metadata = "ram_unit"},
	[TRACKING_DESCENDANTS_RAM] = {"descendants_ram", .unit_metadata = "ram_unit"},
	[TRACKING_COMBINED_RAM] = {"combined_ram", .unit_metadata = "ram_unit"},
	[TRACKING_SYSTEM_RAM] = {"system_ram", .unit_metadata = "ram_unit"},
	[TRACKING_MAIN_GPU_RAM] = {"main_gpu_ram", .unit_metadata = "gpu_ram_unit"},
	[TRACKING_DESCENDANTS_GPU_RAM] = {"descendants_gpu_ram", .unit_metadata = "gpu_ram_unit"},
	[TRACKING_COMBINED_GPU_RAM] = {"combined_gpu_ram", .unit_metadata = "gpu_ram_unit"},
	[TRACKING_SYSTEM_GPU_RAM] = {"system_gpu_ram", .unit_metadata = "gpu_ram_unit"},
	[TRACKING_GPU_SUM] = {"gpu_sum_utilization_percent"},
	[TRACKING_GPU_HARDWARE] = {"gpu_hardware_utilization_percent"},
	[TRACKING_MAIN_THREADS] = {"main_n_threads", .is_integer = true},
	[TRACKING_DESCENDANTS_THREADS] = {"descendants_n_threads", .is_integer = true},
	[TRACKING_COMBINED_THREADS] = {"combined_n_threads", .is_integer = true},
	[TRACKING_SYSTEM_SUM] = {"cpu_system_sum_utilization_percent"},
	[TRACKING_SYSTEM_HARDWARE] = {"cpu_system_hardware_utilization_percent"},
	[TRACKING_MAIN_SUM] = {"cpu_main_sum_utilization_percent"},
	[TRACKING_MAIN_HARDWARE] = {"cpu_main_hardware_utilization_percent"},
	[TRACKING_DESCENDANTS_SUM] = {"cpu_descendants_sum_utilization_percent"},
	[TRACKING_DESCENDANTS_HARDWARE] = {"cpu_descendants_hardware_utilization_percent"},
	[TRACKING_COMBINED_SUM] = {"cpu_combined_sum_utilization_percent"},
	[TRACKING_COMBINED_HARDWARE] = {"cpu_combined_hardware_utilization_percent"},
	[TRACKING_TIMESTAMP] = {"timestamp"},
};
