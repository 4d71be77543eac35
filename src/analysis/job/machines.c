/* Finds the recordings of each machine, and the offset of its clock from those of the others. */
#include "analysis/job/internal.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"

#include <errno.h>

/* Host names do not identify a machine: two virtual nodes can share one set of sensors under two names, and two
 * clusters can each have a node01. Files of recorders that did not store their machine have at least its boot id. */
static const char *machine_key(const struct run *run, size_t index, struct arena *arena)
{
	static const char *const facts[] = {META_KEY_MACHINE, META_KEY_BOOT_ID, META_KEY_HOST};
	for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
		const char *value = run_metadata(run, facts[i]);
		if (value != NULL && value[0] != '\0')
			return value;
	}
	return arena_printf(arena, "recording %zu", index);
}

static struct machine *machine_of(struct job_work *work, const char *key)
{
	for (size_t i = 0; i < work->n_machines; i++)
		if (strcmp(work->machines[i].key, key) == 0)
			return &work->machines[i];
	struct machine *machine = &work->machines[work->n_machines++];
	machine->key = key;
	return machine;
}

static void note_lifetime(struct member *member)
{
	const struct run *run = &member->from->run;
	member->start_ns = run->n_segments > 0 ? run->segments[0].start_ns : 0;
	member->end_ns = member->start_ns;
	for (size_t s = 0; s < run->n_segments; s++)
		if (run->segments[s].end_ns > member->end_ns)
			member->end_ns = run->segments[s].end_ns;
}

static int assign(struct job_work *work)
{
	size_t *machine_of_member = arena_alloc(work->arena, work->runs->n, sizeof(*machine_of_member));
	if (machine_of_member == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < work->runs->n; i++) {
		struct member *member = &work->members[i];
		member->from = &work->runs->runs[i];
		member->waiting_s = member->waiting_j = (double)NAN;
		const char *key = machine_key(&member->from->run, i, work->arena);
		if (key == NULL)
			return -ENOMEM;
		struct machine *machine = machine_of(work, key);
		member->machine = (size_t)(machine - work->machines);
		machine->n_members++;
		note_lifetime(member);
	}
	for (size_t m = 0; m < work->n_machines; m++) {
		struct machine *machine = &work->machines[m];
		machine->members = arena_alloc(work->arena, machine->n_members, sizeof(*machine->members));
		if (machine->members == NULL)
			return -ENOMEM;
		machine->n_members = 0;
		for (size_t i = 0; i < work->runs->n; i++)
			if (work->members[i].machine == m)
				machine->members[machine->n_members++] = i;
	}
	return 0;
}

static int64_t wall_start_ns(const struct member *member)
{
	static const int64_t max_ns = INT64_C(1) << 62; // 2116: the difference of two times plus an instant of a run
							// does not overflow
	int64_t wall_ns = run_wall_ns(&member->from->run, member->start_ns);
	return wall_ns >= 0 && wall_ns <= max_ns ? wall_ns : VALUE_MISSING;
}

// A machine's first recording defines its clock offset; the clock may have been set later.
static const struct member *first_member(const struct job_work *work, const struct machine *machine)
{
	const struct member *first = NULL;
	for (size_t i = 0; i < machine->n_members; i++) {
		const struct member *member = &work->members[machine->members[i]];
		if (value_ok(wall_start_ns(member)) && (first == NULL || member->start_ns < first->start_ns))
			first = member;
	}
	return first;
}

static void set_clocks(struct job_work *work)
{
	int64_t start_ns = VALUE_MISSING;
	for (size_t m = 0; m < work->n_machines; m++) {
		const struct member *first = first_member(work, &work->machines[m]);
		int64_t wall_ns = first != NULL ? wall_start_ns(first) : VALUE_MISSING;
		if (value_ok(wall_ns) && (!value_ok(start_ns) || wall_ns < start_ns))
			start_ns = wall_ns;
	}
	work->job->start_wall_ns = start_ns;
	for (size_t m = 0; m < work->n_machines; m++) {
		struct machine *machine = &work->machines[m];
		const struct member *first = first_member(work, machine);
		if (first != NULL) // the job's clock is 0 at its start
			machine->shift_ns = wall_start_ns(first) - start_ns - first->start_ns;
		else if (machine->n_members > 0)
			machine->shift_ns = -work->members[machine->members[0]].start_ns;
	}
}

int machines_find(struct job_work *work)
{
	work->machines = arena_alloc(work->arena, work->runs->n, sizeof(*work->machines));
	work->members = arena_alloc(work->arena, work->runs->n, sizeof(*work->members));
	if (work->machines == NULL || work->members == NULL || assign(work) < 0)
		return -ENOMEM;
	set_clocks(work);
	return 0;
}

int64_t job_clock_ns(const struct job_work *work, const struct member *member, int64_t t_ns)
{
	return t_ns + work->machines[member->machine].shift_ns;
}

/* ---- nested recorders ---- */

// Process ids are comparable within one node only, which can be a virtual one.
static bool share_pids(const struct member *a, const struct member *b)
{
	const struct run *x = &a->from->run, *y = &b->from->run;
	return a->machine == b->machine &&
		text_is_same(run_metadata(x, META_KEY_NODE), run_metadata(y, META_KEY_NODE)) &&
		text_is_same(run_metadata(x, META_KEY_HOST), run_metadata(y, META_KEY_HOST));
}

static bool holds_process(const struct run *run, int64_t pid, int64_t at_ns)
{
	for (size_t i = 0; i < run->n_processes; i++) {
		const struct run_process *p = &run->processes[i];
		bool was_running = p->start_ns <= at_ns + NS_PER_S && (!value_ok(p->end_ns) || p->end_ns >= at_ns);
		if (p->pid == pid && was_running && !p->is_main)
			return true;
	}
	return false;
}

static bool contains(const struct member *outer, const struct member *inner)
{
	const struct run *run = &inner->from->run;
	if (run->n_segments == 0 || !value_ok(run->segments[0].pid) || outer->start_ns > inner->start_ns)
		return false;
	return share_pids(outer, inner) &&
		holds_process(&outer->from->run, run->segments[0].pid, run->segments[0].start_ns);
}

static bool has_rank(const struct member *member)
{
	return value_ok(run_metadata_i64(&member->from->run, META_KEY_RANK));
}

/* `wattle run mpirun … wattle run ./program`: the outer recorder measures all that the inner ones on its node measure.
 * Recordings with a rank have more detail and count. If two recordings have the same rank, the outer one is complete
 * and counts. */
void members_mark_nested(struct job_work *work)
{
	for (size_t a = 0; a < work->runs->n; a++) {
		for (size_t b = 0; b < work->runs->n; b++) {
			struct member *outer = &work->members[a], *inner = &work->members[b];
			if (a == b || outer->nested || inner->nested || !contains(outer, inner))
				continue;
			if (!has_rank(outer) && has_rank(inner))
				outer->nested = true;
			else
				inner->nested = true;
		}
	}
}
