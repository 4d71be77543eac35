#include "serve/view.h"

#include "base/util.h"
#include "metric/metric.h"

#include <stdio.h>

/* ---- domains ---- */

static double energy_j(const struct monitor_domain *domain)
{
	return (double)domain->energy_uj / 1e6;
}

static double power_w(const struct monitor_domain *domain)
{
	return domain->power_w;
}

static double target_w(const struct monitor_domain *domain)
{
	return domain->target_w;
}

static double cap_w(const struct monitor_domain *domain)
{
	return domain->cap_w;
}

static double memory_size_bytes(const struct monitor_domain *domain)
{
	return domain->memory_total_bytes;
}

// Defined for metrics with a family.
#define DEVICE_LIVE(id, member, ...)                                                                                   \
	static double family_##member(const struct monitor_domain *domain)                                             \
	{                                                                                                              \
		size_t n;                                                                                              \
		return domain->member * metric_table(METRIC_DEVICE, &n)[DEVICE_##id].family.scale;                     \
	}
#include "metric/metrics.def"

static double has_counter(const struct monitor_domain *domain, double value)
{
	return domain->domain->has_energy ? value : (double)NAN;
}

static double wraps(const struct monitor_domain *domain)
{
	return has_counter(domain, domain->wraps);
}

static double resets(const struct monitor_domain *domain)
{
	return has_counter(domain, domain->resets);
}

static double gaps(const struct monitor_domain *domain)
{
	return has_counter(domain, domain->gaps);
}

// clang-format off
static const struct domain_row {
	enum om_id family; // OM_FAMILIES: the family of the metric
	double (*of)(const struct monitor_domain *);
	enum device_metric metric;
} domain_rows[] = {
	{FAMILY_DOMAIN_ENERGY, energy_j},
	{FAMILY_DOMAIN_POWER, power_w},
	{FAMILY_DOMAIN_TARGET_POWER, target_w},
	{OM_FAMILIES, cap_w, DEVICE_POWER_CAP},
#define DEVICE_LIVE(id, member, ...) {OM_FAMILIES, family_##member, DEVICE_##id},
#include "metric/metrics.def"
	{FAMILY_DOMAIN_MEMORY_SIZE, memory_size_bytes},
	{FAMILY_DOMAIN_WRAPS, wraps},
	{FAMILY_DOMAIN_RESETS, resets},
	{FAMILY_DOMAIN_GAPS, gaps},
};
// clang-format on

static struct om_family family_of(const struct domain_row *row)
{
	size_t n;
	const struct metric *metric = &metric_table(METRIC_DEVICE, &n)[row->metric];
	if (row->family != OM_FAMILIES)
		return om_families[row->family];
	return metric->family.name != NULL ? om_family_of(metric) : (struct om_family){0};
}

// GPU number of a domain; NULL: not a GPU.
static const char *gpu_label(const struct domain *domain, char *out, size_t size)
{
	if (domain->kind != DOMAIN_GPU)
		return NULL;
	snprintf(out, size, "%d", (int)domain->index);
	return out;
}

static void write_domain_infos(const struct monitor_sample *now, struct om *om)
{
	om_family(om, &om_families[FAMILY_DOMAIN]);
	for (size_t i = 0; i < now->n_domains; i++) {
		const struct monitor_domain *row = &now->domains[i];
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

static void write_domains(const struct monitor_sample *now, struct om *om)
{
	write_domain_infos(now, om);
	for (size_t k = 0; k < ARRAY_SIZE(domain_rows); k++) {
		const struct om_family family = family_of(&domain_rows[k]);
		if (family.name == NULL) // metric without a family
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

static void write_throttling(const struct monitor_sample *now, struct om *om)
{
	om_family(om, &om_families[FAMILY_DOMAIN_THROTTLED]);
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

static void write_one(struct om *om, enum om_id family, double value)
{
	om_family(om, &om_families[family]);
	om_value(om, NULL, 0, value);
}

static void write_energy(const struct monitor_sample *now, const struct totals *totals, struct om *om)
{
	const struct om_label label = {"provenance", provenance_name(now->provenance)};
	om_family(om, &om_families[FAMILY_ENERGY]);
	om_value(om, &label, 1, value_ok(now->total_energy_uj) ? totals_sum(totals).total_j : (double)NAN);
	om_family(om, &om_families[FAMILY_POWER]);
	om_value(om, &label, 1, now->total_w);
}

static void write_attribution(const struct monitor_sample *now, const struct metrics_options *options, struct om *om)
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
	om_family(om, &om_families[FAMILY_ATTRIBUTED_POWER]);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		om_value(om, &(struct om_label){"to", rows[i].to}, 1, rows[i].watts);
}

static void write_attributed_energy(const struct monitor_sample *now, const struct totals *totals,
	const struct metrics_options *options, struct om *om)
{
	const struct monitor_added sum = totals_sum(totals);
	const double none = (double)NAN;
	const struct {
		const char *to;
		double joules;
	} rows[] = {
		{"target", options->has_target || sum.target_j > 0 ? sum.target_j : none},
		{"others", sum.others_j}, // counted separately: total minus the rest could decrease by rounding
		{"wattle", sum.own_j},
		{"idle", sum.idle_j > 0 ? sum.idle_j : none},
		{"unattributed", sum.unattributed_j},
	};
	if (!value_ok(now->total_energy_uj))
		return;
	om_family(om, &om_families[FAMILY_ATTRIBUTED_ENERGY]);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		om_value(om, &(struct om_label){"to", rows[i].to}, 1, rows[i].joules);
}

static void write_machine(const struct monitor_sample *now, struct om *om)
{
	write_one(om, FAMILY_CPU_BUSY_CORES, now->busy_cores);
	write_one(om, FAMILY_CPU_CORES, of_i64(now->cores));
	write_one(om, FAMILY_MEMORY_USED, of_i64(now->memory_used_bytes));
	write_one(om, FAMILY_MEMORY_SIZE, of_i64(now->memory_total_bytes));
	write_one(om, FAMILY_PROCESSES, of_i64(now->processes_seen));
	write_one(om, FAMILY_THREADS, of_i64(now->threads_seen));
	write_one(om, FAMILY_SAMPLE_TIME, (double)(now->wall_ns / NS_PER_MS) / 1e3);
	write_one(om, FAMILY_LOOK_TIME, (double)(now->wall_ns / NS_PER_MS) / 1e3); // deprecated name
}

/* ---- the exporter ---- */

static void write_counting(const struct totals *totals, struct om *om)
{
	write_one(om, FAMILY_COUNTING_SINCE, value_to_double(totals->since_wall_ns, 1e-9));
	om_family(om, &om_families[FAMILY_BUILD]);
	om_value(om, &(struct om_label){"version", WATTLE_VERSION}, 1, 1);
}

// Standard process metrics have the same names in every exporter. In a textfile they would be node_exporter's, so wattle's
// own names are used there.
static void write_own(const struct monitor_sample *now, const struct metrics_options *options, struct om *om)
{
	const bool ours = options->is_textfile;
	write_one(om, ours ? FAMILY_SELF_CPU : FAMILY_OWN_CPU, now->own_cpu_s);
	write_one(om, ours ? FAMILY_SELF_MEMORY : FAMILY_OWN_MEMORY, of_i64(now->own_rss_bytes));
	write_one(om, ours ? FAMILY_SELF_START : FAMILY_OWN_START, value_to_double(options->opened_wall_ns, 1e-9));
}

void metrics_write(const struct monitor_sample *now, const struct totals *totals, const struct metrics_options *options,
	struct buf *out)
{
	struct om om;
	om_begin(&om, out, options->format);
	om.common = (struct om_label){"node", options->node};
	om.is_rounded = true;
	write_energy(now, totals, &om);
	write_attribution(now, options, &om);
	write_attributed_energy(now, totals, options, &om);
	write_domains(now, &om);
	write_throttling(now, &om);
	write_machine(now, &om);
	metrics_write_groups(now, totals, &om);
	metrics_write_processes(&totals->processes, options, &om);
	write_counting(totals, &om);
	om.common = (struct om_label){0};
	write_own(now, options, &om);
	metrics_write_seed(now, options, &om);
	om_end(&om);
}
