#include "sampler/recorder.h"

#include "base/util.h"
#include "rows.h"

#define MS(n) ((n)*NS_PER_MS)

// Times in ms; the command ends at `ends_ms`, and finishing may take 200 ms after a signal.
static const struct request_row {
	const char *teaches;
	int64_t signals_ms[4]; // 0: no more
	int64_t ends_ms, now_ms;
	bool overdue, asked;
} requests[] = {
	{"no signal: finishing takes as long as it needs", {0}, 1000, 60000, false, false},
	{"a signal ends the command: its time counts from the end, not yet used up", {900}, 1000, 1199, false, true},
	{"a signal ends the command: its time is used up", {900}, 1000, 1200, true, true},
	{"a signal 10 s before the end still asks for it", {1000}, 11000, 11200, true, true},
	{"a signal hours before the end asked for something else", {1000}, 7200000, 7300000, false, false},
	{"an old signal and one just before the end: the last one counts", {1000, 7199900}, 7200000, 7200200, true,
		true},
	{"a first signal while finishing: its time counts from the signal", {5000}, 1000, 5199, false, true},
	{"repeating a signal while finishing grants no more time", {900, 1050, 1100, 1190}, 1000, 1200, true, true},
	{"the same where the first signal came while finishing", {5000, 5100, 5150, 5199}, 1000, 5200, true, true},
	{"an old signal, and a first one while finishing", {1000, 7201000, 7201100}, 7200000, 7201200, true, true},
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
