#include "sampler/recorder.h"

#include "base/util.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void pass_on(const struct recorder *recorder, const struct signalfd_siginfo *info)
{
	if (!recorder->main_ended && !target_has_signal((int)info->ssi_signo, info->ssi_code))
		kill(recorder->pid, (int)info->ssi_signo);
}

void recorder_read_signals(struct recorder *recorder)
{
	struct signalfd_siginfo info;
	while (read(recorder->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue; // reaped elsewhere: several ends may share one signal
		bool is_end = info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP;
		if (is_end)
			end_request_signal(&recorder->end_request, env_now_ns(recorder->env));
		if (recorder->target != NULL)
			pass_on(recorder, &info);
		else if (is_end)
			recorder->stop = true;
	}
}

bool recorder_must_hurry(struct recorder *recorder, int64_t timeout_ns)
{
	recorder_read_signals(recorder);
	return end_request_is_overdue(&recorder->end_request, env_now_ns(recorder->env), timeout_ns);
}
