/* A stretch of system calls inside a call that may be made anywhere: in a signal handler, in a thread that is about to be
 * cancelled, between a failed call and the look at its errno. No handler comes in between, no cancellation, errno stays. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>

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
