/* The recorder's side of spans: which processes may send rings, when rings are read, and what the end of a run
 * reports. */
#include "sampler/recorder.h"

#include "base/util.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

// Rings are read often enough to be at most a quarter full; and when they are empty, often enough for a sudden burst.
static const int64_t DRAIN_MIN_NS = 2 * NS_PER_MS, DRAIN_MAX_NS = 50 * NS_PER_MS;
// After a signal, the rings are read for at most this long.
static const int64_t READ_TIMEOUT_NS = 200 * NS_PER_MS;
enum { ANCESTORS_MAX = 256, WALKS_MAX = 2 };

/* ---- access ---- */

// Whether a living process belongs to the target: a known member, or a descendant of one, or of the recorder.
static bool is_of_target(struct recorder *recorder, pid_t pid)
{
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		const struct tree_member *member = tree_find(&recorder->tree, pid);
		if (member != NULL)
			return true; // the recorder is a member only where all its children belong to the target
		struct process_stat stat;
		if (pid == recorder->tree.own_pid || tree_read_stat(&recorder->tree, pid, &stat) < 0)
			return false;
		pid = stat.ppid;
	}
	return false;
}

static bool has_ended(const struct received_ring *received)
{
	struct pollfd end = {.fd = received->pidfd, .events = POLLIN};
	return received->pidfd < 0 || poll(&end, 1, 0) == 1;
}

/* An ended process has no readable parents. Knowing the token shows that it descended from the target: the socket's
 * name is visible to everybody, the token is only in the environment. */
static pid_t admit(void *data, const struct received_ring *received)
{
	struct recorder *recorder = data;
	pid_t pid = tree_pid(&recorder->tree, received->pid);
	bool is_admitted = received->pidfd >= 0 && is_of_target(recorder, pid);
	for (int i = 0; i < WALKS_MAX && !is_admitted && !has_ended(received); i++)
		is_admitted = is_of_target(recorder, pid); // one of the process's parents may just have ended
	return is_admitted || (received->has_token && has_ended(received)) ? pid : 0;
}

/* ---- rows ---- */

static void count_step(struct recorder *recorder, const struct span_row *row)
{
	struct recorder_steps *steps = &recorder->steps;
	const struct write_queue_spans *spans = &recorder->queue.spans;
	for (; steps->name == SPAN_NO_NAME && steps->n_names < *spans->n_names; steps->n_names++)
		if (strcmp((*spans->names)[steps->n_names], recorder->options->step) == 0)
			steps->name = steps->n_names;
	if (steps->name != SPAN_NO_NAME && row->name == steps->name && row->close == SPAN_ENDED)
		running_energy_step(&recorder->running, row->end_ns);
}

static void on_span(void *data, const struct span_row *row)
{
	struct recorder *recorder = data;
	if (recorder->options->step != NULL)
		count_step(recorder, row);
	write_queue_add_span(&recorder->queue.spans, row);
}

static void on_metric(void *data, const struct span_metric_row *row)
{
	struct recorder *recorder = data;
	write_queue_add_metric(&recorder->queue.spans, row);
}

static void on_mark(void *data, const struct span_mark_row *row)
{
	struct recorder *recorder = data;
	write_queue_add_mark(&recorder->queue.spans, row);
}

/* ---- the loop ---- */

static void watch(const struct recorder *recorder, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void recorder_spans_open(struct recorder *recorder)
{
	const struct span_collector_options options = {
		.flags = recorder->options->span_cpu ? RING_CPU_TIME : 0,
		.n_records = RING_RECORDS_DEFAULT,
		.admit = admit,
		.data = recorder,
	};
	const struct span_sink sink = {on_span, on_metric, on_mark, recorder};
	int r = span_collector_open(&recorder->collector, recorder->env, &options, &sink);
	recorder->steps.name = SPAN_NO_NAME;
	recorder->drain_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r < 0 || recorder->drain_fd < 0) {
		struct event event = event_make(EVENT_WARNING_NO_SPANS, env_now_ns(recorder->env));
		event.detail = strerror(r < 0 ? -r : errno);
		sampler_event(&recorder->sampler, &event);
		span_collector_close(&recorder->collector);
		return;
	}
	recorder->queue.spans.names = (const char *const *const *)&recorder->collector.recording.names.texts;
	recorder->queue.spans.n_names = &recorder->collector.recording.names.n;
	watch(recorder, recorder->collector.epoll_fd);
	watch(recorder, recorder->drain_fd);
	span_collector_address(&recorder->collector, recorder->ring_address);
}

void recorder_spans_close(struct recorder *recorder)
{
	span_collector_close(&recorder->collector);
	if (recorder->drain_fd >= 0)
		close(recorder->drain_fd);
}

// 0: more to read, after all other work that is due.
static void set_timer(struct recorder *recorder, int64_t after_ns)
{
	bool wanted = recorder->collector.n_rings > 0;
	if (after_ns == 0)
		after_ns = 1;
	else
		after_ns = after_ns < DRAIN_MIN_NS ? DRAIN_MIN_NS : after_ns > DRAIN_MAX_NS ? DRAIN_MAX_NS : after_ns;
	const struct itimerspec spec = {.it_value.tv_nsec = wanted ? after_ns : 0};
	timerfd_settime(recorder->drain_fd, 0, &spec, NULL);
	recorder->drain_is_set = wanted;
}

void recorder_serve_spans(struct recorder *recorder)
{
	if (recorder->collector.listener.fd < 0)
		return;
	span_collector_serve(&recorder->collector);
	// A new ring is full of earlier records, and its rate is unknown.
	if (!recorder->drain_is_set)
		set_timer(recorder, DRAIN_MIN_NS);
}

void recorder_drain_spans(struct recorder *recorder)
{
	uint64_t expirations;
	if (read(recorder->drain_fd, &expirations, sizeof(expirations)) == (ssize_t)sizeof(expirations))
		set_timer(recorder, span_collector_drain(&recorder->collector));
}

static void take_open(struct recorder *recorder)
{
	struct write_queue_spans *spans = &recorder->queue.spans;
	spans->n_open += span_collector_take_open(&recorder->collector, spans->open + spans->n_open,
		WRITE_QUEUE_OPEN_SPANS - spans->n_open);
}

// Rows to store with this flush: all records of the rings, as far as a time slice allows, and spans that are still
// open.
void recorder_collect_spans(struct recorder *recorder)
{
	if (recorder->collector.listener.fd < 0)
		return;
	span_collector_drain(&recorder->collector);
	take_open(recorder);
}

/* ---- the end ---- */

static void report_event(struct recorder *recorder, enum event_type type, uint64_t n)
{
	struct event event = event_make(type, recorder->end_ns);
	event.count = n < INT64_MAX ? (int64_t)n : INT64_MAX;
	if (n > 0)
		sampler_event(&recorder->sampler, &event);
}

static void report_all(struct recorder *recorder)
{
	const struct span_collector *collector = &recorder->collector;
	const struct span_counts *counts = &collector->recording.counts;
	report_event(recorder, EVENT_LOST_SPANS, collector->totals.lost);
	report_event(recorder, EVENT_LOST_UNREAD, collector->totals.n_unread);
	report_event(recorder, EVENT_LOST_OPEN, counts->dropped);
	report_event(recorder, EVENT_LOST_STORE, (uint64_t)recorder->queue.spans.n_lost);
	report_event(recorder, EVENT_NOTE_SPANS_UNWOUND, counts->unwound);
	report_event(recorder, EVENT_WARNING_STRAY_ENDS, counts->stray_ends);
	report_event(recorder, EVENT_WARNING_BAD_RECORDS, counts->bad_records);
	report_event(recorder, EVENT_WARNING_BROKEN_RINGS, collector->totals.n_broken);
	report_event(recorder, EVENT_WARNING_REFUSED_RINGS, collector->totals.n_refused);
	report_event(recorder, EVENT_WARNING_NAMES, collector->recording.names.is_full);
}

static bool must_hurry(void *data)
{
	return recorder_must_hurry(data, READ_TIMEOUT_NS);
}

void recorder_finish_spans(struct recorder *recorder)
{
	if (recorder->collector.listener.fd < 0)
		return;
	span_collector_finish(&recorder->collector, must_hurry, recorder);
	take_open(recorder);
	while (recorder->queue.spans.n_open == WRITE_QUEUE_OPEN_SPANS && !must_hurry(recorder) &&
		write_queue_flush(&recorder->queue))
		take_open(recorder);
	report_all(recorder);
}

static int64_t limited(uint64_t n)
{
	return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

void recorder_count_spans(const struct recorder *recorder, struct store_footer *footer)
{
	const struct span_counts *counts = &recorder->collector.recording.counts;
	uint64_t stored_not = counts->dropped + (uint64_t)recorder->queue.spans.n_lost;
	uint64_t lost = recorder->collector.totals.lost;
	footer->lost_spans = limited(lost < UINT64_MAX - stored_not ? lost + stored_not : UINT64_MAX);
	footer->unwound_spans = limited(counts->unwound);
}
