/* End of a process that is not the recorder's child, as reported by its parent. */
#include "sampler/recorder.h"

#include "base/util.h"
#include "sampler/sampler.h"

#include <poll.h>

// The parent has waited for the process, or will in a moment. Site epilogs may follow, which are waited for no longer
// than this.
static const int64_t timeout_ns = NS_PER_S;

static bool wait_for_outcome(const struct recorder *recorder, int64_t deadline_ns)
{
	int64_t left_ns = deadline_ns - env_now_ns(recorder->env);
	struct pollfd event = {.fd = recorder->options->control_fd, .events = POLLIN};
	return left_ns > 0 && poll(&event, 1, (int)(left_ns / NS_PER_MS) + 1) > 0;
}

void recorder_read_outcome(struct recorder *recorder)
{
	const struct recorder_options *options = recorder->options;
	if (!options->held || options->outcome == NULL || recorder->roots.running > 0)
		return;
	int64_t deadline_ns = env_now_ns(recorder->env) + timeout_ns;
	struct recorder_outcome outcome;
	// Readings after the report do not belong to the end.
	devices_poll(&recorder->sampler, env_now_ns(recorder->env), &recorder->queue.batch);
	while (!options->outcome(options->data, &outcome))
		if (!wait_for_outcome(recorder, deadline_ns) || options->control(options->data))
			return;
	recorder->wait_status = outcome.wait_status;
	recorder->has_outcome = true;
	tree_main_waited(&recorder->tree, &outcome.usage, recorder->end_ns);
}
