/* Limits the members' ledgers to the energy of their machine, so that each joule is in one row: a machine's target and
 * wattle rows are the sums over its members. Each member's energy was divided with its own recorder's data: shared
 * pages and ticks of CPU time count for each member that has them, and a recorder in a container does not see other
 * processes on its GPU. */
#include "analysis/job/internal.h"

#include "analysis/energy/domains.h"
#include "base/util.h"

static struct domain_finding *finding_of(const struct findings *findings, const struct run_device *device)
{
	for (size_t i = 0; i < findings->n_domains; i++)
		if (findings->domains[i].device == device)
			return &findings->domains[i];
	return NULL;
}

// A member's figures for a domain of its machine; NULL: none, or they repeat other members' figures.
static struct domain_finding *part_of(const struct member *member, size_t domain)
{
	for (size_t i = 0; !member->nested && i < member->run.n_devices; i++) {
		struct domain_finding *part = finding_of(&member->findings, &member->run.devices[i]);
		if (member->domain_of[i] == domain && part != NULL && !isnan(part->energy_j))
			return part;
	}
	return NULL;
}

static void shrink_ledger(struct ledger *ledger, double target_j, double wattle_j)
{
	ledger->target_j -= target_j;
	ledger->wattle_j -= wattle_j;
	ledger->others_j += target_j + wattle_j;
}

static void shrink_block(struct block_finding *block, size_t domain, double fit)
{
	double less_j = (1 - fit) * block->domain_j[domain];
	if (!(less_j > 0) || !(block->total_j > 0))
		return;
	block->domain_j[domain] -= less_j;
	block->total_j -= less_j;
	block->error_j += less_j;
}

// The removed energy may have been right, and another member's too high, so it is added to the error. Energy per unit
// of work follows later, from the job's blocks.
static void shrink(struct member *member, struct domain_finding *part, double fit)
{
	struct findings *f = &member->findings;
	double target_j = (1 - fit) * part->ledger.target_j, wattle_j = (1 - fit) * part->ledger.wattle_j;
	shrink_ledger(&part->ledger, target_j, wattle_j);
	part->target_error_j += target_j;
	if (!part->in_total || !(f->ledger.target_j > 0))
		return;
	double rest = 1 - target_j / f->ledger.target_j;
	shrink_ledger(&f->ledger, target_j, wattle_j);
	f->target_error_j += target_j;
	f->self_energy_j -= wattle_j;
	f->outside_j *= rest;
	member->waiting_j *= rest;
	for (size_t k = 0; k < f->n_blocks; k++) {
		shrink_block(&f->blocks[k], (size_t)(part - f->domains), fit);
		f->blocks[k].self_j *= rest;
	}
}

// Sums the members' ledgers of a domain, and scales them down if they exceed its energy.
static struct ledger members_of(struct job_work *work, const struct machine *machine, size_t domain, double energy_j)
{
	static const double rounding = 1e-12;
	struct ledger sum = ledger_empty();
	for (size_t k = 0; k < machine->n_members; k++) {
		const struct domain_finding *part = part_of(&work->members[machine->members[k]], domain);
		if (part != NULL)
			ledger_add(&sum, &part->ledger);
	}
	double all_j = sum.target_j + sum.wattle_j;
	if (!(all_j > energy_j * (1 + rounding)))
		return sum;
	double fit = energy_j / all_j;
	for (size_t k = 0; k < machine->n_members; k++) {
		struct member *member = &work->members[machine->members[k]];
		struct domain_finding *part = part_of(member, domain);
		if (part != NULL)
			shrink(member, part, fit);
	}
	sum.target_j *= fit;
	sum.wattle_j *= fit;
	return sum;
}

// The energy that the members leave keeps its previous division.
static void clamp_domain(struct domain_finding *domain, const struct ledger *members)
{
	struct ledger *l = &domain->ledger;
	double left_j = domain->energy_j;
	l->target_j = fmin(members->target_j, left_j);
	left_j -= l->target_j;
	l->wattle_j = fmin(members->wattle_j, left_j);
	left_j -= l->wattle_j;
	if (!isnan(l->idle_j)) { // else the other rows include idle energy
		double idle_j = fmin(l->idle_j, left_j);
		left_j -= idle_j;
		// Ranks that have all the energy include that of idle windows: the amount is unknown.
		l->idle_j = l->idle_j > 0 && !(idle_j > 0) ? (double)NAN : idle_j;
	}
	l->unattributed_j = fmin(l->unattributed_j, left_j);
	l->others_j = left_j - l->unattributed_j;
}

void ledgers_clamp(struct job_work *work, struct machine *machine)
{
	struct findings *findings = &machine->findings;
	if (!isnan(findings->total_j))
		findings->ledger = ledger_empty();
	for (size_t d = 0; d < machine->n_domains; d++) {
		struct domain_finding *domain = finding_of(findings, &machine->run.devices[d]);
		if (domain == NULL || isnan(domain->energy_j))
			continue;
		struct ledger members = members_of(work, machine, d, domain->energy_j);
		clamp_domain(domain, &members);
		if (domain->in_total)
			ledger_add(&findings->ledger, &domain->ledger);
		int64_t unknown_ns = machine->domains[d].unknown_ns;
		double known_s = findings->duration_s - (double)unknown_ns / 1e9;
		if (unknown_ns > 0 && known_s > 0) // the curve is flat in unknown time, which was not measured
			domain->mean_w *= findings->duration_s / known_s;
	}
	findings->self_energy_j = findings->ledger.wattle_j;
}
