/* Warnings for the reader of a job's figures, in sentences, the most important first. */
#include "analysis/job/internal.h"

#include "analysis/metadata_keys.h"
#include "base/buf.h"
#include "base/util.h"

#include <errno.h>

enum { WARNINGS_MAX = 64, TEXT_CEILING = 1 << 12, NAMED_MAX = 5 };

struct warning_writer {
	struct job_work *work;
	struct job_findings *job;
	struct buf text;
	int failed;
};

static void write_warning(struct warning_writer *t)
{
	struct job_findings *job = t->job;
	if (t->text.size > 0 && job->n_warnings < WARNINGS_MAX) {
		const char *kept = t->text.failed == 0 ? arena_text(t->work->arena, t->text.data) : NULL;
		if (kept != NULL)
			job->warnings[job->n_warnings++] = kept;
		else
			t->failed = -ENOMEM;
	}
	buf_clear(&t->text);
}

// "3, 5 and 9", or "3, 5, 9, 11, 12 and 4 more".
static void list_begin_or_go_on(struct buf *text, size_t i, size_t n)
{
	if (i == 0)
		return;
	buf_str(text, i + 1 == n && n <= NAMED_MAX ? " and " : ", ");
}

static void list_rest(struct buf *text, size_t n)
{
	if (n > NAMED_MAX)
		buf_printf(text, " and %zu more", n - NAMED_MAX);
}

static bool is_there(const struct job_findings *job, int64_t rank)
{
	for (size_t i = 0; i < job->n_ranks; i++)
		if (!job->ranks[i].nested && job->ranks[i].rank == rank)
			return true;
	return false;
}

static void missing(struct warning_writer *t)
{
	size_t n = 0, all = value_ok(t->job->missing_ranks) ? (size_t)t->job->missing_ranks : 0;
	if (all == 0)
		return;
	buf_printf(&t->text, "%zu of %lld ranks have no run: ", all, (long long)t->job->world_size);
	for (int64_t rank = 0; rank < t->job->world_size && n < NAMED_MAX; rank++) {
		if (is_there(t->job, rank))
			continue;
		list_begin_or_go_on(&t->text, n++, all);
		buf_printf(&t->text, "%lld", (long long)rank);
	}
	list_rest(&t->text, all);
	buf_str(&t->text,
		". Their energy on measured nodes counts as other programs; nodes with only such ranks are "
		"not included in the sums.");
	write_warning(t);
}

static void above_world_size(struct warning_writer *t)
{
	size_t n = 0;
	for (size_t i = 0; i < t->job->n_ranks && value_ok(t->job->world_size); i++)
		n += !t->job->ranks[i].nested && t->job->ranks[i].rank >= t->job->world_size;
	if (n == 0)
		return;
	buf_printf(&t->text,
		"%zu rank%s beyond the launcher's %lld: this folder may contain runs of several launches.",
		n, n == 1 ? " is" : "s are", (long long)t->job->world_size);
	write_warning(t);
}

static void nodes_unseen(struct warning_writer *t)
{
	size_t seen = t->job->n_nodes;
	if (!value_ok(t->job->n_nodes_expected) || t->job->n_nodes_expected <= (int64_t)seen || seen == 0)
		return;
	buf_printf(&t->text, "The launcher reports %lld nodes, but only %zu of them have runs.",
		(long long)t->job->n_nodes_expected, seen);
	write_warning(t);
}

// "rank 3", "rank 3 of step 1", "one without a rank"
static void name_rank(struct warning_writer *t, const struct job_rank *rank)
{
	if (!value_ok(rank->rank)) {
		buf_str(&t->text, "one without a rank");
		return;
	}
	buf_printf(&t->text, "rank %lld", (long long)rank->rank);
	if (t->job->n_steps > 1 && rank->step != NULL)
		buf_printf(&t->text, " of step %.40s", rank->step);
}

static void list_ranks(struct warning_writer *t, bool (*is_meant)(const struct job_rank *rank), size_t all)
{
	size_t n = 0;
	for (size_t i = 0; i < t->job->n_ranks && n < NAMED_MAX; i++) {
		if (!is_meant(&t->job->ranks[i]))
			continue;
		list_begin_or_go_on(&t->text, n++, all);
		name_rank(t, &t->job->ranks[i]);
	}
	list_rest(&t->text, all);
}

static size_t count_ranks(const struct warning_writer *t, bool (*is_meant)(const struct job_rank *rank))
{
	size_t n = 0;
	for (size_t i = 0; i < t->job->n_ranks; i++)
		n += is_meant(&t->job->ranks[i]);
	return n;
}

static bool is_unfinished(const struct job_rank *rank)
{
	return !rank->complete;
}

static void unfinished(struct warning_writer *t)
{
	size_t all = count_ranks(t, is_unfinished);
	if (all == 0)
		return;
	buf_str(&t->text, all == 1 ? "The recording of " : "The recordings of ");
	list_ranks(t, is_unfinished, all);
	buf_printf(&t->text,
		" %s not finished: still running, or wattle was killed. %s figures end with the last stored sample.",
		all == 1 ? "was" : "were", all == 1 ? "Its" : "Their");
	write_warning(t);
}

static bool was_cut_off(const struct job_rank *rank)
{
	return rank->cut_off > 0;
}

static void cut_off_before(struct warning_writer *t)
{
	size_t all = count_ranks(t, was_cut_off);
	if (all == 0)
		return;
	buf_str(&t->text, "Before ");
	list_ranks(t, was_cut_off, all);
	buf_printf(&t->text,
		" %s restarted after a recording of %s was interrupted: the time after its last stored "
		"sample is not included in %s figures.",
		all == 1 ? "was" : "were", all == 1 ? "it" : "each", all == 1 ? "its" : "their");
	write_warning(t);
}

static bool has_failed(const struct job_rank *rank)
{
	return value_ok(rank->exit_code) && rank->exit_code != 0;
}

static void failed_ranks(struct warning_writer *t)
{
	size_t all = count_ranks(t, has_failed), n = 0;
	if (all == 0)
		return;
	buf_printf(&t->text, "%s ended with an error: ", all == 1 ? "One rank" : "Some ranks");
	for (size_t i = 0; i < t->job->n_ranks && n < NAMED_MAX; i++) {
		const struct job_rank *rank = &t->job->ranks[i];
		if (!has_failed(rank))
			continue;
		list_begin_or_go_on(&t->text, n++, all);
		name_rank(t, rank);
		buf_printf(&t->text, " (exit %lld)", (long long)rank->exit_code);
	}
	list_rest(&t->text, all);
	buf_char(&t->text, '.');
	write_warning(t);
}

static void no_energy(struct warning_writer *t)
{
	size_t n = 0, all = t->job->n_nodes_unknown, machines = t->work->n_machines;
	if (all == 0 || all == machines)
		return; // without any energy, another part of the report states this
	buf_str(&t->text, "No energy is known for ");
	for (size_t i = 0; i < t->job->n_nodes && n < NAMED_MAX; i++) {
		const struct job_node *node = &t->job->nodes[i];
		if (node->findings == NULL || !isnan(node->energy_j))
			continue;
		list_begin_or_go_on(&t->text, n++, all);
		buf_printf(&t->text, "%.60s", node->name);
	}
	list_rest(&t->text, all);
	buf_printf(&t->text, ": the total is that of %zu of %zu machines.", machines - all, machines);
	write_warning(t);
}

static void unmeasured(struct warning_writer *t)
{
	static const double shown_from_s = 1;
	for (size_t i = 0; i < t->job->n_nodes; i++) {
		const struct job_node *node = &t->job->nodes[i];
		if (node->findings == NULL || isnan(node->energy_j) || node->unmeasured_s < shown_from_s)
			continue;
		buf_printf(&t->text,
			"No rank read %s of %.60s for %.1f s while its ranks ran: the energy of that time is "
			"not included in the figures.",
			node->unmeasured != NULL ? node->unmeasured : "the sensors", node->name, node->unmeasured_s);
		write_warning(t);
	}
}

static void nested(struct warning_writer *t)
{
	size_t n = 0;
	for (size_t i = 0; i < t->job->n_ranks; i++)
		n += t->job->ranks[i].nested;
	if (n == 0)
		return;
	buf_printf(&t->text,
		"%zu recording%s measured processes that other recordings of this job also measured (nested "
		"wattle run). The energy attributed to %s counts once, with the other recordings.",
		n, n == 1 ? "" : "s", n == 1 ? "it" : "them");
	write_warning(t);
}

static void several_times(struct warning_writer *t)
{
	for (size_t i = 0; i + 1 < t->job->n_ranks; i++) {
		const struct job_rank *a = &t->job->ranks[i], *b = a + 1;
		bool same_step = a->step == NULL || b->step == NULL ? a->step == b->step
								    : strcmp(a->step, b->step) == 0;
		if (a->nested || b->nested || !value_ok(a->rank) || a->rank != b->rank || !same_step)
			continue;
		buf_printf(&t->text, "Two runs claim to be rank %lld at the same time: %.80s and %.80s.",
			(long long)a->rank, a->run->where != NULL ? a->run->where : "?",
			b->run->where != NULL ? b->run->where : "?");
		write_warning(t);
		return;
	}
}

// Without an id, all runs in a folder count as one job. Restarted workers can use another port.
static void several_launches(struct warning_writer *t)
{
	const char *first = NULL;
	for (size_t i = 0; i < t->work->runs->n && t->job->id == NULL; i++) {
		const struct run *run = &t->work->runs->runs[i].run;
		const char *group = run_metadata(run, META_KEY_JOB_GROUP);
		int64_t restart = run_metadata_i64(run, META_KEY_RESTART);
		if (group == NULL || (value_ok(restart) && restart > 0))
			continue;
		if (first != NULL && strcmp(first, group) != 0) {
			buf_printf(&t->text,
				"This folder contains runs of several launches without a job ID (%.60s, "
				"%.60s): use a separate folder for each launch, or record with --job ID.",
				first, group);
			write_warning(t);
			return;
		}
		first = group;
	}
}

static void shared_machine(struct warning_writer *t)
{
	for (size_t i = 0; i < t->job->n_nodes; i++) {
		const struct job_node *node = &t->job->nodes[i];
		if (node->same_machine_as < 0)
			continue;
		buf_printf(&t->text,
			"%.60s and %.60s are the same machine: its energy counts once, in the row of the latter.",
			node->name, t->job->nodes[node->same_machine_as].name);
		write_warning(t);
	}
}

// Ranks that a launcher starts together begin closer together than this.
static void clocks(struct warning_writer *t)
{
	static const double apart_s = 1;
	double low_s = (double)NAN, high_s = (double)NAN;
	const struct job_node *low = NULL, *high = NULL;
	if (t->job->n_steps > 1)
		return;
	for (size_t i = 0; i < t->job->n_nodes; i++) {
		const struct job_node *node = &t->job->nodes[i];
		if (low == NULL || node->from_s < low_s) {
			low = node;
			low_s = node->from_s;
		}
		if (high == NULL || node->from_s > high_s) {
			high = node;
			high_s = node->from_s;
		}
	}
	if (low == NULL || !(high_s - low_s > apart_s))
		return;
	t->job->clocks_apart_s = high_s - low_s;
	buf_printf(&t->text,
		"By their own clocks, %.60s started %.1f s after %.60s. If the launcher started both at "
		"once, their clocks differ: times between nodes are wrong by this amount; energies and times "
		"of each rank are correct.",
		high->name, high_s - low_s, low->name);
	write_warning(t);
}

static void left_out(struct warning_writer *t)
{
	if (t->job->block_energy_left_out)
		buf_str(&t->text,
			"Not all spans were read: blocks of ranks that did not read their node's sensors "
			"have no energy. Read all with --all-samples.");
	write_warning(t);
}

static void problems(struct warning_writer *t)
{
	const struct job_runs *runs = t->work->runs;
	for (size_t i = 0; i < runs->n_problems && i < NAMED_MAX; i++) {
		buf_str(&t->text, runs->problems[i]);
		write_warning(t);
	}
	if (runs->n_problems > NAMED_MAX) {
		buf_printf(&t->text, "%zu more files were skipped.", runs->n_problems - NAMED_MAX);
		write_warning(t);
	}
}

int job_warnings_make(struct job_work *work)
{
	static void (*const all[])(struct warning_writer *) = {missing, above_world_size, nodes_unseen, unfinished,
		cut_off_before, failed_ranks, no_energy, unmeasured, nested, several_times, several_launches,
		shared_machine, clocks, left_out, problems};
	struct warning_writer t = {.work = work, .job = work->job};
	work->job->warnings = arena_alloc(work->arena, WARNINGS_MAX, sizeof(const char *));
	if (work->job->warnings == NULL)
		return -ENOMEM;
	buf_init(&t.text, TEXT_CEILING);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		all[i](&t);
	buf_finish(&t.text);
	return t.failed < 0 ? t.failed : recorded_make(work, WARNINGS_MAX - work->job->n_warnings);
}
