#include "sampler/recorder.h"

#include "base/util.h"

static const int64_t signal_counts_ns = 10 * NS_PER_S;

void end_request_signal(struct end_request *request, int64_t now_ns)
{
	if (request->finishing_ns == 0 || request->asked_ns == 0)
		request->asked_ns = now_ns;
}

void end_request_finish(struct end_request *request, int64_t now_ns)
{
	request->finishing_ns = now_ns;
	if (now_ns - request->asked_ns > signal_counts_ns)
		request->asked_ns = 0;
}

bool end_request_is_overdue(const struct end_request *request, int64_t now_ns, int64_t timeout_ns)
{
	if (request->asked_ns == 0)
		return false;
	int64_t since_ns = request->asked_ns > request->finishing_ns ? request->asked_ns : request->finishing_ns;
	return now_ns - since_ns >= timeout_ns;
}
