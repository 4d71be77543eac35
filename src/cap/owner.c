#include "cap/journal.h"

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

// Fields of /proc/PID/stat, counted from 1, up to the last one used.
enum { STAT_AFTER_NAME = 3, STAT_FLAGS = 9, STAT_THREADS = 20, STAT_START_TICKS = 22, STAT_PENDING = 31 };
enum { FLAG_EXITING = 0x4 }; // PF_EXITING of the kernel

struct stat_line {
	uint64_t start_ticks;
	bool is_dead, is_exiting;
};

static uint64_t number_at(const char *at)
{
	char digits[32];
	uint64_t value = 0;
	snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(at, " \n"), at);
	return num_parse_u64(digits, &value) == 0 ? value : 0;
}

/* Process identities come from the kernel's own /proc, even if WATTLE_PROCFS points to another tree. `who` is a pid or
 * "self". */
static int read_stat(const char *who, struct stat_line *ret_line)
{
	char path[48], text[1024];
	const char *fields[STAT_PENDING + 1];
	snprintf(path, sizeof(path), "%s/stat", who);
	wattle_cleanup_close int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ssize_t length = file_read_in(proc_fd, path, text, sizeof(text));
	if (length < 0)
		return (int)length;
	const char *at = strrchr(text, ')'); // the name before it may contain any character
	for (int field = STAT_AFTER_NAME; field <= STAT_PENDING; field++) {
		at = at != NULL ? strchr(at, ' ') : NULL;
		if (at == NULL)
			return -EINVAL;
		fields[field] = ++at;
	}
	char state = *fields[STAT_AFTER_NAME];
	uint64_t pending = number_at(fields[STAT_PENDING]); // a SIGKILL is pending in each thread separately
	*ret_line = (struct stat_line){
		.start_ticks = number_at(fields[STAT_START_TICKS]),
		// The first thread may have ended before the others.
		.is_dead = (state == 'Z' || state == 'X') && number_at(fields[STAT_THREADS]) <= 1,
		.is_exiting = (number_at(fields[STAT_FLAGS]) & FLAG_EXITING) != 0 ||
			(pending >> (SIGKILL - 1) & 1) != 0,
	};
	return 0;
}

// False: /proc was mounted for another pid namespace and shows other pids.
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
	struct stat_line line;
	return read_stat("self", &line) == 0 ? line.start_ticks : 0;
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

static bool is_visible(const struct cap_keeper *keeper)
{
	return keeper->pid > 0 && keeper->pid_ns != 0 && keeper->pid_ns == own_pid_ns();
}

bool cap_keeper_is_gone(const struct cap_keeper *keeper)
{
	if (!is_visible(keeper))
		return false;
	if (kill(keeper->pid, 0) < 0 && errno == ESRCH)
		return true;
	char who[16];
	struct stat_line line;
	snprintf(who, sizeof(who), "%d", (int)keeper->pid);
	if (keeper->start_ticks == 0 || !proc_is_ours() || read_stat(who, &line) < 0)
		return false;
	return line.start_ticks != keeper->start_ticks || line.is_dead;
}

bool cap_keeper_is_exiting(const struct cap_keeper *keeper)
{
	char who[16];
	struct stat_line line;
	snprintf(who, sizeof(who), "%d", (int)keeper->pid);
	if (!is_visible(keeper) || !proc_is_ours() || read_stat(who, &line) < 0)
		return false;
	return line.is_exiting;
}

void cap_owner_describe(const struct cap_owner *owner, char *out, size_t size)
{
	char buffer[1024];
	struct passwd entry, *found = NULL;
	if (getpwuid_r(owner->uid, &entry, buffer, sizeof(buffer), &found) == 0 && found != NULL)
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
	wattle_cleanup_close int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC); // a test tree may lack it
	length = file_read_line_in(proc_fd, path, out, BOOT_ID_SIZE);
	if (length < 0)
		out[0] = '\0';
}
