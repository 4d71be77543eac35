#include "cap/journal.h"

#include "base/cleanup.h"
#include "base/lock_file.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

enum { LOCK_NAME_SIZE = JOURNAL_NAME_SIZE + 8, TRIES_MAX = 500 };
static const struct timespec between_tries = {.tv_nsec = 10 * NS_PER_MS};

static struct flock of_byte(short type, int64_t at)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
}

int lock_retake(int fd, enum lock_wait_mode wait_mode)
{
	struct flock lock = of_byte(F_WRLCK, 0);
	int tries = wait_mode == LOCK_WAIT ? TRIES_MAX : 1;
	for (;;) {
		if (fcntl(fd, wait_mode == LOCK_SLEEP ? F_OFD_SETLKW : F_OFD_SETLK, &lock) == 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EACCES)
			return -errno;
		if (--tries <= 0)
			return -EBUSY;
		nanosleep(&between_tries, NULL);
	}
}

static void lock_name(const char *stem, char out[LOCK_NAME_SIZE])
{
	snprintf(out, LOCK_NAME_SIZE, "%.*s.lock", JOURNAL_NAME_SIZE - 1, stem);
}

int lock_take(const struct journal *journal, const char *stem, enum lock_wait_mode wait_mode, int *ret_fd,
	struct wattle_error *reterr)
{
	char name[LOCK_NAME_SIZE];
	lock_name(stem, name);
	struct wattle_error why = {0};
	wattle_cleanup_close int fd = -1;
	int r = lock_file_open(journal->fd, name, &fd, &why);
	if (r < 0)
		return error_set(reterr, r, "can't lock %s/%s", journal->path, why.text);
	r = lock_retake(fd, wait_mode);
	if (r == -EBUSY)
		return error_set(reterr, r, "another wattle process is changing this limit (%s/%s); try again",
			journal->path, name);
	if (r < 0)
		return error_set(reterr, r, "can't lock %s/%s: %s", journal->path, name, strerror(-r));
	*ret_fd = take_fd(&fd);
	return 0;
}

void lock_drop(int fd)
{
	struct flock lock = of_byte(F_UNLCK, 0);
	fcntl(fd, F_OFD_SETLK, &lock);
}

int lock_keep(int fd, int64_t *ret_token)
{
	uint64_t random;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	int64_t token = 1 + (int64_t)(random >> 2);
	struct flock lock = of_byte(F_WRLCK, token);
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
		return -errno;
	*ret_token = token;
	return 0;
}

bool lock_is_kept(const struct journal *journal, const char *stem, const struct journal_entry *lease)
{
	char name[LOCK_NAME_SIZE];
	lock_name(stem, name);
	wattle_cleanup_close int fd = openat(journal->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct flock lock = of_byte(F_WRLCK, lease->token);
	struct stat st;
	// A lock file of another user proves nothing or can't be read: then only the state of the process counts.
	bool is_others = fd < 0 ? errno == EACCES : fstat(fd, &st) < 0 || !lock_file_may_own(&st);
	if (!is_others && (fd < 0 || fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type == F_UNLCK))
		return false;
	return !cap_keeper_is_gone(&lease->keeper);
}
