#include "serve/http.h"

#include "base/util.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

void connection_table_init(struct connection_table *table)
{
	*table = (struct connection_table){0};
	for (size_t i = 0; i < CONNECTION_TABLE_MAX; i++)
		table->items[i] = (struct connection){.fd = -1};
}

// The library then reads end of file and closes the connection itself.
static void show_out(struct connection_table *table, struct connection *entry)
{
	shutdown(entry->fd, SHUT_RDWR);
	table->n_ended++;
	entry->is_over = true;
}

// Response bytes that the client has acknowledged. 0 on Unix sockets, where the kernel doesn't count them; time alone decides
// there.
static uint64_t bytes_of(const struct connection *entry)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof(info);
	if (getsockopt(entry->fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
		return 0;
	return info.tcpi_bytes_acked;
}

/* Time by which the client is behind the slowest accepted rate. An honest request is one packet, so bytes of an incomplete
 * request earn no extra time: slow attacks send them one by one. */
static int64_t lateness_ns(const struct connection *entry, int64_t t_ns)
{
	int64_t age_ns = t_ns - entry->since_ns;
	if (!entry->is_responding)
		return age_ns;
	return age_ns - (int64_t)(bytes_of(entry) - entry->bytes) * (NS_PER_S / CONNECTION_MIN_RATE);
}

struct candidate {
	struct connection *entry;
	bool is_unread; // the library has not read it yet
	size_t n_of_origin;
	int64_t late_ns;
};

static bool is_here(const struct connection *entry)
{
	return entry->fd >= 0 && !entry->is_over;
}

static size_t count_of_origin(const struct connection_table *table, uint64_t origin)
{
	size_t n = 0;
	for (size_t i = 0; i < CONNECTION_TABLE_MAX; i++)
		n += is_here(&table->items[i]) && table->items[i].origin == origin;
	return n;
}

// Excludes closed connections: the next library run frees their places.
static size_t count_here(const struct connection_table *table)
{
	size_t n = 0;
	for (size_t i = 0; i < CONNECTION_TABLE_MAX; i++)
		n += is_here(&table->items[i]);
	return n;
}

/* Closing order within one origin: late connections first, the latest first; then those that wait for no response; then
 * the oldest, whatever it has done since, because a client that sends requests without end is never late. */
static bool is_closed_before(const struct candidate *a, const struct candidate *b)
{
	const int64_t grace_ns = CONNECTION_GRACE_S * NS_PER_S;
	if (a->is_unread != b->is_unread)
		return b->is_unread;
	if (a->n_of_origin != b->n_of_origin)
		return a->n_of_origin > b->n_of_origin;
	if (a->late_ns > grace_ns || b->late_ns > grace_ns)
		return a->late_ns > b->late_ns;
	if (a->entry->is_responding != b->entry->is_responding)
		return b->entry->is_responding;
	return a->entry->line < b->entry->line;
}

static void make_room(struct connection_table *table, int64_t t_ns)
{
	struct candidate chosen = {0};
	for (size_t i = 0; i < CONNECTION_TABLE_MAX; i++) {
		struct connection *entry = &table->items[i];
		if (!is_here(entry))
			continue;
		const struct candidate candidate = {
			.entry = entry,
			.is_unread = table->run - entry->run < 2 && !entry->is_responding,
			.n_of_origin = count_of_origin(table, entry->origin),
			.late_ns = lateness_ns(entry, t_ns),
		};
		if (chosen.entry == NULL || is_closed_before(&candidate, &chosen))
			chosen = candidate;
	}
	if (chosen.entry != NULL)
		show_out(table, chosen.entry);
}

struct connection *connection_table_add(struct connection_table *table, int fd, uint64_t origin, int64_t t_ns)
{
	if (count_here(table) >= CONNECTION_TABLE_CROWDED)
		make_room(table, t_ns);
	for (size_t i = 0; i < CONNECTION_TABLE_MAX; i++) {
		struct connection *entry = &table->items[i];
		if (entry->fd >= 0)
			continue;
		*entry = (struct connection){.fd = fd,
			.line = ++table->last_line,
			.origin = origin,
			.run = table->run,
			.since_ns = t_ns};
		table->n++;
		return entry;
	}
	return NULL;
}

bool connection_has_hung_up(const struct connection *entry)
{
	struct pollfd fd = {.fd = entry->fd, .events = POLLRDHUP};
	return entry->is_over || (poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0);
}

void connection_table_remove(struct connection_table *table, struct connection *entry)
{
	if (entry == NULL || entry->fd < 0)
		return;
	*entry = (struct connection){.fd = -1};
	table->n--;
	table->n_ended++;
}

void connection_start_response(struct connection *entry, int64_t t_ns)
{
	if (entry == NULL)
		return;
	entry->is_responding = true;
	entry->since_ns = t_ns;
	entry->bytes = bytes_of(entry);
}

void connection_table_response_sent(struct connection_table *table, struct connection *entry, int64_t t_ns)
{
	if (entry == NULL)
		return;
	entry->is_responding = false;
	entry->since_ns = t_ns;
	if (table->n >= CONNECTION_TABLE_CROWDED && !entry->is_over)
		show_out(table, entry);
}

static int64_t timeout_ns(const struct connection *entry)
{
	bool is_between_scrapes = entry->has_scraped && !entry->is_responding;
	return (is_between_scrapes ? CONNECTION_SCRAPER_S : CONNECTION_TIMEOUT_S) * NS_PER_S;
}

void connection_table_expire(struct connection_table *table, int64_t t_ns)
{
	for (size_t i = 0; i < CONNECTION_TABLE_MAX; i++) {
		struct connection *entry = &table->items[i];
		if (entry->fd >= 0 && !entry->is_over && t_ns - entry->since_ns > timeout_ns(entry))
			show_out(table, entry);
	}
}
