/* wattle cap tune: finds the limit that saves most, by measuring the program itself while it runs. */
#include "cli/cap_tune.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/redact.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "sampler/target.h"
#include "store/output_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const char RUN_FILE_KEY[] = "cap_tune"; // docs/run-file.md

/* ---- a tuning ---- */

struct tuning {
	const struct cap_tune_options *options; // borrowed
	struct bench_signals signals;
	struct tune_devices devices;
	struct tune_recorder recorder;
	struct tune_steps steps;
	struct tune_group groups[TUNE_DEVICES];
	struct cap_tune_report *reports; // owned: one per group
	size_t n_groups, n_done;         // n_done: groups with results to report
	struct arena *arena;             // owned: memory of the results
	char *command_text;              // owned
	char label[200];
	int signal_fd; // owned
	bool is_from_terminal;
};

static void describe(struct tuning *t, size_t index)
{
	const struct cap_tune_options *options = t->options;
	const struct tune_group *group = &t->groups[index];
	const struct tune_device *first = &t->devices.at[group->first];
	const char *metric = options->metric != NULL ? options->metric : options->metric_total;
	struct cap_tune_report *report = &t->reports[index];
	*report = (struct cap_tune_report){
		.device = group->name,
		.label = first->cap->label,
		.command = t->command_text,
		.step = metric != NULL ? metric : options->step,
		.is_metric = metric != NULL,
		.what = first->cap->what,
		.previous = first->previous,
		.min = group->min,
		.max = group->max,
		.chosen = (double)NAN,
		.seed = (uint64_t)options->seed,
		.source = t->devices.sensors.sources[first->sensor],
	};
}

static int make_groups(struct tuning *t, struct wattle_error *reterr)
{
	size_t n = t->devices.n;
	t->n_groups = t->options->each ? n : 1;
	t->reports = calloc_array(t->n_groups, sizeof(*t->reports));
	if (t->reports == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	int r = 0;
	for (size_t i = 0; r == 0 && i < t->n_groups; i++) {
		r = tune_group_make(&t->groups[i], &t->devices, i, t->options->each ? 1 : n, t->options, reterr);
		describe(t, i);
	}
	return r;
}

// Takes the leases of a group. A group that waits for its turn (--each) keeps its previous limit.
static int hold(struct tune_group *group, bool waits, struct wattle_error *reterr)
{
	int r = tune_group_acquire(group, reterr);
	if (r == 0)
		r = tune_group_try(group, reterr);
	if (r == 0 && waits)
		r = tune_group_end(group, false, reterr);
	return r < 0 || !waits ? r : tune_group_acquire(group, reterr);
}

static int hold_all(struct tuning *t, struct wattle_error *reterr)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < t->n_groups; i++)
		r = hold(&t->groups[i], i > 0, reterr);
	return r; // tune_devices_close releases the others
}

// Makes all checks that can fail before anything runs.
static int prepare(struct tuning *t, const char *words, struct wattle_error *reterr)
{
	const struct cap_tune_options *options = t->options;
	t->arena = arena_new();
	wattle_cleanup_free char **shown = redact_argv((const char *const *)options->command, false);
	if (options->command != NULL && shown != NULL)
		t->command_text = command_line_text((const char *const *)shown);
	if (t->arena == NULL || (options->command != NULL && t->command_text == NULL))
		return error_set(reterr, -ENOMEM, "out of memory");
	t->signal_fd = signalfd(-1, &t->signals.taken, SFD_CLOEXEC | SFD_NONBLOCK);
	if (t->signal_fd < 0)
		return error_set(reterr, -errno, "can't create a signal descriptor: %s", strerror(errno));
	int r = tune_recorder_open(&t->recorder, options, &t->signals, reterr);
	if (r == 0)
		r = tune_devices_open(&t->devices, words, options->clocks ? CAP_CLOCKS : CAP_POWER, reterr);
	if (r == 0)
		r = tune_steps_open(&t->steps, options, &t->recorder, reterr);
	if (r == 0)
		r = make_groups(t, reterr);
	return r < 0 ? r : hold_all(t, reterr);
}

static void release(struct tuning *t)
{
	tune_devices_close(&t->devices);
	tune_steps_close(&t->steps);
	tune_recorder_close(&t->recorder);
	if (t->signal_fd >= 0)
		close(t->signal_fd);
	free(t->reports);
	free(t->command_text);
	arena_free(t->arena);
}

/* ---- results ---- */

static int write_as(const struct tuning *t, const char *path,
	void (*make)(const struct cap_tune_report *reports, size_t n, struct buf *out))
{
	if (path == NULL)
		return EXIT_DONE;
	struct buf out = cli_buf();
	make(t->reports, t->n_done, &out);
	return cli_finish(&out, path);
}

// Until the command has ended, standard output belongs to the command.
static int write_files(const struct tuning *t, bool to_stdout)
{
	const struct cap_tune_options *options = t->options;
	const struct {
		const char *path;
		void (*make)(const struct cap_tune_report *reports, size_t n, struct buf *out);
	} files[] = {{options->json, cap_tune_json}, {options->csv, cap_tune_csv}, {options->html, cap_tune_html}};
	int status = EXIT_DONE;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		bool is_stdout = files[i].path != NULL && strcmp(files[i].path, "-") == 0;
		int written = is_stdout == to_stdout ? write_as(t, files[i].path, files[i].make) : EXIT_DONE;
		status = status != EXIT_DONE ? status : written;
	}
	return status;
}

static void print(const struct tuning *t)
{
	if (t->options->quiet)
		return;
	struct buf out = cli_buf();
	for (size_t i = 0; i < t->n_done; i++)
		if (t->reports[i].has_result) // otherwise the error was reported and there is no result
			cap_tune_text(&t->reports[i], &out, isatty(STDERR_FILENO) && getenv("NO_COLOR") == NULL);
	buf_write_fd(&out, STDERR_FILENO);
	buf_finish(&out);
}

static void keep_in_run_file(const struct tuning *t)
{
	struct wattle_error error = {0};
	if (t->options->output == NULL || t->recorder.n_started == 0 || t->n_done == 0)
		return;
	struct buf out = cli_buf();
	cap_tune_json_line(t->reports, t->n_done, &out);
	if (out.failed == 0 && run_set_metadata(t->recorder.path, RUN_FILE_KEY, out.data, &error) < 0)
		cli_warn(error.text);
	buf_finish(&out);
}

/* ---- control flow ---- */

static const char *why_it_ended(const struct tuning *t, enum tune_event event, char *text, size_t size)
{
	switch (event) {
	case TUNE_GOES_ON:
	case TUNE_ENDED:
		return NULL;
	case TUNE_STOPPED:
		snprintf(text, size, "interrupted (%s)", strsignal(t->signals.stopped_by));
		return text;
	case TUNE_FAILED:
		if (t->options->command == NULL)
			snprintf(text, size, "process %lld can't be measured", (long long)t->options->pid);
		else
			snprintf(text, size, "the command failed with status %d%s", t->recorder.status,
				t->recorder.status == EXIT_OWN_FAILURE ? ", or it could not be measured" : "");
		return text;
	case TUNE_CHANGED:
	case TUNE_BROKEN:
		break;
	}
	return text; // the search has reported the reason
}

static bool apply(struct tuning *t, size_t index, struct wattle_error *reterr)
{
	struct cap_tune_report *report = &t->reports[index];
	int r = tune_group_set(&t->groups[index], report->chosen, reterr);
	if (r == 0)
		r = tune_group_end(&t->groups[index], true, reterr);
	report->is_applied = r == 0;
	return r == 0;
}

static enum tune_event search_one(struct tuning *t, size_t index, char *why, size_t size)
{
	struct cap_tune_report *report = &t->reports[index];
	struct tune_search search = {
		.options = t->options,
		.group = &t->groups[index],
		.recorder = &t->recorder,
		.steps = &t->steps,
		.signals = &t->signals,
		.signal_fd = t->signal_fd,
		.report = report,
		.shows_progress = !t->options->quiet && isatty(STDERR_FILENO),
	};
	struct wattle_error error = {0};
	enum tune_event event = TUNE_BROKEN;
	if (tune_search_open(&search) == 0)
		event = tune_search_run(&search, t->arena);
	t->is_from_terminal = search.is_from_terminal;
	text_copy(why, size, search.error.text);
	report->end = why_it_ended(t, event, why, size);
	report->is_whole = event == TUNE_GOES_ON;
	bool applies = t->options->apply && report->is_whole && report->has_result;
	if (applies && !apply(t, index, &error))
		cli_fail(EXIT_FAILED, &error);
	if (tune_group_end(&t->groups[index], false, &error) < 0 && strcmp(error.text, search.error.text) != 0)
		cli_fail(EXIT_FAILED, &error);
	bool is_unapplied = applies && !report->is_applied;
	t->n_done = index + 1;
	tune_search_close(&search);
	return is_unapplied ? TUNE_BROKEN : event;
}

static enum tune_event search_all(struct tuning *t)
{
	char why[700] = "";
	enum tune_event event = TUNE_GOES_ON;
	for (size_t i = 0; event == TUNE_GOES_ON && i < t->n_groups; i++)
		event = search_one(t, i, why, sizeof(why));
	for (size_t i = 0; i < t->n_groups; i++) // groups that were not reached
		tune_group_end(&t->groups[i], false, NULL);
	if (event != TUNE_GOES_ON && why[0] != '\0')
		fprintf(stderr, "wattle: %s%s\n", why,
			t->recorder.pid != 0 && t->options->command != NULL && event != TUNE_STOPPED
				? "; the search ended, the command continues"
				: "");
	for (size_t i = 0; i < t->n_done; i++)
		t->reports[i].end = t->reports[i].is_whole ? NULL : arena_text(t->arena, why);
	return event;
}

// Waits for a command to end by itself; does not touch a program that was running before.
static void wait_for_end(struct tuning *t, enum tune_event event)
{
	if (t->recorder.pid == 0)
		return;
	if (t->options->command == NULL)
		tune_recorder_signal(&t->recorder, SIGINT);
	else if (event == TUNE_STOPPED && !t->is_from_terminal)
		tune_recorder_signal(&t->recorder, t->signals.stopped_by);
	tune_recorder_wait(&t->recorder);
}

static int status_of(const struct tuning *t, enum tune_event event, int stopped_by)
{
	if (event == TUNE_STOPPED)
		return 128 + stopped_by;
	if (event == TUNE_FAILED)
		return t->recorder.status;
	if (event != TUNE_GOES_ON || !t->reports[0].has_result)
		return EXIT_FAILED;
	return t->options->command != NULL ? t->recorder.status : EXIT_DONE;
}

static int tune(const struct cap_tune_options *options, const char *words)
{
	struct tuning t = {.options = options, .signal_fd = -1};
	struct wattle_error error = {0};
	bench_signals_take(&t.signals);
	int status = EXIT_FAILED;
	if (prepare(&t, words, &error) < 0) {
		cli_fail(status, &error);
	} else {
		enum tune_event event = search_all(&t);
		int stopped_by = t.signals.stopped_by;
		print(&t);
		int written = write_files(&t, false);
		wait_for_end(&t, event);
		int written_last = write_files(&t, true);
		keep_in_run_file(&t);
		status = status_of(&t, event, stopped_by);
		status = status != EXIT_DONE ? status : written != EXIT_DONE ? written : written_last;
	}
	release(&t);
	bench_signals_restore(&t.signals);
	return status;
}

static int check_command(const struct cap_tune_options *options)
{
	int status = options->command != NULL ? bench_find_command(options->command[0]) : EXIT_DONE;
	if (status != EXIT_DONE)
		fprintf(stderr, "wattle: %s: %s; nothing was run and nothing was changed\n", options->command[0],
			status == EXIT_NOT_FOUND ? "command not found" : "can't be executed");
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct cap_tune_options options;
	const char *device;
	int status;
	if (!cap_tune_parse(command, argc, argv, &options, &device, &status))
		return status;
	status = check_command(&options);
	return status != EXIT_DONE ? status : tune(&options, device);
}

const struct command command_cap_tune = {
	.name = "cap tune",
	.usage = "DEVICE [OPTIONS] -- CMD [ARG…] | DEVICE --pid PID --step NAME [OPTIONS]",
	.summary = "find the most efficient power limit while the program runs",
	.details =
		"DEVICE is a name from `wattle cap list`, several names separated by commas, or gpus: all "
		"GPUs visible to CMD.\nLimits are tried several times each in random order and compared by "
		"energy and time per step. If CMD ends\nbefore the search, it is run again. After the "
		"search the previous limit is restored, unless --apply was given,\nand CMD runs to its end. "
		"The exit status is CMD's own; 1 if no limit was found; 2 for wrong usage; 128+N "
		"after\nsignal N.",
	.options = cap_tune_option_table,
	.n_options = CAP_TUNE_OPTIONS,
	.run = run,
};
