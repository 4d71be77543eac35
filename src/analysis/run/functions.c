#include "analysis/energy/domains.h"
#include "analysis/run/internal.h"
#include "base/intern.h"
#include "base/util.h"

#include <errno.h>

struct sum {
	int64_t samples;
	double cpu_s, energy_j, energy_j2; // energy_j2: sum of the squares over the samples
};

struct work {
	const struct findings *findings;
	const struct run_profile_data *profile;
	const struct function_names *names;
	struct arena *arena;
	struct sum *self, *total; // of each call, then of each function
	struct functions_finding *out;
	bool has_energy;
	double relative_error; // of the target's energy, by the meter and the attribution
};

/* ---- the call tree ---- */

struct call_key {
	uint32_t parent, function;
};

// The call of each node of the profile. Nodes that differ only in the address within a function are one call.
static int make_calls(struct work *work, uint32_t *of_node)
{
	const struct run_profile_data *profile = work->profile;
	struct call_finding *calls = arena_alloc(work->arena, profile->n_nodes, sizeof(*calls));
	struct intern known;
	int r = calls != NULL ? 0 : -ENOMEM;
	intern_init(&known, work->arena);
	for (size_t i = 0; r == 0 && i < profile->n_nodes; i++) {
		uint32_t parent = profile->nodes[i].parent;
		struct call_key key = {parent != RUN_PROFILE_NO_PARENT ? of_node[parent] : STACK_NONE,
			work->names->of_node[i]};
		int64_t number = intern_number(&known, &key, sizeof(key));
		if (number < 0) {
			r = -ENOMEM;
			break;
		}
		of_node[i] = (uint32_t)number;
		calls[number] = (struct call_finding){.parent = key.parent, .function = key.function};
	}
	work->out->calls = calls;
	work->out->n_calls = known.n;
	intern_finish(&known);
	return r;
}

static void add(struct sum *sum, const struct sum *part)
{
	sum->samples += part->samples;
	sum->cpu_s += part->cpu_s;
	sum->energy_j += part->energy_j;
	sum->energy_j2 += part->energy_j2;
}

static void sum_calls(struct work *work, const struct sample_share *shares, const uint32_t *of_node)
{
	for (size_t i = 0; i < work->profile->n_samples; i++) {
		const struct sum one = {1, shares[i].cpu_s, shares[i].energy_j,
			shares[i].energy_j * shares[i].energy_j};
		add(&work->self[of_node[work->profile->samples[i].node]], &one);
	}
	for (size_t i = work->out->n_calls; i-- > 0;) { // callers precede their calls
		uint32_t parent = work->out->calls[i].parent;
		add(&work->total[i], &work->self[i]);
		if (parent != STACK_NONE)
			add(&work->total[parent], &work->total[i]);
	}
	for (size_t i = 0; i < work->out->n_calls; i++) {
		struct call_finding *call = &work->out->calls[i];
		call->self_samples = work->self[i].samples;
		call->total_samples = work->total[i].samples;
		call->self_cpu_s = work->self[i].cpu_s;
		call->total_cpu_s = work->total[i].cpu_s;
		call->self_j = work->has_energy ? work->self[i].energy_j : (double)NAN;
		call->total_j = work->has_energy ? work->total[i].energy_j : (double)NAN;
	}
}

/* ---- functions ---- */

static bool is_recursive(const struct functions_finding *out, size_t call)
{
	uint32_t function = out->calls[call].function;
	for (uint32_t at = out->calls[call].parent; at != STACK_NONE; at = out->calls[at].parent)
		if (out->calls[at].function == function)
			return true;
	return false;
}

/* Half of a 95 % interval: the samples are a random part of the time (a binomial distribution, with one more sample, so that
 * few samples are not taken for certain), and the energy of each has the errors of the meter and of the attribution. */
static double error_of(const struct work *work, const struct sum *sum)
{
	double n = (double)work->profile->n_samples, share = n > 0 ? (double)sum->samples / n : 0;
	double mean_j = sum->samples > 0 ? sum->energy_j / (double)sum->samples : 0;
	double variance_j2 = sum->energy_j2 * (1 - share) + mean_j * mean_j * (share < 1);
	double systematic_j = work->relative_error * sum->energy_j;
	return sqrt(1.96 * 1.96 * variance_j2 + systematic_j * systematic_j);
}

static struct function_finding finding_of(const struct work *work, size_t function, const struct sum *self,
	const struct sum *total)
{
	const double none = (double)NAN;
	bool has_energy = work->has_energy;
	struct function_finding finding = {
		.name = work->names->names[function],
		.module = work->names->modules[function],
		.line = VALUE_MISSING,
		.self_samples = self->samples,
		.total_samples = total->samples,
		.self_cpu_s = self->cpu_s,
		.total_cpu_s = total->cpu_s,
		.self_j = has_energy ? self->energy_j : none,
		.self_error_j = has_energy ? error_of(work, self) : none,
		.total_j = has_energy ? total->energy_j : none,
		.total_error_j = has_energy ? error_of(work, total) : none,
	};
	finding.resolved = has_energy && is_resolved(finding.total_j, finding.total_error_j);
	return finding;
}

static int sum_functions(struct work *work)
{
	struct functions_finding *out = work->out;
	struct sum *self = arena_alloc(work->arena, work->names->n, sizeof(*self));
	struct sum *total = arena_alloc(work->arena, work->names->n, sizeof(*total));
	// One row more for what no sample covers, and one for each other domain.
	out->functions = arena_alloc(work->arena, work->names->n + 1 + work->findings->n_domains,
		sizeof(*out->functions));
	if (self == NULL || total == NULL || out->functions == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < out->n_calls; i++) {
		add(&self[out->calls[i].function], &work->self[i]);
		if (!is_recursive(out, i))
			add(&total[out->calls[i].function], &work->total[i]);
	}
	for (size_t i = 0; i < work->names->n; i++)
		if (total[i].samples > 0)
			out->functions[out->n_functions++] = finding_of(work, i, &self[i], &total[i]);
	return 0;
}

/* ---- energy without a function ---- */

static void add_row(struct work *work, const char *name, double energy_j, double error_j, double cpu_s)
{
	work->out->functions[work->out->n_functions++] = (struct function_finding){
		.name = name,
		.line = VALUE_MISSING,
		.self_cpu_s = cpu_s,
		.total_cpu_s = cpu_s,
		.self_j = energy_j,
		.total_j = energy_j,
		.self_error_j = error_j,
		.total_error_j = error_j,
		.resolved = is_resolved(energy_j, error_j),
	};
}

// A remainder below this fraction of the target's energy is rounding.
static const double rounding = 1e-9;

static int add_rest(struct work *work)
{
	const struct findings *f = work->findings;
	double rest_j = 0, rest_s = f->target_cpu_s, target_j = 0;
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct domain_finding *domain = &f->domains[d];
		if (functions_divide_domain(f, d)) {
			target_j += domain->ledger.target_j;
		} else if (domain->in_total && domain->ledger.target_j > 0) {
			const char *name = arena_printf(work->arena, "[%s]", domain->device->name);
			if (name == NULL)
				return -ENOMEM;
			add_row(work, name, domain->ledger.target_j, domain->target_error_j, 0);
		}
	}
	rest_j = target_j;
	for (size_t i = 0; i < work->out->n_calls; i++) {
		rest_j -= work->self[i].energy_j;
		rest_s -= work->self[i].cpu_s;
	}
	if (fabs(rest_j) > rounding * target_j)
		add_row(work, "[not sampled]", rest_j, work->relative_error * fabs(rest_j), rest_s > 0 ? rest_s : 0);
	return 0;
}

static double relative_error(const struct findings *f)
{
	struct error_sum sum = {0};
	double target_j = 0;
	for (size_t d = 0; d < f->n_domains; d++) {
		const struct domain_finding *domain = &f->domains[d];
		if (!functions_divide_domain(f, d))
			continue;
		double share = domain->energy_j > 0 ? domain->ledger.target_j / domain->energy_j : 0;
		error_sum_add(&sum, domain, share * domain->error_j, f->metering->domains[d].attribution.uncertainty_j);
		target_j += domain->ledger.target_j;
	}
	return target_j > 0 ? error_sum_j(&sum) / target_j : 0;
}

static bool has_energy(const struct findings *f)
{
	for (size_t d = 0; d < f->n_domains; d++)
		if (functions_divide_domain(f, d))
			return true;
	return false;
}

/* ---- the whole ---- */

static int by_self(const void *a, const void *b)
{
	const struct function_finding *x = a, *y = b;
	double left = isnan(x->self_j) ? x->self_cpu_s : x->self_j,
	       right = isnan(y->self_j) ? y->self_cpu_s : y->self_j;
	if (left != right)
		return left < right ? 1 : -1;
	if (x->total_samples != y->total_samples)
		return x->total_samples < y->total_samples ? 1 : -1;
	return strcmp(x->name, y->name);
}

int functions_make(const struct findings *findings, const struct run_profile_data *profile,
	const struct function_names *names, struct arena *arena, struct functions_finding *ret_functions)
{
	const struct ledger *ledger = &findings->ledger;
	struct functions_finding out = {.event = profile->event,
		.hz = profile->hz,
		.samples = (int64_t)profile->n_samples,
		.lost = profile->n_lost,
		.total_j = findings->total_j,
		.target_j = ledger->target_j,
		.others_j = ledger->others_j + ledger->wattle_j,
		.idle_j = ledger->idle_j,
		.unattributed_j = ledger->unattributed_j};
	struct work work = {.findings = findings, .profile = profile, .names = names, .arena = arena, .out = &out};
	uint32_t *of_node = arena_alloc(arena, profile->n_nodes, sizeof(*of_node));
	struct sample_share *shares = NULL;
	work.has_energy = has_energy(findings);
	work.relative_error = relative_error(findings);
	int r = of_node != NULL ? make_calls(&work, of_node) : -ENOMEM;
	work.self = arena_alloc(arena, out.n_calls, sizeof(*work.self));
	work.total = arena_alloc(arena, out.n_calls, sizeof(*work.total));
	if (r == 0 && (work.self == NULL || work.total == NULL))
		r = -ENOMEM;
	if (r == 0)
		r = functions_shares(findings, profile, arena, &shares);
	if (r < 0)
		return r;
	sum_calls(&work, shares, of_node);
	r = sum_functions(&work);
	if (r == 0 && work.has_energy)
		r = add_rest(&work);
	if (r < 0)
		return r;
	if (out.n_functions > 0)
		qsort(out.functions, out.n_functions, sizeof(*out.functions), by_self);
	*ret_functions = out;
	return 0;
}
