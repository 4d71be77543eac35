/* The measured GPUs, one by one. */
#pragma once

#include "analysis/findings.h"

// Takes energy and power from findings->domains. -ENOMEM.
int gpus_make(struct findings *findings);
