#include "serve/http.h"

#include "base/util.h"

#include <netinet/in.h>

void guests_init(struct guests *guests, const struct mhd *mhd, const struct wattle_env *env, struct scrapers *scrapers)
{
	*guests = (struct guests){.mhd = mhd, .env = env, .scrapers = scrapers};
	visits_init(&guests->visits);
}

static uint64_t origin_of_ipv4(struct in_addr address)
{
	const uint32_t net = 0xff000000u, loopback = 0x7f000000u;
	bool is_loopback = (ntohl(address.s_addr) & net) == loopback;
	return is_loopback ? htonl(INADDR_LOOPBACK) : address.s_addr;
}

/* Returns the origin of a connection: the IPv4 address (all loopback addresses, 127/8 and ::1, count as one), the /64
 * network of an IPv6 address (one host can use any address in it), or the user id of the peer of a Unix socket. */
static uint64_t origin_of(const struct sockaddr *address, int fd)
{
	uint64_t origin = 0;
	if (address != NULL && address->sa_family == AF_INET) {
		origin = origin_of_ipv4(((const struct sockaddr_in *)(const void *)address)->sin_addr);
	} else if (address != NULL && address->sa_family == AF_INET6) {
		const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
		struct in_addr mapped;
		memcpy(&mapped, v6->s6_addr + 12, sizeof(mapped));
		if (IN6_IS_ADDR_V4MAPPED(v6))
			origin = origin_of_ipv4(mapped);
		else if (IN6_IS_ADDR_LOOPBACK(v6))
			origin = htonl(INADDR_LOOPBACK);
		else
			memcpy(&origin, v6->s6_addr, sizeof(origin));
	} else {
		struct ucred peer = {0};
		socklen_t size = sizeof(peer);
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
		origin = peer.uid;
	}
	return origin;
}

static const struct sockaddr *address_of(const struct guests *guests, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *client = guests->mhd->connection_info(connection,
		MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	return client != NULL ? client->client_addr : NULL;
}

void guests_connection(struct guests *guests, struct MHD_Connection *connection, void **visit,
	enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*visit != NULL)
			scrapers_hang_up(guests->scrapers, ((struct visit *)*visit)->line);
		visits_end(&guests->visits, *visit);
		return;
	}
	const union MHD_ConnectionInfo *info = guests->mhd->connection_info(connection,
		MHD_CONNECTION_INFO_CONNECTION_FD);
	if (info == NULL)
		return;
	int fd = info->connect_fd;
	*visit = visits_begin(&guests->visits, fd, origin_of(address_of(guests, connection), fd),
		env_now_ns(guests->env));
}

// NULL: the connection table was full.
static struct visit *visit_of(const struct guests *guests, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = guests->mhd->connection_info(connection,
		MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info != NULL ? info->socket_context : NULL;
}

void guests_ask(struct guests *guests, struct MHD_Connection *connection, uint64_t look)
{
	struct visit *visit = visit_of(guests, connection);
	visit_is_asked(visit, env_now_ns(guests->env));
	if (visit == NULL || look == 0)
		return;
	visit->scraped_look = look;
	visit->scraper = scraper_id(address_of(guests, connection),
		guests->mhd->value(connection, MHD_HEADER_KIND, "User-Agent"));
}

// A client that opens a connection for each scrape must not count as two clients. The close of its previous connection may
// still be unnoticed.
static void note_who_hung_up(struct guests *guests, const struct visit *newcomer)
{
	for (size_t i = 0; i < VISITS_MAX && !newcomer->has_scraped; i++) {
		const struct visit *visit = &guests->visits.items[i];
		if (visit->fd >= 0 && visit->has_scraped && visit_has_hung_up(visit))
			scrapers_hang_up(guests->scrapers, visit->line);
	}
}

void guests_answered(struct guests *guests, struct MHD_Connection *connection, enum MHD_RequestTerminationCode how)
{
	struct visit *visit = visit_of(guests, connection);
	visits_answered(&guests->visits, visit, env_now_ns(guests->env));
	if (visit == NULL || visit->scraped_look == 0)
		return;
	if (how == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
		note_who_hung_up(guests, visit);
		scrapers_note(guests->scrapers, visit->scraper, visit->line, visit->scraped_look,
			env_now_ns(guests->env));
		visit->has_scraped = true;
	}
	visit->scraped_look = 0;
}
