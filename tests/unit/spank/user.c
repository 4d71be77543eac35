#include "spank/spank.h"

#include "base/util.h"
#include "rows.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, OTHER_GROUP = 4711, UNKNOWN = -1 };

static const struct row {
	const char *teaches;
	uid_t uid;
	gid_t gid;
	int result; // of become_owner
} rows[] = {
	{"root: becomes the job's user, with the user's group and without root's groups", NOBODY, OTHER_GROUP, 0},
	{"unknown group: refused", NOBODY, (gid_t)UNKNOWN, -EINVAL},
	{"unknown user: refused", (uid_t)UNKNOWN, OTHER_GROUP, -EINVAL},
};

// In a process of its own. 0: success.
static int look(const struct row *row)
{
	const gid_t of_root[] = {0, 1};
	const struct task_owner owner = {.uid = row->uid, .gid = row->gid, .folder_fd = -1};
	if (setgroups(ARRAY_SIZE(of_root), of_root) != 0 || become_owner(&owner) != row->result)
		return 1;
	if (row->result < 0)
		return 0;
	uid_t uids[3];
	gid_t gids[3];
	getresuid(&uids[0], &uids[1], &uids[2]);
	getresgid(&gids[0], &gids[1], &gids[2]);
	for (size_t i = 0; i < ARRAY_SIZE(uids); i++)
		if (uids[i] != row->uid || gids[i] != row->gid)
			return 2;
	return getgroups(0, NULL) == 0 ? 0 : 3;
}

static void check(void **state)
{
	if (geteuid() != 0)
		skip();
	pid_t pid = fork();
	if (pid == 0)
		_exit(look(*state));
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "user");
}
