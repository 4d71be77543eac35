/* The tables of a job's text: nodes, domains by kind, ranks. */
#include "report/job_text.h"

#include "base/util.h"
#include "report/report.h"

enum { NODE_COLUMNS = 20, STEP_COLUMNS = 8 };

/* ---- nodes ---- */

static void node_row(struct table *table, const struct job_findings *job, const struct job_node *node)
{
	text_fit_middle(table_cell(table, false), node->name, NODE_COLUMNS);
	buf_printf(table_cell(table, false), "%zu", node->n_ranks);
	struct buf *energy = table_cell(table, false);
	if (node->same_machine_as >= 0) {
		buf_str(energy, "as ");
		text_fit_middle(energy, job->nodes[node->same_machine_as].name, NODE_COLUMNS / 2);
	} else {
		human_energy(energy, node->energy_j);
	}
	struct buf *error = table_cell(table, false);
	if (!isnan(node->error_j))
		human_error(error, node->error_j);
	struct buf *power = table_cell(table, false), *own;
	if (node->same_machine_as < 0)
		human_power(power, node->mean_w);
	own = table_cell(table, false);
	if (node->same_machine_as < 0)
		human_energy(own, node->ledger.target_j);
	human_short_time(table_cell(table, false), node->cpu_s);
	struct buf *gap = table_cell(table, false);
	if (node->findings != NULL && node->unmeasured_s >= 0.05)
		human_short_time(gap, node->unmeasured_s);
}

static bool any_unmeasured(const struct job_findings *job)
{
	for (size_t i = 0; i < job->n_nodes; i++)
		if (job->nodes[i].findings != NULL && job->nodes[i].unmeasured_s >= 0.05)
			return true;
	return false;
}

void job_text_nodes(const struct job_text *t)
{
	const struct job_findings *job = t->job;
	const struct table_column columns[] = {{"", false, true}, {"ranks", true}, {"energy", true}, {"error", true},
		{"mean", true}, {"job", true}, {"CPU", true}, {any_unmeasured(job) ? "not read" : "", true}};
	struct table table;
	size_t shown = job->n_nodes < TEXT_ROWS_MAX ? job->n_nodes : TEXT_ROWS_MAX;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < shown; i++)
		node_row(&table, job, &job->nodes[i]);
	text_title(&t->text, "Nodes");
	table_print(&table, t->text.out, t->text.style);
	text_and_more(&t->text, job->n_nodes - shown);
	table_finish(&table);
}

/* ---- domains of all nodes, by kind ---- */

struct kind_sum {
	size_t n;
	double energy_j, target_j, mean_w;
	bool in_total;
	enum provenance provenance;
	const char *source;
};

static void add_domain(struct kind_sum *sum, const struct domain_finding *d)
{
	sum->n++;
	sum->in_total |= d->in_total;
	if (isnan(d->energy_j))
		return;
	sum->energy_j = isnan(sum->energy_j) ? d->energy_j : sum->energy_j + d->energy_j;
	sum->target_j = isnan(sum->target_j) ? d->ledger.target_j : sum->target_j + d->ledger.target_j;
	sum->mean_w = isnan(sum->mean_w) ? d->mean_w : sum->mean_w + d->mean_w;
	sum->provenance = d->provenance > sum->provenance ? d->provenance : sum->provenance;
	sum->source = sum->source == NULL || strcmp(sum->source, d->device->source) == 0 ? d->device->source
											 : "several";
}

static void kind_row(struct table *table, enum domain_kind kind, const struct kind_sum *sum)
{
	bool faint = !sum->in_total;
	buf_str(table_cell(table, faint), domain_kind_name(kind));
	buf_printf(table_cell(table, faint), "%zu", sum->n);
	human_energy(table_cell(table, faint), sum->energy_j);
	human_power(table_cell(table, faint), sum->mean_w);
	human_energy(table_cell(table, faint), sum->target_j);
	struct buf *source = table_cell(table, faint);
	if (sum->source != NULL)
		buf_str(source, sum->provenance == PROVENANCE_ESTIMATED ? "estimated" : sum->source);
}

void job_text_domains(const struct job_text *t)
{
	static const struct table_column columns[] = {{"", false}, {"number", true}, {"energy", true}, {"mean", true},
		{"job", true}, {"source", false}};
	const double none = (double)NAN;
	struct table table;
	if (t->job->total.n_domains == 0)
		return;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (int kind = 0; kind < DOMAIN_KINDS; kind++) {
		struct kind_sum sum = {0, none, none, none, false, PROVENANCE_MEASURED, NULL};
		for (size_t i = 0; i < t->job->total.n_domains; i++)
			if ((int)t->job->total.domains[i].device->kind == kind)
				add_domain(&sum, &t->job->total.domains[i]);
		if (sum.n > 0)
			kind_row(&table, (enum domain_kind)kind, &sum);
	}
	text_title(&t->text, "Energy by kind of domain, all nodes together");
	table_print(&table, t->text.out, t->text.style);
	table_finish(&table);
}

/* ---- ranks ---- */

static void rank_cell(struct buf *out, const struct job_rank *rank)
{
	if (value_ok(rank->rank))
		buf_printf(out, "%lld", (long long)rank->rank);
	else
		buf_str(out, rank->nested ? "around" : "-");
}

static void ending_cell(struct buf *out, const struct job_rank *rank)
{
	bool failed = value_ok(rank->exit_code) && rank->exit_code != 0;
	if (!rank->complete)
		buf_str(out, "cut off");
	else if (failed)
		buf_printf(out, "exit %lld", (long long)rank->exit_code);
	if (rank->runs > 1)
		buf_printf(out, "%s%lld runs", !rank->complete || failed ? ", " : "", (long long)rank->runs);
	if (rank->cut_off > 0)
		buf_printf(out, ", %lld cut off", (long long)rank->cut_off);
}

static void rank_row(struct table *table, const struct job_findings *job, const struct job_rank *rank)
{
	bool faint = rank->nested;
	if (job->n_steps > 1)
		text_fit_middle(table_cell(table, faint), rank->step != NULL ? rank->step : "", STEP_COLUMNS);
	rank_cell(table_cell(table, faint), rank);
	text_fit_middle(table_cell(table, faint), job->nodes[rank->node].name, NODE_COLUMNS);
	human_short_time(table_cell(table, faint), rank->duration_s);
	human_short_time(table_cell(table, faint), rank->work_s);
	human_short_time(table_cell(table, faint), rank->waiting_s);
	human_short_time(table_cell(table, faint), rank->cpu_s);
	human_energy(table_cell(table, faint), rank->energy_j);
	struct buf *error = table_cell(table, faint);
	if (!isnan(rank->error_j))
		human_error(error, rank->error_j);
	ending_cell(table_cell(table, faint), rank);
}

static int by_work(const void *a, const void *b)
{
	const struct job_rank *x = *(const struct job_rank *const *)a, *y = *(const struct job_rank *const *)b;
	if (isnan(x->work_s) != isnan(y->work_s)) // unknown ones last
		return isnan(x->work_s) ? 1 : -1;
	if (!isnan(x->work_s) && x->work_s != y->work_s)
		return x->work_s > y->work_s ? -1 : 1;
	return (x > y) - (x < y);
}

// Of many those that worked longest: they are what the others wait for.
void job_text_ranks(const struct job_text *t)
{
	const struct job_findings *job = t->job;
	static const struct table_column columns[] = {{"step", false}, {"rank", false}, {"node", false, true},
		{"time", true}, {"working", true}, {"waiting", true}, {"CPU", true}, {"energy", true}, {"error", true},
		{"", false}};
	const size_t first = job->n_steps > 1 ? 0 : 1;
	const struct job_rank **order = calloc_array(job->n_ranks, sizeof(const struct job_rank *));
	if (order == NULL)
		return;
	for (size_t i = 0; i < job->n_ranks; i++)
		order[i] = &job->ranks[i];
	bool many = job->n_ranks > TEXT_ROWS_MAX;
	if (many)
		qsort(order, job->n_ranks, sizeof(*order), by_work);
	struct table table;
	size_t shown = many ? TEXT_ROWS_MAX : job->n_ranks;
	table_init(&table, columns + first, ARRAY_SIZE(columns) - first);
	for (size_t i = 0; i < shown; i++)
		rank_row(&table, job, order[i]);
	text_title(&t->text, many ? "Ranks that worked longest" : "Ranks");
	table_print(&table, t->text.out, t->text.style);
	text_and_more(&t->text, job->n_ranks - shown);
	table_finish(&table);
	free(order);
}
