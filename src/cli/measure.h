/* What `wattle run` and `wattle attach` share: their options, the stores, the summary and the report afterwards. */
#pragma once

#include "base/env.h"
#include "cli/command.h"
#include "cli/measure_job.h"
#include "sampler/recorder.h"

struct measure_options {
	const char *output, *json, *tracking_file;
	const char *ram_unit, *gpu_ram_unit, *time_unit;
	const char *gpus, *gpu_brand, *attribution, *label, *sub_tracking_file, *step, *config, *wall_meter, *cgroup,
		*job;
	const char *store, *mode;
	struct option_list meta, also, gpu_gain;
	int64_t interval_ns, flush_ns, expected_cores, steps, store_wait_ns;
	double budget_percent, carbon_intensity, pue;
	bool overwrite, append, quiet, disable_logs, per_process, progress, wait_all, span_cpu, nvtx, itt, alone,
		hide_command;
	struct control *control; // borrowed: the tracker that spawned us; NULL: a person did
};

enum { RUN_OPTIONS = 39, ATTACH_OPTIONS = RUN_OPTIONS + 2 }; // attach has more, the last
extern const struct option measure_option_table[ATTACH_OPTIONS];
struct measure_options measure_defaults(void);

// What is wrong with the options whatever the machine: -EINVAL with a sentence that names one.
int measure_check(const struct measure_options *options, struct wattle_error *reterr);

/* From options to the printed summary. Opened in measure_open, when nothing of the command has run yet; every refusal
 * comes from there. */
struct measure {
	struct measure_options options;
	struct wattle_env env;
	struct measure_job job;
	struct sensor_set sensors;
	struct idle_power *idle; // owned: of each device, --attribution active; NULL: not wanted
	char path[4096];  // of the run file
	mode_t file_mode; // of it and of the tracking file
	struct outbox_sink sinks[2];
	size_t n_sinks;
	bool env_is_open, sensors_are_open;
	struct measure_progress *progress; // owned; NULL: none asked for
	struct sender *sender;             // owned; NULL: no --store
};

// pid: the root process of the target; command: its argv.
int measure_open(struct measure *measure, const struct measure_options *options, pid_t pid, const char *const *command,
	bool attached, struct wattle_error *reterr);
void measure_recorder_options(struct measure *measure, struct recorder_options *ret_options);
// Closes the stores, then reads the run back: spans of a sub-tracking file, summary, JSON. EXIT_DONE, or EXIT_FAILED
// with messages; the run file stands either way.
int measure_conclude(struct measure *measure, const struct recorder_result *result);
void measure_close(struct measure *measure, bool discard);
void measure_close_stores(struct measure *measure, bool discard);
void measure_tell_file(const struct measure *measure); // to the tracker that spawned us

/* output.c: the name of the run file. */
struct output_naming {
	const char *pattern; // of --output, with %j %s %r %h %p in it; NULL: the default
	pid_t pid;           // of the command
	const struct job_place *place;
	bool append; // --append: what was started again goes into its predecessor's file
};
int output_path(const struct output_naming *how, char *ret_path, size_t size, struct wattle_error *reterr);
// Whether ranks of one job make the same name of it.
bool output_may_collide(const char *pattern, const struct job_place *place);
// Whether another step of one job makes the same name of it.
bool output_may_meet_step(const char *pattern, const struct job_place *place);
/* progress.c */
struct measure_progress;
struct measure_progress *progress_new(const struct measure_options *options);
void progress_free(struct measure_progress *progress); // ends its line
void progress_show(struct measure_progress *progress, const struct recorder_progress *figures);
