#include "cli/bench.h"

#include "base/clock.h"
#include "base/util.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>

void bench_signals_take(struct bench_signals *signals)
{
	static const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
	*signals = (struct bench_signals){0};
	sigemptyset(&signals->taken);
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		sigaddset(&signals->taken, taken[i]);
	sigprocmask(SIG_BLOCK, &signals->taken, &signals->original_mask);
	signal(SIGCHLD, SIG_DFL); // if SIGCHLD was inherited as ignored, no child's end would be reported
}

void bench_signals_restore(const struct bench_signals *signals)
{
	sigprocmask(SIG_SETMASK, &signals->original_mask, NULL);
}

bool bench_pause(struct bench_signals *signals, int64_t ns)
{
	int64_t end_ns = clock_now_ns() + ns;
	for (int64_t left_ns = ns;; left_ns = end_ns - clock_now_ns()) {
		left_ns = left_ns > 0 ? left_ns : 0;
		const struct timespec left = {left_ns / NS_PER_S, left_ns % NS_PER_S};
		int taken = sigtimedwait(&signals->taken, NULL, &left);
		if (taken > 0 && taken != SIGCHLD)
			signals->stopped_by = taken;
		if (signals->stopped_by != 0)
			return false;
		if (taken < 0 && errno == EAGAIN)
			return true;
	}
}

int bench_wait(struct bench_signals *signals, pid_t pid)
{
	for (;;) {
		int status;
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		siginfo_t info;
		int taken = sigwaitinfo(&signals->taken, &info);
		if (taken <= 0 || taken == SIGCHLD)
			continue;
		signals->stopped_by = taken;
		if (info.si_code != SI_KERNEL)
			kill(pid, taken);
	}
}
