/* How a process has ended whose parent we are not, where the parent tells. */
#include "sampler/recorder.h"

#include "base/util.h"
#include "sampler/sampler.h"

#include <poll.h>

// It has waited for the process, or is just about to: then come epilogs of the site's, for which nobody waits longer than this.
static const int64_t patience_ns = NS_PER_S;

static bool wait_for_word(const struct recorder *recorder, int64_t deadline_ns)
{
	int64_t left_ns = deadline_ns - env_now_ns(recorder->env);
	struct pollfd event = {.fd = recorder->options->control_fd, .events = POLLIN};
	return left_ns > 0 && poll(&event, 1, (int)(left_ns / NS_PER_MS) + 1) > 0;
}

void recorder_learn_outcome(struct recorder *recorder)
{
	const struct recorder_options *options = recorder->options;
	if (!options->held || options->outcome == NULL || recorder->roots.living > 0)
		return;
	int64_t deadline_ns = env_now_ns(recorder->env) + patience_ns;
	struct recorder_outcome outcome;
	// What is read after the word came is no longer the end's.
	devices_look(&recorder->sampler, env_now_ns(recorder->env), &recorder->outbox.batch);
	while (!options->outcome(options->data, &outcome))
		if (!wait_for_word(recorder, deadline_ns) || options->control(options->data))
			return;
	recorder->wait_status = outcome.wait_status;
	recorder->has_outcome = true;
	tree_main_waited(&recorder->tree, &outcome.usage, recorder->end_ns);
}
