/* Shared by the files of the writer, besides the state of a thread. */
#pragma once

#include "span/ring.h"
#include "span/writer/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* Protects a sequence of system calls in code that may run anywhere: in a signal handler, in a thread about to be
 * cancelled, between a failed call and reading its errno. Blocks signal handlers and cancellation, and preserves errno. */

struct quiet {
	sigset_t mask;
	int cancel, saved_errno;
};

static inline void quiet_begin(struct quiet *quiet)
{
	quiet->saved_errno = errno;
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &quiet->mask);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel);
}

static inline void quiet_end(const struct quiet *quiet)
{
	pthread_setcancelstate(quiet->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &quiet->mask, NULL);
	errno = quiet->saved_errno;
}

/* Identifies the program image: the same number for all threads and copies of the writer, also after a fork; another
 * one after exec. */

uint32_t span_image(void);

/* Maximum file size of this process (RLIMIT_FSIZE), which also applies to memfds: beyond it the kernel sends a signal
 * that ends the program. */

static inline bool span_file_may_have(uint64_t bytes)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

/* Destination of the process's spans: the recorder named by WATTLE_RING or started by the process itself, else the file
 * of WATTLE_SPANS, else none. A session is one period with one destination; span_writer_state is its number. */

struct span_source {
	bool is_file; // the file of WATTLE_SPANS; otherwise the recorder at this address:
	struct ring_address ring;
};

// False: the session has ended.
bool span_source_get(int session, struct span_source *ret_source);
// The recorder is gone, or the file can't be written permanently: switches the whole process to the next destination.
void span_source_failed(int session);
// Sets the path of WATTLE_SPANS; once, before any session.
void span_source_set_file(const char *path);
/* Ends the present session, if any, and begins the next: with the recorder at this address; NULL: with the file, if
 * there is one. -EAGAIN: another thread is changing the session. */
int span_source_begin(const struct ring_address *ring);
// For a forked child.
void span_source_forked(void);

// Absolute path of WATTLE_SPANS, with %p not yet replaced.
const char *span_source_path(void);
// Zeros if it can't be read.
const uint8_t *span_source_boot_id(void);

/* Destination of a thread's records: a ring read by the recorder, or a block of a span file. Call with signals blocked. */

// Addresses of the sink's counters.
struct span_counters {
	_Atomic uint64_t *head, *lost, *unwound;
};

// Directs records to `sink`, and adds to it what was counted without a sink. Unmaps the old one.
void span_sink_attach(struct span_thread *thread, const struct span_sink *sink, struct span_record *records,
	uint64_t mask, struct span_counters counters);
// Further records are dropped and counted as lost.
void span_sink_detach(struct span_thread *thread);

// Records and returns whether the kernel keeps rings and states from forked children (result of madvise).
void span_sinks_wipe(bool is_wiped);
bool span_sinks_are_wiped(void);

// Opens a new ring or block, unless this was tried a moment ago.
bool span_sink_renew(struct span_thread *thread);
int span_ring_open(struct span_thread *thread, const struct ring_address *address);
int span_block_claim(struct span_thread *thread);

// Whether a retry may succeed, because the machine or the recorder lacks a resource. Other errors are permanent.
static inline bool span_errno_passes(int r)
{
	switch (r) {
	case -EAGAIN: // the recorder's backlog is full
	case -EINTR:
	case -EMFILE:
	case -ENFILE:
	case -ENOBUFS:
	case -ENOMEM:
	case -ETOOMANYREFS:
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG: // RLIMIT_FSIZE, which may be raised
	case -EPIPE: // the recorder closed the connection: too many that had sent nothing yet. If it has ended, the next
	case -ECONNRESET: // connection is refused
		return true;
	default:
		return false;
	}
}
