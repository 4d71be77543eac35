/* Keys of table `run` that the analysis reads; the stores write them. */
#pragma once

#include "store/run.h"

#define META_KEY_RUN_ID "id"
#define META_KEY_HOST "host"
#define META_KEY_INTERVAL "interval_ns"
#define META_KEY_MEMORY_TOTAL "memory_total_bytes"
#define META_KEY_CORES "n_cores"
#define META_KEY_EXPECTED_CORES "expected_cores"
#define META_KEY_GPUS_SYSTEM "n_gpus_system"
#define META_KEY_RAM_UNIT "ram_unit"
#define META_KEY_GPU_RAM_UNIT "gpu_ram_unit"
#define META_KEY_TIME_UNIT "time_unit"
#define META_KEY_ATTRIBUTION "attribution"
#define META_KEY_CARBON_INTENSITY "carbon_intensity_g_per_kwh"
#define META_KEY_CARBON_REGION "carbon_region" // ISO 3166 code of the country that the intensity is of
#define META_KEY_CARBON_YEAR "carbon_year"
#define META_KEY_CARBON_SOURCE "carbon_source"
#define META_KEY_PUE "pue"
#define META_KEY_LABEL "label"
#define META_KEY_STEP "step"
#define META_KEY_BOOT_ID "boot_id"
#define META_KEY_MACHINE "machine" // the machine whose sensors were read
#define META_KEY_USER "user"
#define META_KEY_JOB_ID "job_id"
#define META_KEY_JOB_STEP "job_step"
#define META_KEY_JOB_GROUP "job_group" // identifies one launch if there is no job id
#define META_KEY_JOB_NAME "job_name"
#define META_KEY_JOB_USER "job_user"
#define META_KEY_JOB_CLUSTER "job_cluster"
#define META_KEY_JOB_LAUNCHER "job_launcher"
#define META_KEY_RANK "rank"
#define META_KEY_LOCAL_RANK "local_rank"
#define META_KEY_WORLD_SIZE "world_size"
#define META_KEY_LOCAL_SIZE "local_size"
#define META_KEY_N_NODES "n_nodes"
#define META_KEY_NODE "node"
#define META_KEY_RESTART "restart" // number of restarts of the job or its workers
#define META_KEY_META_PREFIX "meta."
