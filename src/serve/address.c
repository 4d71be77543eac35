#include "serve/http.h"

#include "base/num.h"
#include "base/util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 }; // the kernel cuts it to net.core.somaxconn; a client that meets a full queue retries after 1 s

static const char unix_prefix[] = "unix:";

static int wrong(const char *listen, struct wattle_error *reterr)
{
	return error_set(reterr, -EINVAL,
		"--listen %.100s: must be HOST:PORT, such as 127.0.0.1:9095 or [::1]:9095, with a port from 0 (any "
		"free one) to 65535, or unix:PATH",
		listen);
}

// Splits "HOST:PORT" or "[HOST]:PORT". A bare IPv6 address is refused: its colons make the port ambiguous.
static int split(const char *listen, char *ret_host, size_t size, uint16_t *ret_port)
{
	const char *colon = strrchr(listen, ':');
	uint64_t port;
	if (colon == NULL || num_parse_u64(colon + 1, &port) < 0 || port > UINT16_MAX)
		return -EINVAL;
	const char *begin = listen, *end = colon;
	if (*begin == '[') {
		if (end - begin < 2 || end[-1] != ']')
			return -EINVAL;
		begin++;
		end--;
	} else if (memchr(begin, ':', (size_t)(end - begin)) != NULL) {
		return -EINVAL;
	}
	if ((size_t)(end - begin) >= size)
		return -EINVAL;
	memcpy(ret_host, begin, (size_t)(end - begin));
	ret_host[end - begin] = '\0';
	*ret_port = (uint16_t)port;
	return 0;
}

static bool is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET) {
		struct sockaddr_in v4;
		memcpy(&v4, address, sizeof(v4));
		return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	}
	struct sockaddr_in6 v6;
	memcpy(&v6, address, sizeof(v6));
	if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
		return v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

static int listen_at(const struct addrinfo *where)
{
	const int on = 1, off = 0, defer_s = 1;
	int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (where->ai_family == AF_INET6) // "::" accepts IPv4 as well
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	/* accept() returns a connection when its first bytes have arrived, or after this time. An honest request is
	 * complete by then. A client that the scheduler delayed between connect and send is therefore not taken for one
	 * that sends nothing. */
	setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_s, sizeof(defer_s));
	if (bind(fd, where->ai_addr, where->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int r = -errno;
	close(fd);
	return r;
}

static const char *remedy(int r)
{
	switch (-r) {
	case EADDRINUSE:
		return "; another program uses this port: give --listen another port (0: any free one)";
	case EADDRNOTAVAIL:
		return "; it is not an address of this machine";
	case EACCES:
		return "; ports below 1024 need root: give --listen another port";
	default:
		return "";
	}
}

// Listens at the first usable address of a name. IPv4 comes first, because the default address is IPv4.
static int listen_at_any(const struct addrinfo *found, struct address *address)
{
	static const int families[] = {AF_INET, AF_INET6};
	int r = -EADDRNOTAVAIL;
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
			if (at->ai_family != families[i])
				continue;
			r = listen_at(at);
			if (r < 0)
				continue;
			address->fd = r;
			return 0;
		}
	}
	return r;
}

static bool all_loopback(const struct addrinfo *found)
{
	for (const struct addrinfo *at = found; at != NULL; at = at->ai_next)
		if (!is_loopback(at->ai_addr))
			return false;
	return true;
}

static void write_url(struct address *address)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];
	struct sockaddr_storage bound;
	socklen_t size = sizeof(bound);
	if (getsockname(address->fd, (struct sockaddr *)&bound, &size) < 0 ||
		getnameinfo((struct sockaddr *)&bound, size, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return;
	bool v6 = strchr(host, ':') != NULL;
	snprintf(address->url, sizeof(address->url), "http://%s%.255s%s:%.31s/", v6 ? "[" : "", host, v6 ? "]" : "",
		port);
}

static int refuse_public(const char *listen, struct wattle_error *reterr)
{
	return error_set(reterr, -EPERM,
		"--listen %.100s: other machines could reach it, and power readings can reveal secrets: add "
		"--token-file FILE, or listen on 127.0.0.1",
		listen);
}

// Returns 0, -EPERM (the address is public) or the negative errno of bind or listen. Positive values are getaddrinfo errors.
static int open_at_name(struct address *address, const char *name, uint16_t port, bool may_be_public)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	char service[8];
	snprintf(service, sizeof(service), "%u", port);
	int failed = getaddrinfo(name, service, &hints, &found);
	if (failed != 0)
		return failed > 0 ? failed : -failed; // glibc's codes are negative like errno values; invert them
	address->is_local = all_loopback(found);
	int r = address->is_local || may_be_public ? listen_at_any(found, address) : -EPERM;
	freeaddrinfo(found);
	return r;
}

static int open_inet(struct address *address, const char *listen, bool may_be_public, struct wattle_error *reterr)
{
	// An empty host: "::" accepts IPv4 as well; "0.0.0.0" serves kernels without IPv6.
	static const char *const everywhere[] = {"::", "0.0.0.0", NULL};
	uint16_t port;
	if (split(listen, address->host, sizeof(address->host), &port) < 0)
		return wrong(listen, reterr);
	const char *const here[] = {address->host, NULL};
	const char *const *names = address->host[0] == '\0' ? everywhere : here;
	int r = -EADDRNOTAVAIL;
	for (size_t i = 0; names[i] != NULL && (i == 0 || r == -EAFNOSUPPORT); i++)
		r = open_at_name(address, names[i], port, may_be_public);
	if (r == -EPERM)
		return refuse_public(listen, reterr);
	if (r > 0)
		return error_set(reterr, -EINVAL, "--listen %.100s: %s", listen, gai_strerror(-r));
	if (r < 0)
		return error_set(reterr, r, "--listen %.100s: %s%s", listen, strerror(-r), remedy(r));
	write_url(address);
	return 0;
}

/* Only the user may connect. The umask sets the mode because chmod() follows links. To admit a group, give the folder that
 * group and the set-group-ID bit, and run chmod after the start. */
static int bind_private(int fd, const struct sockaddr_un *where)
{
	mode_t before = umask(0177);
	int r = bind(fd, (const struct sockaddr *)where, sizeof(*where)) < 0 ? -errno : 0;
	umask(before);
	return r;
}

// A socket that refuses connections belongs to a server that has ended.
static void remove_dead(const struct sockaddr_un *where)
{
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (lstat(where->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
		connect(fd, (const struct sockaddr *)where, sizeof(*where)) < 0 && errno == ECONNREFUSED)
		unlink(where->sun_path);
	close(fd);
}

static int open_unix(struct address *address, const char *path, struct wattle_error *reterr)
{
	struct sockaddr_un where = {.sun_family = AF_UNIX};
	struct stat st;
	if (path[0] == '\0' || !text_copy(address->socket_path, sizeof(address->socket_path), path))
		return error_set(reterr, -EINVAL, "--listen unix:%.100s: must be a path of 1 to %zu bytes", path,
			sizeof(address->socket_path) - 1);
	text_copy(where.sun_path, sizeof(where.sun_path), path);
	address->is_local = true;
	remove_dead(&where);
	address->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = address->fd < 0 ? -errno : bind_private(address->fd, &where);
	if (r == 0 && listen(address->fd, BACKLOG) < 0) {
		r = -errno;
		unlink(path); // this call created it
	}
	if (r == 0 && lstat(path, &st) < 0)
		r = -errno;
	if (r < 0)
		return error_set(reterr, r, "--listen unix:%.100s: %s%s", path, strerror(-r),
			r == -EADDRINUSE ? "; a file with this name exists, or another server uses it" : "");
	address->st_dev = st.st_dev;
	address->st_ino = st.st_ino;
	snprintf(address->url, sizeof(address->url), "unix:%s", path);
	return 0;
}

int address_open(struct address *ret_address, const char *listen, bool may_be_public, struct wattle_error *reterr)
{
	struct address address = {.fd = -1};
	int r = strncmp(listen, unix_prefix, strlen(unix_prefix)) == 0
		? open_unix(&address, listen + strlen(unix_prefix), reterr)
		: open_inet(&address, listen, may_be_public, reterr);
	if (r < 0)
		address_close(&address);
	else
		*ret_address = address;
	return r;
}

void address_close(struct address *address)
{
	struct stat st;
	if (address->st_ino != 0 && lstat(address->socket_path, &st) == 0 && st.st_dev == address->st_dev &&
		st.st_ino == address->st_ino)
		unlink(address->socket_path);
	if (address->fd >= 0)
		close(address->fd);
	*address = (struct address){.fd = -1};
}
