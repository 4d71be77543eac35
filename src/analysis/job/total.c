/* The job as one run: the figures of all machines as one target, on the job's clock. Energies are those of the
 * machines. */
#include "analysis/job/internal.h"

#include "analysis/energy/domains.h"
#include "analysis/metadata_keys.h"
#include "analysis/names.h"
#include "analysis/stats.h"
#include "base/checked_arith.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>

static const double joules_per_kwh = 3.6e6;

/* ---- the synthetic run ---- */

static int64_t sum_of_metadata(const struct job_work *work, const char *key)
{
	int64_t sum = 0;
	for (size_t m = 0; m < work->n_machines; m++)
		sum = value_sum(sum, run_metadata_i64(&work->machines[m].run, key));
	return sum;
}

static int make_samples(struct job_work *work)
{
	struct arena *arena = work->arena;
	struct part_run *parts = arena_alloc(arena, work->n_machines, sizeof(*parts));
	struct run_metadata *facts;
	size_t n_metadata;
	if (parts == NULL)
		return -ENOMEM;
	for (size_t m = 0; m < work->n_machines; m++)
		parts[m] = (struct part_run){&work->machines[m].run, work->machines[m].shift_ns};
	const struct run *first = &work->machines[0].run;
	const struct metadata_edit changes[] = {{META_KEY_HOST,
							work->n_machines == 1 ? run_metadata(first, META_KEY_HOST)
									      : NULL},
		{META_KEY_NODE, NULL}, {META_KEY_MACHINE, NULL}, {META_KEY_BOOT_ID, NULL},
		{META_KEY_CORES, metadata_number(arena, sum_of_metadata(work, META_KEY_CORES))},
		{META_KEY_EXPECTED_CORES, metadata_number(arena, sum_of_metadata(work, META_KEY_EXPECTED_CORES))},
		{META_KEY_MEMORY_TOTAL, metadata_number(arena, sum_of_metadata(work, META_KEY_MEMORY_TOTAL))},
		{META_KEY_GPUS_SYSTEM, metadata_number(arena, sum_of_metadata(work, META_KEY_GPUS_SYSTEM))}};
	if (metadata_change(first, changes, ARRAY_SIZE(changes), arena, &facts, &n_metadata) < 0)
		return -ENOMEM;
	const struct merge merge = {.parts = parts,
		.n_parts = work->n_machines,
		.interval_ns = work->interval_ns,
		.facts = facts,
		.n_metadata = n_metadata};
	if (merge_runs(&merge, arena, &work->total_run) < 0)
		return -ENOMEM;
	work->total_run.anchor_mono_ns = 0;
	work->total_run.anchor_wall_ns = work->job->start_wall_ns;
	return 0;
}

static int shift_times(const struct job_work *work, const struct machine *machine, struct run_device *device)
{
	if (machine->shift_ns == 0)
		return 0;
	int64_t *t_ns = arena_alloc(work->arena, device->n, sizeof(*t_ns));
	for (size_t i = 0; t_ns != NULL && i < device->n; i++)
		t_ns[i] = device->t_ns[i] + machine->shift_ns;
	device->t_ns = t_ns;
	return t_ns != NULL ? 0 : -ENOMEM;
}

static int make_devices(struct job_work *work)
{
	struct run *run = &work->total_run;
	size_t n = 0;
	for (size_t m = 0; m < work->n_machines; m++)
		n += work->machines[m].run.n_devices;
	run->devices = arena_alloc(work->arena, n, sizeof(*run->devices));
	if (run->devices == NULL)
		return -ENOMEM;
	for (size_t m = 0; m < work->n_machines; m++) {
		const struct machine *machine = &work->machines[m];
		for (size_t d = 0; d < machine->run.n_devices; d++) {
			run->devices[run->n_devices] = machine->run.devices[d];
			run->devices[run->n_devices].seen_ns = NULL; // seen_ns refers to the machine's segments
			if (shift_times(work, machine, &run->devices[run->n_devices++]) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}

/* ---- events ---- */

static int add_event(struct job_work *work, const struct event *event, int64_t shift_ns, const char *where)
{
	struct run *run = &work->total_run;
	const char *text = arena_printf(work->arena, "%s: %s", where, event->text != NULL ? event->text : "");
	if (text == NULL)
		return -ENOMEM;
	struct event *added = &run->events[run->n_events++];
	*added = *event;
	added->t_ns += shift_ns;
	added->text = text;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

void member_name(const struct job_work *work, const struct member *member, char *out, size_t size)
{
	int64_t rank = run_metadata_i64(&member->from->run, META_KEY_RANK);
	const char *node = work->job->nodes[member->node].name;
	if (value_ok(rank))
		snprintf(out, size, "rank %lld on %.40s", (long long)rank, node);
	else
		snprintf(out, size, "a recorder on %.40s", node);
}

static size_t machine_index(const struct job_work *work, const struct job_node *node)
{
	size_t m = 0;
	while (m + 1 < work->n_machines && &work->machines[m].findings != node->findings)
		m++;
	return m;
}

static int make_events(struct job_work *work)
{
	size_t most = 0;
	for (size_t m = 0; m < work->n_machines; m++)
		most += work->machines[m].run.n_events;
	for (size_t i = 0; i < work->runs->n; i++)
		most += work->members[i].from->run.n_events;
	work->total_run.events = arena_alloc(work->arena, most, sizeof(struct event));
	if (work->total_run.events == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < work->job->n_nodes; i++) {
		const struct job_node *node = &work->job->nodes[i];
		for (size_t k = 0; node->findings != NULL && k < node->findings->run->n_events; k++)
			if (add_event(work, &node->findings->run->events[k],
				    work->machines[machine_index(work, node)].shift_ns, node->name) < 0)
				return -ENOMEM;
	}
	for (size_t i = 0; i < work->runs->n; i++) {
		const struct member *member = &work->members[i];
		char name[80];
		member_name(work, member, name, sizeof(name));
		for (size_t k = 0; k < member->from->run.n_events; k++) {
			const struct event *event = &member->from->run.events[k];
			if (!event_is_of_counter(event) &&
				add_event(work, event, work->machines[member->machine].shift_ns, name) < 0)
				return -ENOMEM;
		}
	}
	qsort(work->total_run.events, work->total_run.n_events, sizeof(struct event), by_time);
	return 0;
}

/* ---- energies of the machines ---- */

static size_t node_of(const struct job_findings *job, const struct machine *machine)
{
	for (size_t i = 0; i < job->n_nodes; i++)
		if (job->nodes[i].findings == &machine->findings)
			return i;
	return 0;
}

static const struct domain_finding *finding_of(const struct findings *f, const struct run_device *device)
{
	for (size_t i = 0; i < f->n_domains; i++)
		if (f->domains[i].device == device)
			return &f->domains[i];
	return NULL;
}

// The machine and the domain of a device of the job's run.
static const struct machine *machine_of(const struct job_work *work, const struct run_device *device,
	size_t *ret_domain)
{
	const struct machine *machine = work->machines;
	size_t at = (size_t)(device - work->total_run.devices);
	for (; at >= machine->run.n_devices; machine++)
		at -= machine->run.n_devices;
	*ret_domain = at;
	return machine;
}

static void take_domain(struct job_work *work, size_t index)
{
	struct domain_finding *domain = &work->job->total.domains[index];
	const struct run_device *device = domain->device;
	size_t own;
	const struct machine *machine = machine_of(work, device, &own);
	const struct domain_finding *from = finding_of(&machine->findings, &machine->run.devices[own]);
	*domain = *from;
	domain->device = device;
	machine->total_domain[own] = index;
	work->job->domain_node[index] = node_of(work->job, machine);
}

static void take_gpu(struct job_work *work, size_t index)
{
	struct gpu_finding *gpu = &work->job->total.gpus[index];
	const struct run_device *device = gpu->device;
	size_t own;
	const struct machine *machine = machine_of(work, device, &own);
	work->job->gpu_node[index] = node_of(work->job, machine);
	for (size_t i = 0; i < machine->findings.n_gpus; i++)
		if (machine->findings.gpus[i].device == &machine->run.devices[own])
			*gpu = machine->findings.gpus[i];
	gpu->device = device;
}

static void add_machine(struct findings *total, const struct findings *f, struct error_sum *error,
	struct error_sum *target_error)
{
	if (isnan(f->total_j))
		return;
	if (isnan(total->total_j)) {
		total->total_j = 0;
		total->ledger = ledger_empty();
	}
	total->total_j += f->total_j;
	total->provenance = f->provenance > total->provenance ? f->provenance : total->provenance;
	ledger_add(&total->ledger, &f->ledger);
	for (size_t i = 0; i < f->n_domains; i++) {
		const struct domain_finding *domain = &f->domains[i];
		if (!domain->in_total || isnan(domain->energy_j))
			continue;
		calibration_add(total, domain);
		error_sum_add(error, domain, domain->error_j, 0);
		error_sum_add(target_error, domain, target_error_j(domain, 0),
			f->metering->domains[i].attribution.uncertainty_j);
	}
}

static void add_energies(struct job_work *work)
{
	struct findings *total = &work->job->total;
	struct error_sum error = {0}, target_error = {0};
	total->total_j = total->error_j = total->target_error_j = (double)NAN;
	total->calibration_error_j = total->target_calibration_error_j = (double)NAN;
	total->ledger = ledger_unknown();
	total->provenance = PROVENANCE_MEASURED;
	for (size_t m = 0; m < work->n_machines; m++)
		add_machine(total, &work->machines[m].findings, &error, &target_error);
	if (!isnan(total->total_j)) {
		total->error_j = error_sum_j(&error);
		total->target_error_j = error_sum_j(&target_error);
	}
	total->facility_j = total->total_j * total->pue;
	total->carbon_intensity_g_per_kwh = run_metadata_double(&work->total_run, META_KEY_CARBON_INTENSITY);
	total->carbon_g = total->facility_j / joules_per_kwh * total->carbon_intensity_g_per_kwh;
	total->self_energy_j = total->ledger.wattle_j;
}

// Energy while no block was open; for ranks without blocks that is all their energy.
static void add_outside(struct job_work *work)
{
	struct findings *total = &work->job->total;
	double sum_j = 0, error_j = 0;
	bool any = false;
	for (size_t i = 0; i < work->runs->n; i++) {
		const struct member *member = &work->members[i];
		const struct findings *f = &member->findings;
		bool has_blocks = f->n_blocks > 0;
		if (member->nested)
			continue;
		any |= has_blocks || member->from->n_blocks > 0;
		sum_j += has_blocks ? f->outside_j : member->from->n_blocks > 0 ? (double)NAN : f->ledger.target_j;
		error_j += has_blocks ? f->outside_error_j : f->target_error_j;
	}
	total->outside_j = any ? sum_j : (double)NAN;
	total->outside_error_j = any ? error_j : (double)NAN;
}

static int allocate(struct job_work *work)
{
	size_t n = work->total_run.n_devices;
	work->job->domain_node = arena_alloc(work->arena, n, sizeof(size_t));
	work->job->gpu_node = arena_alloc(work->arena, n, sizeof(size_t));
	if (work->job->domain_node == NULL || work->job->gpu_node == NULL)
		return -ENOMEM;
	for (size_t m = 0; m < work->n_machines; m++) {
		struct machine *machine = &work->machines[m];
		machine->total_domain = arena_alloc(work->arena, machine->run.n_devices, sizeof(size_t));
		if (machine->total_domain == NULL)
			return -ENOMEM;
	}
	return 0;
}

int total_make(struct job_work *work)
{
	struct findings *total = &work->job->total;
	if (make_samples(work) < 0 || make_devices(work) < 0 || make_events(work) < 0 || allocate(work) < 0 ||
		findings_make(&work->total_run, total) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < total->n_domains; i++)
		take_domain(work, i);
	for (size_t i = 0; i < total->n_gpus; i++)
		take_gpu(work, i);
	add_energies(work);
	add_outside(work);
	return total_metrics_make(work);
}

/* ---- custom metrics ---- */

static struct stats unknown_stats(void)
{
	const double none = (double)NAN;
	return (struct stats){none, none, none, none, 0};
}

// The last value is that of the first rank that reported the metric: the ranks have no common end.
static void pool(struct stats *all, const struct stats *one)
{
	if (one->count <= 0)
		return;
	double n = (double)all->count, more = (double)one->count;
	all->last = all->count > 0 ? all->last : one->last;
	all->mean = all->count > 0 ? (all->mean * n + one->mean * more) / (n + more) : one->mean;
	all->min = fmin(all->min, one->min);
	all->max = fmax(all->max, one->max);
	all->count += one->count;
}

int total_metrics_make(struct job_work *work)
{
	struct findings *total = &work->job->total;
	struct user_metric_finding *rows;
	struct names names;
	size_t n = 0;
	for (size_t i = 0; i < work->runs->n; i++)
		n += work->members[i].nested ? 0 : work->members[i].findings.n_user_metrics;
	if (n == 0)
		return 0;
	rows = arena_alloc(work->arena, n, sizeof(*rows));
	if (rows == NULL)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < work->runs->n; i++)
		for (size_t k = 0; !work->members[i].nested && k < work->members[i].findings.n_user_metrics; k++)
			rows[n++] = work->members[i].findings.user_metrics[k];
	if (names_make(&rows[0].name, sizeof(*rows), n, work->arena, &names) < 0)
		return -ENOMEM;
	total->user_metrics = arena_alloc(work->arena, names.n, sizeof(*total->user_metrics));
	if (total->user_metrics == NULL)
		return -ENOMEM;
	total->n_user_metrics = names.n;
	for (size_t k = 0; k < names.n; k++)
		total->user_metrics[k] = (struct user_metric_finding){names.text[k], unknown_stats()};
	for (size_t i = 0; i < n; i++)
		pool(&total->user_metrics[names.of[i]].stats, &rows[i].stats);
	return 0;
}
