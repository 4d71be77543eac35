#include "serve/visits.h"

#include "base/util.h"

#include <poll.h>
#include <sys/socket.h>

void visits_init(struct visits *visits)
{
	visits->n = 0;
	visits->last_line = 0;
	for (size_t i = 0; i < VISITS_MAX; i++)
		visits->items[i] = (struct visit){.fd = -1};
}

// The library finds its connection at its end then, and ends it by itself.
static void show_out(struct visit *visit)
{
	shutdown(visit->fd, SHUT_RDWR);
	visit->is_over = true;
}

static void make_room(struct visits *visits)
{
	struct visit *longest = NULL;
	for (size_t i = 0; i < VISITS_MAX; i++) {
		struct visit *visit = &visits->items[i];
		if (visit->fd < 0 || visit->is_over || visit->is_answered)
			continue;
		if (longest == NULL || visit->since_ns < longest->since_ns)
			longest = visit;
	}
	if (longest != NULL)
		show_out(longest);
}

struct visit *visits_begin(struct visits *visits, int fd, int64_t t_ns)
{
	if (visits->n >= VISITS_ROOMY)
		make_room(visits);
	for (size_t i = 0; i < VISITS_MAX; i++) {
		struct visit *visit = &visits->items[i];
		if (visit->fd >= 0)
			continue;
		*visit = (struct visit){.fd = fd, .line = ++visits->last_line, .since_ns = t_ns};
		visits->n++;
		return visit;
	}
	return NULL;
}

bool visit_has_hung_up(const struct visit *visit)
{
	struct pollfd fd = {.fd = visit->fd, .events = POLLRDHUP};
	return visit->is_over || (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
}

void visits_end(struct visits *visits, struct visit *visit)
{
	if (visit == NULL || visit->fd < 0)
		return;
	*visit = (struct visit){.fd = -1};
	visits->n--;
}

void visit_is_answered(struct visit *visit, bool is_answered, int64_t t_ns)
{
	if (visit == NULL)
		return;
	visit->is_answered = is_answered;
	visit->since_ns = t_ns;
}

static int64_t patience_ns(const struct visit *visit)
{
	bool is_between_scrapes = visit->has_scraped && !visit->is_answered;
	return (is_between_scrapes ? VISIT_SCRAPER_S : VISIT_PATIENCE_S) * NS_PER_S;
}

void visits_sweep(struct visits *visits, int64_t t_ns)
{
	for (size_t i = 0; i < VISITS_MAX; i++) {
		struct visit *visit = &visits->items[i];
		if (visit->fd >= 0 && !visit->is_over && t_ns - visit->since_ns > patience_ns(visit))
			show_out(visit);
	}
}
