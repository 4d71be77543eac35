#include "sampler/recorder.h"

#include "sampler/devices.h"

#include <sys/epoll.h>

int recorder_claims_open(struct recorder *recorder)
{
	const struct recorder_options *options = recorder->options;
	return claims_open(&recorder->claims, &recorder->sampler, options->shares_with, options->rank, recorder->pid);
}

// Those that are watched already refuse; of those that were closed the kernel has let go.
void recorder_claims_watch(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->claims.n; i++) {
		int fd = claims_fd(&recorder->claims, i);
		struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.fd = fd};
		if (fd >= 0)
			epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, fd, &event);
	}
}

// What became ours is read at once, so that little lies between the last reading of its owner and our first.
bool recorder_claims_turn(struct recorder *recorder, int fd)
{
	bool took;
	int64_t t_ns = env_now_ns(recorder->env);
	if (!claims_turn(&recorder->claims, fd, t_ns, &took))
		return false;
	recorder_claims_watch(recorder);
	if (!took)
		return false;
	devices_look(&recorder->sampler, t_ns, &recorder->outbox.batch);
	probe_again(&recorder->probe, t_ns);
	return true;
}
