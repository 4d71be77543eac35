/* A job's findings as text and JSON. Pure. */
#pragma once

#include "analysis/job/job.h"
#include "base/buf.h"

void job_report_json(const struct job_findings *job, struct buf *out); // wattle-report/1 and `job`, `nodes`, `ranks`, `imbalance`
void job_report_text(const struct job_findings *job, struct buf *out, bool colour); // at most 80 columns
void job_report_line(const struct job_findings *job, struct buf *out); // energy, time, ranks and nodes, in one line
