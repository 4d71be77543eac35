/* Rules of Landlock that cannot be added. Each row runs in a child, because an enforced ruleset stays. */
#include "helper/helper.h"

#include "rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct row {
	const char *teaches, *path;
	enum file_use use;
	bool is_broken; // the kernel refuses every rule
	int expected;
} rows[] = {
	{"rule for an existing folder: enforced", "/usr", FILES_READ, false, 0},
	{"missing path: no rule and no error", "/nonexistent/folder", FILES_READ, false, 0},
	{"path below a file, which cannot exist: no error", "/dev/null/x", FILES_READ, false, 0},
	{"file without any right of the rule: error, nothing is enforced", "/etc/passwd", FILES_REMOVE, false, ENOMSG},
	{"symbolic links in a circle: error, nothing is enforced", "circle", FILES_READ, false, ELOOP},
	{"ruleset that takes no rule: error, nothing is enforced", "/usr", FILES_READ, true, EBADFD},
};

static int child(const struct row *row)
{
	struct landlock landlock;
	landlock_begin(&landlock);
	if (row->is_broken)
		dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), landlock.fd);
	landlock_allow(&landlock, AT_FDCWD, row->path, row->use);
	landlock_allow(&landlock, AT_FDCWD, "/", FILES_REMOVE); // a later rule overrides no earlier one
	int error = landlock_enforce(&landlock);
	bool named = error == 0 || strcmp(landlock.failed_path, row->path) == 0;
	bool is_restricted = access("/", F_OK) == 0 && open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0;
	return named && is_restricted == (error == 0) ? error : 255;
}

static void check(void **state)
{
	const struct row *row = *state;
	struct landlock landlock;
	landlock_begin(&landlock);
	if (landlock.fd < 0)
		skip();
	close(landlock.fd);
	char folder[] = "/tmp/landlock.XXXXXX";
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(symlink("circle", "circle"), 0);
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(child(row));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink("circle");
	rmdir(folder);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), row->expected);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "landlock");
}
