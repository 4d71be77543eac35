/* Fields specific to job reports: job, nodes, ranks, load imbalance. */
#include "report/fields/document.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "report/format_helpers.h"

// clang-format off

static const struct job_findings *job_of(const struct object_at *at)
{
	return document_of(at)->job;
}

/* ---- job ---- */

static int64_t no_integer(const struct object_at *at)
{
	return VALUE_MISSING;
}

static const char *no_text(const struct object_at *at, struct buf *scratch)
{
	return NULL;
}

static int64_t counted_ranks(const struct object_at *at)
{
	int64_t counted = 0;
	for (size_t i = 0; i < job_of(at)->n_ranks; i++)
		counted += !job_of(at)->ranks[i].nested;
	return counted;
}

static int64_t runs(const struct object_at *at)
{
	return (int64_t)job_of(at)->runs->n;
}

static double read_every_s(const struct object_at *at)
{
	return job_of(at)->runs->every_ns > 0 ? (double)job_of(at)->runs->every_ns / 1e9 : (double)NAN;
}

#define J struct job_findings
static const struct field job_fields[] = {
	FIELD(J, id, NULL, "id of the job"),
	// The same keys as in the report of a single rank.
	FIELD_INTEGER("rank", no_integer, NULL, "null: this is the report of all ranks"),
	FIELD_INTEGER("local_rank", no_integer, NULL, "null: this is the report of all ranks"),
	FIELD_TEXT("node", no_text, NULL, "null: this is the report of all nodes"),
	FIELD(J, world_size, NULL, "ranks of the job, by its launcher"),
	FIELD(J, step, NULL, "job step of Slurm; null: none, or several"),
	FIELD_AS(J, "steps", n_steps, NULL, "steps in which there are ranks"),
	FIELD(J, name, NULL, "name of the job"),
	FIELD(J, user, NULL, "user of the job"),
	FIELD(J, cluster, NULL, "name of the cluster"),
	FIELD(J, launcher, NULL, "launcher of the ranks"),
	FIELD(J, n_nodes, NULL, "nodes with runs"),
	FIELD_INTEGER("n_ranks", counted_ranks, NULL, "ranks with runs"),
	FIELD(J, missing_ranks, NULL, "ranks without a run"),
	FIELD_INTEGER("runs", runs, NULL, "runs that were read"),
	FIELD_NUMBER("read_every_s", read_every_s, "s", "interval at which samples were read; null: all samples"),
};
const struct object_type job_type = OBJECT_TYPE("job", "A job of several ranks.", job_fields);

/* ---- nodes ---- */

static const struct job_node *node_of(const struct object_at *at)
{
	return at->data;
}

static const char *same_machine_as(const struct object_at *at, struct buf *scratch)
{
	int64_t same = node_of(at)->same_machine_as;
	return same >= 0 ? job_of(at)->nodes[same].name : NULL;
}

static double node_duration_s(const struct object_at *at)
{
	return node_of(at)->findings != NULL ? node_of(at)->findings->duration_s : (double)NAN;
}

static double paused_s(const struct object_at *at)
{
	return node_of(at)->findings != NULL ? node_of(at)->paused_s : (double)NAN;
}

static double unmeasured_s(const struct object_at *at)
{
	return node_of(at)->findings != NULL ? node_of(at)->unmeasured_s : (double)NAN;
}

static const char *node_provenance(const struct object_at *at, struct buf *scratch)
{
	return isnan(node_of(at)->energy_j) ? NULL : provenance_name(node_of(at)->provenance);
}

#define N struct job_node
static const struct field node_fields[] = {
	FIELD_AS(N, "node", name, NULL, "name of the node"),
	FIELD(N, host, NULL, "name of the host"),
	FIELD(N, machine, NULL, "identity of the machine"),
	FIELD_TEXT("same_machine_as", same_machine_as, NULL, "node whose row has this machine's energy; null: this one"),
	FIELD(N, n_ranks, NULL, "ranks on the node", .title = "ranks"),
	FIELD(N, from_s, "s", "start of the measurement, relative to the job's start"),
	FIELD(N, to_s, "s", "end of the measurement, relative to the job's start"),
	FIELD_NUMBER("duration_s", node_duration_s, "s", "measured time"),
	FIELD_NUMBER("paused_s", paused_s, "s", "time in which no rank ran; not included in any sum"),
	FIELD_NUMBER("unmeasured_s", unmeasured_s, "s", "time in which no rank read the sensors", .title = "not read"),
	FIELD(N, energy_j, "J", "energy of the machine while any of its ranks ran", .title = "energy"),
	FIELD(N, error_j, "J", "half of the 95 % interval"),
	FIELD(N, mean_w, "W", "mean power", .title = "mean"),
	FIELD_TEXT("provenance", node_provenance, NULL, "provenance: measured, derived or estimated"),
	FIELD_AS(N, "target_j", ledger.target_j, "J", "energy attributed to the ranks", .title = "job"),
	FIELD_OBJECT(N, "ledger", ledger, &ledger_type, "energy by owner"),
	FIELD(N, cpu_s, "s", "CPU time of the ranks", .title = "CPU"),
};
#undef N
const struct object_type node_type = OBJECT_TYPE("node", "A node of the job.", node_fields);

/* ---- ranks ---- */

static const struct job_rank *rank_of(const struct object_at *at)
{
	return at->data;
}

static const char *rank_node(const struct object_at *at, struct buf *scratch)
{
	return job_of(at)->nodes[rank_of(at)->node].name;
}

static const char *rank_metadata(const struct object_at *at, struct buf *scratch)
{
	return run_metadata(&rank_of(at)->run->run, at->field->argument);
}

static int64_t rank_pid(const struct object_at *at)
{
	const struct run_segment *segment = report_segment(&rank_of(at)->run->run);
	return segment != NULL ? segment->pid : VALUE_MISSING;
}

static size_t rank_domains(const struct object_at *at)
{
	return rank_of(at)->n_domains;
}

static const char *rank_domain_name(const struct object_at *at, size_t i)
{
	return rank_of(at)->domains[i].name;
}

static double rank_domain_j(const struct object_at *at)
{
	return rank_of(at)->domains[at->index].target_j;
}

static const struct field rank_domain_field =
	FIELD_NUMBER("target_j", rank_domain_j, "J", "energy of the domain attributed to the rank");

#define R struct job_rank
static const struct field rank_fields[] = {
	FIELD(R, rank, NULL, "number of the rank", .title = "rank"),
	FIELD(R, local_rank, NULL, "its number on its node"),
	FIELD_TEXT("node", rank_node, NULL, "its node", .title = "node"),
	FIELD_TEXT("host", rank_metadata, NULL, "name of the host", .argument = META_KEY_HOST),
	FIELD(R, step, NULL, "job step of Slurm", .title = "step"),
	FIELD_TEXT("run", rank_metadata, NULL, "identity of its run", .argument = META_KEY_RUN_ID),
	FIELD_BY(R, run, "where", struct job_run, where, NULL, "file or store of its run"),
	FIELD_INTEGER("pid", rank_pid, NULL, "process id of its command"),
	FIELD(R, restart, NULL, "number of restarts"),
	FIELD(R, runs, NULL, "recordings of this rank"),
	FIELD(R, complete, NULL, "false: its last recording is still in progress, or its recorder died"),
	FIELD(R, cut_off, NULL, "earlier recordings whose recorder died"),
	FIELD(R, nested, NULL, "true: also measured by another recorder of this job; not included in any sum"),
	FIELD(R, ended_early, NULL, "true: it failed or was interrupted while others continued; not compared with them"),
	FIELD(R, exit_code, NULL, "status of its command"),
	FIELD(R, start_s, "s", "its start, relative to the job's start"),
	FIELD(R, end_s, "s", "its end, relative to the job's start"),
	FIELD(R, duration_s, "s", "time of all of its recordings", .title = "time"),
	FIELD(R, cpu_s, "s", "CPU time", .title = "CPU"),
	FIELD(R, energy_j, "J", "energy attributed to the rank", .title = "energy"),
	FIELD(R, error_j, "J", "half of the 95 % interval"),
	FIELD(R, waiting_s, "s", "time in blocks that wait for other ranks", .title = "waiting"),
	FIELD(R, waiting_j, "J", "energy attributed to it while it waited"),
	FIELD(R, end_wait_s, "s", "time between its end and the end of the last rank"),
	FIELD(R, work_s, "s", "duration_s minus waiting_s", .title = "working"),
	FIELD_MAP("domains", &rank_domain_field, rank_domains, rank_domain_name, "energy by domain; adds up to energy_j"),
};
#undef R
const struct object_type rank_type = OBJECT_TYPE("rank", "A rank of the job.", rank_fields);

/* ---- imbalance ---- */

static int64_t rank_number(const struct object_at *at, int64_t index)
{
	return index >= 0 ? job_of(at)->ranks[index].rank : VALUE_MISSING;
}

static int64_t max_rank(const struct object_at *at)
{
	return rank_number(at, ((const struct spread *)at->data)->max_at);
}

#define S struct spread
static const struct field spread_fields[] = {
	FIELD(S, min, NULL, "smallest value", .title = "min"),
	FIELD(S, mean, NULL, "mean", .title = "mean"),
	FIELD(S, max, NULL, "largest value", .title = "max"),
	FIELD(S, std, NULL, "standard deviation, of the population", .title = "deviation"),
	FIELD(S, total, NULL, "sum"),
	FIELD(S, count, NULL, "ranks whose value is known"),
	FIELD_INTEGER("max_rank", max_rank, NULL, "rank with the largest value", .title = "rank"),
	FIELD(S, imbalance_percent, "%", "(max - mean) / max", .title = "imbalance"),
};
#undef S
const struct object_type spread_type = OBJECT_TYPE("spread", "A figure over the ranks.", spread_fields);

static int64_t slowest_rank(const struct object_at *at)
{
	return rank_number(at, job_of(at)->slowest.rank);
}

static const char *slowest_node(const struct object_at *at, struct buf *scratch)
{
	const struct job_findings *job = job_of(at);
	return job->slowest.rank >= 0 ? job->nodes[job->ranks[job->slowest.rank].node].name : NULL;
}

#define S struct slowest
static const struct field slowest_fields[] = {
	FIELD_INTEGER("rank", slowest_rank, NULL, "rank that worked longest"),
	FIELD_TEXT("node", slowest_node, NULL, "its node"),
	FIELD(S, over_mean_s, "s", "its work_s minus the mean of all ranks"),
	FIELD(S, over_percent, "%", "relative excess over the mean"),
	FIELD(S, waited_s, "s", "time that the other ranks waited for it"),
	FIELD(S, waited_j, "J", "energy of that time, estimated"),
};
#undef S
static const struct object_type slowest_type = OBJECT_TYPE("slowest", "The rank that the others waited for.", slowest_fields);

static const char *compared_step(const struct object_at *at, struct buf *scratch)
{
	return job_of(at)->n_steps > 1 ? job_of(at)->compared_step : job_of(at)->step;
}

static size_t waiting_block(const struct job_findings *job, size_t n)
{
	size_t i = 0;
	while (i < job->n_blocks && (!job->blocks[i].waits || n-- > 0))
		i++;
	return i;
}

static size_t waiting_blocks(const struct object_at *at)
{
	size_t count = 0;
	for (size_t i = 0; i < job_of(at)->n_blocks; i++)
		count += job_of(at)->blocks[i].waits;
	return count;
}

static const char *waiting_block_name(const struct object_at *at, struct buf *scratch)
{
	return job_of(at)->blocks[waiting_block(job_of(at), at->index)].name;
}

static const struct field waiting_block_field = FIELD_TEXT("name", waiting_block_name, NULL, "name of a block");

static const struct field imbalance_fields[] = {
	FIELD_TEXT("step", compared_step, NULL, "job step whose ranks are compared"),
	FIELD_OBJECT(J, "duration_s", duration_s, &spread_type, "time of the ranks", .unit = "s", .title = "time"),
	FIELD_OBJECT(J, "work_s", work_s, &spread_type, "time outside blocks that wait", .unit = "s", .title = "working"),
	FIELD_OBJECT(J, "waiting_s", waiting_s, &spread_type, "time in blocks that wait", .unit = "s", .title = "waiting"),
	FIELD_OBJECT(J, "end_wait_s", end_wait_s, &spread_type, "time from a rank's end to the end of the last", .unit = "s", .title = "ended earlier"),
	FIELD_OBJECT(J, "cpu_s", cpu_s, &spread_type, "CPU time of the ranks", .unit = "s", .title = "CPU"),
	FIELD_OBJECT(J, "energy_j", energy_j, &spread_type, "energy attributed to the ranks", .unit = "J", .title = "energy"),
	FIELD_AS(J, "ended_early", n_ended_early, NULL, "ranks excluded because they ended early"),
	FIELD_OBJECT(J, "slowest", slowest, &slowest_type, "the rank that the others waited for"),
	FIELD(J, waiting_j, "J", "energy attributed to the ranks while they waited"),
	FIELD_VALUES("waiting_blocks", &waiting_block_field, waiting_blocks, "blocks in which ranks wait"),
};
#undef J
const struct object_type imbalance_type = OBJECT_TYPE("imbalance", "Load imbalance of the ranks.", imbalance_fields);
