#include "serve/http.h"

#include "base/util.h"

#include <netinet/in.h>

void connections_init(struct connections *connections, const struct mhd *mhd, const struct wattle_env *env,
	struct scrapers *scrapers)
{
	*connections = (struct connections){.mhd = mhd, .env = env, .scrapers = scrapers};
	connection_table_init(&connections->table);
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

static const struct sockaddr *address_of(const struct connections *connections, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *client = connections->mhd->connection_info(connection,
		MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	return client != NULL ? client->client_addr : NULL;
}

void connections_notify(struct connections *connections, struct MHD_Connection *connection, void **entry,
	enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*entry != NULL)
			scrapers_hang_up(connections->scrapers, ((struct connection *)*entry)->line);
		connection_table_remove(&connections->table, *entry);
		return;
	}
	const union MHD_ConnectionInfo *info = connections->mhd->connection_info(connection,
		MHD_CONNECTION_INFO_CONNECTION_FD);
	if (info == NULL)
		return;
	int fd = info->connect_fd;
	*entry = connection_table_add(&connections->table, fd, origin_of(address_of(connections, connection), fd),
		env_now_ns(connections->env));
}

// NULL: the connection table was full.
static struct connection *entry_of(const struct connections *connections, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info = connections->mhd->connection_info(connection,
		MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info != NULL ? info->socket_context : NULL;
}

void connections_request(struct connections *connections, struct MHD_Connection *connection, uint64_t sample)
{
	struct connection *entry = entry_of(connections, connection);
	connection_start_response(entry, env_now_ns(connections->env));
	if (entry == NULL || sample == 0)
		return;
	entry->scraped_sample = sample;
	entry->scraper = scraper_id(address_of(connections, connection),
		connections->mhd->value(connection, MHD_HEADER_KIND, "User-Agent"));
}

// A client that opens a connection for each scrape must not count as two clients. The close of its previous connection may
// still be unnoticed.
static void note_who_hung_up(struct connections *connections, const struct connection *newcomer)
{
	for (size_t i = 0; i < CONNECTION_TABLE_MAX && !newcomer->has_scraped; i++) {
		const struct connection *entry = &connections->table.items[i];
		if (entry->fd >= 0 && entry->has_scraped && connection_has_hung_up(entry))
			scrapers_hang_up(connections->scrapers, entry->line);
	}
}

void connections_completed(struct connections *connections, struct MHD_Connection *connection,
	enum MHD_RequestTerminationCode how)
{
	struct connection *entry = entry_of(connections, connection);
	connection_table_response_sent(&connections->table, entry, env_now_ns(connections->env));
	if (entry == NULL || entry->scraped_sample == 0)
		return;
	if (how == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
		note_who_hung_up(connections, entry);
		scrapers_note(connections->scrapers, entry->scraper, entry->line, entry->scraped_sample,
			env_now_ns(connections->env));
		entry->has_scraped = true;
	}
	entry->scraped_sample = 0;
}
