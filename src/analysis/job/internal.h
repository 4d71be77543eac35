/* Internal interfaces of this folder, in order of the computation: machines (machines.c), one curve per domain
 * (join.c), all recordings of a machine merged (merge_runs.c), each recording with its machine's sensors (members.c),
 * then ranks, nodes, blocks and the rest. */
#pragma once

#include "analysis/job/job.h"
#include "energy/slice.h"
#include "sensor/sensor.h"

struct reader { // source of a domain's readings during an interval
	size_t member;
	size_t device; // index in that member's own run
	int64_t from_ns, to_ns;
};

struct joined {                   // a domain of a machine, joined from all of its successive readers
	struct run_device device; // columns are in the job's arena
	const char *key;          // identity in every recording: the UUID of a GPU, else the name
	struct reader *readers;   // n_readers, in order of time; none: no recorder could read the domain
	size_t n_readers;
	struct counter_update_phase update_phase;
	struct event *events; // n_events of its counter
	size_t n_events;
	int64_t unknown_ns;    // time between two readers with unknown energy
	int64_t unmeasured_ns; // unknown_ns plus the time before the first and after the last reading
};

struct machine {
	const char *key;
	size_t *members; // n_members, ascending in time
	size_t n_members;
	int64_t shift_ns; // offset from its clock to the job's
	struct joined *domains;
	size_t n_domains;
	struct run run; // all its members merged into one target
	struct findings findings;
	size_t *total_domain; // per domain: index in the job's domains
};

struct member { // one recording: a run of the job
	const struct job_run *from;
	size_t machine, node, rank; // indices
	int64_t start_ns, end_ns;   // start of the first segment and end of the last
	bool nested;
	struct run run;    // the recording with its machine's sensors
	size_t *domain_of; // per device of run.devices: index of the machine's domain
	struct counter_update_phase **update_phases; // per device of run.devices
	struct findings findings;
	double waiting_s, waiting_j; // NaN unknown
};

struct job_work {
	const struct job_runs *runs;
	const struct job_options *options;
	struct job_findings *job;
	struct arena *arena; // job->arena
	struct machine *machines;
	size_t n_machines;
	struct member *members; // same index as runs->runs
	int64_t interval_ns;    // largest interval between the samples that were read
	struct run total_run;
};

// Each returns 0 or -ENOMEM.
int machines_find(struct job_work *work);
void members_mark_nested(struct job_work *work);
int machine_join(struct job_work *work, struct machine *machine);
// Run and findings of the machine; includes machine_join.
int machine_make(struct job_work *work, struct machine *machine);
int member_make(struct job_work *work, struct member *member); // run and findings of the member
int downsampled_blocks_add_error(const struct job_work *work, struct member *member);
int nodes_make(struct job_work *work);
int ranks_make(struct job_work *work);
int job_blocks_make(struct job_work *work);
int total_make(struct job_work *work);
struct spread spread_of(const double *values, size_t n); // NaN values are unknown
void imbalance_mark_early(struct job_work *work); // call before the blocks, whose spreads exclude those ranks
void imbalance_make(struct job_work *work);
int waiting_make(struct job_work *work, struct member *member);
bool waiting_is(const struct job_options *options, const char *block);
int total_metrics_make(struct job_work *work);
int job_warnings_make(struct job_work *work);
void ledgers_clamp(struct job_work *work, struct machine *machine);

int64_t job_clock_ns(const struct job_work *work, const struct member *member, int64_t t_ns);
const char *job_device_key(const struct run_device *device);
// A GPU, or a domain that its driver measures: visible only to ranks that see the GPU.
bool job_is_of_a_gpu(const struct run_device *device);

void member_name(const struct job_work *work, const struct member *member, char *out,
	size_t size); // "rank 3 on node-1"
// Adds the recorders' own warnings to the job's warnings, at most `room`. -ENOMEM.
int recorded_make(struct job_work *work, size_t capacity);

/* ---- merging recordings ---- */

struct part_run { // one of the recordings
	const struct run *run;
	int64_t shift_ns; // added to its times
};

struct merge {
	const struct part_run *parts;
	size_t n_parts;
	bool same_machine; // the machine's own figures count once, else they add up
	int64_t interval_ns;
	const struct run_metadata *facts; // n_metadata, borrowed
	size_t n_metadata;
};
// Merges segments, samples and facts into *ret_run, without devices, processes, events and spans. In `arena`.
int merge_runs(const struct merge *merge, struct arena *arena, struct run *ret_run);

struct metadata_edit {
	const char *key, *value; // NULL: the key is removed
};
int metadata_change(const struct run *run, const struct metadata_edit *changes, size_t n, struct arena *arena,
	struct run_metadata **ret_metadata, size_t *ret_n);
const char *metadata_number(struct arena *arena, int64_t value); // NULL: no memory, or VALUE_MISSING
