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
static const int64_t READ_PATIENCE_NS = 200 * NS_PER_MS;
enum { ANCESTORS_MOST = 256, WALKS_MOST = 2 };

/* ---- access ---- */

// Whether a living process belongs to the target: a known member, or a descendant of one, or of the recorder.
static bool is_of_target(struct recorder *recorder, pid_t pid)
{
	for (int i = 0; i < ANCESTORS_MOST && pid > 1; i++) {
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

static bool has_ended(const struct door_guest *guest)
{
	struct pollfd end = {.fd = guest->pidfd, .events = POLLIN};
	return guest->pidfd < 0 || poll(&end, 1, 0) == 1;
}

/* An ended process has no readable parents. Knowing the token shows that it descended from the target: the socket's
 * name is visible to everybody, the token is only in the environment. */
static pid_t admit(void *data, const struct door_guest *guest)
{
	struct recorder *recorder = data;
	pid_t pid = tree_pid(&recorder->tree, guest->pid);
	bool is_admitted = guest->pidfd >= 0 && is_of_target(recorder, pid);
	for (int i = 0; i < WALKS_MOST && !is_admitted && !has_ended(guest); i++)
		is_admitted = is_of_target(recorder, pid); // one of its parents may just have ended
	return is_admitted || (guest->knows_token && has_ended(guest)) ? pid : 0;
}

/* ---- rows ---- */

static void count_step(struct recorder *recorder, const struct span_row *row)
{
	struct recorder_steps *steps = &recorder->steps;
	const struct outbox_spans *spans = &recorder->outbox.spans;
	for (; steps->name == SPAN_NO_NAME && steps->n_names < *spans->n_names; steps->n_names++)
		if (strcmp((*spans->names)[steps->n_names], recorder->options->step) == 0)
			steps->name = steps->n_names;
	if (steps->name != SPAN_NO_NAME && row->name == steps->name && row->close == SPAN_ENDED)
		so_far_step(&recorder->so_far, row->end_ns);
}

static void on_span(void *data, const struct span_row *row)
{
	struct recorder *recorder = data;
	if (recorder->options->step != NULL)
		count_step(recorder, row);
	outbox_add_span(&recorder->outbox.spans, row);
}

static void on_metric(void *data, const struct span_metric_row *row)
{
	struct recorder *recorder = data;
	outbox_add_metric(&recorder->outbox.spans, row);
}

static void on_mark(void *data, const struct span_mark_row *row)
{
	struct recorder *recorder = data;
	outbox_add_mark(&recorder->outbox.spans, row);
}

/* ---- the loop ---- */

static void watch(const struct recorder *recorder, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void recorder_spans_open(struct recorder *recorder)
{
	const struct span_intake_options options = {
		.flags = recorder->options->span_cpu ? RING_CPU_TIME : 0,
		.n_records = RING_RECORDS_DEFAULT,
		.admit = admit,
		.data = recorder,
	};
	const struct span_sink sink = {on_span, on_metric, on_mark, recorder};
	int r = span_intake_open(&recorder->intake, recorder->env, &options, &sink);
	recorder->steps.name = SPAN_NO_NAME;
	recorder->drain_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r < 0 || recorder->drain_fd < 0) {
		struct event event = event_make(EVENT_WARNING_NO_SPANS, env_now_ns(recorder->env));
		event.detail = strerror(r < 0 ? -r : errno);
		sampler_event(&recorder->sampler, &event);
		span_intake_close(&recorder->intake);
		return;
	}
	recorder->outbox.spans.names = (const char *const *const *)&recorder->intake.recording.names.texts;
	recorder->outbox.spans.n_names = &recorder->intake.recording.names.n;
	watch(recorder, recorder->intake.epoll_fd);
	watch(recorder, recorder->drain_fd);
	span_intake_address(&recorder->intake, recorder->ring_address);
}

void recorder_spans_close(struct recorder *recorder)
{
	span_intake_close(&recorder->intake);
	if (recorder->drain_fd >= 0)
		close(recorder->drain_fd);
}

// 0: more to read, after all other work that is due.
static void set_timer(struct recorder *recorder, int64_t after_ns)
{
	bool wanted = recorder->intake.n_rings > 0;
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
	if (recorder->intake.door.fd < 0)
		return;
	span_intake_serve(&recorder->intake);
	// A new ring is full of earlier records, and its rate is unknown.
	if (!recorder->drain_is_set)
		set_timer(recorder, DRAIN_MIN_NS);
}

void recorder_drain_spans(struct recorder *recorder)
{
	uint64_t expirations;
	if (read(recorder->drain_fd, &expirations, sizeof(expirations)) == (ssize_t)sizeof(expirations))
		set_timer(recorder, span_intake_drain(&recorder->intake));
}

static void take_open(struct recorder *recorder)
{
	struct outbox_spans *spans = &recorder->outbox.spans;
	spans->n_open += span_intake_take_open(&recorder->intake, spans->open + spans->n_open,
		OUTBOX_OPEN_SPANS - spans->n_open);
}

// Rows to store with this flush: all records of the rings, as far as a time slice allows, and spans that are still
// open.
void recorder_collect_spans(struct recorder *recorder)
{
	if (recorder->intake.door.fd < 0)
		return;
	span_intake_drain(&recorder->intake);
	take_open(recorder);
}

/* ---- the end ---- */

static void tell(struct recorder *recorder, enum event_type type, uint64_t n)
{
	struct event event = event_make(type, recorder->end_ns);
	event.count = n < INT64_MAX ? (int64_t)n : INT64_MAX;
	if (n > 0)
		sampler_event(&recorder->sampler, &event);
}

static void tell_all(struct recorder *recorder)
{
	const struct span_intake *intake = &recorder->intake;
	const struct span_counts *counts = &intake->recording.counts;
	tell(recorder, EVENT_LOST_SPANS, intake->totals.lost);
	tell(recorder, EVENT_LOST_UNREAD, intake->totals.n_unread);
	tell(recorder, EVENT_LOST_OPEN, counts->dropped);
	tell(recorder, EVENT_LOST_STORE, (uint64_t)recorder->outbox.spans.n_lost);
	tell(recorder, EVENT_NOTE_SPANS_UNWOUND, counts->unwound);
	tell(recorder, EVENT_WARNING_STRAY_ENDS, counts->strays);
	tell(recorder, EVENT_WARNING_BAD_RECORDS, counts->bad_records);
	tell(recorder, EVENT_WARNING_BROKEN_RINGS, intake->totals.n_broken);
	tell(recorder, EVENT_WARNING_REFUSED_RINGS, intake->totals.n_refused);
	tell(recorder, EVENT_WARNING_NAMES, intake->recording.names.is_full);
}

static bool is_hurried(void *data)
{
	return recorder_is_hurried(data, READ_PATIENCE_NS);
}

void recorder_finish_spans(struct recorder *recorder)
{
	if (recorder->intake.door.fd < 0)
		return;
	span_intake_finish(&recorder->intake, is_hurried, recorder);
	take_open(recorder);
	while (recorder->outbox.spans.n_open == OUTBOX_OPEN_SPANS && !is_hurried(recorder) &&
		outbox_flush(&recorder->outbox))
		take_open(recorder);
	tell_all(recorder);
}

static int64_t limited(uint64_t n)
{
	return n < INT64_MAX ? (int64_t)n : INT64_MAX;
}

void recorder_count_spans(const struct recorder *recorder, struct store_footer *footer)
{
	const struct span_counts *counts = &recorder->intake.recording.counts;
	uint64_t stored_not = counts->dropped + (uint64_t)recorder->outbox.spans.n_lost;
	uint64_t lost = recorder->intake.totals.lost;
	footer->lost_spans = limited(lost < UINT64_MAX - stored_not ? lost + stored_not : UINT64_MAX);
	footer->unwound_spans = limited(counts->unwound);
}
