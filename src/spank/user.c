#include "spank/spank.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

// The OOM killer spares slurmstepd; a program of the user must not inherit that.
static void be_killable(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, "0", 1);
	close(fd);
}

static void forget_signals(void)
{
	sigset_t none;
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int become_owner(const struct task_owner *owner)
{
	forget_signals();
	setsid();
	if (owner->uid == (uid_t)-1 ||
		owner->gid == (gid_t)-1) // unknown: setresuid and setresgid would change nothing
		return -EINVAL;
	if (geteuid() != 0 && getuid() == 0 &&
		seteuid(0) != 0) // Slurm sometimes calls the plugin with another effective user
		return -errno;
	if (getuid() == 0) {
		be_killable();
		if (setgroups(owner->n_groups, owner->groups) != 0 ||
			setresgid(owner->gid, owner->gid, owner->gid) != 0 ||
			setresuid(owner->uid, owner->uid, owner->uid) != 0)
			return -errno;
	}
	if (owner->folder_fd >= 0 &&
		fchdir(owner->folder_fd) != 0) // as the user: on some file systems root has no access
		return -errno;
	bool is_user = getuid() == owner->uid && geteuid() == owner->uid;
	bool is_group = getgid() == owner->gid && getegid() == owner->gid;
	return is_user && is_group ? 0 : -EPERM;
}
