#include "helper/server.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "helper/helper.h"
#include "helper/policy.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const int64_t STUCK_NS = 5 * NS_PER_S; // timeout within a request or its reply
static const int64_t IDLE_NS = 60 * NS_PER_S;
static const int SWEEP_MS = 1000;
enum { EVENTS_MAX = 64, ACCEPTS_MAX = 64, SLOTS_LOW = 16 };

struct client {
	int fd; // owned; -1: the slot is free
	struct client_identity identity;
	int64_t progress_ns;
	size_t n_in;     // received bytes of the request
	size_t n_out;    // bytes of the reply still to send
	bool is_waiting; // waiting for the worker, which owns the other members until then
	bool is_gone;    // disconnected while waiting
	struct proto_request request;
	struct proto_reply reply;
};

struct server {
	struct server_parts parts;
	struct request_context context;
	int epoll_fd;          // owned
	struct worker *worker; // owned; NULL: none
	struct server_sockets sockets;
	/* Clients refer to one of two: after a reload to the new one, except those that wait for the worker, until they have their
	 * reply. The next reload waits for these. */
	struct policy policies[2];
	const struct policy *policy; // the current one
	bool is_policy_late; // a new policy waits for the clients of the one before the current one
	bool is_full;        // out of descriptors; the listening socket is paused until the next sweep
	int64_t sweep_ns;
	size_t n_clients;
	struct counter_class classes[POLICY_RULES_MAX + 1];
	struct client clients[SERVER_CLIENTS_MAX];
	struct peer_groups groups; // of the client being accepted
	struct log_shares log;
};

// epoll data: a client's index, or one of these.
enum { TAG_LISTEN = 1 << 16, TAG_STOP, TAG_LIMITS, TAG_WORKER, TAG_POLICY };

static int watch(struct server *server, int operation, int fd, uint32_t events, uint32_t tag)
{
	struct epoll_event event = {.events = events, .data.u32 = tag};
	return epoll_ctl(server->epoll_fd, operation, fd, &event) < 0 ? -errno : 0;
}

static void drop(struct server *server, struct client *client)
{
	close(client->fd); // the last descriptor's close removes it from the epoll set
	*client = (struct client){.fd = -1};
	server->n_clients--;
}

/* ---- accepting ---- */

static size_t slots_of(const struct server *server, uid_t uid)
{
	size_t n = 0;
	for (size_t i = 0; i < SERVER_CLIENTS_MAX; i++)
		n += server->clients[i].fd >= 0 && server->clients[i].identity.peer.uid == uid;
	return n;
}

/* A user may have at most half as many slots as are free. So one user alone gets a third of all slots, and there is
 * always room for other users. A few slots are guaranteed for everyone. */
static bool may_come(const struct server *server, uid_t uid)
{
	size_t free_slots = SERVER_CLIENTS_MAX - server->n_clients;
	size_t taken = slots_of(server, uid);
	return free_slots > 0 && (taken < SLOTS_LOW || taken < free_slots / 2);
}

static struct client *free_slot(struct server *server)
{
	for (size_t i = 0; i < SERVER_CLIENTS_MAX; i++)
		if (server->clients[i].fd < 0)
			return &server->clients[i];
	return NULL;
}

// Sends a reply in advance, which the client reads after its first request.
static void refuse_client(int fd, const char *text)
{
	struct proto_reply reply = {.magic = PROTO_MAGIC, .type = PROTO_HELLO, .code = -EAGAIN};
	text_copy(reply.outcome.text, sizeof(reply.outcome.text), text);
	ssize_t sent = send(fd, &reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)sent; // if the send fails, the client sees the end of the connection
}

int server_adopt(struct server *server, int fd)
{
	wattle_cleanup_close int owned = fd;
	struct client_identity identity = {.fd = fd};
	int r = peer_of(fd, server->parts.env, &identity.peer, &server->groups);
	if (r < 0)
		return r;
	if (!may_come(server, identity.peer.uid)) {
		refuse_client(fd, "wattled has reached its maximum number of connections; try again later");
		log_client(&server->log, LOG_LEVEL_WARNING,
			"refused a connection of pid %d, user %u: too many connections", (int)identity.peer.pid,
			identity.peer.uid);
		return -EBUSY;
	}
	identity.policy = server->policy;
	identity.rights = policy_rights_of(server->policy, identity.peer.uid, server->groups.gids, server->groups.n);
	struct client *client = free_slot(server);
	r = watch(server, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP, (uint32_t)(client - server->clients));
	if (r < 0)
		return r;
	*client = (struct client){.fd = take_fd(&owned),
		.identity = identity,
		.progress_ns = env_now_ns(server->parts.env)};
	server->n_clients++;
	return 0;
}

static void rest(struct server *server, bool is_full)
{
	if (server->is_full == is_full)
		return;
	server->is_full = is_full;
	if (is_full)
		log_client(&server->log, LOG_LEVEL_WARNING, "out of file descriptors or memory: new connections wait");
	watch(server, EPOLL_CTL_MOD, server->sockets.listen_fd, is_full ? 0 : EPOLLIN, TAG_LISTEN);
}

static void accept_some(struct server *server)
{
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept4(server->sockets.listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			server_adopt(server, fd);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			return rest(server, true); // otherwise the listening socket would be signalled as readable all the time
		else if (errno == EAGAIN)
			return;
	}
}

/* ---- a new policy ---- */

// The kernel keeps the credentials of a connection, so present clients need not connect again.
static void renew_rights(struct server *server, struct client *client)
{
	struct peer same;
	if (client->is_waiting || client->identity.policy == server->policy)
		return;
	client->identity.policy = server->policy;
	client->identity.rights = (struct policy_rights){0};
	if (peer_of(client->fd, server->parts.env, &same, &server->groups) == 0)
		client->identity.rights = policy_rights_of(server->policy, same.uid, server->groups.gids,
			server->groups.n);
}

// Whether no client needs the policy before the current one.
static bool is_free_for_policy(const struct server *server)
{
	for (size_t i = 0; i < SERVER_CLIENTS_MAX; i++)
		if (server->clients[i].fd >= 0 && server->clients[i].identity.policy != server->policy)
			return false;
	return true;
}

// Readers with an unchanged period keep their latest readings, so a reload brings nobody a reading before its time.
static int renew_classes(struct server *server, const struct policy *policy)
{
	struct counter_class classes[ARRAY_SIZE(server->classes)] = {{0}};
	size_t n = 0;
	int r = 0;
	for (; r == 0 && n < policy->n_periods; n++)
		r = counter_class_init(&classes[n], policy->periods_ns[n], server->parts.counters);
	for (size_t i = 0; r == 0 && i < n; i++)
		for (size_t k = 0; k < server->policy->n_periods; k++)
			if (server->classes[k].period_ns == classes[i].period_ns) {
				struct counter_class kept = server->classes[k];
				server->classes[k] = classes[i];
				classes[i] = kept;
				break;
			}
	struct counter_class *dropped = r == 0 ? server->classes : classes;
	for (size_t i = 0; i < ARRAY_SIZE(server->classes); i++)
		counter_class_finish(&dropped[i]);
	if (r == 0)
		memcpy(server->classes, classes, sizeof(classes));
	return r;
}

static void adopt_policy(struct server *server, const struct policy *policy)
{
	struct policy *other = &server->policies[server->policy == &server->policies[0]];
	int r = renew_classes(server, policy);
	if (r < 0) {
		log_line(LOG_LEVEL_ERROR, "the previous policy stays valid: %s", strerror(-r));
		return;
	}
	*other = *policy;
	server->policy = other;
	for (size_t i = 0; i < SERVER_CLIENTS_MAX; i++)
		if (server->clients[i].fd >= 0)
			renew_rights(server, &server->clients[i]);
	log_line(LOG_LEVEL_NOTICE, "reloaded the policy: %zu rule%s%s%s", policy->n, policy->n == 1 ? "" : "s",
		policy->note[0] != '\0' ? "; " : "", policy->note);
}

static void take_policy(struct server *server)
{
	struct policy_answer answer;
	server->is_policy_late = !is_free_for_policy(server);
	watch(server, EPOLL_CTL_MOD, server->sockets.policy_fd, server->is_policy_late ? 0 : EPOLLIN, TAG_POLICY);
	if (server->is_policy_late)
		return;
	ssize_t n = recv(server->sockets.policy_fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(answer)) { // server_reload reports it
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->sockets.policy_fd, NULL);
		return;
	}
	if (answer.code < 0)
		log_line(LOG_LEVEL_ERROR, "the previous policy stays valid: %s", answer.error.text);
	else
		adopt_policy(server, &answer.policy);
}

void server_reload(struct server *server)
{
	if (send(server->sockets.policy_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_line(LOG_LEVEL_ERROR,
			"the previous policy stays valid: the process that reads the policy does not answer (%s); restart wattled",
			strerror(errno));
}

/* ---- requests and replies ---- */

// 1: the client is gone or sent a malformed request, and must be dropped.
static int send_reply(struct server *server, struct client *client)
{
	const char *bytes = (const char *)&client->reply + (sizeof(client->reply) - client->n_out);
	ssize_t n = send(client->fd, bytes, client->n_out, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno != EAGAIN && errno != EINTR;
	client->n_out -= (size_t)n;
	client->progress_ns = env_now_ns(server->parts.env);
	return 0;
}

static int receive(struct server *server, struct client *client)
{
	char *at = (char *)&client->request + client->n_in;
	ssize_t n = recv(client->fd, at, sizeof(client->request) - client->n_in, MSG_DONTWAIT);
	if (n < 0)
		return errno != EAGAIN && errno != EINTR;
	if (n == 0)
		return 1;
	if (client->n_in == 0) // the timeout counts from the first byte, so that single bytes can't keep a slot
		client->progress_ns = env_now_ns(server->parts.env);
	client->n_in += (size_t)n;
	if (client->n_in < sizeof(client->request))
		return 0;
	if (!request_is_sound(&client->request)) {
		log_client(&server->log, LOG_LEVEL_WARNING,
			"pid %d, user %u sent an invalid request; connection closed", (int)client->identity.peer.pid,
			client->identity.peer.uid);
		return 1;
	}
	client->n_in = 0;
	client->is_waiting = server->worker != NULL && client->request.type >= PROTO_DEVICE;
	if (client->is_waiting) {
		worker_give(server->worker, (uint32_t)(client - server->clients));
		return 0;
	}
	request_serve(&server->context, &client->identity, &client->request, &client->reply);
	client->n_out = sizeof(client->reply);
	return send_reply(server, client);
}

static uint32_t wanted(const struct client *client)
{
	return client->is_waiting ? 0 : client->n_out > 0 ? EPOLLOUT : EPOLLIN | EPOLLRDHUP;
}

static void serve_client(struct server *server, uint32_t index, uint32_t events)
{
	struct client *client = &server->clients[index];
	if (client->is_waiting) { // only a hang-up is reported then; the slot is freed when the worker has finished
		client->is_gone = true;
		epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, client->fd, NULL);
		return;
	}
	uint32_t wanted_before = wanted(client);
	int ends = client->n_out > 0 ? send_reply(server, client) : receive(server, client);
	if (ends != 0 || ((events & (EPOLLERR | EPOLLHUP)) != 0 && !(events & EPOLLIN)))
		drop(server, client);
	else if (wanted(client) != wanted_before)
		watch(server, EPOLL_CTL_MOD, client->fd, wanted(client), index);
}

// Runs in the worker's thread.
static void serve_limit(void *data, uint32_t index)
{
	struct server *server = data;
	struct client *client = &server->clients[index];
	struct pollfd other_end = {.fd = client->fd}; // stays open until hand_out
	bool is_change = client->request.type == PROTO_SET || client->request.type == PROTO_RESET;
	// A client that disconnected while waiting must not have its limit set.
	if (is_change && poll(&other_end, 1, 0) > 0)
		return;
	request_serve(&server->context, &client->identity, &client->request, &client->reply);
}

static void hand_out(struct server *server)
{
	uint32_t index;
	while (worker_take(server->worker, &index)) {
		struct client *client = &server->clients[index];
		client->is_waiting = false;
		renew_rights(server, client);
		client->n_out = sizeof(client->reply);
		if (client->is_gone || send_reply(server, client) != 0)
			drop(server, client);
		else
			watch(server, EPOLL_CTL_MOD, client->fd, wanted(client), index);
	}
	if (server->is_policy_late)
		take_policy(server);
}

static void sweep(struct server *server)
{
	int64_t now_ns = env_now_ns(server->parts.env);
	if (now_ns - server->sweep_ns < SWEEP_MS * NS_PER_MS)
		return;
	server->sweep_ns = now_ns;
	for (size_t i = 0; i < SERVER_CLIENTS_MAX; i++) {
		struct client *client = &server->clients[i];
		bool is_stuck = client->n_in > 0 || client->n_out > 0;
		if (client->fd >= 0 && !client->is_waiting &&
			now_ns - client->progress_ns > (is_stuck ? STUCK_NS : IDLE_NS))
			drop(server, client);
	}
	rest(server, false);
	if (server->worker == NULL)
		limits_sweep(server->parts.limits, now_ns);
}

/* ---- main loop ---- */

int server_turn(struct server *server, int timeout_ms)
{
	struct epoll_event events[EVENTS_MAX];
	bool somebody_knocks = false, is_done = false, is_stopping = false, has_policy = false;
	if (timeout_ms < 0 || timeout_ms > SWEEP_MS)
		timeout_ms = SWEEP_MS;
	int n = epoll_wait(server->epoll_fd, events, EVENTS_MAX, timeout_ms);
	if (n < 0 && errno != EINTR)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (events[i].data.u32 == TAG_STOP)
			is_stopping = true;
		else if (events[i].data.u32 == TAG_LISTEN)
			somebody_knocks = true;
		else if (events[i].data.u32 == TAG_LIMITS)
			limits_turn(server->parts.limits);
		else if (events[i].data.u32 == TAG_WORKER)
			is_done = true;
		else if (events[i].data.u32 == TAG_POLICY)
			has_policy = true;
		else
			serve_client(server, events[i].data.u32, events[i].events);
	}
	// Last: a slot freed in this turn must not be reused while events of its former client are pending.
	if (is_done)
		hand_out(server);
	if (somebody_knocks)
		accept_some(server);
	if (has_policy)
		take_policy(server);
	sweep(server);
	return is_stopping;
}

size_t server_clients(const struct server *server)
{
	return server->n_clients;
}

static int prepare(struct server *server)
{
	const struct policy *policy = server->policy;
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int r = server->epoll_fd < 0 ? -errno : 0;
	for (size_t i = 0; r == 0 && i < policy->n_periods; i++)
		r = counter_class_init(&server->classes[i], policy->periods_ns[i], server->parts.counters);
	const struct server_sockets *sockets = &server->sockets;
	if (r == 0 && sockets->listen_fd >= 0)
		r = watch(server, EPOLL_CTL_ADD, sockets->listen_fd, EPOLLIN, TAG_LISTEN);
	if (r == 0 && sockets->stop_fd >= 0)
		r = watch(server, EPOLL_CTL_ADD, sockets->stop_fd, EPOLLIN, TAG_STOP);
	if (r == 0 && sockets->guard_fd >= 0)
		r = watch(server, EPOLL_CTL_ADD, sockets->guard_fd, 0, TAG_STOP); // EPOLLERR is always reported
	if (r == 0 && sockets->policy_fd >= 0)
		r = watch(server, EPOLL_CTL_ADD, sockets->policy_fd, EPOLLIN, TAG_POLICY);
	if (r == 0)
		r = watch(server, EPOLL_CTL_ADD, limits_fd(server->parts.limits), EPOLLIN, TAG_LIMITS);
	return r;
}

int server_open(const struct server_parts *parts, const struct server_sockets *sockets, struct server **ret_server,
	struct wattle_error *reterr)
{
	struct server *server = calloc(1, sizeof(*server));
	if (server == NULL)
		return error_set(reterr, -ENOMEM, "out of memory for the connections");
	server->parts = *parts;
	server->policies[0] = *parts->policy;
	server->parts.policy = server->policy = &server->policies[0];
	server->context = (struct request_context){&server->parts, server->classes};
	server->epoll_fd = -1;
	server->sockets = *sockets;
	server->sweep_ns = env_now_ns(parts->env);
	for (size_t i = 0; i < SERVER_CLIENTS_MAX; i++)
		server->clients[i].fd = -1;
	int r = prepare(server);
	if (r < 0) {
		server_close(server);
		return error_set(reterr, r, "can't start the server: %s", strerror(-r));
	}
	*ret_server = server;
	return 0;
}

int server_start_worker(struct server *server)
{
	int limits = limits_fd(server->parts.limits);
	int r = worker_start(server->parts.limits, server->parts.env, SERVER_CLIENTS_MAX, serve_limit, server,
		&server->worker);
	if (r < 0)
		return r;
	r = watch(server, EPOLL_CTL_ADD, worker_fd(server->worker), EPOLLIN, TAG_WORKER);
	if (r < 0) {
		worker_stop(server->worker);
		server->worker = NULL;
		return r;
	}
	epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, limits, NULL); // the worker handles them now
	return 0;
}

void server_close(struct server *server)
{
	if (server == NULL)
		return;
	worker_stop(server->worker);
	for (size_t i = 0; i < SERVER_CLIENTS_MAX; i++)
		if (server->clients[i].fd >= 0)
			drop(server, &server->clients[i]);
	for (size_t i = 0; i < ARRAY_SIZE(server->classes); i++)
		counter_class_finish(&server->classes[i]);
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
	free(server);
}
