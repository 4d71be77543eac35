/* The parts of a job's text report; job_text.c puts them together. */
#pragma once

#include "analysis/job/job.h"
#include "report/text.h"

struct job_text {
	const struct job_findings *job;
	struct text text;
};

void job_text_nodes(const struct job_text *t);
void job_text_domains(const struct job_text *t); // of all nodes, by kind
void job_text_ranks(const struct job_text *t);
