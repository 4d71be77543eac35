/* Joins the readings of several recorders into one curve per domain and machine.
 *
 * A piece is a stretch of time in which one recorder read the domain. The pieces are laid one after the other; where
 * two recorders read at the same time, the recorder that began first continues. The counter's raw value (energy_raw_uj)
 * gives the energy between the last reading of one recorder and the first of the next, wraps included. Otherwise the
 * next recorder's readings give it, if they reach back that far. Otherwise the energy is unknown: the curve is flat
 * there, and a reset among the domain's events widens its error. */
#include "analysis/job/join.h"

#include "base/checked_arith.h"
#include "base/util.h"
#include "energy/curve.h"

#include <errno.h>
#include <stdio.h>

const char *job_device_key(const struct run_device *device)
{
	return device->uuid[0] != '\0' ? device->uuid : device->name;
}

bool job_is_of_a_gpu(const struct run_device *device)
{
	return device->kind == DOMAIN_GPU || device->uuid[0] != '\0';
}

/* ---- pieces ---- */

static size_t count_readings(const struct run_device *device)
{
	size_t n = 0;
	for (size_t i = 0; i < device->n; i++)
		n += device_is_metered(device, i);
	return n;
}

static void close_reading_run(struct joining *j, const struct reading_run *reading_run)
{
	if (reading_run->rows.begin < reading_run->rows.end)
		j->reading_runs[j->n_reading_runs++] = *reading_run;
}

static void find_reading_runs(struct joining *j, size_t member, size_t index)
{
	const struct run *run = joining_run(j, member);
	const struct run_device *device = &run->devices[index];
	for (size_t s = 0; s < run->n_segments; s++) {
		struct slice rows = slice_of(run, s, device->t_ns, device->n);
		struct reading_run reading_run = {.member = member, .device = index, .from = device, .segment = s};
		for (size_t i = rows.begin; i < rows.end; i++) {
			if (!device_is_metered(device, i))
				continue;
			bool open = reading_run.rows.begin < reading_run.rows.end;
			if (open && device->t_ns[i] - reading_run.to_ns > j->hole_ns) {
				close_reading_run(j, &reading_run);
				open = false;
			}
			if (!open) {
				reading_run.rows.begin = i;
				reading_run.from_ns = device->t_ns[i];
			}
			reading_run.rows.end = i + 1;
			reading_run.to_ns = device->t_ns[i];
		}
		close_reading_run(j, &reading_run);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct reading_run *x = a, *y = b;
	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	if (x->to_ns != y->to_ns)
		return x->to_ns > y->to_ns ? -1 : 1;
	return (x->member > y->member) - (x->member < y->member);
}

// Two recorders can read one domain by two methods, which can't be joined: the better method counts, or the one with
// more readings.
static const struct run_device *best_device(const struct job_work *work, const struct machine *machine, const char *key)
{
	const struct run_device *best = NULL;
	size_t most = 0;
	for (size_t i = 0; i < machine->n_members; i++) {
		const struct run *run = &work->members[machine->members[i]].from->run;
		for (size_t d = 0; d < run->n_devices; d++) {
			const struct run_device *device = &run->devices[d];
			if (strcmp(job_device_key(device), key) != 0)
				continue;
			size_t n = count_readings(device);
			bool better = best == NULL || (most == 0 && n > 0) ||
				(n > 0 && device->provenance < best->provenance) ||
				(n > most && device->provenance == best->provenance);
			if (!better)
				continue;
			best = device;
			most = n;
		}
	}
	return best;
}

static int collect(struct joining *j)
{
	const char *source = j->domain->device.source;
	size_t most = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < j->machine->n_members; i++) {
			size_t member = j->machine->members[i];
			const struct run *run = joining_run(j, member);
			for (size_t d = 0; d < run->n_devices; d++) {
				const struct run_device *device = &run->devices[d];
				if (strcmp(job_device_key(device), j->domain->key) != 0 ||
					strcmp(device->source, source) != 0)
					continue;
				if (pass == 0)
					most += device->n;
				else
					find_reading_runs(j, member, d);
			}
		}
		if (pass == 0 && (j->reading_runs = arena_alloc(j->scratch, most, sizeof(*j->reading_runs))) == NULL)
			return -ENOMEM;
	}
	qsort(j->reading_runs, j->n_reading_runs, sizeof(*j->reading_runs), by_time);
	for (size_t i = 0; i < j->n_reading_runs; i++)
		for (size_t row = j->reading_runs[i].rows.begin; row < j->reading_runs[i].rows.end && !j->counts; row++)
			j->counts = value_ok(device_value(j->reading_runs[i].from, DEVICE_ENERGY, row));
	return 0;
}

/* ---- joining the pieces ---- */

static struct reading_run *next_reading_run(struct joining *j, int64_t covered_ns)
{
	struct reading_run *best = NULL;
	for (size_t i = 0; i < j->n_reading_runs; i++) {
		struct reading_run *reading_run = &j->reading_runs[i];
		if (reading_run->to_ns <= covered_ns)
			continue;
		if (best == NULL) {
			best = reading_run;
			continue;
		}
		if (reading_run->from_ns > covered_ns && reading_run->from_ns > best->from_ns)
			break;
		if (reading_run->to_ns > best->to_ns)
			best = reading_run;
	}
	return best;
}

// Copies the recorder's wrap, gap and reset events of this domain from the time in which it was the reader.
static int take_events(struct joining *j, const struct reader *reader)
{
	bool goes_on = reader > j->domain->readers && reader[-1].member == reader->member;
	int64_t from_ns = goes_on ? reader[-1].to_ns + 1 : reader->from_ns;
	const struct run *run = joining_run(j, reader->member);
	const char *name = run->devices[reader->device].name;
	for (size_t i = 0; i < run->n_events; i++) {
		const struct event *event = &run->events[i];
		bool ours = event->t_ns >= from_ns && event->t_ns <= reader->to_ns && event_is_of_counter(event) &&
			event_is_of(event, name);
		if (ours && joining_add(j, *event) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int64_t overlap_ns(int64_t a_from, int64_t a_to, int64_t b_from, int64_t b_to)
{
	int64_t from = a_from > b_from ? a_from : b_from, to = a_to < b_to ? a_to : b_to;
	return to > from ? to - from : 0;
}

/* A pause in which no rank ran can lie between two readings. The energy used in it is not the job's and adds no
 * uncertainty. Only unread time before and after the pause is unknown. */
static bool is_across_pause(struct joining *j, int64_t from_ns, int64_t to_ns)
{
	const struct run *run = &j->machine->run;
	int64_t unread_ns = 0;
	for (size_t s = 0; s < run->n_segments; s++) {
		if (from_ns >= slice_from_ns(run, s) && to_ns < slice_to_ns(run, s))
			return false;
		int64_t part_ns = overlap_ns(from_ns, to_ns, run->segments[s].start_ns, run->segments[s].end_ns);
		unread_ns += part_ns > j->hole_ns ? part_ns : 0;
	}
	j->domain->unknown_ns += unread_ns;
	return true;
}

static int link(struct joining *j, const struct reading_run *next, size_t row)
{
	bool across = is_across_pause(j, j->last->from->t_ns[j->last_row], next->from->t_ns[row]);
	return across ? 0 : joining_link(j, next, row);
}

static int take_rows(struct joining *j, const struct reading_run *reading_run, size_t first)
{
	struct run_device *out = &j->domain->device;
	const struct run_device *from = reading_run->from;
	size_t counted_row = SIZE_MAX; // the latest row with a counter value
	for (size_t row = first; row < reading_run->rows.end; row++) {
		int64_t uj = device_value(from, DEVICE_ENERGY, row);
		if (value_ok(uj)) {
			if (counted_row != SIZE_MAX)
				joining_count(j, value_difference(uj, device_value(from, DEVICE_ENERGY, counted_row)));
			else if (j->last != NULL && link(j, reading_run, row) < 0)
				return -ENOMEM;
			else if (j->last == NULL)
				j->first_ns = from->t_ns[row];
			counted_row = row;
			j->last = reading_run;
			j->last_row = row;
		}
		for (size_t m = 0; m < DEVICE_COUNT; m++)
			out->values[m][out->n] = device_value(from, m, row);
		out->values[DEVICE_ENERGY][out->n] = value_ok(uj) ? j->total_uj : VALUE_MISSING;
		out->t_ns[out->n++] = from->t_ns[row];
	}
	return 0;
}

static int join_runs(struct joining *j)
{
	int64_t covered_ns = INT64_MIN;
	for (struct reading_run *reading_run; (reading_run = next_reading_run(j, covered_ns)) != NULL;
		covered_ns = reading_run->to_ns) {
		const struct run_device *from = reading_run->from;
		size_t first = reading_run->rows.begin;
		if (covered_ns != INT64_MIN)
			first += slice_lower_bound(from->t_ns + first, reading_run->rows.end - first, covered_ns + 1);
		struct reader *reader = &j->domain->readers[j->domain->n_readers++];
		*reader = (struct reader){reading_run->member, reading_run->device, from->t_ns[first],
			reading_run->to_ns};
		if (!j->counts && covered_ns != INT64_MIN && reader->from_ns - covered_ns > j->hole_ns)
			j->domain->unknown_ns += reader->from_ns - covered_ns;
		if (take_rows(j, reading_run, first) < 0 || take_events(j, reader) < 0)
			return -ENOMEM;
	}
	return 0;
}

static size_t max_events(const struct joining *j)
{
	size_t n = 2 * j->n_reading_runs + 2 * j->machine->run.n_segments;
	for (size_t i = 0; i < j->n_reading_runs; i++)
		n += joining_run(j, j->reading_runs[i].member)->n_events;
	return n;
}

static int allocate(struct joining *j)
{
	struct arena *arena = j->work->arena;
	struct run_device *device = &j->domain->device;
	size_t rows = 0;
	for (size_t i = 0; i < j->n_reading_runs; i++)
		rows += j->reading_runs[i].rows.end - j->reading_runs[i].rows.begin;
	device->n = 0;
	device->t_ns = arena_alloc(arena, rows, sizeof(int64_t));
	bool all = device->t_ns != NULL;
	for (size_t m = 0; m < DEVICE_COUNT; m++) {
		device->values[m] = arena_alloc(arena, rows, sizeof(int64_t));
		all = all && device->values[m] != NULL;
	}
	j->domain->readers = arena_alloc(arena, j->n_reading_runs, sizeof(*j->domain->readers));
	j->domain->events = arena_alloc(arena, max_events(j), sizeof(*j->domain->events));
	return all && j->domain->readers != NULL && j->domain->events != NULL ? 0 : -ENOMEM;
}

static void widen(int64_t seen_ns[2], const struct run *run, const struct run_segment *segment)
{
	for (size_t s = 0; s < run->n_segments; s++) {
		int64_t from_ns = run->segments[s].start_ns, to_ns = run->segments[s].end_ns;
		if (overlap_ns(from_ns, to_ns, segment->start_ns, segment->end_ns) == 0)
			continue;
		seen_ns[0] = from_ns < seen_ns[0] ? from_ns : seen_ns[0];
		seen_ns[1] = to_ns > seen_ns[1] ? to_ns : seen_ns[1];
	}
}

static bool sees(const struct joining *j, const struct run *run)
{
	if (!job_is_of_a_gpu(&j->domain->device))
		return true;
	for (size_t d = 0; d < run->n_devices; d++)
		if (strcmp(job_device_key(&run->devices[d]), j->domain->key) == 0)
			return true;
	return false;
}

/* Notes when the domain was visible. A GPU can be visible to a single rank, and to none before and after it. All other
 * domains belong to the machine, even while no running rank may read them: a rank without permission does not list dram
 * at all. */
static int note_who_sees(struct joining *j)
{
	const struct run *run = &j->machine->run;
	int64_t *seen_ns = arena_alloc(j->work->arena, run->n_segments, 2 * sizeof(*seen_ns));
	if (seen_ns == NULL)
		return -ENOMEM;
	for (size_t s = 0; s < run->n_segments; s++) {
		const struct run_segment *segment = &run->segments[s];
		seen_ns[2 * s] = segment->end_ns;
		seen_ns[2 * s + 1] = segment->start_ns;
		for (size_t k = 0; k < j->machine->n_members; k++)
			if (sees(j, joining_run(j, j->machine->members[k])))
				widen(&seen_ns[2 * s], joining_run(j, j->machine->members[k]), segment);
	}
	j->domain->device.seen_ns = seen_ns;
	return 0;
}

/* The time of the machine's run in which this domain is unknown: the whole of unknown stretches between readers, and
 * time before the first and after the last reading beyond the recorder's own interval. */
static int add_unmeasured_event(struct joining *j)
{
	const struct run *run = &j->machine->run;
	const struct run_device *device = &j->domain->device;
	int64_t first_ns = device->n > 0 ? device->t_ns[0] : INT64_MAX;
	int64_t last_ns = device->n > 0 ? device->t_ns[device->n - 1] : INT64_MAX;
	j->domain->unmeasured_ns = j->domain->unknown_ns;
	for (size_t s = 0; s < run->n_segments; s++) {
		const struct run_segment *segment = &run->segments[s];
		int64_t from_ns = segment->start_ns > device->seen_ns[2 * s] ? segment->start_ns
									     : device->seen_ns[2 * s];
		int64_t to_ns = segment->end_ns < device->seen_ns[2 * s + 1] ? segment->end_ns
									     : device->seen_ns[2 * s + 1];
		int64_t before = overlap_ns(from_ns, to_ns, INT64_MIN, first_ns);
		int64_t after = device->n > 0 ? overlap_ns(from_ns, to_ns, last_ns, INT64_MAX) : 0;
		j->domain->unmeasured_ns += before > j->hole_ns || device->n == 0 ? before : 0;
		j->domain->unmeasured_ns += after > j->hole_ns ? after : 0;
		if (device->n > 0 && before > j->hole_ns &&
			joining_event(j, first_ns, EVENT_GAP_BEFORE) < 0)
			return -ENOMEM;
		if (after > j->hole_ns && joining_event(j, last_ns, EVENT_GAP_AFTER) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int join(struct joining *j)
{
	bool done = collect(j) == 0 && allocate(j) == 0 && join_runs(j) == 0 && note_who_sees(j) == 0 &&
		add_unmeasured_event(j) == 0;
	return done ? 0 : -ENOMEM;
}

static bool is_listed(const struct joined *domains, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(domains[i].key, key) == 0)
			return true;
	return false;
}

static int list_domains(const struct job_work *work, struct machine *machine)
{
	size_t most = 0;
	for (size_t i = 0; i < machine->n_members; i++)
		most += work->members[machine->members[i]].from->run.n_devices;
	machine->domains = arena_alloc(work->arena, most, sizeof(*machine->domains));
	if (machine->domains == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < machine->n_members; i++) {
		const struct run *run = &work->members[machine->members[i]].from->run;
		for (size_t d = 0; d < run->n_devices; d++) {
			const char *key = job_device_key(&run->devices[d]);
			if (is_listed(machine->domains, machine->n_domains, key))
				continue;
			struct joined *domain = &machine->domains[machine->n_domains++];
			domain->key = key;
			domain->device = *best_device(work, machine, key);
		}
	}
	return 0;
}

// In containers each rank can name its only GPU gpu-0.
static void make_names_differ(const struct machine *machine)
{
	for (size_t i = 1; i < machine->n_domains; i++) {
		struct run_device *device = &machine->domains[i].device;
		for (size_t number = 0, k = 0; k < i;) {
			if (strcmp(machine->domains[k].device.name, device->name) != 0) {
				k++;
				continue;
			}
			snprintf(device->name, sizeof(device->name), "gpu-%zu", number++);
			k = 0;
		}
	}
}

int machine_join(struct job_work *work, struct machine *machine)
{
	if (list_domains(work, machine) < 0)
		return -ENOMEM;
	make_names_differ(machine);
	for (size_t i = 0; i < machine->n_domains; i++) {
		struct joining j = {.work = work,
			.machine = machine,
			.domain = &machine->domains[i],
			.scratch = arena_new(),
			.hole_ns = curve_hole_ns(work->interval_ns)};
		int r = j.scratch != NULL ? join(&j) : -ENOMEM;
		arena_free(j.scratch);
		if (r < 0)
			return r;
	}
	return 0;
}
