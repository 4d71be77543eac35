/* Each recording, and all recordings of a machine as one, with the machine's sensors in place of their own. */
#include "analysis/job/internal.h"

#include "analysis/metadata_keys.h"
#include "base/checked_arith.h"
#include "base/util.h"
#include "energy/curve.h"

#include <errno.h>

// Margin before and after a target's life: readings in it date the counter updates at the target's start and end.
static const int64_t MARGIN_NS = 5 * NS_PER_S;

/* ---- users of a GPU ---- */

// A recorder's values for its own target on a device, and for all other processes there.
static const struct {
	enum device_metric target, others;
} pairs[] = {
	{DEVICE_TARGET_UTILIZATION, DEVICE_OTHERS_UTILIZATION},
	{DEVICE_TARGET_MEMORY, DEVICE_OTHERS_MEMORY},
	{DEVICE_TARGET_PROCESSES, DEVICE_OTHERS_PROCESSES},
	{DEVICE_TARGET_MIG_SHARE, DEVICE_OTHERS_MIG_SHARE},
};

// The value nearest in time to each of several ascending instants; VALUE_MISSING: none within the hole.
struct nearest {
	const struct run_device *device;
	struct run_values values;
	size_t at, next;
	int64_t hole_ns;
};

static size_t known_from(const struct nearest *n, size_t row)
{
	while (row < n->device->n && !value_ok(values_at(n->values, row)))
		row++;
	return row;
}

static struct nearest nearest_begin(const struct run_device *device, enum device_metric metric, int64_t hole_ns)
{
	struct nearest n = {.device = device, .values = device_column(device, metric), .hole_ns = hole_ns};
	n.at = known_from(&n, 0);
	n.next = n.at < device->n ? known_from(&n, n.at + 1) : device->n;
	return n;
}

static int64_t nearest_to(struct nearest *n, int64_t t_ns)
{
	const int64_t *times = n->device->t_ns;
	if (n->at == n->device->n)
		return VALUE_MISSING;
	while (n->next < n->device->n && llabs(times[n->next] - t_ns) <= llabs(times[n->at] - t_ns)) {
		n->at = n->next;
		n->next = known_from(n, n->at + 1);
	}
	return llabs(times[n->at] - t_ns) <= n->hole_ns ? values_at(n->values, n->at) : VALUE_MISSING;
}

static const struct run_device *own_device(const struct member *member, const char *key)
{
	const struct run *run = &member->from->run;
	for (size_t d = 0; d < run->n_devices; d++)
		if (strcmp(job_device_key(&run->devices[d]), key) == 0)
			return &run->devices[d];
	return NULL;
}

static int64_t hole_ns(const struct job_work *work)
{
	return curve_hole_ns(work->interval_ns);
}

static int fill(const struct job_work *work, const struct run_device *own, enum device_metric metric,
	struct run_device *device)
{
	struct nearest near = nearest_begin(own, metric, hole_ns(work));
	int64_t *values = arena_alloc(work->arena, device->n, sizeof(*values));
	for (size_t i = 0; values != NULL && i < device->n; i++)
		values[i] = nearest_to(&near, device->t_ns[i]);
	device->values[metric] = values;
	return values != NULL ? 0 : -ENOMEM;
}

static bool runs_at(const struct member *member, int64_t t_ns)
{
	return t_ns >= member->start_ns && t_ns <= member->end_ns;
}

// Whether a recorder misses processes, as in containers or without permission: over the run it reports less than the
// other members report of themselves.
static bool is_blind(const int64_t *rest, const int64_t *beside, size_t n)
{
	static const double apart = 1.05; // tolerance: the values were read at different instants
	double seen = 0, recorded = 0;
	for (size_t i = 0; i < n; i++) {
		bool known = value_ok(rest[i]) && value_ok(beside[i]);
		seen += known ? (double)rest[i] : 0;
		recorded += known ? (double)beside[i] : 0;
	}
	return recorded > apart * seen;
}

/* Other processes on the device: as reported by the member, else by the recorder that read the sensor. Where both
 * report too little, the sum over the other members that run at the same time is used, without those of a later launch.
 * `device` has the columns of the recorder that read the sensor, `shared` those of all members. */
static int fill_pair(const struct job_work *work, const struct member *member, const struct run_device *own,
	size_t pair, const struct run_device *shared, struct run_device *device)
{
	const int64_t *members = shared->values[pairs[pair].target];
	const int64_t *target = device->values[pairs[pair].target], *others = device->values[pairs[pair].others];
	int64_t *beside = arena_alloc(work->arena, device->n, sizeof(*beside));
	if (beside == NULL || fill(work, own, pairs[pair].target, device) < 0 ||
		fill(work, own, pairs[pair].others, device) < 0)
		return -ENOMEM;
	const int64_t *own_row = device->values[pairs[pair].target];
	int64_t *rest = device->values[pairs[pair].others];
	for (size_t i = 0; i < device->n; i++) {
		if (!value_ok(rest[i]))
			rest[i] = value_minus_parts(value_sum(target[i], others[i]), own_row[i]);
		beside[i] = runs_at(member, device->t_ns[i]) ? value_minus_parts(members[i], own_row[i])
							     : VALUE_MISSING;
	}
	bool blind = is_blind(rest, beside, device->n);
	for (size_t i = 0; i < device->n; i++)
		if (value_ok(beside[i]) && (!value_ok(rest[i]) || (blind && beside[i] > rest[i])))
			rest[i] = beside[i];
	return 0;
}

static int take_share(const struct job_work *work, const struct member *member, const char *key,
	const struct run_device *shared, struct run_device *device)
{
	const struct run_device *own = own_device(member, key);
	if (own == NULL)
		return 0;
	for (size_t p = 0; p < ARRAY_SIZE(pairs); p++)
		if (fill_pair(work, member, own, p, shared, device) < 0)
			return -ENOMEM;
	return fill(work, own, DEVICE_MAIN_MEMORY, device);
}

/* ---- the machine's own run ---- */

static bool exists_at(const struct member *member, int64_t t_ns)
{
	return !member->nested && runs_at(member, t_ns);
}

// Adds each running member's value for its own target. The sum is unknown if a member with the device has no value.
static int add_targets(const struct job_work *work, const struct machine *machine, const struct joined *domain,
	enum device_metric metric, int64_t *sums)
{
	for (size_t k = 0; k < machine->n_members; k++) {
		const struct member *member = &work->members[machine->members[k]];
		const struct run_device *own = own_device(member, domain->key);
		if (own == NULL)
			continue;
		struct nearest near = nearest_begin(own, metric, hole_ns(work));
		for (size_t i = 0; i < domain->device.n; i++) {
			if (!exists_at(member, domain->device.t_ns[i]))
				continue;
			int64_t value = nearest_to(&near, domain->device.t_ns[i]);
			sums[i] = value_sum(sums[i], value);
		}
	}
	return 0;
}

static int share_out(const struct job_work *work, const struct machine *machine, const struct joined *domain,
	struct run_device *device)
{
	size_t n = device->n;
	for (size_t p = 0; p < ARRAY_SIZE(pairs); p++) {
		const int64_t *target = device->values[pairs[p].target], *others = device->values[pairs[p].others];
		int64_t *sums = arena_alloc(work->arena, n, sizeof(*sums));
		int64_t *rest = arena_alloc(work->arena, n, sizeof(*rest));
		if (sums == NULL || rest == NULL)
			return -ENOMEM;
		add_targets(work, machine, domain, pairs[p].target, sums);
		for (size_t i = 0; i < n; i++)
			rest[i] = value_minus_parts(value_sum(target[i], others[i]), sums[i]);
		device->values[pairs[p].target] = sums;
		device->values[pairs[p].others] = rest;
	}
	int64_t *main_bytes = arena_alloc(work->arena, n, sizeof(*main_bytes));
	if (main_bytes == NULL)
		return -ENOMEM;
	add_targets(work, machine, domain, DEVICE_MAIN_MEMORY, main_bytes);
	device->values[DEVICE_MAIN_MEMORY] = main_bytes;
	return 0;
}

static int by_event_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

static int machine_events(const struct job_work *work, struct machine *machine)
{
	struct run *run = &machine->run;
	size_t n = 0;
	for (size_t d = 0; d < machine->n_domains; d++)
		n += machine->domains[d].n_events;
	run->events = arena_alloc(work->arena, n, sizeof(*run->events));
	if (run->events == NULL)
		return -ENOMEM;
	for (size_t d = 0; d < machine->n_domains; d++)
		for (size_t i = 0; i < machine->domains[d].n_events; i++)
			run->events[run->n_events++] = machine->domains[d].events[i];
	qsort(run->events, run->n_events, sizeof(*run->events), by_event_time);
	return 0;
}

static int machine_devices(const struct job_work *work, struct machine *machine)
{
	struct run *run = &machine->run;
	run->devices = arena_alloc(work->arena, machine->n_domains, sizeof(*run->devices));
	if (run->devices == NULL)
		return -ENOMEM;
	run->n_devices = machine->n_domains;
	for (size_t d = 0; d < machine->n_domains; d++) {
		run->devices[d] = machine->domains[d].device;
		if (run->devices[d].kind == DOMAIN_GPU &&
			share_out(work, machine, &machine->domains[d], &run->devices[d]) < 0)
			return -ENOMEM;
	}
	return machine_events(work, machine);
}

/* The sum of the ranks' expected cores, at most the number of cores of the machine. */
static int64_t expected_cores(const struct job_work *work, const struct machine *machine)
{
	int64_t sum = 0, cores = VALUE_MISSING;
	for (size_t k = 0; k < machine->n_members; k++) {
		const struct member *member = &work->members[machine->members[k]];
		int64_t expected = run_metadata_i64(&member->from->run, META_KEY_EXPECTED_CORES);
		cores = run_metadata_i64(&member->from->run, META_KEY_CORES);
		if (!value_ok(expected))
			return VALUE_MISSING;
		sum = member->nested ? sum : value_sum(sum, expected);
	}
	return value_ok(cores) && sum > cores ? cores : sum;
}

static int machine_samples(struct job_work *work, struct machine *machine)
{
	struct arena *arena = work->arena;
	struct part_run *parts = arena_alloc(arena, machine->n_members, sizeof(*parts));
	struct run_metadata *facts;
	size_t n_parts = 0, n_metadata;
	if (parts == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < machine->n_members; k++)
		if (!work->members[machine->members[k]].nested)
			parts[n_parts++].run = &work->members[machine->members[k]].from->run;
	const struct metadata_edit changes[] = {{META_KEY_RUN_ID, NULL}, {META_KEY_RANK, NULL},
		{META_KEY_LOCAL_RANK, NULL}, {META_KEY_RESTART, NULL},
		{META_KEY_INTERVAL, metadata_number(arena, work->interval_ns)},
		{META_KEY_EXPECTED_CORES, metadata_number(arena, expected_cores(work, machine))}};
	if (metadata_change(parts[0].run, changes, ARRAY_SIZE(changes), arena, &facts, &n_metadata) < 0)
		return -ENOMEM;
	const struct merge merge = {.parts = parts,
		.n_parts = n_parts,
		.same_machine = true,
		.interval_ns = work->interval_ns,
		.facts = facts,
		.n_metadata = n_metadata};
	return merge_runs(&merge, arena, &machine->run);
}

int machine_make(struct job_work *work, struct machine *machine)
{
	if (machine_samples(work, machine) < 0 || machine_join(work, machine) < 0 || machine_devices(work, machine) < 0)
		return -ENOMEM;
	return findings_make(&machine->run, &machine->findings);
}

/* ---- a recording ---- */

static struct run_device cut_out(const struct run_device *device, int64_t from_ns, int64_t to_ns)
{
	struct run_device out = *device;
	out.seen_ns = NULL; // visible during the member's whole life
	size_t begin = slice_lower_bound(device->t_ns, device->n, from_ns);
	size_t end = slice_lower_bound(device->t_ns, device->n, to_ns);
	out.t_ns += begin;
	out.n = end - begin;
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		out.values[m] += begin;
	return out;
}

// A rank sees its own GPUs only; all other domains belong to the whole machine.
static bool is_of(const struct member *member, const struct joined *domain)
{
	return !job_is_of_a_gpu(&domain->device) || own_device(member, domain->key) != NULL;
}

struct interval {
	int64_t from_ns, to_ns;
};

/* The machine's readings for one member: those of its life, plus a margin for its ends. Readings beyond a pause in
 * which no rank ran are left out: the machine's sums are constant during the pause, although it used power. */
static struct interval readings_of(const struct job_work *work, const struct member *member)
{
	const struct run *run = &work->machines[member->machine].run;
	int64_t margin_ns = MARGIN_NS > 10 * work->interval_ns ? MARGIN_NS : 10 * work->interval_ns;
	struct interval interval = {member->start_ns - margin_ns, member->end_ns + margin_ns};
	for (size_t s = 0; s < run->n_segments; s++) {
		int64_t from_ns = slice_from_ns(run, s), to_ns = slice_to_ns(run, s);
		if (from_ns <= member->start_ns && interval.from_ns < from_ns)
			interval.from_ns = from_ns;
		if (to_ns > member->end_ns && interval.to_ns > to_ns)
			interval.to_ns = to_ns;
	}
	return interval;
}

static int member_devices(const struct job_work *work, struct member *member)
{
	struct machine *machine = &work->machines[member->machine];
	struct run *run = &member->run;
	const struct interval near = readings_of(work, member);
	run->devices = arena_alloc(work->arena, machine->n_domains, sizeof(*run->devices));
	member->domain_of = arena_alloc(work->arena, machine->n_domains, sizeof(*member->domain_of));
	member->update_phases = arena_alloc(work->arena, machine->n_domains, sizeof(struct counter_update_phase *));
	if (run->devices == NULL || member->domain_of == NULL || member->update_phases == NULL)
		return -ENOMEM;
	run->n_devices = 0;
	for (size_t d = 0; d < machine->n_domains; d++) {
		const struct joined *domain = &machine->domains[d];
		if (!is_of(member, domain))
			continue;
		struct run_device *device = &run->devices[run->n_devices];
		*device = cut_out(&domain->device, near.from_ns, near.to_ns);
		struct run_device shared = cut_out(&machine->run.devices[d], near.from_ns, near.to_ns);
		if (device->kind == DOMAIN_GPU && take_share(work, member, domain->key, &shared, device) < 0)
			return -ENOMEM;
		member->update_phases[run->n_devices] = &machine->domains[d].update_phase;
		member->domain_of[run->n_devices++] = d;
	}
	return 0;
}

// Events of counters and of their readers; the machine has such events of its own.
static bool is_of_sensors(const struct event *event)
{
	return event_is_of_counter(event) || event->kind == EVENT_KIND_SENSORS;
}

// The machine's counter events during the member's life, plus the member's other events.
static int member_events(const struct job_work *work, struct member *member)
{
	const struct run *from = &member->from->run, *machine = &work->machines[member->machine].run;
	struct run *run = &member->run;
	run->events = arena_alloc(work->arena, from->n_events + machine->n_events, sizeof(*run->events));
	run->n_events = 0;
	if (run->events == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_events; i++)
		if (!is_of_sensors(&from->events[i]))
			run->events[run->n_events++] = from->events[i];
	for (size_t i = 0; i < machine->n_events; i++)
		if (machine->events[i].t_ns >= member->start_ns && machine->events[i].t_ns <= member->end_ns)
			run->events[run->n_events++] = machine->events[i];
	qsort(run->events, run->n_events, sizeof(*run->events), by_event_time);
	return 0;
}

int member_make(struct job_work *work, struct member *member)
{
	member->run = member->from->run;
	if (work->runs->every_ns > 0) { // otherwise the samples that were left out would look like holes
		const struct metadata_edit change = {META_KEY_INTERVAL,
			metadata_number(work->arena, work->interval_ns)};
		if (metadata_change(&member->from->run, &change, 1, work->arena, &member->run.facts,
			    &member->run.n_metadata) < 0)
			return -ENOMEM;
	}
	if (member_devices(work, member) < 0 || member_events(work, member) < 0)
		return -ENOMEM;
	if (work->runs->every_ns == 0)
		return findings_make_one_of(&member->run, member->update_phases, &member->findings);
	int r = findings_make_quick(&member->run, &member->findings);
	return r < 0 ? r : downsampled_blocks_add_error(work, member);
}
