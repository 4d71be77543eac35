#include "sampler/recorder.h"

#include "base/util.h"
#include "process/tree.h"

#include <stdio.h>

enum { FLUSH_SAMPLES = 100 };

int write_queue_open(struct write_queue *queue, size_t batch_capacity)
{
	queue->spans.sink = &queue->sinks[0];
	int r = write_queue_spans_open(&queue->spans);
	return r < 0 ? r : batch_init(&queue->batch, batch_capacity);
}

void write_queue_close(struct write_queue *queue)
{
	batch_finish(&queue->batch);
	write_queue_spans_close(&queue->spans);
}

/* ---- processes ---- */

static void add_process(struct write_queue *queue, const struct store_process *process, const char *command)
{
	if (queue->n_processes == WRITE_QUEUE_PROCESSES) {
		queue->n_processes_lost++;
		return;
	}
	struct store_process *added = &queue->processes[queue->n_processes++];
	*added = *process;
	text_copy(added->command, sizeof(added->command), command);
}

static void add_member(struct write_queue *queue, const struct tree *tree, const struct tree_member *member)
{
	struct store_process process = {
		.pid = member->pid,
		.ppid = member->stat.ppid,
		.start_ns = tree_start_ns(tree, member),
		.end_ns = member->end_ns,
		.cpu_ns = member->sampled ? member->stat.own_ns : VALUE_MISSING,
		.max_rss_bytes = member->sampled ? member->max_rss_bytes : VALUE_MISSING,
		.is_main = member->is_main,
		.sampled = member->sampled,
	};
	add_process(queue, &process, member->stat.name);
}

void write_queue_take_ended(struct write_queue *queue, struct tree *tree)
{
	for (size_t i = 0; i < tree->n_members; i++)
		if (!tree->members[i].alive)
			add_member(queue, tree, &tree->members[i]);
	tree_forget_ended(tree);
}

void write_queue_add_running(struct write_queue *queue, struct tree *tree)
{
	for (size_t i = 0; i < tree->n_members; i++)
		if (tree->members[i].alive && !tree->members[i].is_reaper)
			add_member(queue, tree, &tree->members[i]);
}

void write_queue_add_exit(struct write_queue *queue, const struct exit_record *record)
{
	struct store_process process = {
		.pid = record->pid,
		.ppid = record->ppid,
		.start_ns = record->start_ns,
		.end_ns = record->end_ns,
		.cpu_ns = record->cpu_ns,
		.max_rss_bytes = record->max_rss_bytes,
	};
	add_process(queue, &process, record->command);
}

/* ---- stores ---- */

static void report_failure(struct write_queue *queue, struct write_queue_sink *sink, const struct wattle_error *error)
{
	text_copy(queue->loss, sizeof(queue->loss), error->text);
	if (sink->failing)
		return;
	sink->failing = true;
	bool is_run_file = sink == &queue->sinks[0];
	sink->given_up = !is_run_file;
	char text[sizeof(error->text) + 100];
	snprintf(text, sizeof(text), "%s; the command continues, %s", error->text,
		is_run_file ? "and wattle retries" : "without this file");
	queue->warn(queue->warn_data, text);
}

static void report_lost_spans(struct write_queue *queue)
{
	bool is_failing = queue->spans.loss[0] != '\0', is_told = queue->spans.is_loss_reported;
	queue->spans.is_loss_reported = is_failing;
	if (!is_failing || is_told)
		return;
	char text[sizeof(queue->spans.loss) + 100];
	snprintf(text, sizeof(text), "%s; the command continues, spans are lost", queue->spans.loss);
	queue->warn(queue->warn_data, text);
}

static int flush_sink(struct write_queue *queue, struct write_queue_sink *sink)
{
	struct batch rest = queue->batch;
	rest.bytes += sink->batch_bytes;
	rest.size -= sink->batch_bytes;
	const struct sampler *sampler = queue->sampler;
	struct store_delivery delivery = {
		.batch = &rest,
		.processes = queue->processes + sink->n_processes,
		.n_processes = queue->n_processes - sink->n_processes,
		.events = sampler->events + sink->n_events,
		.n_events = sampler->n_events - sink->n_events,
	};
	bool is_run_file = sink == &queue->sinks[0];
	if (is_run_file)
		delivery.spans = write_queue_spans_delivery(&queue->spans);
	if (is_run_file && queue->profiler != NULL)
		delivery.profile = profiler_delivery(queue->profiler);
	struct wattle_error error = {0};
	int r = sink->ops->write(sink->state, &delivery, &error);
	if (r < 0) {
		report_failure(queue, sink, &error);
		return r;
	}
	sink->failing = false;
	sink->batch_bytes = queue->batch.size;
	sink->n_processes = queue->n_processes;
	sink->n_events = sampler->n_events;
	if (is_run_file) {
		write_queue_spans_delivered(&queue->spans);
		profiler_delivered(queue->profiler);
	}
	return 0;
}

static void forget_flushed(struct write_queue *queue)
{
	queue->n_lost += (int64_t)queue->batch.n_lost;
	batch_clear(&queue->batch);
	queue->n_processes = 0;
	sampler_forget_events(queue->sampler);
	for (size_t i = 0; i < queue->n_sinks; i++)
		queue->sinks[i].batch_bytes = queue->sinks[i].n_processes = queue->sinks[i].n_events = 0;
}

bool write_queue_flush(struct write_queue *queue)
{
	bool done = true;
	for (size_t i = 0; i < queue->n_sinks; i++)
		if (!queue->sinks[i].given_up && flush_sink(queue, &queue->sinks[i]) < 0 && i == 0)
			done = false;
	report_lost_spans(queue);
	if (done)
		forget_flushed(queue);
	return done;
}

bool write_queue_is_nearly_full(const struct write_queue *queue)
{
	// One second of a fast sampling would take longer to store than a tick lasts.
	return queue->batch.n_samples >= FLUSH_SAMPLES || queue->n_processes > WRITE_QUEUE_PROCESSES / 2 ||
		queue->batch.size > queue->batch.capacity / 2;
}

bool write_queue_finish(struct write_queue *queue, struct store_footer *footer)
{
	int64_t taken = (int64_t)(queue->batch.n_samples + queue->batch.n_lost);
	bool is_flushed = write_queue_flush(queue);
	bool whole = is_flushed && queue->spans.loss[0] == '\0';
	if (queue->spans.loss[0] != '\0')
		text_copy(queue->loss, sizeof(queue->loss), queue->spans.loss);
	int64_t unstored = queue->n_lost + (is_flushed ? 0 : taken);
	footer->n_samples -= unstored;
	footer->n_lost += unstored;
	for (size_t i = 0; i < queue->n_sinks; i++) {
		struct write_queue_sink *sink = &queue->sinks[i];
		struct wattle_error error = {0};
		if (sink->given_up || sink->ops->finish(sink->state, footer, &error) == 0)
			continue;
		text_copy(queue->loss, sizeof(queue->loss), error.text);
		whole = whole && i > 0;
	}
	return whole;
}
