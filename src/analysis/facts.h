/* The keys of table run that the analysis reads; the stores write them. */
#pragma once

#include "store/run.h"

#define FACT_RUN_ID "id"
#define FACT_HOST "host"
#define FACT_INTERVAL "interval_ns"
#define FACT_MEMORY_TOTAL "memory_total_bytes"
#define FACT_CORES "n_cores"
#define FACT_EXPECTED_CORES "expected_cores"
#define FACT_GPUS_SYSTEM "n_gpus_system"
#define FACT_RAM_UNIT "ram_unit"
#define FACT_GPU_RAM_UNIT "gpu_ram_unit"
#define FACT_TIME_UNIT "time_unit"
#define FACT_ATTRIBUTION "attribution"
#define FACT_CARBON_INTENSITY "carbon_intensity_g_per_kwh"
#define FACT_PUE "pue"
#define FACT_LABEL "label"
#define FACT_STEP "step"
#define FACT_META_PREFIX "meta."
