/* Many simulated hosts in one process, each at a path of its own (/17/metrics), encoded by wattle serve's own encoder. For a real
 * Prometheus to scrape: fleet.py.
 *
 *	fleet HOSTS		listens on a free port of 127.0.0.1 and prints it */
#include "host.h"

#include "base/util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 8192, REQUEST_CAPACITY = 4096, DOCUMENT_CEILING = 1 << 24 };

struct connection {
	char text[REQUEST_CAPACITY]; // the part of a request received so far
	size_t size;
};

struct fleet {
	struct host *hosts;
	size_t n;
	int listen_fd, epoll_fd;
	struct connection *connections[CONNECTIONS_MAX]; // by descriptor
	double begun_s;
	struct buf body, answer;
};

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what)
{
	fprintf(stderr, "fleet: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- responses ---- */

static void put_body(struct fleet *fleet, size_t number)
{
	struct host *host = &fleet->hosts[number];
	const struct metrics_options options = {
		.format = OM_OPENMETRICS,
		.node = host->name,
		.opened_wall_ns = host->totals.since_wall_ns,
	};
	host_move(host, now_s() - fleet->begun_s + 3600);
	buf_clear(&fleet->body);
	metrics_write(&host->now, &host->totals, &options, &fleet->body);
}

static void write_all(int fd, const struct buf *buf)
{
	for (size_t sent = 0; sent < buf->size;) {
		ssize_t n = send(fd, buf->data + sent, buf->size - sent, MSG_NOSIGNAL);
		if (n <= 0)
			return; // disconnected; the next read detects it
		sent += (size_t)n;
	}
}

static void answer(struct fleet *fleet, int fd, const char *request)
{
	unsigned long number;
	char path[32];
	bool is_known = sscanf(request, "GET /%lu/%31s", &number, path) == 2 && strcmp(path, "metrics") == 0 &&
		number < fleet->n;
	buf_clear(&fleet->body);
	if (is_known)
		put_body(fleet, number);
	buf_clear(&fleet->answer);
	buf_printf(&fleet->answer,
		"HTTP/1.1 %s\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"
		"Content-Length: %zu\r\n\r\n",
		is_known ? "200 OK" : "404 Not Found", fleet->body.size);
	buf_add(&fleet->answer, fleet->body.size > 0 ? fleet->body.data : "", fleet->body.size);
	write_all(fd, &fleet->answer);
}

/* ---- connections ---- */

static void let_in(struct fleet *fleet)
{
	int fd = accept4(fleet->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
	if (fd >= CONNECTIONS_MAX || (fleet->connections[fd] = calloc(1, sizeof(struct connection))) == NULL ||
		epoll_ctl(fleet->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		fail("a connection");
}

static void let_out(struct fleet *fleet, int fd)
{
	free(fleet->connections[fd]);
	fleet->connections[fd] = NULL;
	close(fd);
}

static void listen_to(struct fleet *fleet, int fd)
{
	struct connection *connection = fleet->connections[fd];
	ssize_t n = recv(fd, connection->text + connection->size, sizeof(connection->text) - 1 - connection->size, 0);
	if (n <= 0) {
		let_out(fleet, fd);
		return;
	}
	connection->size += (size_t)n;
	connection->text[connection->size] = '\0';
	if (strstr(connection->text, "\r\n\r\n") == NULL)
		return;
	answer(fleet, fd, connection->text);
	connection->size = 0;
}

static void open_door(struct fleet *fleet)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	fleet->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fleet->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fleet->listen_fd};
	if (fleet->listen_fd < 0 || fleet->epoll_fd < 0 ||
		bind(fleet->listen_fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fleet->listen_fd, SOMAXCONN) < 0 ||
		getsockname(fleet->listen_fd, (struct sockaddr *)&address, &size) < 0 ||
		epoll_ctl(fleet->epoll_fd, EPOLL_CTL_ADD, fleet->listen_fd, &event) < 0)
		fail("listening");
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct fleet fleet;
	fleet.n = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	fleet.hosts = calloc_array(fleet.n, sizeof(struct host));
	if (fleet.n == 0 || fleet.hosts == NULL) {
		fprintf(stderr, "usage: fleet HOSTS\n");
		return 2;
	}
	for (size_t i = 0; i < fleet.n; i++)
		host_open(&fleet.hosts[i], i);
	buf_init(&fleet.body, DOCUMENT_CEILING);
	buf_init(&fleet.answer, DOCUMENT_CEILING);
	fleet.begun_s = now_s();
	open_door(&fleet);
	for (;;) {
		struct epoll_event events[64];
		int n = epoll_wait(fleet.epoll_fd, events, ARRAY_SIZE(events), -1);
		if (n < 0 && errno != EINTR)
			fail("waiting");
		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == fleet.listen_fd)
				let_in(&fleet);
			else
				listen_to(&fleet, events[i].data.fd);
		}
	}
}
