/* What `wattle sensors` finds out: a row for every domain, used, beaten, hidden or missing, and what a run on this
 * machine would make of them. */
#pragma once

#include "base/buf.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fields.h"
#include "sensor/sensor.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>

struct doctor_row {
	const char *sensor;
	const struct domain *domain; // of the set, or doctor.missing
	const struct idle_power *idle; // stored; NULL: none
	struct update_period period;   // as its sensor states it, or as it was seen
	double last;                   // NaN: none
	const char *last_unit;         // "J" or "W"; NULL: none
};

enum doctor_state { DOCTOR_USED, DOCTOR_NOT_USED, DOCTOR_UNREADABLE };

struct doctor {
	struct sensor_set set;
	struct update_period *periods; // owned, of each device
	struct idle_power *idle;       // owned, of each device
	struct domain missing;   // powercap, where the sensor itself has nothing to show
	struct doctor_row *rows; // owned
	size_t n_rows;
	char baseline_note[200]; // why a stored baseline is not used; "" it is, or there is none
	bool is_open;
};

// Opens all sensors as `wattle run` would in this environment, and watches their counters for up to about 1.5 s.
int doctor_open(struct doctor *doctor, const struct wattle_env *env, struct wattle_error *reterr);
void doctor_close(struct doctor *doctor);

enum doctor_state doctor_state(const struct domain *domain);
// Whether a run's total holds this domain.
bool doctor_in_total(const struct doctor *doctor, const struct domain *domain);
// Whether anything that would be sampled is more than an estimate and has given a reading.
bool doctor_measures(const struct doctor *doctor);
/* A command that mends what is unreadable beyond the next boot, where `remedy` holds until then only; NULL: the remedy
 * lasts, or there is none. */
const char *doctor_lasting_remedy(const struct doctor_row *row);

// doctor_verdict.c: sentences without line breaks; the second may say nothing.
void doctor_verdict(const struct doctor *doctor, struct buf *text);
void doctor_idle_power(const struct doctor *doctor, struct buf *text);
void doctor_calibration(const struct doctor *doctor, struct buf *text); // of GPUs; nothing where none is measured

// doctor_json.c, doctor_text.c
extern const struct object_type sensors_type; // data: struct doctor
void doctor_json(const struct doctor *doctor, struct buf *out);
void doctor_text(const struct doctor *doctor, struct buf *out);

/* doctor_missing.c: why a machine without a single powercap zone has none. False where there is nothing to tell: the
 * CPU is none that has such counters. */
bool doctor_explain_powercap(const struct wattle_env *env, struct domain *ret_domain);
