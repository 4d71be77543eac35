/* Cost of a span: `spans ROUNDS PAIRS` prints as JSON the minimum ns of a begin and an end over all rounds, and of
 * two clock_gettime calls in the same rounds. Under `wattle run` with a recorder, alone without. */
#include "wattle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double clocks(long pairs)
{
	struct timespec begin, end;
	double start = now_ns();
	for (long i = 0; i < pairs; i++) {
		clock_gettime(CLOCK_MONOTONIC, &begin);
		clock_gettime(CLOCK_MONOTONIC, &end);
	}
	return (now_ns() - start) / (double)pairs;
}

static double spans(long pairs)
{
	double start = now_ns();
	for (long i = 0; i < pairs; i++) {
		(void)wattle_span_begin("forward");
		(void)wattle_span_end();
	}
	return (now_ns() - start) / (double)pairs;
}

// Alternating, so that a machine that changes its speed changes both.
int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 200, pairs = argc > 2 ? atol(argv[2]) : 20000;
	double clock_ns = INFINITY, span_ns = INFINITY;
	for (long i = 0; i < rounds; i++) {
		clock_ns = fmin(clock_ns, clocks(pairs));
		span_ns = fmin(span_ns, spans(pairs));
		// Full rings would measure lost spans.
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	printf("{\"clock_ns\": %.2f, \"span_ns\": %.2f, \"recording\": %d}\n", clock_ns, span_ns,
		wattle_is_recording());
	return 0;
}
