/* A job as JSON: the schema of a run's report with sums over all nodes, and `job`, `nodes`, `ranks`, `imbalance`. */
#include "report/job_report.h"

#include "analysis/facts.h"
#include "base/jsonw.h"
#include "base/known.h"
#include "base/util.h"
#include "report/parts.h"
#include "report/warnings.h"

static void run_part(struct jsonw *j, const struct job_findings *job)
{
	const struct findings *f = &job->total;
	const struct run *run = f->run;
	const struct run_segment *segment = report_segment(run);
	struct buf start;
	jsonw_key(j, "run");
	jsonw_begin_object(j);
	jsonw_key_string(j, "id", NULL); // the runs of its ranks have each one of their own
	jsonw_key(j, "command");
	command_json(j, segment);
	jsonw_key_i64(j, "pid", VALUE_MISSING);
	jsonw_key_i64(j, "exit_code", segment != NULL ? segment->exit_code : VALUE_MISSING);
	buf_init(&start, 64);
	if (value_ok(job->start_wall_ns))
		rfc3339(&start, job->start_wall_ns);
	jsonw_key_string(j, "start", start.data);
	buf_finish(&start);
	run_figures_json(j, f);
	jsonw_end_object(j);
}

static void job_part(struct jsonw *j, const struct job_findings *job)
{
	size_t counted = 0;
	for (size_t i = 0; i < job->n_ranks; i++)
		counted += !job->ranks[i].nested;
	jsonw_key(j, "job");
	jsonw_begin_object(j);
	jsonw_key_string(j, "id", job->id);
	jsonw_key_i64(j, "rank", VALUE_MISSING); // as in the report of a rank, which is one
	jsonw_key_i64(j, "local_rank", VALUE_MISSING);
	jsonw_key_string(j, "node", NULL);
	jsonw_key_i64(j, "world_size", job->world_size);
	jsonw_key_string(j, "step", job->step);
	jsonw_key_i64(j, "steps", (int64_t)job->n_steps);
	jsonw_key_string(j, "name", job->name);
	jsonw_key_string(j, "user", job->user);
	jsonw_key_string(j, "cluster", job->cluster);
	jsonw_key_string(j, "launcher", job->launcher);
	jsonw_key_i64(j, "n_nodes", (int64_t)job->n_nodes);
	jsonw_key_i64(j, "n_ranks", (int64_t)counted);
	jsonw_key_i64(j, "missing_ranks", job->missing_ranks);
	jsonw_key_i64(j, "runs", (int64_t)job->runs->n);
	jsonw_key_double(j, "read_every_s", job->runs->every_ns > 0 ? (double)job->runs->every_ns / 1e9 : (double)NAN);
	jsonw_end_object(j);
}

static void energy_part(struct jsonw *j, const struct job_findings *job)
{
	const struct findings *f = &job->total;
	jsonw_key(j, "energy");
	jsonw_begin_object(j);
	energy_sums_json(j, f);
	jsonw_key_i64(j, "nodes_unknown", (int64_t)job->n_nodes_unknown);
	jsonw_key(j, "domains");
	jsonw_begin_array(j);
	for (size_t n = 0; n < job->n_nodes; n++)
		for (size_t i = 0; i < f->n_domains; i++)
			if (job->domain_node[i] == n)
				domain_json(j, &f->domains[i], job->nodes[n].name);
	jsonw_end_array(j);
	jsonw_end_object(j);
}

static void gpus_part(struct jsonw *j, const struct job_findings *job)
{
	jsonw_key(j, "gpus");
	jsonw_begin_array(j);
	for (size_t n = 0; n < job->n_nodes; n++)
		for (size_t i = 0; i < job->total.n_gpus; i++)
			if (job->gpu_node[i] == n)
				gpu_json(j, &job->total.gpus[i], job->nodes[n].name);
	jsonw_end_array(j);
}

static void nodes_part(struct jsonw *j, const struct job_findings *job)
{
	jsonw_key(j, "nodes");
	jsonw_begin_array(j);
	for (size_t i = 0; i < job->n_nodes; i++) {
		const struct job_node *node = &job->nodes[i];
		bool metered = node->findings != NULL;
		jsonw_begin_object(j);
		jsonw_key_string(j, "node", node->name);
		jsonw_key_string(j, "host", node->host);
		jsonw_key_string(j, "machine", node->machine);
		jsonw_key_string(j, "same_machine_as",
			node->same_machine_as >= 0 ? job->nodes[node->same_machine_as].name : NULL);
		jsonw_key_i64(j, "n_ranks", (int64_t)node->n_ranks);
		jsonw_key_double(j, "from_s", node->from_s);
		jsonw_key_double(j, "to_s", node->to_s);
		jsonw_key_double(j, "duration_s", metered ? node->findings->duration_s : (double)NAN);
		jsonw_key_double(j, "paused_s", metered ? node->paused_s : (double)NAN);
		jsonw_key_double(j, "unmeasured_s", metered ? node->unmeasured_s : (double)NAN);
		jsonw_key_double(j, "energy_j", node->energy_j);
		jsonw_key_double(j, "error_j", node->error_j);
		jsonw_key_double(j, "mean_w", node->mean_w);
		jsonw_key_string(j, "provenance", isnan(node->energy_j) ? NULL : provenance_name(node->provenance));
		jsonw_key_double(j, "target_j", node->ledger.target_j);
		jsonw_key(j, "ledger");
		ledger_json(j, &node->ledger);
		jsonw_key_double(j, "cpu_s", node->cpu_s);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

// What it was attributed of each domain, over all of its recordings it is `energy_j`.
static void rank_domains(struct jsonw *j, const struct job_rank *rank)
{
	jsonw_key(j, "domains");
	jsonw_begin_object(j);
	for (size_t d = 0; d < rank->n_domains; d++)
		jsonw_key_double(j, rank->domains[d].name, rank->domains[d].target_j);
	jsonw_end_object(j);
}

static void rank_part(struct jsonw *j, const struct job_findings *job, const struct job_rank *rank)
{
	const struct run *run = &rank->run->run;
	const struct run_segment *segment = report_segment(run);
	jsonw_begin_object(j);
	jsonw_key_i64(j, "rank", rank->rank);
	jsonw_key_i64(j, "local_rank", rank->local_rank);
	jsonw_key_string(j, "node", job->nodes[rank->node].name);
	jsonw_key_string(j, "host", run_fact(run, FACT_HOST));
	jsonw_key_string(j, "step", rank->step);
	jsonw_key_string(j, "run", run_fact(run, FACT_RUN_ID));
	jsonw_key_string(j, "where", rank->run->where);
	jsonw_key_i64(j, "pid", segment != NULL ? segment->pid : VALUE_MISSING);
	jsonw_key_i64(j, "restart", rank->restart);
	jsonw_key_i64(j, "runs", rank->runs);
	jsonw_key_bool(j, "complete", rank->complete);
	jsonw_key_i64(j, "cut_off", rank->cut_off);
	jsonw_key_bool(j, "nested", rank->nested);
	jsonw_key_bool(j, "ended_early", rank->ended_early);
	jsonw_key_i64(j, "exit_code", rank->exit_code);
	jsonw_key_double(j, "start_s", rank->start_s);
	jsonw_key_double(j, "end_s", rank->end_s);
	jsonw_key_double(j, "duration_s", rank->duration_s);
	jsonw_key_double(j, "cpu_s", rank->cpu_s);
	jsonw_key_double(j, "energy_j", rank->energy_j);
	jsonw_key_double(j, "error_j", rank->error_j);
	jsonw_key_double(j, "waiting_s", rank->waiting_s);
	jsonw_key_double(j, "waiting_j", rank->waiting_j);
	jsonw_key_double(j, "end_wait_s", rank->end_wait_s);
	jsonw_key_double(j, "work_s", rank->work_s);
	rank_domains(j, rank);
	jsonw_end_object(j);
}

static void ranks_part(struct jsonw *j, const struct job_findings *job)
{
	jsonw_key(j, "ranks");
	jsonw_begin_array(j);
	for (size_t i = 0; i < job->n_ranks; i++)
		rank_part(j, job, &job->ranks[i]);
	jsonw_end_array(j);
}

static int64_t rank_number(const struct job_findings *job, int64_t index)
{
	return index >= 0 ? job->ranks[index].rank : VALUE_MISSING;
}

static void spread_part(struct jsonw *j, const struct job_findings *job, const char *key, const struct spread *spread)
{
	jsonw_key(j, key);
	jsonw_begin_object(j);
	jsonw_key_double(j, "min", spread->min);
	jsonw_key_double(j, "mean", spread->mean);
	jsonw_key_double(j, "max", spread->max);
	jsonw_key_double(j, "std", spread->std);
	jsonw_key_double(j, "total", spread->total);
	jsonw_key_i64(j, "count", spread->count);
	jsonw_key_i64(j, "max_rank", rank_number(job, spread->max_at));
	jsonw_key_double(j, "imbalance_percent", spread->imbalance_percent);
	jsonw_end_object(j);
}

static void imbalance_part(struct jsonw *j, const struct job_findings *job)
{
	const struct slowest *slowest = &job->slowest;
	jsonw_key(j, "imbalance");
	jsonw_begin_object(j);
	jsonw_key_string(j, "step", job->n_steps > 1 ? job->compared_step : job->step);
	spread_part(j, job, "duration_s", &job->duration_s);
	spread_part(j, job, "work_s", &job->work_s);
	spread_part(j, job, "waiting_s", &job->waiting_s);
	spread_part(j, job, "end_wait_s", &job->end_wait_s);
	spread_part(j, job, "cpu_s", &job->cpu_s);
	spread_part(j, job, "energy_j", &job->energy_j);
	jsonw_key_i64(j, "ended_early", (int64_t)job->n_ended_early);
	jsonw_key(j, "slowest");
	jsonw_begin_object(j);
	jsonw_key_i64(j, "rank", rank_number(job, slowest->rank));
	jsonw_key_string(j, "node", slowest->rank >= 0 ? job->nodes[job->ranks[slowest->rank].node].name : NULL);
	jsonw_key_double(j, "over_mean_s", slowest->over_mean_s);
	jsonw_key_double(j, "over_percent", slowest->over_percent);
	jsonw_key_double(j, "waited_s", slowest->waited_s);
	jsonw_key_double(j, "waited_j", slowest->waited_j);
	jsonw_end_object(j);
	jsonw_key_double(j, "waiting_j", job->waiting_j);
	jsonw_key(j, "waiting_blocks");
	jsonw_begin_array(j);
	for (size_t i = 0; i < job->n_blocks; i++)
		if (job->blocks[i].waits)
			jsonw_string(j, job->blocks[i].name);
	jsonw_end_array(j);
	jsonw_end_object(j);
}

// Of all nodes together: there is a package-0 on each.
static void block_domains(struct jsonw *j, const struct findings *f, const struct block_finding *block)
{
	jsonw_key(j, "domains");
	jsonw_begin_object(j);
	for (size_t d = 0; d < f->n_domains; d++) {
		const char *name = f->domains[d].device->name;
		double sum_j = (double)NAN;
		size_t first = 0;
		while (strcmp(f->domains[first].device->name, name) != 0)
			first++;
		for (size_t k = d; first == d && k < f->n_domains; k++)
			if (strcmp(f->domains[k].device->name, name) == 0)
				sum_j = add_known(sum_j, block->domain_j[k]);
		if (first == d)
			jsonw_key_double(j, name, sum_j);
	}
	jsonw_end_object(j);
}

static void block_energy(struct jsonw *j, const struct job_findings *job, const struct block_finding *block)
{
	jsonw_key(j, "energy");
	jsonw_begin_object(j);
	block_energy_json(j, &job->total, block);
	block_domains(j, &job->total, block);
	jsonw_key(j, "nodes");
	jsonw_begin_object(j);
	for (size_t n = 0; n < job->n_nodes; n++) {
		if (job->nodes[n].findings == NULL)
			continue;
		jsonw_key(j, job->nodes[n].name);
		jsonw_begin_object(j);
		for (size_t d = 0; d < job->total.n_domains; d++)
			if (job->domain_node[d] == n)
				jsonw_key_double(j, job->total.domains[d].device->name, block->domain_j[d]);
		jsonw_end_object(j);
	}
	jsonw_end_object(j);
	jsonw_end_object(j);
}

static void blocks_part(struct jsonw *j, const struct job_findings *job)
{
	jsonw_key(j, "blocks");
	jsonw_begin_array(j);
	for (size_t i = 0; i < job->n_blocks; i++) {
		const struct block_finding *block = &job->total.blocks[i];
		jsonw_begin_object(j);
		block_times_json(j, block);
		jsonw_key_bool(j, "waits", job->blocks[i].waits);
		spread_part(j, job, "rank_time_s", &job->blocks[i].time_s);
		spread_part(j, job, "rank_energy_j", &job->blocks[i].energy_j);
		block_usage_json(j, job->total.run, block);
		block_energy(j, job, block);
		block_units_json(j, block);
		jsonw_end_object(j);
	}
	jsonw_end_array(j);
}

static void warning(void *data, const char *text)
{
	jsonw_string(data, text);
}

static void warnings_part(struct jsonw *j, const struct job_findings *job)
{
	jsonw_key(j, "warnings");
	jsonw_begin_array(j);
	for (size_t i = 0; i < job->n_warnings; i++)
		jsonw_string(j, job->warnings[i]);
	report_warnings_of_sums(&job->total, warning, j);
	jsonw_end_array(j);
}

void job_report_json(const struct job_findings *job, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, true);
	jsonw_begin_object(&j);
	jsonw_key_string(&j, "schema", "wattle-report/1");
	run_part(&j, job);
	job_part(&j, job);
	energy_part(&j, job);
	nodes_part(&j, job);
	ranks_part(&j, job);
	imbalance_part(&j, job);
	cpu_json(&j, &job->total);
	memory_json(&j, &job->total);
	gpus_part(&j, job);
	jsonw_key(&j, "resource_usage");
	usage_json(&j, job->total.run, &job->total.usage);
	blocks_part(&j, job);
	metrics_json(&j, &job->total);
	self_json(&j, &job->total);
	warnings_part(&j, job);
	events_json(&j, job->total.run);
	jsonw_end_object(&j);
}
