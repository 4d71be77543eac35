#include "sampler/recorder.h"

#include "base/util.h"
#include "rows.h"

#define MS(n) ((n)*NS_PER_MS)

// Times in ms; the command ends at `ends_ms`, and finishing may take 200 ms after a signal.
static const struct request_row {
	const char *teaches;
	int64_t signals_ms[4]; // 0: no further signal
	int64_t ends_ms, now_ms;
	bool overdue, asked;
} requests[] = {
	{"no signal: no time limit", {0}, 1000, 60000, false, false},
	{"signal ends the command: the time limit counts from the signal, not yet over", {900}, 1000, 1199, false,
		true},
	{"signal ends the command: the time limit is over", {900}, 1000, 1200, true, true},
	{"signal 10 s before the end: still a request to end", {1000}, 11000, 11200, true, true},
	{"signal hours before the end: not a request to end", {1000}, 7200000, 7300000, false, false},
	{"old signal and one just before the end: the last one counts", {1000, 7199900}, 7200000, 7200200, true, true},
	{"first signal while finishing: the time limit counts from it", {5000}, 1000, 5199, false, true},
	{"repeated signal while finishing: the time limit is not extended", {900, 1050, 1100, 1190}, 1000, 1200, true,
		true},
	{"repeated signal after a first one while finishing: the time limit is not extended", {5000, 5100, 5150, 5199},
		1000, 5200, true, true},
	{"old signal, then a first one while finishing: that one counts", {1000, 7201000, 7201100}, 7200000, 7201200,
		true, true},
};

static void ends(void **state)
{
	const struct request_row *row = *state;
	struct end_request request = {0};
	for (size_t i = 0; i < ARRAY_SIZE(row->signals_ms) && row->signals_ms[i] != 0; i++) {
		if (request.finishing_ns == 0 && row->signals_ms[i] > row->ends_ms)
			end_request_finish(&request, MS(row->ends_ms));
		end_request_signal(&request, MS(row->signals_ms[i]));
	}
	if (request.finishing_ns == 0)
		end_request_finish(&request, MS(row->ends_ms));
	assert_int_equal(end_request_is_overdue(&request, MS(row->now_ms), MS(200)), row->overdue);
	assert_int_equal(request.asked_ns != 0, row->asked);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, requests, ends);
	return rows_run(&tests, "end_request");
}
