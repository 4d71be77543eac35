#include "serve/http.h"

#include "base/util.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

void visits_init(struct visits *visits)
{
	*visits = (struct visits){0};
	for (size_t i = 0; i < VISITS_MAX; i++)
		visits->items[i] = (struct visit){.fd = -1};
}

// The library then reads end of file and closes the connection itself.
static void show_out(struct visits *visits, struct visit *visit)
{
	shutdown(visit->fd, SHUT_RDWR);
	visits->n_ended++;
	visit->is_over = true;
}

// Response bytes that the client has acknowledged. 0 on Unix sockets, where the kernel doesn't count them; time alone decides
// there.
static uint64_t bytes_of(const struct visit *visit)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof(info);
	if (getsockopt(visit->fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
		return 0;
	return info.tcpi_bytes_acked;
}

/* Time by which the client is behind the slowest accepted rate. An honest request is one packet, so bytes of an incomplete
 * request earn no extra time: slow attacks send them one by one. */
static int64_t lateness_ns(const struct visit *visit, int64_t t_ns)
{
	int64_t age_ns = t_ns - visit->since_ns;
	if (!visit->is_answered)
		return age_ns;
	return age_ns - (int64_t)(bytes_of(visit) - visit->bytes) * (NS_PER_S / VISIT_LEAST_RATE);
}

struct candidate {
	struct visit *visit;
	bool is_unread; // the library has not read it yet
	size_t n_of_origin;
	int64_t late_ns;
};

static bool is_here(const struct visit *visit)
{
	return visit->fd >= 0 && !visit->is_over;
}

static size_t count_of_origin(const struct visits *visits, uint64_t origin)
{
	size_t n = 0;
	for (size_t i = 0; i < VISITS_MAX; i++)
		n += is_here(&visits->items[i]) && visits->items[i].origin == origin;
	return n;
}

// Excludes closed connections: the next library run frees their places.
static size_t count_here(const struct visits *visits)
{
	size_t n = 0;
	for (size_t i = 0; i < VISITS_MAX; i++)
		n += is_here(&visits->items[i]);
	return n;
}

/* Closing order within one origin: late connections first, the latest first; then those that wait for no response; then
 * the oldest, whatever it has done since, because a client that sends requests without end is never late. */
static bool goes_before(const struct candidate *a, const struct candidate *b)
{
	const int64_t grace_ns = VISIT_GRACE_S * NS_PER_S;
	if (a->is_unread != b->is_unread)
		return b->is_unread;
	if (a->n_of_origin != b->n_of_origin)
		return a->n_of_origin > b->n_of_origin;
	if (a->late_ns > grace_ns || b->late_ns > grace_ns)
		return a->late_ns > b->late_ns;
	if (a->visit->is_answered != b->visit->is_answered)
		return b->visit->is_answered;
	return a->visit->line < b->visit->line;
}

static void make_room(struct visits *visits, int64_t t_ns)
{
	struct candidate chosen = {0};
	for (size_t i = 0; i < VISITS_MAX; i++) {
		struct visit *visit = &visits->items[i];
		if (!is_here(visit))
			continue;
		const struct candidate candidate = {
			.visit = visit,
			.is_unread = visits->run - visit->run < 2 && !visit->is_answered,
			.n_of_origin = count_of_origin(visits, visit->origin),
			.late_ns = lateness_ns(visit, t_ns),
		};
		if (chosen.visit == NULL || goes_before(&candidate, &chosen))
			chosen = candidate;
	}
	if (chosen.visit != NULL)
		show_out(visits, chosen.visit);
}

struct visit *visits_begin(struct visits *visits, int fd, uint64_t origin, int64_t t_ns)
{
	if (count_here(visits) >= VISITS_ROOMY)
		make_room(visits, t_ns);
	for (size_t i = 0; i < VISITS_MAX; i++) {
		struct visit *visit = &visits->items[i];
		if (visit->fd >= 0)
			continue;
		*visit = (struct visit){.fd = fd,
			.line = ++visits->last_line,
			.origin = origin,
			.run = visits->run,
			.since_ns = t_ns};
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
	visits->n_ended++;
}

void visit_is_asked(struct visit *visit, int64_t t_ns)
{
	if (visit == NULL)
		return;
	visit->is_answered = true;
	visit->since_ns = t_ns;
	visit->bytes = bytes_of(visit);
}

void visits_answered(struct visits *visits, struct visit *visit, int64_t t_ns)
{
	if (visit == NULL)
		return;
	visit->is_answered = false;
	visit->since_ns = t_ns;
	if (visits->n >= VISITS_ROOMY && !visit->is_over)
		show_out(visits, visit);
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
			show_out(visits, visit);
	}
}
