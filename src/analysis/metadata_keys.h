/* Keys of table `run` that the analysis reads; the stores write them. */
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
#define FACT_BOOT_ID "boot_id"
#define FACT_MACHINE "machine" // the machine whose sensors were read
#define FACT_USER "user"
#define FACT_JOB_ID "job_id"
#define FACT_JOB_STEP "job_step"
#define FACT_JOB_GROUP "job_group" // identifies one launch if there is no job id
#define FACT_JOB_NAME "job_name"
#define FACT_JOB_USER "job_user"
#define FACT_JOB_CLUSTER "job_cluster"
#define FACT_JOB_LAUNCHER "job_launcher"
#define FACT_RANK "rank"
#define FACT_LOCAL_RANK "local_rank"
#define FACT_WORLD_SIZE "world_size"
#define FACT_LOCAL_SIZE "local_size"
#define FACT_N_NODES "n_nodes"
#define FACT_NODE "node"
#define FACT_RESTART "restart" // number of restarts of the job or its workers
#define FACT_META_PREFIX "meta."
