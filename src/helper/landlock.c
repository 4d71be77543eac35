#include "helper/helper.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Constants of linux/landlock.h of Linux 6.12, because the header of Debian 12 has only ABI version 2. A kernel rejects
 * rights that are newer than its own version. */
enum { CREATE_RULESET_VERSION = 1, RULE_PATH_BENEATH = 1 };
static const long create_ruleset_nr = 444, add_rule_nr = 445, restrict_self_nr = 446; // the same on all architectures
struct ruleset {
	uint64_t handled_access_fs;
};
struct __attribute__((packed)) path_beneath {
	uint64_t allowed_access;
	int32_t parent_fd;
};

#define RIGHT(number) (UINT64_C(1) << (number))
static const uint64_t write_file = RIGHT(1), read_file = RIGHT(2), read_dir = RIGHT(3), remove_dir = RIGHT(4),
		      remove_file = RIGHT(5), make_dir = RIGHT(7), make_file = RIGHT(8), truncate_file = RIGHT(14),
		      ioctl_device = RIGHT(15);
static const int n_rights[] = {0, 13, 14, 15, 15, 16}; // by ABI version; later versions add no rights for files

static uint64_t handled(int abi)
{
	size_t last = ARRAY_SIZE(n_rights) - 1;
	return RIGHT(n_rights[(size_t)abi < last ? (size_t)abi : last]) - 1;
}

void landlock_begin(struct landlock *ret_landlock)
{
	long abi = syscall(create_ruleset_nr, NULL, 0, CREATE_RULESET_VERSION);
	*ret_landlock = (struct landlock){.fd = -1, .abi = abi > 0 ? (int)abi : -errno};
	if (abi <= 0)
		return;
	const struct ruleset rules = {.handled_access_fs = handled(ret_landlock->abi)};
	ret_landlock->fd = (int)syscall(create_ruleset_nr, &rules, sizeof(rules), 0);
	if (ret_landlock->fd < 0)
		ret_landlock->abi = -errno;
}

static void note_failure(struct landlock *landlock, const char *path, int error)
{
	if (landlock->error != 0 || error == ENOENT || error == ENOTDIR)
		return;
	landlock->error = error;
	text_copy(landlock->failed_path, sizeof(landlock->failed_path), path);
}

void landlock_allow(struct landlock *landlock, int at_fd, const char *path, enum file_use use)
{
	const uint64_t rights[] = {
		[FILES_READ] = read_file | read_dir,
		[FILES_WRITE] = read_file | read_dir | write_file | truncate_file | ioctl_device,
		[FILES_OWN] = read_file | read_dir | write_file | truncate_file | make_file | make_dir | remove_file |
			remove_dir,
		[FILES_REMOVE] = remove_file,
	};
	static const uint64_t of_files = RIGHT(0) | write_file | read_file | truncate_file | ioctl_device;
	struct stat st;
	if (landlock->fd < 0)
		return;
	wattle_cleanup_close int fd = at_fd == AT_FDCWD ? open(path, O_PATH | O_CLOEXEC)
							: file_open_in(at_fd, path, O_PATH);
	if (fd < 0 || fstat(fd, &st) < 0) {
		note_failure(landlock, path, at_fd != AT_FDCWD && fd < 0 ? -fd : errno);
		return;
	}
	uint64_t access = rights[use] & handled(landlock->abi) & (S_ISDIR(st.st_mode) ? UINT64_MAX : of_files);
	const struct path_beneath rule = {access, fd};
	if (syscall(add_rule_nr, landlock->fd, RULE_PATH_BENEATH, &rule, 0) != 0)
		note_failure(landlock, path, errno);
}

int landlock_enforce(struct landlock *landlock)
{
	if (landlock->fd < 0)
		return -landlock->abi;
	int error = landlock->error;
	if (error == 0 && syscall(restrict_self_nr, landlock->fd, 0) != 0)
		error = errno;
	close(landlock->fd);
	landlock->fd = -1;
	return error;
}
