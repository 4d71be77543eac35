#include "cap/owner.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { STAT_THREADS = 20, STAT_START_TICKS = 22, STAT_AFTER_NAME = 3 }; // fields of /proc/PID/stat, counted from 1

/* The identity of processes is the kernel's own /proc, also where WATTLE_PROCFS stands for the target's. `who` is a pid
 * or "self". *ret_state: 'Z' and 'X' have ended. */
static int read_stat(const char *who, uint64_t *ret_start_ticks, bool *ret_is_dead)
{
	char path[48], text[1024], ticks[32];
	snprintf(path, sizeof(path), "%s/stat", who);
	wattle_cleanup_close int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ssize_t length = file_read_in(proc_fd, path, text, sizeof(text));
	if (length < 0)
		return (int)length;
	const char *at = strrchr(text, ')'); // the name before it may hold anything
	if (at == NULL || at[1] != ' ')
		return -EINVAL;
	at += 2;
	bool is_zombie = *at == 'Z' || *at == 'X', is_last_thread = true;
	for (int field = STAT_AFTER_NAME; field < STAT_START_TICKS; field++) {
		at = strchr(at, ' ');
		if (at == NULL)
			return -EINVAL;
		at++;
		if (field + 1 == STAT_THREADS)
			is_last_thread = strncmp(at, "0 ", 2) == 0 || strncmp(at, "1 ", 2) == 0;
	}
	*ret_is_dead = is_zombie && is_last_thread; // its first thread may have ended before the others
	snprintf(ticks, sizeof(ticks), "%.*s", (int)strcspn(at, " \n"), at);
	return num_parse_u64(ticks, ret_start_ticks);
}

// Of a /proc that was mounted for another namespace of pids: its numbers are not ours.
static bool proc_is_ours(void)
{
	char shown[32], ours[32];
	ssize_t length = readlink("/proc/self", shown, sizeof(shown) - 1);
	if (length < 0)
		return false;
	shown[length] = '\0';
	snprintf(ours, sizeof(ours), "%d", (int)getpid());
	return strcmp(shown, ours) == 0;
}

static uint64_t own_start_ticks(void)
{
	uint64_t ticks;
	bool is_dead;
	return read_stat("self", &ticks, &is_dead) == 0 ? ticks : 0;
}

static uint64_t own_pid_ns(void)
{
	struct stat st;
	return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

int cap_owner_self(const char *name, struct cap_owner *ret_owner)
{
	*ret_owner = (struct cap_owner){.pid = getpid(), .start_ticks = own_start_ticks(), .uid = getuid()};
	text_copy(ret_owner->name, sizeof(ret_owner->name), name);
	return 0;
}

void cap_keeper_self(struct cap_keeper *ret_keeper)
{
	*ret_keeper = (struct cap_keeper){.pid = getpid(), .start_ticks = own_start_ticks(), .pid_ns = own_pid_ns()};
}

bool cap_keeper_is(const struct cap_keeper *a, const struct cap_keeper *b)
{
	return a->pid == b->pid && a->start_ticks == b->start_ticks && a->pid_ns == b->pid_ns;
}

bool cap_keeper_is_self(const struct cap_keeper *keeper)
{
	struct cap_keeper self;
	cap_keeper_self(&self);
	return cap_keeper_is(keeper, &self);
}

bool cap_keeper_is_gone(const struct cap_keeper *keeper)
{
	if (keeper->pid <= 0 || keeper->pid_ns == 0 || keeper->pid_ns != own_pid_ns())
		return false;
	if (kill(keeper->pid, 0) < 0 && errno == ESRCH)
		return true;
	char who[16];
	uint64_t ticks;
	bool is_dead;
	snprintf(who, sizeof(who), "%d", (int)keeper->pid);
	if (keeper->start_ticks == 0 || !proc_is_ours() || read_stat(who, &ticks, &is_dead) < 0)
		return false;
	return ticks != keeper->start_ticks || is_dead;
}

void cap_owner_describe(const struct cap_owner *owner, char *out, size_t size)
{
	char room[1024];
	struct passwd entry, *found = NULL;
	if (getpwuid_r(owner->uid, &entry, room, sizeof(room), &found) == 0 && found != NULL)
		snprintf(out, size, "%s, pid %d, user %s", owner->name, (int)owner->pid, found->pw_name);
	else
		snprintf(out, size, "%s, pid %d, uid %u", owner->name, (int)owner->pid, (unsigned)owner->uid);
}

void cap_boot_id(const struct wattle_env *env, char out[BOOT_ID_SIZE])
{
	static const char path[] = "sys/kernel/random/boot_id";
	ssize_t length = file_read_line_in(env->procfs_fd, path, out, BOOT_ID_SIZE);
	if (length > 0)
		return;
	wattle_cleanup_close int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC); // a made tree may lack it
	length = file_read_line_in(proc_fd, path, out, BOOT_ID_SIZE);
	if (length < 0)
		out[0] = '\0';
}
