/* Shared by the files of openmetrics_run only. */
#pragma once

#include "analysis/energy/timeline.h"
#include "analysis/findings.h"
#include "report/openmetrics.h"

enum { OM_RUN_LABELS = 4 };

struct om_run {
	struct om om;
	const struct findings *findings;
	const struct run *run;
	struct timeline timeline;
	struct arena *arena; // scratch
	void (*more)(void *data);
	void *data;
	int64_t every_ms; // at least 1
	// State of the current series.
	struct om_label labels[OM_RUN_LABELS];
	size_t n_labels;
	int64_t last_ms;
	bool has_held; // a sample within every_ms, written only if it is the last one
	int64_t held_ms;
	double held;
};

void om_run_family(struct om_run *w, const struct om_family *family);
// Starts a series of the family with one label besides `run`, without (name NULL), or with two (om_run_label).
void om_run_series(struct om_run *w, const char *name, const char *value);
void om_run_label(struct om_run *w, const char *name, const char *value);
// Appends a sample. Skips samples not later than the previous one, NaN, and times without wall clock.
void om_run_put(struct om_run *w, int64_t t_ns, double value);
void om_run_put_end(struct om_run *w, double value); // appends a sample at the end of the run
void om_run_one(struct om_run *w, enum om_id id, double value); // writes a family of one sample at the end of the run
void om_run_end_series(struct om_run *w);

int om_run_energy(struct om_run *w);  // run_energy.c; -ENOMEM
void om_run_gauges(struct om_run *w); // run_gauges.c
int om_run_custom_metrics(struct om_run *w); // run_custom_metrics.c: custom metrics and code blocks; -ENOMEM
