#include "serve/view.h"

#include "base/util.h"
#include "metric/metric.h"

#include <stdio.h>

/* ---- domains ---- */

static double energy_j(const struct now_domain *domain)
{
	return (double)domain->energy_uj / 1e6;
}

static double power_w(const struct now_domain *domain)
{
	return domain->power_w;
}

static double target_w(const struct now_domain *domain)
{
	return domain->target_w;
}

static double cap_w(const struct now_domain *domain)
{
	return domain->cap_w;
}

static double memory_size_bytes(const struct now_domain *domain)
{
	return domain->memory_total_bytes;
}

// Of the metrics that have a family.
#define DEVICE_LIVE(id, member, ...)                                                                                   \
	static double family_##member(const struct now_domain *domain)                                                 \
	{                                                                                                              \
		size_t n;                                                                                              \
		return domain->member * metric_table(METRIC_DEVICE, &n)[DEVICE_##id].family.scale;                     \
	}
#include "metric/metrics.def"

static double has_counter(const struct now_domain *domain, double value)
{
	return domain->domain->has_energy ? value : (double)NAN;
}

static double wraps(const struct now_domain *domain)
{
	return has_counter(domain, domain->wraps);
}

static double resets(const struct now_domain *domain)
{
	return has_counter(domain, domain->resets);
}

static double gaps(const struct now_domain *domain)
{
	return has_counter(domain, domain->gaps);
}

static const struct domain_row {
	struct om_family family; // no name: the metric's
	double (*of)(const struct now_domain *);
	enum device_metric metric;
} domain_rows[] = {
	{{"wattle_domain_energy_joules", OM_COUNTER, "joules", "Energy of the domain since counting began."}, energy_j},
	{{"wattle_domain_power_watts", OM_GAUGE, "watts", "Power of the domain between the last two looks."}, power_w},
	{{"wattle_domain_target_power_watts", OM_GAUGE, "watts",
		 "Power of the domain that is attributed to the target."},
		target_w},
	{.of = cap_w, .metric = DEVICE_POWER_CAP},
#define DEVICE_LIVE(id, member, ...) {.of = family_##member, .metric = DEVICE_##id},
#include "metric/metrics.def"
	{{"wattle_domain_memory_size_bytes", OM_GAUGE, "bytes", "Device memory that there is."}, memory_size_bytes},
	{{"wattle_domain_wraps", OM_COUNTER, NULL, "Times the hardware's energy counter wrapped."}, wraps},
	{{"wattle_domain_resets", OM_COUNTER, NULL,
		 "Times the hardware's energy counter started anew; the energy in between is unknown."},
		resets},
	{{"wattle_domain_gaps", OM_COUNTER, NULL, "Times the energy counter could not be read."}, gaps},
};

static struct om_family family_of(const struct domain_row *row)
{
	size_t n;
	const struct metric *metric = &metric_table(METRIC_DEVICE, &n)[row->metric];
	bool has_own = row->family.name != NULL || metric->family.name == NULL;
	return has_own ? row->family : om_family_of(metric);
}

// The number of a GPU, as its domain has it; NULL: it is none.
static const char *gpu_label(const struct domain *domain, char *out, size_t size)
{
	if (domain->kind != DOMAIN_GPU)
		return NULL;
	snprintf(out, size, "%d", (int)domain->index);
	return out;
}

static void write_domain_infos(const struct now *now, struct om *om)
{
	om_family(om,
		&(struct om_family){"wattle_domain", OM_INFO, NULL,
			"What a domain is, and where its figures come from."});
	for (size_t i = 0; i < now->n_domains; i++) {
		const struct now_domain *row = &now->domains[i];
		const struct domain *domain = row->domain;
		char gpu[16];
		const struct om_label labels[] = {
			{"domain", domain->name},
			{"kind", domain_kind_name(domain->kind)},
			{"gpu", gpu_label(domain, gpu, sizeof(gpu))},
			{"inside", domain->inside},
			{"device", domain->device},
			{"uuid", domain->uuid},
			{"source", row->source},
			{"provenance", provenance_name(domain->provenance)},
			{"in_total", row->in_total ? "true" : "false"},
		};
		om_value(om, labels, ARRAY_SIZE(labels), 1);
	}
}

static void write_domains(const struct now *now, struct om *om)
{
	write_domain_infos(now, om);
	for (size_t k = 0; k < ARRAY_SIZE(domain_rows); k++) {
		const struct om_family family = family_of(&domain_rows[k]);
		if (family.name == NULL) // of a metric without one
			continue;
		om_family(om, &family);
		for (size_t i = 0; i < now->n_domains; i++) {
			const struct domain *domain = now->domains[i].domain;
			char gpu[16];
			const struct om_label labels[] = {{"domain", domain->name},
				{"kind", domain_kind_name(domain->kind)}, {"gpu", gpu_label(domain, gpu, sizeof(gpu))}};
			om_value(om, labels, ARRAY_SIZE(labels), domain_rows[k].of(&now->domains[i]));
		}
	}
}

static void write_throttling(const struct now *now, struct om *om)
{
	om_family(om,
		&(struct om_family){"wattle_domain_throttled", OM_GAUGE, NULL,
			"Whether clocks are held back for this reason (1) or not (0)."});
	for (size_t i = 0; i < now->n_domains; i++) {
		const int64_t bits = now->domains[i].throttle_bits;
		for (size_t r = 0; value_ok(bits) && r < THROTTLE_REASONS; r++) {
			const struct om_label labels[] = {{"domain", now->domains[i].domain->name},
				{"reason", throttle_reasons[r].key}};
			om_value(om, labels, ARRAY_SIZE(labels), (bits & throttle_reasons[r].bit) != 0);
		}
	}
}

/* ---- the machine ---- */

static double of_i64(int64_t value)
{
	return value_to_double(value, 1);
}

static void write_one(struct om *om, const struct om_family *family, double value)
{
	om_family(om, family);
	om_value(om, NULL, 0, value);
}

static void write_energy(const struct now *now, const struct tally *tally, struct om *om)
{
	const struct om_label label = {"provenance", provenance_name(now->provenance)};
	om_family(om,
		&(struct om_family){"wattle_energy_joules", OM_COUNTER, "joules",
			"Energy of the machine since counting began: the outermost domains that do not overlap."});
	om_value(om, &label, 1, value_ok(now->total_energy_uj) ? tally_sum(tally).total_j : (double)NAN);
	om_family(om,
		&(struct om_family){"wattle_power_watts", OM_GAUGE, "watts",
			"Power of the machine between the last two looks: the outermost domains that do not overlap."});
	om_value(om, &label, 1, now->total_w);
}

static void write_attribution(const struct now *now, const struct metrics_options *options, struct om *om)
{
	const double none = (double)NAN;
	const struct {
		const char *to;
		double watts;
	} rows[] = {
		{"target", options->has_target ? now->sum.target_w : none},
		{"others", now->sum.others_w},
		{"wattle", now->sum.own_w},
		{"idle", now->sum.idle_w},
		{"unattributed", now->sum.unattributed_w},
	};
	if (isnan(now->total_w))
		return;
	om_family(om,
		&(struct om_family){"wattle_attributed_power_watts", OM_GAUGE, "watts",
			"Power of the machine by who used it; the rows add up to wattle_power_watts."});
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		om_value(om, &(struct om_label){"to", rows[i].to}, 1, rows[i].watts);
}

static void write_attributed_energy(const struct now *now, const struct tally *tally,
	const struct metrics_options *options, struct om *om)
{
	const struct now_added sum = tally_sum(tally);
	const double none = (double)NAN;
	const struct {
		const char *to;
		double joules;
	} rows[] = {
		{"target", options->has_target || sum.target_j > 0 ? sum.target_j : none},
		{"others", sum.others_j}, // counted: what the rest leaves of large sums falls by a last digit at times
		{"wattle", sum.own_j},
		{"idle", sum.idle_j > 0 ? sum.idle_j : none},
		{"unattributed", sum.unattributed_j},
	};
	if (!value_ok(now->total_energy_uj))
		return;
	om_family(om,
		&(struct om_family){"wattle_attributed_energy_joules", OM_COUNTER, "joules",
			"Energy of the machine by who used it; the rows add up to wattle_energy_joules_total."});
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		om_value(om, &(struct om_label){"to", rows[i].to}, 1, rows[i].joules);
}

static void write_machine(const struct now *now, struct om *om)
{
	write_one(om,
		&(struct om_family){"wattle_cpu_busy_cores", OM_GAUGE, "cores",
			"Cores that were busy between the last two looks."},
		now->busy_cores);
	write_one(om, &(struct om_family){"wattle_cpu_cores", OM_GAUGE, "cores", "Cores online."}, of_i64(now->cores));
	write_one(om,
		&(struct om_family){"wattle_memory_used_bytes", OM_GAUGE, "bytes",
			"Memory in use: total less available."},
		of_i64(now->memory_used_bytes));
	write_one(om, &(struct om_family){"wattle_memory_size_bytes", OM_GAUGE, "bytes", "Memory that there is."},
		of_i64(now->memory_total_bytes));
	write_one(om, &(struct om_family){"wattle_processes", OM_GAUGE, NULL, "Processes of the machine."},
		of_i64(now->processes_seen));
	write_one(om, &(struct om_family){"wattle_threads", OM_GAUGE, NULL, "Threads of the machine."},
		of_i64(now->threads_seen));
	write_one(om,
		&(struct om_family){"wattle_look_timestamp_seconds", OM_GAUGE, "seconds",
			"When these figures were taken, Unix time."},
		(double)(now->wall_ns / NS_PER_MS) / 1e3);
}

/* ---- ourselves ---- */

static void write_counting(const struct tally *tally, struct om *om)
{
	write_one(om,
		&(struct om_family){"wattle_counting_since_timestamp_seconds", OM_GAUGE, "seconds",
			"Since when the counters count, over restarts of wattle serve too, Unix time."},
		value_to_double(tally->since_wall_ns, 1e-9));
	om_family(om, &(struct om_family){"wattle_build", OM_INFO, NULL, "What writes these figures."});
	om_value(om, &(struct om_label){"version", WATTLE_VERSION}, 1, 1);
}

// The names that every exporter has for itself; among another's figures they would be that one's, so there they are ours.
static void write_own(const struct now *now, const struct metrics_options *options, struct om *om)
{
	const bool ours = options->is_textfile;
	write_one(om,
		&(struct om_family){ours ? "wattle_self_cpu_seconds" : "process_cpu_seconds", OM_COUNTER, "seconds",
			"CPU time of wattle serve itself."},
		now->own_cpu_s);
	write_one(om,
		&(struct om_family){ours ? "wattle_self_resident_memory_bytes" : "process_resident_memory_bytes",
			OM_GAUGE, "bytes", "Resident memory of wattle serve itself."},
		of_i64(now->own_rss_bytes));
	write_one(om,
		&(struct om_family){ours ? "wattle_self_start_time_seconds" : "process_start_time_seconds", OM_GAUGE,
			"seconds", "When wattle serve started, Unix time."},
		value_to_double(options->opened_wall_ns, 1e-9));
}

void metrics_write(const struct now *now, const struct tally *tally, const struct metrics_options *options,
	struct buf *out)
{
	struct om om;
	om_begin(&om, out, options->format);
	om.common = (struct om_label){"node", options->node};
	om.is_rounded = true;
	write_energy(now, tally, &om);
	write_attribution(now, options, &om);
	write_attributed_energy(now, tally, options, &om);
	write_domains(now, &om);
	write_throttling(now, &om);
	write_machine(now, &om);
	metrics_write_groups(now, tally, &om);
	metrics_write_processes(&tally->processes, options, &om);
	write_counting(tally, &om);
	om.common = (struct om_label){0};
	write_own(now, options, &om);
	metrics_write_seed(now, options, &om);
	om_end(&om);
}
