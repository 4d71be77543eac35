/* Fields of `wattle sensors --json`. */
#include "cli/sensors.h"

#include "base/fields.h"
#include "base/util.h"
#include "sensor/gpu_gain.h"

// clang-format off

// In a domain 0 means unknown. Dividing by a power of ten is rounded correctly and prints without rounding noise.
static double known(double value, double parts)
{
	return value > 0 ? value / parts : (double)NAN;
}

static const struct sensors_report *sensors_report_of(const struct object_at *at)
{
	return object_document(at);
}

/* ---- a domain ---- */

static const struct domain *domain_of(const struct object_at *at)
{
	return ((const struct sensors_report_row *)at->data)->domain;
}

static bool in_total(const struct object_at *at)
{
	return sensors_report_in_total(sensors_report_of(at), domain_of(at));
}

static const char *why(const struct object_at *at, struct buf *scratch)
{
	return domain_of(at)->used ? NULL : text_or_null(domain_of(at)->why);
}

static const char *permanent_remedy(const struct object_at *at, struct buf *scratch)
{
	return sensors_report_permanent_remedy(at->data);
}

static double update_period_s(const struct object_at *at)
{
	return known((double)((const struct sensors_report_row *)at->data)->period.period_ns, 1e9);
}

static double update_jitter_s(const struct object_at *at)
{
	return known((double)((const struct sensors_report_row *)at->data)->period.jitter_ns, 1e9);
}

static double resolution_j(const struct object_at *at)
{
	return known((double)domain_of(at)->resolution_uj, 1e6);
}

static double relative_error(const struct object_at *at)
{
	return known(domain_of(at)->relative_error, 1);
}

static double idle_w(const struct object_at *at)
{
	const struct idle_power *idle = ((const struct sensors_report_row *)at->data)->idle;
	return idle != NULL ? idle->power_w : (double)NAN;
}

static const char *idle_date(const struct object_at *at, struct buf *scratch)
{
	const struct idle_power *idle = ((const struct sensors_report_row *)at->data)->idle;
	return idle != NULL ? idle->date : NULL;
}

static const char *const last_units[] = {"J", "W", NULL};

#define R struct sensors_report_row
#define OF_DOMAIN(key, member, meaning, ...) FIELD_BY(R, domain, key, struct domain, member, NULL, meaning, ##__VA_ARGS__)
static const struct field row_fields[] = {
	FIELD(R, sensor, NULL, "sensor that measures the domain", .known = true),
	OF_DOMAIN("domain", name, "name of the domain: package-0, dram-0, gpu-0 …"),
	OF_DOMAIN("kind", kind, "kind of the domain", .one_of = domain_kind_names),
	OF_DOMAIN("device", device, "name of the hardware"),
	OF_DOMAIN("uuid", uuid, "UUID of a GPU"),
	OF_DOMAIN("inside", inside, "domain that contains this one"),
	OF_DOMAIN("provenance", provenance, "provenance of the energy: measured, derived or estimated", .one_of = provenance_names),
	OF_DOMAIN("readable", readable, "whether it can be read now"),
	OF_DOMAIN("used", used, "whether a run would sample it"),
	FIELD_BOOLEAN("in_total", in_total, NULL, "whether it would be included in energy.total_j"),
	FIELD_TEXT("why", why, NULL, "reason why it is not used"),
	OF_DOMAIN("remedy", remedy, "command that makes it readable"),
	FIELD_TEXT("lasting_remedy", permanent_remedy, NULL, "command that makes it readable permanently; null: remedy does, or there is none"),
	OF_DOMAIN("note", note, "further information"),
	FIELD_NUMBER("update_period_s", update_period_s, "s", "median time between updates of the hardware's value"),
	FIELD_NUMBER("update_jitter_s", update_jitter_s, "s", "half of the spread of the update period"),
	FIELD_NUMBER("resolution_j", resolution_j, "J", "smallest step of the counter"),
	FIELD_NUMBER("relative_error", relative_error, NULL, "relative error of a reading"),
	FIELD(R, last, NULL, "last reading"),
	FIELD(R, last_unit, NULL, "unit of the last reading", .one_of = last_units),
	FIELD_NUMBER("idle_w", idle_w, "W", "stored idle power"),
	FIELD_TEXT("idle_date", idle_date, NULL, "when the idle power was measured, RFC 3339"),
};
#undef OF_DOMAIN
#undef R
static const struct object_type row_type = OBJECT_TYPE("sensor", "A domain that a sensor measures or could measure.", row_fields);

/* ---- calibrations of the GPUs that a run would measure ---- */

// The i-th GPU; NULL: out of range.
static const struct domain *gpu(const struct sensors_report *report, size_t i)
{
	for (size_t d = 0; d < report->set.n_devices; d++)
		if (report->set.devices[d]->kind == DOMAIN_GPU && i-- == 0)
			return report->set.devices[d];
	return NULL;
}

static size_t gpu_count(const struct object_at *at)
{
	size_t n = 0;
	while (gpu(sensors_report_of(at), n) != NULL)
		n++;
	return n;
}

static const void *gpu_item(const struct object_at *at, size_t i)
{
	return gpu(sensors_report_of(at), i);
}

static double factor(const struct object_at *at)
{
	return known(domain_is_calibrated(at->data) ? domain_gain(at->data) : 0, 1);
}

static double error_percent(const struct object_at *at)
{
	const struct domain *domain = at->data;
	return 100 * (domain_is_calibrated(domain) ? domain->calibration->error : GPU_GAIN_ASSUMED_ERROR);
}

static const char *source(const struct object_at *at, struct buf *scratch)
{
	const struct domain *domain = at->data;
	return domain_is_calibrated(domain) ? domain->calibration->source : "uncalibrated";
}

static const struct field calibration_fields[] = {
	FIELD_AS(struct domain, "domain", name, NULL, "domain of the GPU", .known = true),
	FIELD_NUMBER("factor", factor, NULL, "factor by which readings are multiplied; null: not calibrated"),
	FIELD_NUMBER("error_percent", error_percent, "%", "relative error of the calibration", .known = true),
	FIELD_TEXT("source", source, NULL, "source of the calibration", .known = true),
};
static const struct object_type calibration_type =
	OBJECT_TYPE("calibration", "Calibration of a GPU's power sensor.", calibration_fields);

/* ---- the document ---- */

static bool measures(const struct object_at *at)
{
	return sensors_report_measures(at->data);
}

#define D struct sensors_report
static const struct field sensors_fields[] = {
	FIELD_ITEMS(D, "sensors", rows, n_rows, &row_type, "all domains, also those that are not used or can't be read"),
	FIELD_BOOLEAN("measures", measures, NULL, "whether a run would measure energy, rather than estimate it or report none"),
	FIELD_AS(D, "idle_note", baseline_note, NULL, "why the stored idle power is not used"),
	FIELD_LIST("calibrations", &calibration_type, gpu_count, gpu_item, "calibrations of the GPUs that a run would measure"),
	FIELD_AS(D, "calibration_note", set.gain_message, NULL, "why a stored calibration is not used"),
};
#undef D
const struct object_type sensors_type = OBJECT_TYPE("sensors", "Sensors of this machine.", sensors_fields);

// clang-format on

void sensors_report_json(const struct sensors_report *report, struct buf *out)
{
	document_json(out, &sensors_type, report, true);
}
