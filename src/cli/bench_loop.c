/* The order of the runs: each command warms up; then each round runs every command once, in a new random order, so that drift
 * (temperature, other users, CPU clock) affects all commands equally. */
#include "cli/bench.h"

#include "analysis/bench/order.h"
#include "base/cleanup.h"
#include "base/rng.h"
#include "base/util.h"
#include "report/table.h"
#include "sampler/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME_COLUMNS = 50 }; // width of a command in a message

static double *value_of(const struct bench_loop *loop, size_t command, enum bench_quantity quantity)
{
	return loop->values + (command * BENCH_QUANTITIES + quantity) * loop->max_rounds;
}

int bench_loop_open(struct bench_loop *loop, struct wattle_error *reterr)
{
	const struct bench_options *options = loop->options;
	size_t n = loop->result->findings.n_commands;
	bool until = !isnan(options->until_percent);
	size_t runs = value_ok(options->runs) ? (size_t)options->runs : until ? BENCH_MIN_RUNS : 10;
	loop->max_rounds = until ? (size_t)options->max_runs : runs;
	loop->min_rounds = until && runs < BENCH_MIN_RUNS ? BENCH_MIN_RUNS : runs;
	loop->values = calloc_array(n * BENCH_QUANTITIES * loop->max_rounds, sizeof(*loop->values));
	loop->errors_j = calloc_array(n * loop->max_rounds, sizeof(*loop->errors_j));
	loop->order = calloc_array(n, sizeof(*loop->order));
	if (loop->values == NULL || loop->errors_j == NULL || loop->order == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	for (size_t c = 0; c < n; c++) {
		loop->order[c] = (uint32_t)c;
		for (size_t q = 0; q < BENCH_QUANTITIES; q++)
			loop->result->series[c].values[q] = value_of(loop, c, (enum bench_quantity)q);
	}
	return 0;
}

void bench_loop_close(struct bench_loop *loop)
{
	free(loop->values);
	free(loop->errors_j);
	free(loop->order);
}

/* ---- messages during the runs ---- */

static void clear_progress(const struct bench_loop *loop)
{
	if (loop->shows_progress)
		fputs("\r\033[K", stderr);
}

static void show_progress(const struct bench_loop *loop, size_t command, bool warms_up)
{
	if (!loop->shows_progress)
		return;
	clear_progress(loop);
	if (warms_up)
		fprintf(stderr, "warming up, command %zu", command + 1);
	else
		fprintf(stderr, "round %zu of %s%zu, command %zu", loop->result->rounds + 1,
			isnan(loop->options->until_percent) ? "" : "at most ", loop->max_rounds, command + 1);
	if (isfinite(loop->result->width_percent))
		fprintf(stderr, "; half-width of the widest interval: %.2g %%", loop->result->width_percent);
	fflush(stderr);
}

static void print_failure(const struct bench_loop *loop, size_t command, int status, size_t run, bool warms_up)
{
	struct buf words, name;
	buf_init(&words, 4096);
	buf_init(&name, 4096);
	bench_last_output(loop->runner, &words);
	text_fit_middle(&name, loop->result->commands[command].text, NAME_COLUMNS);
	clear_progress(loop);
	fprintf(stderr, "wattle: command %zu (%s) ", command + 1, name.data != NULL ? name.data : "");
	fprintf(stderr, "failed with status %d", status);
	if (status > 128 && status < 128 + NSIG)
		fprintf(stderr, " (as after signal %d, %s)", status - 128, strsignal(status - 128));
	fprintf(stderr, " in %srun %zu; --ignore-failure goes on%s\n", warms_up ? "warm-up " : "", run + 1,
		words.size > 0 ? "; its last output:" : "");
	if (words.size > 0)
		fprintf(stderr, "%s\n", words.data);
	buf_finish(&name);
	buf_finish(&words);
}

/* ---- one run ---- */

// The path of the run file for --output; NULL: the run file is not kept.
static const char *file_to_keep(const struct bench_loop *loop, size_t command, bool warms_up, char *path, size_t size)
{
	if (loop->options->output == NULL || warms_up)
		return NULL;
	snprintf(path, size, "%s/%zu-%03zu.sqlite", loop->options->output, command + 1, loop->result->rounds + 1);
	return path;
}

static void note_meter(struct bench_loop *loop, const struct bench_run *run)
{
	if (loop->result->provenance != NULL || run->provenance[0] == '\0')
		return;
	text_copy(loop->provenance, sizeof(loop->provenance), run->provenance);
	text_copy(loop->meter, sizeof(loop->meter), run->meter);
	loop->result->provenance = loop->provenance;
	loop->result->meter = loop->meter;
}

// EXIT_DONE, or the exit status on failure.
static int run_one(struct bench_loop *loop, size_t command, bool warms_up, size_t number, struct bench_run *ret_run)
{
	char path[4096];
	struct wattle_error error = {0};
	struct bench_result *result = loop->result;
	show_progress(loop, command, warms_up);
	enum bench_outcome outcome = bench_run(loop->runner, result->commands[command].argv,
		file_to_keep(loop, command, warms_up, path, sizeof(path)), ret_run, &error);
	if (outcome == BENCH_STOPPED) {
		result->end = BENCH_INTERRUPTED;
		return 128 + loop->signals->stopped_by;
	}
	if (outcome == BENCH_BROKEN) {
		result->end = BENCH_FAILED;
		clear_progress(loop);
		return cli_fail(EXIT_FAILED, &error);
	}
	loop->last_run_s = ret_run->values[BENCH_TIME];
	note_meter(loop, ret_run);
	if (ret_run->status == 0 || loop->options->ignore_failure)
		return EXIT_DONE;
	result->end = BENCH_FAILED;
	print_failure(loop, command, ret_run->status, number, warms_up);
	return EXIT_FAILED;
}

static int run_measured(struct bench_loop *loop, size_t command)
{
	size_t round = loop->result->rounds;
	struct bench_run run;
	bench_wait_until_stable(loop->stable_wait, loop->signals, loop->last_run_s);
	int status = run_one(loop, command, false, round, &run);
	if (status != EXIT_DONE)
		return status;
	for (size_t q = 0; q < BENCH_QUANTITIES; q++)
		value_of(loop, command, (enum bench_quantity)q)[round] = run.values[q];
	loop->errors_j[command * loop->max_rounds + round] = run.energy_error_j;
	loop->result->commands[command].failures += run.status != 0;
	return EXIT_DONE;
}

/* ---- rounds ---- */

static int warm_up(struct bench_loop *loop)
{
	struct bench_run run;
	for (size_t i = 0; i < loop->result->warmup; i++)
		for (size_t c = 0; c < loop->result->findings.n_commands; c++) {
			int status = run_one(loop, c, true, i, &run);
			if (status != EXIT_DONE)
				return status;
		}
	return EXIT_DONE;
}

static int run_round(struct bench_loop *loop, struct rng *rng)
{
	size_t n = loop->result->findings.n_commands;
	rng_shuffle(rng, loop->order, (uint32_t)n);
	for (size_t i = 0; i < n; i++) {
		int status = run_measured(loop, loop->order[i]);
		if (status != EXIT_DONE)
			return status;
	}
	loop->result->rounds++; // after the whole round: partial rounds do not count
	for (size_t c = 0; c < n; c++)
		loop->result->series[c].n = loop->result->rounds;
	return EXIT_DONE;
}

static bool is_narrow_enough(struct bench_loop *loop)
{
	struct bench_result *result = loop->result;
	// Resampling many rounds takes long, so beyond a hundred rounds the criterion is not checked in every round.
	bool is_check_due = result->rounds % (1 + result->rounds / 100) == 0 || result->rounds == loop->max_rounds;
	if (isnan(result->until_percent) || result->rounds < 2 || !is_check_due)
		return false;
	if (bench_width_percent(result->series, result->findings.n_commands, result->seed, &result->width_percent) < 0)
		return false;
	return result->rounds >= loop->min_rounds && result->width_percent < result->until_percent;
}

int bench_loop_run(struct bench_loop *loop)
{
	struct bench_result *result = loop->result;
	struct rng rng = rng_init(result->seed, 1);
	int status = warm_up(loop);
	while (status == EXIT_DONE && result->rounds < loop->max_rounds) {
		status = run_round(loop, &rng);
		if (status == EXIT_DONE && is_narrow_enough(loop)) {
			result->end = BENCH_NARROW_ENOUGH;
			break;
		}
	}
	if (status == EXIT_DONE && !isnan(result->until_percent) && result->end != BENCH_NARROW_ENOUGH)
		result->end = BENCH_MAX_RUNS;
	clear_progress(loop);
	return status;
}

double bench_loop_error_j(const struct bench_loop *loop, size_t command)
{
	size_t known = 0;
	const double *errors_j = loop->errors_j + command * loop->max_rounds;
	wattle_cleanup_free double *sorted = calloc_array(loop->result->rounds, sizeof(*sorted));
	for (size_t i = 0; sorted != NULL && i < loop->result->rounds; i++)
		if (!isnan(errors_j[i]))
			sorted[known++] = errors_j[i];
	order_sort(sorted, known);
	return order_median(sorted, known);
}
