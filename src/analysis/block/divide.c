#include "analysis/block/divide.h"

#include "analysis/block/deconvolve.h"
#include "analysis/findings.h"
#include "base/util.h"

#include <errno.h>

/* ---- overlapping pieces to weighted pieces ---- */

static int by_begin(const void *a, const void *b)
{
	const struct divide_interval *x = a, *y = b;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

struct sharing {
	const struct divide_interval *pieces; // sorted by begin
	size_t n, next;
	struct divide_interval *active; // pieces at the current instant; room for all
	size_t n_active;
	int64_t now_ns;
	struct deconvolve_interval *shares; // owned
	size_t n_shares, capacity;
};

static int64_t next_change_ns(const struct sharing *s)
{
	int64_t at_ns = s->next < s->n ? s->pieces[s->next].begin_ns : INT64_MAX;
	for (size_t i = 0; i < s->n_active; i++)
		if (s->active[i].end_ns < at_ns)
			at_ns = s->active[i].end_ns;
	return at_ns;
}

static int share(struct sharing *s, int64_t to_ns)
{
	for (size_t i = 0; i < s->n_active; i++) {
		if (s->active[i].column == 0)
			continue; // unused time belongs to column 0 anyway
		struct deconvolve_interval *shares = array_reserve(s->shares, s->n_shares, &s->capacity,
			sizeof(*shares), 4096);
		if (shares == NULL)
			return -ENOMEM;
		s->shares = shares;
		shares[s->n_shares++] = (struct deconvolve_interval){.begin_ns = s->now_ns,
			.end_ns = to_ns,
			.column = s->active[i].column,
			.weight = 1 / (float)s->n_active};
	}
	return 0;
}

static void change(struct sharing *s, int64_t now_ns)
{
	size_t kept = 0;
	for (size_t i = 0; i < s->n_active; i++)
		if (s->active[i].end_ns > now_ns)
			s->active[kept++] = s->active[i];
	s->n_active = kept;
	for (; s->next < s->n && s->pieces[s->next].begin_ns <= now_ns; s->next++)
		if (s->pieces[s->next].end_ns > now_ns)
			s->active[s->n_active++] = s->pieces[s->next];
	s->now_ns = now_ns;
}

static int share_all(struct sharing *s)
{
	while (s->next < s->n || s->n_active > 0) {
		int64_t to_ns = next_change_ns(s);
		if (share(s, to_ns) < 0)
			return -ENOMEM;
		change(s, to_ns);
	}
	return 0;
}

/* ---- energy ---- */

static bool is_wanted(const struct domain_finding *domain, const struct divide_of *of)
{
	if (of->domain != NULL)
		return strcmp(domain->device->name, of->domain) == 0;
	for (size_t i = 0; i < of->n_without; i++)
		if (strcmp(domain->device->name, of->without[i]) == 0)
			return false;
	return domain->in_total;
}

/* Only the requested domains are deconvolved. A domain without energy is left out; a domain requested by name counts even if
 * it is not part of the total. */
static int choose(struct findings *findings, const struct divide_of *of)
{
	bool any = of->domain == NULL;
	for (size_t d = 0; d < findings->n_domains; d++) {
		struct domain_finding *domain = &findings->domains[d];
		bool wanted = is_wanted(domain, of);
		domain->in_total = wanted;
		if (!wanted)
			domain->energy_j = (double)NAN;
		any = any || wanted;
	}
	return any ? 0 : -ENOENT;
}

// Errors of columns that can't be distinguished cancel within their group.
static int divide_groups(const struct fold *fold, const struct divide_of *of, struct arena *arena, struct divided *ret)
{
	uint32_t *columns = arena_alloc(arena, fold->n_columns, sizeof(*columns));
	size_t *first = arena_alloc(arena, of->n_groups + 2, sizeof(*first)); // index of each group's first column
	if (columns == NULL || first == NULL)
		return -ENOMEM;
	for (uint32_t c = 0; of->n_groups > 0 && c < fold->n_columns; c++)
		first[of->group_of[c] + 2]++;
	for (size_t g = 2; g < of->n_groups + 2; g++)
		first[g] += first[g - 1];
	for (uint32_t c = 0; of->n_groups > 0 && c < fold->n_columns; c++) {
		ret[of->group_of[c]].time_s += fold->columns[c].time_s;
		columns[first[of->group_of[c] + 1]++] = c;
	}
	for (size_t g = 0; g < of->n_groups; g++) {
		struct deconvolve_energy energy = deconvolve_energy_of(fold, columns + first[g],
			first[g + 1] - first[g]);
		ret[g].j = energy.j;
		ret[g].error_j = energy.error_j;
	}
	return 0;
}

static int fold(struct findings *findings, const struct deconvolve_timeline *timeline, const struct divide_of *of,
	struct divided *ret)
{
	struct windows windows;
	struct metering metering;
	struct fold fold;
	findings->duration_s = run_duration_s(findings->run);
	if (windows_make(findings->run, findings->arena, &windows) < 0 ||
		domains_make(findings, &windows, findings->arena, &metering) < 0)
		return -ENOMEM;
	if (choose(findings, of) < 0)
		return -ENOENT;
	if (deconvolve_make(findings, &metering, timeline, findings->arena, &fold) < 0)
		return -ENOMEM;
	for (uint32_t c = 0; c < timeline->n_columns; c++) {
		struct deconvolve_energy energy = deconvolve_energy_of(&fold, &c, 1);
		ret[c] = (struct divided){fold.columns[c].time_s, energy.j, energy.error_j};
	}
	return divide_groups(&fold, of, findings->arena, ret + timeline->n_columns);
}

int divide_intervals(const struct run *run, struct divide_interval *pieces, size_t n, size_t n_columns,
	const struct divide_of *of, struct divided *ret)
{
	struct findings findings = {.run = run, .arena = arena_new()};
	struct sharing sharing = {.pieces = pieces, .n = n, .active = calloc_array(n, sizeof(*pieces))};
	int r = -ENOMEM;
	if (n > 1)
		qsort(pieces, n, sizeof(*pieces), by_begin);
	if (findings.arena != NULL && sharing.active != NULL && share_all(&sharing) == 0) {
		struct deconvolve_timeline timeline = {sharing.shares, sharing.n_shares, n_columns};
		r = fold(&findings, &timeline, of, ret);
	}
	free(sharing.shares);
	free(sharing.active);
	arena_free(findings.arena);
	return r;
}
