/* What the files of openmetrics_run share. Nobody else includes this. */
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
	// The series that is being written.
	struct om_label labels[OM_RUN_LABELS];
	size_t n_labels;
	int64_t last_ms;
	bool has_held; // a sample that came too soon, and is written if it is the last one
	int64_t held_ms;
	double held;
};

void om_run_family(struct om_run *w, const struct om_family *family);
// A series of the family, with one label besides `run` or none (name NULL), or two.
void om_run_series(struct om_run *w, const char *name, const char *value);
void om_run_label(struct om_run *w, const char *name, const char *value);
// Its next sample; what is not later than the one before is left out, as are NaN and times that no clock knows.
void om_run_put(struct om_run *w, int64_t t_ns, double value);
void om_run_put_end(struct om_run *w, double value); // at the end of the run
void om_run_one(struct om_run *w, enum om_id id, double value); // a family of one sample there
void om_run_end_series(struct om_run *w);

int om_run_energy(struct om_run *w);  // openmetrics_run_energy.c; -ENOMEM
void om_run_gauges(struct om_run *w); // openmetrics_run_gauges.c
int om_run_told(struct om_run *w);    // openmetrics_run_told.c: what the program told, and its blocks; -ENOMEM
