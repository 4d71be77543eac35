// The recorders' own warnings, each one once for all ranks that have it.
#include "analysis/job/internal.h"

#include "base/util.h"

#include <errno.h>

enum { LISTED_MAX = 5 };

struct recorded_warning {
	const char *text;
	int64_t t_ns; // on the job's clock
	size_t rank;
	const struct member *by;
};

struct group { // the ranks with the same warning
	const struct recorded_warning *first;
	size_t n_ranks;
};

static bool is_listed(enum event_kind kind)
{
	return kind == EVENT_KIND_WARNING || kind == EVENT_KIND_LOST || kind == EVENT_KIND_SUSPEND ||
		kind == EVENT_KIND_NOTE;
}

static size_t collect(const struct job_work *work, struct recorded_warning *all)
{
	size_t n = 0;
	for (size_t i = 0; i < work->runs->n; i++) {
		const struct member *member = &work->members[i];
		const struct run *run = &member->from->run;
		for (size_t k = 0; k < run->n_events; k++) {
			const struct event *event = &run->events[k];
			if (event->text == NULL || !is_listed(event->kind))
				continue;
			if (all != NULL)
				all[n] = (struct recorded_warning){event->text, job_clock_ns(work, member, event->t_ns),
					member->rank, member};
			n++;
		}
	}
	return n;
}

static int by_text(const void *a, const void *b)
{
	const struct recorded_warning *x = a, *y = b;
	int order = strcmp(x->text, y->text);
	return order != 0 ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_time(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	if (x->first->t_ns != y->first->t_ns)
		return x->first->t_ns < y->first->t_ns ? -1 : 1;
	return strcmp(x->first->text, y->first->text);
}

static size_t make_groups(const struct recorded_warning *all, size_t n, struct group *groups)
{
	size_t n_groups = 0;
	for (size_t i = 0; i < n; i++) {
		bool goes_on = i > 0 && strcmp(all[i].text, all[i - 1].text) == 0;
		if (!goes_on)
			groups[n_groups++] = (struct group){&all[i], 1};
		else if (all[i].rank != all[i - 1].rank)
			groups[n_groups - 1].n_ranks++;
	}
	return n_groups;
}

static int add_warning(struct job_findings *job, const char *text)
{
	if (text == NULL)
		return -ENOMEM;
	job->warnings[job->n_warnings++] = text;
	return 0;
}

static int write_group(struct job_work *work, const struct group *group)
{
	struct job_findings *job = work->job;
	const char *text = group->first->text;
	char name[80];
	member_name(work, group->first->by, name, sizeof(name));
	if (group->n_ranks > 1 && group->n_ranks == job->n_ranks)
		return add_warning(job, arena_printf(work->arena, "all %zu ranks: %s", group->n_ranks, text));
	if (group->n_ranks > 1)
		return add_warning(job,
			arena_printf(work->arena, "%s and %zu more of %zu ranks: %s", name, group->n_ranks - 1,
				job->n_ranks, text));
	return add_warning(job, arena_printf(work->arena, "%s: %s", name, text));
}

static int add_rest_count(struct job_work *work, size_t n)
{
	return add_warning(work->job,
		arena_printf(work->arena, "… and %zu more in table event of the run files.", n));
}

int recorded_make(struct job_work *work, size_t capacity)
{
	size_t n = collect(work, NULL), most = LISTED_MAX + 1;
	if (n == 0 || capacity < most)
		return 0;
	struct recorded_warning *all = arena_alloc(work->arena, n, sizeof(*all));
	struct group *groups = arena_alloc(work->arena, n, sizeof(*groups));
	if (all == NULL || groups == NULL)
		return -ENOMEM;
	collect(work, all);
	qsort(all, n, sizeof(*all), by_text);
	size_t n_groups = make_groups(all, n, groups);
	qsort(groups, n_groups, sizeof(*groups), by_time);
	for (size_t i = 0; i < n_groups && i < LISTED_MAX; i++)
		if (write_group(work, &groups[i]) < 0)
			return -ENOMEM;
	return n_groups > LISTED_MAX ? add_rest_count(work, n_groups - LISTED_MAX) : 0;
}
