/* What the files of the writer share beside the state of a thread. */
#pragma once

#include "span/ring.h"
#include "span/writer/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* A stretch of system calls inside a call that may be made anywhere: in a signal handler, in a thread that is about to be
 * cancelled, between a failed call and the look at its errno. No handler comes in between, no cancellation, errno stays. */

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

/* Which program image this is: the same number for all threads and all copies of the writer, after a fork too; another one
 * after exec. */

uint32_t span_image(void);

/* How long files of this process may become (RLIMIT_FSIZE), memory files too: beyond it the kernel sends a signal that ends
 * the program. */

static inline bool span_file_may_have(uint64_t bytes)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

/* Where the spans of this process go: to the recorder that WATTLE_RING names or that the process started itself, else to the
 * file of WATTLE_SPANS, else nowhere. A session is one such place for one time; span_writer_state is its number. */

struct span_source {
	bool is_file; // that of WATTLE_SPANS; else the recorder at this address:
	struct ring_address ring;
};

// false: the session is over.
bool span_source_get(int session, struct span_source *ret_source);
// Nobody answers any more, or the file can't be written for good: the whole process goes to the next place.
void span_source_failed(int session);
// WATTLE_SPANS; once, before any session.
void span_source_set_file(const char *path);
/* Ends the session, if there is one, and begins the next: with the recorder at this address, NULL: with the file, where there is one.
 * -EAGAIN: another thread is just doing so. */
int span_source_begin(const struct ring_address *ring);
// In a forked child.
void span_source_forked(void);

// Of WATTLE_SPANS, absolute, with %p still in it.
const char *span_source_path(void);
// Zeros where it can't be read.
const uint8_t *span_source_boot_id(void);

/* A thread's way out: a ring that the recorder reads, or a block of a span file. Called with signals blocked. */

// Where the sink has its counters.
struct span_counters {
	_Atomic uint64_t *head, *lost, *unwound;
};

// Records go to `sink` from now on; what was counted while there was none is told there. The old one is unmapped.
void span_sink_attach(struct span_thread *thread, const struct span_sink *sink, struct span_record *records,
	uint64_t mask, struct span_counters counters);
// All is lost and counted.
void span_sink_detach(struct span_thread *thread);

// The kernel keeps rings and states from forked children, as threads found when they asked for it.
void span_sinks_wipe(bool is_wiped);
bool span_sinks_are_wiped(void);

// A new ring or block, unless that was tried a moment ago.
bool span_sink_renew(struct span_thread *thread);
int span_ring_open(struct span_thread *thread, const struct ring_address *address);
int span_block_claim(struct span_thread *thread);

// Worth trying again: the machine or the recorder is short of something. Else it will be the same for ever.
static inline bool span_errno_passes(int r)
{
	switch (r) {
	case -EAGAIN: // the recorder has many waiting
	case -EINTR:
	case -EMFILE:
	case -ENFILE:
	case -ENOBUFS:
	case -ENOMEM:
	case -ETOOMANYREFS:
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG: // RLIMIT_FSIZE, which may be raised
		return true;
	default:
		return false;
	}
}
