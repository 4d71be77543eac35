#include "cli/doctor.h"

#include "base/jsonw.h"
#include "base/util.h"
#include "sensor/gpu/gpu_gain.h"

// 0 is "unknown" in a domain. A division by a power of ten is rounded correctly and prints as people write it.
static double known(double value, double parts)
{
	return value > 0 ? value / parts : (double)NAN;
}

static void put_identity(struct jsonw *j, const struct doctor_row *row)
{
	const struct domain *domain = row->domain;
	jsonw_key_string(j, "sensor", row->sensor);
	jsonw_key_string(j, "domain", text_or_null(domain->name));
	jsonw_key_string(j, "kind", domain_kind_name(domain->kind));
	jsonw_key_string(j, "device", text_or_null(domain->device));
	jsonw_key_string(j, "uuid", text_or_null(domain->uuid));
	jsonw_key_string(j, "inside", text_or_null(domain->inside));
	jsonw_key_string(j, "provenance", provenance_name(domain->provenance));
}

static void put_state(struct jsonw *j, const struct doctor *doctor, const struct doctor_row *row)
{
	const struct domain *domain = row->domain;
	jsonw_key_bool(j, "readable", domain->readable);
	jsonw_key_bool(j, "used", domain->used);
	jsonw_key_bool(j, "in_total", doctor_in_total(doctor, domain));
	jsonw_key_string(j, "why", domain->used ? NULL : text_or_null(domain->why));
	jsonw_key_string(j, "remedy", text_or_null(domain->remedy));
	jsonw_key_string(j, "lasting_remedy", doctor_lasting_remedy(row));
	jsonw_key_string(j, "note", text_or_null(domain->note));
}

static void put_figures(struct jsonw *j, const struct doctor_row *row)
{
	const struct domain *domain = row->domain;
	jsonw_key_double(j, "update_period_s", known((double)domain->update_period_ns, 1e9));
	jsonw_key_double(j, "update_jitter_s", known((double)domain->update_jitter_ns, 1e9));
	jsonw_key_double(j, "resolution_j", known((double)domain->resolution_uj, 1e6));
	jsonw_key_double(j, "relative_error", known(domain->relative_error, 1));
	jsonw_key_double(j, "last", row->last);
	jsonw_key_string(j, "last_unit", row->last_unit);
	jsonw_key_double(j, "idle_w", known(domain->idle_w, 1));
	jsonw_key_string(j, "idle_date", text_or_null(domain->idle_date));
}

// Of each GPU that a run would measure.
static void put_calibrations(struct jsonw *j, const struct doctor *doctor)
{
	jsonw_key(j, "calibrations");
	jsonw_begin_array(j);
	for (size_t i = 0; i < doctor->set.n_devices; i++) {
		const struct domain *domain = doctor->set.devices[i];
		if (domain->kind != DOMAIN_GPU)
			continue;
		bool calibrated = domain->gain > 0;
		jsonw_begin_object(j);
		jsonw_key_string(j, "domain", domain->name);
		jsonw_key_double(j, "factor", known(domain->gain, 1));
		jsonw_key_double(j, "error_percent", 100 * (calibrated ? domain->gain_error : GPU_GAIN_ASSUMED_ERROR));
		jsonw_key_string(j, "source", calibrated ? domain->gain_source : "uncalibrated");
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

void doctor_json(const struct doctor *doctor, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, true);
	jsonw_begin_object(&j);
	jsonw_key(&j, "sensors");
	jsonw_begin_array(&j);
	for (size_t i = 0; i < doctor->n_rows; i++) {
		jsonw_begin_object(&j);
		put_identity(&j, &doctor->rows[i]);
		put_state(&j, doctor, &doctor->rows[i]);
		put_figures(&j, &doctor->rows[i]);
		jsonw_end_object(&j);
	}
	jsonw_end_array(&j);
	jsonw_key_bool(&j, "measures", doctor_measures(doctor));
	jsonw_key_string(&j, "idle_note", text_or_null(doctor->baseline_note));
	put_calibrations(&j, doctor);
	jsonw_key_string(&j, "calibration_note", text_or_null(doctor->set.gain_note));
	jsonw_end_object(&j);
}
