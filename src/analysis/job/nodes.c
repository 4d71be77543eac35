/* Rows by node. A node is the scheduler's node, else a host. Several nodes can share one machine; its energy is then in
 * the row of the first one. */
#include "analysis/job/internal.h"

#include "analysis/metadata_keys.h"
#include "base/nan_sum.h"
#include "base/util.h"

#include <errno.h>

static const char *node_name(const struct run *run)
{
	const char *node = run_metadata(run, META_KEY_NODE), *host = run_metadata(run, META_KEY_HOST);
	if (node != NULL && node[0] != '\0')
		return node;
	return host != NULL && host[0] != '\0' ? host : "unknown";
}

static size_t node_of(struct job_work *work, const struct member *member)
{
	struct job_findings *job = work->job;
	const char *name = node_name(&member->from->run), *machine = work->machines[member->machine].key;
	for (size_t i = 0; i < job->n_nodes; i++)
		if (strcmp(job->nodes[i].name, name) == 0 && strcmp(job->nodes[i].machine, machine) == 0)
			return i;
	job->nodes[job->n_nodes] = (struct job_node){.name = name,
		.host = run_metadata(&member->from->run, META_KEY_HOST),
		.machine = machine,
		.same_machine_as = -1,
		.from_s = (double)NAN,
		.to_s = (double)NAN};
	for (size_t i = 0; i < job->n_nodes && job->nodes[job->n_nodes].same_machine_as < 0; i++)
		if (strcmp(job->nodes[i].machine, machine) == 0)
			job->nodes[job->n_nodes].same_machine_as = (int64_t)i;
	return job->n_nodes++;
}

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

static void add_member(const struct job_work *work, struct job_node *node, const struct member *member)
{
	node->from_s = fmin(node->from_s, seconds(job_clock_ns(work, member, member->start_ns)));
	node->to_s = fmax(node->to_s, seconds(job_clock_ns(work, member, member->end_ns)));
	if (!member->nested)
		node->cpu_s += member->findings.target_cpu_s;
}

static const struct joined *counted_of(const struct machine *machine, size_t index)
{
	const struct domain_finding *domain = &machine->findings.domains[index];
	const struct joined *joined = &machine->domains[domain->device - machine->run.devices];
	return domain->in_total && joined->n_readers > 0 ? joined : NULL;
}

// Finds the domain that was known for the shortest time among those that were read; if none was read, all time is
// unmeasured.
static void add_unmeasured_event(const struct machine *machine, struct job_node *node)
{
	const struct joined *worst = NULL;
	size_t n_like_it = 0, n = 0;
	for (size_t i = 0; i < machine->findings.n_domains; i++) {
		const struct joined *joined = counted_of(machine, i);
		if (joined != NULL && (worst == NULL || joined->unmeasured_ns > worst->unmeasured_ns))
			worst = joined;
	}
	for (size_t i = 0; i < machine->findings.n_domains; i++) {
		const struct joined *joined = counted_of(machine, i);
		n += joined != NULL;
		n_like_it += joined != NULL && joined->unmeasured_ns > worst->unmeasured_ns / 2;
	}
	node->unmeasured_s = worst != NULL ? seconds(worst->unmeasured_ns) : machine->findings.duration_s;
	node->unmeasured = worst != NULL && n_like_it < n ? worst->device.name : NULL;
}

static double paused_s(const struct run *run)
{
	int64_t sum_ns = 0;
	for (size_t s = 1; s < run->n_segments; s++)
		sum_ns += run->segments[s].start_ns - run->segments[s - 1].end_ns;
	return seconds(sum_ns);
}

static void take_machine(struct job_work *work, struct job_node *node, const struct machine *machine)
{
	const struct findings *f = node->findings = &machine->findings;
	node->energy_j = f->total_j;
	node->error_j = f->error_j;
	node->provenance = f->provenance;
	node->ledger = f->ledger;
	node->domains = f->domains;
	node->n_domains = f->n_domains;
	node->mean_w = findings_mean_power(f).total_w;
	work->job->n_nodes_unknown += isnan(f->total_j);
}

static void leave_unknown(struct job_node *node)
{
	const double none = (double)NAN;
	node->energy_j = node->error_j = node->mean_w = none;
	node->ledger = (struct ledger){none, none, none, none, none};
}

int nodes_make(struct job_work *work)
{
	struct job_findings *job = work->job;
	job->nodes = arena_alloc(work->arena, work->runs->n, sizeof(*job->nodes));
	if (job->nodes == NULL)
		return -ENOMEM;
	for (size_t pass = 0; pass < 2; pass++) // nodes with a rank first, in order of their first rank
		for (size_t i = 0; i < work->runs->n; i++) {
			struct member *member = &work->members[i];
			if (member->nested != (pass == 1))
				continue;
			member->node = node_of(work, member);
			add_member(work, &job->nodes[member->node], member);
		}
	for (size_t i = 0; i < job->n_nodes; i++) {
		struct job_node *node = &job->nodes[i];
		if (node->same_machine_as >= 0) {
			leave_unknown(node);
			continue;
		}
		for (size_t m = 0; m < work->n_machines; m++)
			if (strcmp(work->machines[m].key, node->machine) == 0) {
				add_unmeasured_event(&work->machines[m], node);
				node->paused_s = paused_s(&work->machines[m].run);
				take_machine(work, node, &work->machines[m]);
			}
	}
	return 0;
}

double job_mean_w(const struct job_findings *job)
{
	double sum_w = (double)NAN;
	for (size_t i = 0; i < job->n_nodes; i++)
		if (job->nodes[i].same_machine_as < 0)
			sum_w = nan_sum(sum_w, job->nodes[i].mean_w);
	return sum_w;
}
