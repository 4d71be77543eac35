/* Reads the next batch while the server processes the current one. If the file is far ahead of the server, as in `wattle push`,
 * reading and encoding take about as long as the server's COPY. Uses a short-lived thread with its own connection to the
 * file. */
#include "store/postgres/send.h"

static void *read_next(void *data)
{
	struct send *send = data;
	struct send_ahead *ahead = &send->ahead;
	struct wattle_error ignored = {0}; // an error recurs when the batch is read in its turn
	int r = source_open(&ahead->source, ahead->is_live, &ignored);
	if (r == 0 && !ahead->is_laid_out) {
		r = source_lay_out(&ahead->source, send->servers, &ignored);
		ahead->is_laid_out = r == 0;
	}
	ahead->n = r == 0 ? source_read(&ahead->source, &send->source.next, &ignored) : r;
	source_close(&ahead->source);
	return NULL;
}

void pipeline_begin(struct send *send)
{
	struct send_ahead *ahead = &send->ahead;
	ahead->n = 0;
	ahead->is_live = send->source.is_live;
	ahead->is_running = send->source.is_more && pthread_create(&ahead->thread, NULL, read_next, send) == 0;
}

void pipeline_end(struct send *send, bool is_sent)
{
	struct send_ahead *ahead = &send->ahead;
	if (ahead->is_running)
		pthread_join(ahead->thread, NULL);
	ahead->is_running = false;
	if (!is_sent)
		ahead->n = 0;
}

int64_t pipeline_read_results(struct send *send)
{
	struct send_ahead *ahead = &send->ahead;
	if (ahead->n <= 0)
		return 0;
	struct source source = send->source;
	bool is_laid_out = send->is_laid_out;
	int64_t n = ahead->n;
	send->source = ahead->source;
	send->is_laid_out = ahead->is_laid_out;
	*ahead = (struct send_ahead){.source = source, .is_laid_out = is_laid_out};
	return n;
}
