#include "sampler/recorder.h"

#include "base/util.h"
#include "process/tree.h"

#include <stdio.h>

enum { FLUSH_SAMPLES = 100 };

int outbox_open(struct outbox *outbox, size_t batch_capacity)
{
	outbox->spans.sink = &outbox->sinks[0];
	int r = outbox_spans_open(&outbox->spans);
	return r < 0 ? r : batch_init(&outbox->batch, batch_capacity);
}

void outbox_close(struct outbox *outbox)
{
	batch_finish(&outbox->batch);
	outbox_spans_close(&outbox->spans);
}

/* ---- processes ---- */

static void add_process(struct outbox *outbox, const struct store_process *process, const char *command)
{
	if (outbox->n_processes == OUTBOX_PROCESSES) {
		outbox->n_processes_lost++;
		return;
	}
	struct store_process *added = &outbox->processes[outbox->n_processes++];
	*added = *process;
	text_copy(added->command, sizeof(added->command), command);
}

static void add_member(struct outbox *outbox, const struct tree *tree, const struct tree_member *member)
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
	add_process(outbox, &process, member->stat.name);
}

void outbox_take_ended(struct outbox *outbox, struct tree *tree)
{
	for (size_t i = 0; i < tree->n_members; i++)
		if (!tree->members[i].alive)
			add_member(outbox, tree, &tree->members[i]);
	tree_forget_ended(tree);
}

void outbox_add_living(struct outbox *outbox, struct tree *tree)
{
	for (size_t i = 0; i < tree->n_members; i++)
		if (tree->members[i].alive && !tree->members[i].is_reaper)
			add_member(outbox, tree, &tree->members[i]);
}

void outbox_add_exit(struct outbox *outbox, const struct exit_record *record)
{
	struct store_process process = {
		.pid = record->pid,
		.ppid = record->ppid,
		.start_ns = record->start_ns,
		.end_ns = record->end_ns,
		.cpu_ns = record->cpu_ns,
		.max_rss_bytes = record->max_rss_bytes,
	};
	add_process(outbox, &process, record->command);
}

/* ---- stores ---- */

static void told_failure(struct outbox *outbox, struct outbox_sink *sink, const struct wattle_error *error)
{
	text_copy(outbox->loss, sizeof(outbox->loss), error->text);
	if (sink->failing)
		return;
	sink->failing = true;
	bool is_run_file = sink == &outbox->sinks[0];
	sink->given_up = !is_run_file;
	char text[sizeof(error->text) + 100];
	snprintf(text, sizeof(text), "%s; the command continues, %s", error->text,
		is_run_file ? "and wattle tries again to store" : "without this file");
	outbox->warn(outbox->warn_data, text);
}

static void tell_spans(struct outbox *outbox)
{
	bool is_failing = outbox->spans.loss[0] != '\0', is_told = outbox->spans.loss_is_told;
	outbox->spans.loss_is_told = is_failing;
	if (!is_failing || is_told)
		return;
	char text[sizeof(outbox->spans.loss) + 100];
	snprintf(text, sizeof(text), "%s; the command continues, spans are lost", outbox->spans.loss);
	outbox->warn(outbox->warn_data, text);
}

static int flush_sink(struct outbox *outbox, struct outbox_sink *sink)
{
	struct batch rest = outbox->batch;
	rest.bytes += sink->batch_bytes;
	rest.size -= sink->batch_bytes;
	const struct sampler *sampler = outbox->sampler;
	struct store_delivery delivery = {
		.batch = &rest,
		.processes = outbox->processes + sink->n_processes,
		.n_processes = outbox->n_processes - sink->n_processes,
		.events = sampler->events + sink->n_events,
		.n_events = sampler->n_events - sink->n_events,
	};
	bool is_run_file = sink == &outbox->sinks[0];
	if (is_run_file)
		delivery.spans = outbox_spans_delivery(&outbox->spans);
	struct wattle_error error = {0};
	int r = sink->ops->write(sink->state, &delivery, &error);
	if (r < 0) {
		told_failure(outbox, sink, &error);
		return r;
	}
	sink->failing = false;
	sink->batch_bytes = outbox->batch.size;
	sink->n_processes = outbox->n_processes;
	sink->n_events = sampler->n_events;
	if (is_run_file)
		outbox_spans_delivered(&outbox->spans);
	return 0;
}

static void forget_flushed(struct outbox *outbox)
{
	outbox->n_lost += (int64_t)outbox->batch.n_lost;
	batch_clear(&outbox->batch);
	outbox->n_processes = 0;
	sampler_forget_events(outbox->sampler);
	for (size_t i = 0; i < outbox->n_sinks; i++)
		outbox->sinks[i].batch_bytes = outbox->sinks[i].n_processes = outbox->sinks[i].n_events = 0;
}

bool outbox_flush(struct outbox *outbox)
{
	bool done = true;
	for (size_t i = 0; i < outbox->n_sinks; i++)
		if (!outbox->sinks[i].given_up && flush_sink(outbox, &outbox->sinks[i]) < 0 && i == 0)
			done = false;
	tell_spans(outbox);
	if (done)
		forget_flushed(outbox);
	return done;
}

bool outbox_is_crowded(const struct outbox *outbox)
{
	// One second of a fast sampling would take longer to store than a tick lasts.
	return outbox->batch.n_samples >= FLUSH_SAMPLES || outbox->n_processes > OUTBOX_PROCESSES / 2 ||
		outbox->batch.size > outbox->batch.capacity / 2;
}

bool outbox_finish(struct outbox *outbox, struct store_footer *footer)
{
	int64_t taken = (int64_t)(outbox->batch.n_samples + outbox->batch.n_lost);
	bool is_flushed = outbox_flush(outbox);
	bool whole = is_flushed && outbox->spans.loss[0] == '\0';
	if (outbox->spans.loss[0] != '\0')
		text_copy(outbox->loss, sizeof(outbox->loss), outbox->spans.loss);
	int64_t unstored = outbox->n_lost + (is_flushed ? 0 : taken);
	footer->n_samples -= unstored;
	footer->n_lost += unstored;
	for (size_t i = 0; i < outbox->n_sinks; i++) {
		struct outbox_sink *sink = &outbox->sinks[i];
		struct wattle_error error = {0};
		if (sink->given_up || sink->ops->finish(sink->state, footer, &error) == 0)
			continue;
		text_copy(outbox->loss, sizeof(outbox->loss), error.text);
		whole = whole && i > 0;
	}
	return whole;
}
