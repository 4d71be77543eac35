/* `wattle report` of a job: a folder of run files, or --store URL --job ID. */
#pragma once

#include "cli/option.h"
#include "store/job_runs.h"

struct job_request {
	const char *folder, *url; // one of them
	struct job_choice choice;
	const struct option_list *waiting; // patterns; empty: the usual ones
	const char *format, *output;
};
int cli_report_job(const struct job_request *request); // an exit status
