#include "process/tree.h"

#include "base/util.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGE_SIZE = 8192, RECEIVE_BUFFER = 1 << 20 };

/* ---- membership ---- */

bool exits_has_pid(const struct exits *exits, pid_t pid)
{
	return pid > 0 && exits->recent[pid % EXITS_RECENT] == pid;
}

static bool is_target(const struct exits *exits, struct tree *tree, pid_t pid)
{
	if (tree_find(tree, pid) != NULL || exits_has_pid(exits, pid))
		return true;
	for (size_t i = 0; i < tree->n_members; i++) // ended members that are still in the list
		if (tree->members[i].pid == pid)
			return true;
	return false;
}

static void recognise(struct exits *exits, const struct exit_record *record)
{
	exits->recent[record->pid % EXITS_RECENT] = record->pid;
	exits->n_unseen++;
	exits->found(exits->data, record);
}

// Removes records from `pending` whose parent has just been recognised, and then their children.
static void recognise_pending(struct exits *exits, struct tree *tree)
{
	for (bool found = true; found;) {
		found = false;
		size_t n = exits->n_pending < EXITS_PENDING ? exits->n_pending : EXITS_PENDING;
		for (size_t i = 0; i < n; i++) {
			struct exit_record *record = &exits->pending[i];
			if (record->pid == 0 || !is_target(exits, tree, record->ppid))
				continue;
			recognise(exits, record);
			record->pid = 0;
			found = true;
		}
	}
}

void exits_add(struct exits *exits, struct tree *tree, const struct exit_record *record)
{
	if (record->pid == tree->main_pid) {
		exits->main_peak_bytes = record->max_rss_bytes;
		return;
	}
	if (is_target(exits, tree, record->pid)) // already in a sample
		return;
	if (tree_is_companion(tree, record->pid))
		return;
	if (!is_target(exits, tree, record->ppid)) {
		exits->pending[exits->n_pending++ % EXITS_PENDING] = *record;
		return;
	}
	recognise(exits, record);
	if (exits->n_pending > 0)
		recognise_pending(exits, tree);
}

/* ---- netlink ---- */

struct request {
	struct nlmsghdr netlink;
	struct genlmsghdr generic;
	char attributes[128];
};

static int send_request(int fd, uint16_t type, uint8_t command, uint16_t attribute, const char *text)
{
	struct request request = {
		.netlink = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.generic = {.cmd = command, .version = 1},
	};
	size_t size = strlen(text) + 1;
	struct nlattr *header = (struct nlattr *)(void *)request.attributes;
	if (NLA_HDRLEN + size > sizeof(request.attributes))
		return -EINVAL;
	header->nla_type = attribute;
	header->nla_len = (uint16_t)(NLA_HDRLEN + size);
	memcpy(request.attributes + NLA_HDRLEN, text, size);
	request.netlink.nlmsg_len = (uint32_t)(NLMSG_LENGTH(GENL_HDRLEN) + NLA_ALIGN(header->nla_len));
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	ssize_t n = sendto(fd, &request, request.netlink.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel));
	return n < 0 ? -errno : 0;
}

// Finds an attribute in attributes[0..size); NULL: not found.
static const void *find_attribute(const char *attributes, size_t size, uint16_t type, size_t *ret_size)
{
	for (size_t at = 0; at + NLA_HDRLEN <= size;) {
		const struct nlattr *header = (const struct nlattr *)(const void *)(attributes + at);
		if (header->nla_len < NLA_HDRLEN || header->nla_len > size - at)
			return NULL;
		if ((header->nla_type & NLA_TYPE_MASK) == type) {
			*ret_size = header->nla_len - NLA_HDRLEN;
			return attributes + at + NLA_HDRLEN;
		}
		at += NLA_ALIGN(header->nla_len);
	}
	return NULL;
}

static const char *generic_payload(struct nlmsghdr *message, size_t *ret_size)
{
	if (message->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
		return NULL;
	*ret_size = message->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN);
	return (const char *)NLMSG_DATA(message) + GENL_HDRLEN;
}

// Reads the answer to send_request. Returns its error code and, if present, the family's id.
static int read_answer(int fd, uint16_t *ret_family)
{
	char buffer[MESSAGE_SIZE] __attribute__((aligned(8)));
	for (;;) {
		ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
		if (n < 0)
			return -errno;
		unsigned left = (unsigned)n;
		for (struct nlmsghdr *message = (struct nlmsghdr *)(void *)buffer; NLMSG_OK(message, left);
			message = NLMSG_NEXT(message, left)) {
			if (message->nlmsg_type == NLMSG_ERROR)
				return ((struct nlmsgerr *)NLMSG_DATA(message))->error;
			size_t size, id_size;
			const char *payload = generic_payload(message, &size);
			const uint16_t *id = payload != NULL
				? find_attribute(payload, size, CTRL_ATTR_FAMILY_ID, &id_size)
				: NULL;
			if (id != NULL && id_size >= sizeof(*id))
				*ret_family = *id;
		}
	}
}

static int listen_to_exits(int fd)
{
	struct timeval timeout = {.tv_usec = 200000}; // limits the wait if the kernel does not answer
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	uint16_t family = 0;
	int r = send_request(fd, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, TASKSTATS_GENL_NAME);
	if (r == 0)
		r = read_answer(fd, &family);
	if (r < 0 || family == 0)
		return r < 0 ? r : -ENOENT;
	char cpus[32];
	snprintf(cpus, sizeof(cpus), "0-%ld", sysconf(_SC_NPROCESSORS_CONF) - 1);
	r = send_request(fd, family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, cpus);
	return r < 0 ? r : read_answer(fd, &family);
}

void exits_open(struct exits *exits, struct tree *tree, void (*found)(void *, const struct exit_record *), void *data)
{
	*exits = (struct exits){.fd = -1, .main_peak_bytes = VALUE_MISSING, .found = found, .data = data};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (fd < 0)
		return;
	int size = RECEIVE_BUFFER; // holds a burst between two samples; the kernel drops the rest
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	if (listen_to_exits(fd) < 0) {
		close(fd);
		return;
	}
	exits->fd = fd;
	tree->exits = exits;
}

void exits_close(struct exits *exits)
{
	if (exits->fd > 0)
		close(exits->fd);
	exits->fd = -1;
}

static void add_stats(struct exits *exits, struct tree *tree, const void *bytes, size_t size, int64_t t_ns)
{
	struct taskstats stats = {0}; // the size depends on the kernel version
	memcpy(&stats, bytes, size < sizeof(stats) ? size : sizeof(stats));
	bool is_thread = size >= offsetof(struct taskstats, ac_tgid) + sizeof(stats.ac_tgid) && stats.ac_tgid != 0 &&
		stats.ac_tgid != stats.ac_pid;
	if (is_thread || stats.ac_pid == 0)
		return;
	int64_t cpu_ns = (int64_t)(stats.ac_utime + stats.ac_stime) * 1000;
	struct exit_record record = {
		.pid = (pid_t)stats.ac_pid,
		.ppid = (pid_t)stats.ac_ppid,
		.start_ns = t_ns - (int64_t)stats.ac_etime * 1000,
		.end_ns = t_ns,
		.cpu_ns = cpu_ns > 0 ? cpu_ns : VALUE_MISSING,
		.max_rss_bytes = (int64_t)stats.hiwater_rss * 1024,
	};
	text_copy(record.command, sizeof(record.command), stats.ac_comm);
	exits_add(exits, tree, &record);
}

static void add_message(struct exits *exits, struct tree *tree, struct nlmsghdr *message, int64_t t_ns)
{
	size_t size, inner_size, stats_size;
	const char *payload = generic_payload(message, &size);
	if (payload == NULL)
		return;
	const char *aggregate = find_attribute(payload, size, TASKSTATS_TYPE_AGGR_PID, &inner_size);
	if (aggregate == NULL)
		return;
	const void *stats = find_attribute(aggregate, inner_size, TASKSTATS_TYPE_STATS, &stats_size);
	if (stats != NULL)
		add_stats(exits, tree, stats, stats_size, t_ns);
}

void exits_read(struct exits *exits, struct tree *tree, int64_t t_ns)
{
	char buffer[MESSAGE_SIZE] __attribute__((aligned(8)));
	while (exits->fd >= 0) {
		ssize_t n = recv(exits->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n < 0 && errno == ENOBUFS) // records were dropped; continue with the next
			continue;
		if (n <= 0)
			return;
		unsigned left = (unsigned)n;
		for (struct nlmsghdr *message = (struct nlmsghdr *)(void *)buffer; NLMSG_OK(message, left);
			message = NLMSG_NEXT(message, left))
			add_message(exits, tree, message, t_ns);
	}
}
