/* The guard waits for the death of its owner and restores the limits that it left. Started as lease.h describes: in its
 * own session, with only the socket to its owner open, and ignoring signals. */
#include "base/cleanup.h"
#include "base/spawn.h"
#include "base/util.h"
#include "cap/internal.h"
#include "cap/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { GUARD_OK = 0, GUARD_FAILED = 1, GUARD_USAGE = 2 };
enum { EXITING_MS = 1000 }; // maximum time from the close of the owner's descriptors to the end of its last thread

struct guard {
	const struct wattle_env *env; // borrowed
	struct guard_order order;
	struct journal journal;
	int line_fd, owner_fd; // owner_fd: pidfd of the owner
	struct cap_devices devices;
	struct journal_entry *entries; // owned: latest journal entry sent by the owner, per lease
	size_t n_entries;
};

/* ---- process setup ---- */

static int receive(struct guard *guard, int line_fd)
{
	struct iovec part = {.iov_base = &guard->order, .iov_len = sizeof(guard->order)};
	union {
		struct cmsghdr header;
		char buffer[CMSG_SPACE(sizeof(int[GUARD_FDS]))];
	} control;
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.buffer,
		.msg_controllen = sizeof(control.buffer)};
	ssize_t n = recvmsg(line_fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *rights = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (n != (ssize_t)sizeof(guard->order) || guard->order.size != sizeof(guard->order) || rights == NULL ||
		rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(sizeof(int[GUARD_FDS])))
		return -EPROTO;
	int fds[GUARD_FDS];
	memcpy(fds, CMSG_DATA(rights), sizeof(fds));
	guard->line_fd = line_fd;
	guard->owner_fd = fds[GUARD_PIDFD];
	return journal_open_fd(fds[GUARD_JOURNAL], guard->order.journal_path, &guard->journal);
}

static void ignore_signals(void)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM,
		SIGPROF, SIGIO, SIGPWR, SIGTSTP, SIGTTIN, SIGTTOU, SIGXCPU};
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
}

// Asks the OOM killer for the lowest score this user may set: other processes hold more memory.
static void lower_oom_score(void)
{
	static const char *const adjustments[] = {"-1000", "-500", "0"};
	wattle_cleanup_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	for (size_t i = 0; fd >= 0 && i < ARRAY_SIZE(adjustments); i++)
		if (write(fd, adjustments[i], strlen(adjustments[i])) > 0)
			return;
}

// False: the receiver is gone.
static bool answer(const struct guard *guard, int code, const struct cap_outcome *outcome, const char *text)
{
	struct guard_answer message = {.code = code};
	if (outcome != NULL)
		message.outcome = *outcome;
	text_copy(message.text, sizeof(message.text), text);
	return send(guard->line_fd, &message, sizeof(message), MSG_NOSIGNAL) == (ssize_t)sizeof(message);
}

/* ---- guard of an owner ---- */

static size_t recover(struct guard *guard, bool is_dead)
{
	struct recovery recovery = {
		.env = guard->env,
		.journal = &guard->journal,
		.devices = &guard->devices,
		.is_open = true,
		.of = &guard->order.keeper,
		.is_dead = is_dead,
		.wait_mode = LOCK_SLEEP,
	};
	recover_all(&recovery);
	recover_entries(&recovery, guard->entries, guard->n_entries);
	return recovery.n_left;
}

static bool has_exited(const struct guard *guard, int timeout_ms)
{
	struct pollfd owner = {.fd = guard->owner_fd, .events = POLLIN};
	return poll(&owner, 1, timeout_ms) > 0;
}

static void remember(struct guard *guard, const struct journal_entry *lease)
{
	size_t i = 0;
	while (i < guard->n_entries &&
		(guard->entries[i].what != lease->what || strcmp(guard->entries[i].id, lease->id) != 0))
		i++;
	if (i == guard->n_entries) {
		struct journal_entry *larger = realloc_array(guard->entries, i + 1, sizeof(*larger));
		if (larger == NULL)
			return;
		guard->entries = larger;
		guard->n_entries++;
	}
	guard->entries[i] = *lease;
}

// True: nothing is left to guard.
static bool on_line(struct guard *guard)
{
	union {
		char word;
		struct journal_entry lease;
	} message;
	ssize_t n = recv(guard->line_fd, &message, sizeof(message), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n == (ssize_t)sizeof(message.lease)) {
		remember(guard, &message.lease);
		return false;
	}
	if (n == 1 && message.word == GUARD_DONE)
		return true;
	/* The owner is dying, or it closed the socket by an exec and lives on. In both cases its locks are gone. */
	close(guard->line_fd);
	guard->line_fd = -1;
	if (has_exited(guard, EXITING_MS))
		return false;
	return recover(guard, false) == 0;
}

// Avoids blocking an unmount. Done late, because paths may be relative to the owner's folder.
static void leave_folder(void)
{
	(void)!chdir("/");
}

static int watch(struct guard *guard)
{
	leave_folder();
	answer(guard, 0, NULL, "");
	for (;;) {
		struct pollfd fds[] = {{.fd = guard->owner_fd, .events = POLLIN},
			{.fd = guard->line_fd, .events = POLLIN}};
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return GUARD_FAILED;
		if (fds[1].revents != 0) { // process pending messages first
			if (on_line(guard))
				return GUARD_OK;
		} else if (has_exited(guard, 0))
			return recover(guard, true) == 0 ? GUARD_OK : GUARD_FAILED;
	}
}

/* ---- guard as owner of a timed limit ---- */

static struct cap_device *find(struct guard *guard)
{
	for (size_t i = 0; i < guard->devices.n; i++) {
		struct cap_device *device = &guard->devices.devices[i];
		if (device->what == guard->order.what && strcmp(device->id, guard->order.id) == 0)
			return device;
	}
	return NULL;
}

// On CLOCK_BOOTTIME, so that time in suspend counts.
static int wait_for_the_hour(int64_t for_ns, const sigset_t *must_exit)
{
	wattle_cleanup_close int timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	wattle_cleanup_close int signal_fd = signalfd(-1, must_exit, SFD_CLOEXEC);
	const struct itimerspec hour = {.it_value = {.tv_sec = for_ns / NS_PER_S, .tv_nsec = for_ns % NS_PER_S}};
	if (timer_fd < 0 || signal_fd < 0 || timerfd_settime(timer_fd, 0, &hour, NULL) < 0)
		return -errno;
	struct pollfd fds[] = {{.fd = timer_fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
	while (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno == EINTR)
		continue;
	return 0;
}

// False: the requester died, or timed out and reported that nothing was changed.
static bool is_wanted(const struct guard *guard)
{
	struct pollfd fds[] = {{.fd = guard->owner_fd, .events = POLLIN}, {.fd = guard->line_fd}};
	return poll(fds, ARRAY_SIZE(fds), 0) == 0;
}

static int hold(struct guard *guard)
{
	struct wattle_error error = {0};
	struct cap_outcome outcome = {0};
	struct cap_lease *lease;
	struct cap_device *device = find(guard);
	struct cap_owner self; // the requester will have exited before anyone reads the owner
	sigset_t must_exit;
	cap_owner_self(guard->order.owner.name, &self);
	sigemptyset(&must_exit);
	sigaddset(&must_exit, SIGTERM);
	sigprocmask(SIG_BLOCK, &must_exit, NULL);
	signal(SIGTERM, SIG_DFL); // an ignored signal would not arrive at the signalfd
	int r = device != NULL ? 0 : error_set(&error, -ENODEV, "%s no longer exists", guard->order.id);
	if (r == 0)
		r = lease_open_as(guard->env, device, &self, true, NULL, &lease, &error);
	if (r < 0) {
		answer(guard, r, NULL, error.text);
		return GUARD_FAILED;
	}
	leave_folder();
	r = is_wanted(guard) ? cap_lease_set(lease, guard->order.value, &outcome, &error) : -ECANCELED;
	bool is_heard = answer(guard, r, &outcome, error.text);
	close(guard->line_fd);
	close(guard->owner_fd);
	if (r == 0 && is_heard)
		wait_for_the_hour(guard->order.for_ns, &must_exit);
	return cap_lease_end(lease, &outcome, NULL) == 0 && r == 0 ? GUARD_OK : GUARD_FAILED;
}

int cap_guard_main(const struct wattle_env *env, int argc, char **argv)
{
	struct guard guard = {.env = env, .journal = {.fd = -1}, .line_fd = -1, .owner_fd = -1};
	struct wattle_error error = {0};
	if (receive(&guard, SPAWN_CONTROL_FD) < 0)
		return GUARD_USAGE; // started by hand or by another version
	ignore_signals();
	lower_oom_score();
	prctl(PR_SET_NAME, "wattle-guard");
	int r = cap_devices_open(&guard.devices, env, &error);
	malloc_trim(0);
	int status = GUARD_FAILED;
	if (r < 0)
		answer(&guard, r, NULL, error.text);
	else
		status = guard.order.for_ns > 0 ? hold(&guard) : watch(&guard);
	cap_devices_close(&guard.devices);
	journal_close(&guard.journal);
	free(guard.entries);
	return status;
}
