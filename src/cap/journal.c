#include "cap/journal.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const endings[] = {[JOURNAL_LEASE] = ".lease", [JOURNAL_PERSISTENT] = ".standing"};

enum { FILE_NAME_SIZE = JOURNAL_NAME_SIZE + 24 };

static void file_name(const char *stem, enum journal_kind kind, const char *before, const char *after,
	char out[FILE_NAME_SIZE])
{
	snprintf(out, FILE_NAME_SIZE, "%s%.*s%s%s", before, JOURNAL_NAME_SIZE - 1, stem, endings[kind], after);
}

void journal_stem(const char *id, enum cap_kind what, char out[JOURNAL_NAME_SIZE])
{
	snprintf(out, JOURNAL_NAME_SIZE, "%s%s", id, what == CAP_CLOCKS ? "+clocks" : "");
}

/* ---- folder ---- */

int journal_open(const struct wattle_env *env, bool make, struct journal *ret_journal, struct wattle_error *reterr)
{
	struct journal journal = {.fd = -1};
	snprintf(journal.path, sizeof(journal.path), "%s/caps", env->state_dir);
	journal.fd = journal_folder_open(journal.path, make, reterr);
	if (journal.fd < 0)
		return journal.fd;
	*ret_journal = journal;
	return 0;
}

int journal_open_of_root(const struct wattle_env *env, struct journal *ret_journal)
{
	if (env->root_state_dir == NULL)
		return -ENOENT;
	struct journal journal;
	snprintf(journal.path, sizeof(journal.path), "%s/caps", env->root_state_dir);
	journal.fd = open(journal.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (journal.fd < 0)
		return -errno;
	*ret_journal = journal;
	return 0;
}

int journal_open_fd(int fd, const char *path, struct journal *ret_journal)
{
	*ret_journal = (struct journal){.fd = fd};
	text_copy(ret_journal->path, sizeof(ret_journal->path), path);
	return fd >= 0 ? 0 : -EBADF;
}

void journal_close(struct journal *journal)
{
	if (journal->fd >= 0)
		close(journal->fd);
	journal->fd = -1;
}

/* ---- reading ---- */

// Otherwise other users could choose the values that root writes to the device.
static bool is_trusted(const struct stat *file)
{
	return S_ISREG(file->st_mode) && (file->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
		(file->st_uid == 0 || file->st_uid == geteuid());
}

static ssize_t read_whole(int fd, char *out, size_t size)
{
	size_t length = 0;
	for (;;) {
		ssize_t n = read(fd, out + length, size - length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		length += (size_t)n;
		if (n == 0 || length == size)
			return (ssize_t)length;
	}
}

int journal_read(const struct journal *journal, const char *stem, enum journal_kind kind,
	struct journal_entry *ret_entry, struct wattle_error *reterr)
{
	char name[FILE_NAME_SIZE], text[JOURNAL_TEXT_MAX], expected[JOURNAL_NAME_SIZE];
	struct wattle_error why = {0};
	struct journal_entry entry;
	struct stat st;
	file_name(stem, kind, "", "", name);
	wattle_cleanup_close int fd = openat(journal->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 && errno != ELOOP)
		return error_set(reterr, -errno, "%s/%s: %s", journal->path, name, strerror(errno));
	if (fd < 0 || fstat(fd, &st) < 0 || !is_trusted(&st))
		return error_set(reterr, -EBADMSG,
			"%s/%s is ignored: it must belong to root or to this user, and others must not be "
			"able to write it",
			journal->path, name);
	ssize_t length = read_whole(fd, text, sizeof(text));
	if (length < 0)
		return error_set(reterr, (int)length, "%s/%s: %s", journal->path, name, strerror((int)-length));
	if (journal_entry_parse(text, (size_t)length, &entry, &why) < 0)
		return error_set(reterr, -EBADMSG, "%s/%s %s", journal->path, name, why.text);
	journal_stem(entry.id, entry.what, expected);
	if (strcmp(stem, expected) != 0)
		return error_set(reterr, -EBADMSG, "%s/%s is the journal of another device, %s", journal->path, name,
			expected);
	*ret_entry = entry;
	return 0;
}

int journal_each(const struct journal *journal, enum journal_kind kind, int (*call)(void *data, const char *stem),
	void *data)
{
	int fd = openat(journal->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); // a descriptor with its own file position
	wattle_cleanup_dir DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	if (folder == NULL) {
		int code = -errno;
		if (fd >= 0)
			close(fd);
		return code;
	}
	size_t length = strlen(endings[kind]);
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		size_t size = strlen(entry->d_name);
		char stem[JOURNAL_NAME_SIZE];
		if (entry->d_name[0] == '.' || size <= length || size - length >= sizeof(stem) ||
			strcmp(entry->d_name + size - length, endings[kind]) != 0)
			continue;
		memcpy(stem, entry->d_name, size - length);
		stem[size - length] = '\0';
		int r = call(data, stem);
		if (r != 0)
			return r;
	}
	return 0;
}

/* ---- writing ---- */

static int write_synced(int folder_fd, const char *name, const struct buf *text)
{
	wattle_cleanup_close int fd = openat(folder_fd, name,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0)
		return -errno;
	int r = buf_write_fd(text, fd);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

/* The temporary file has a fixed name: there is only one writer (the holder of the lease or the lock), and it
 * overwrites what a killed writer left. */
int journal_write(const struct journal *journal, enum journal_kind kind, const struct journal_entry *entry,
	struct wattle_error *reterr)
{
	char stem[JOURNAL_NAME_SIZE], name[FILE_NAME_SIZE], beside[FILE_NAME_SIZE];
	journal_stem(entry->id, entry->what, stem);
	file_name(stem, kind, "", "", name);
	file_name(stem, kind, ".", ".new", beside);
	struct buf text;
	buf_init(&text, JOURNAL_TEXT_MAX - 1);
	journal_entry_print(entry, &text);
	int r = text.failed;
	if (r == 0)
		r = write_synced(journal->fd, beside, &text);
	buf_finish(&text);
	if (r == 0 && (renameat(journal->fd, beside, journal->fd, name) < 0 || fsync(journal->fd) < 0))
		r = -errno;
	if (r == 0)
		return 0;
	unlinkat(journal->fd, beside, 0);
	return error_set(reterr, r, "can't write %s/%s: %s; wattle changes no limit without a journal", journal->path,
		name, strerror(-r));
}

int journal_remove(const struct journal *journal, enum journal_kind kind, const struct journal_entry *entry)
{
	char stem[JOURNAL_NAME_SIZE], name[FILE_NAME_SIZE];
	journal_stem(entry->id, entry->what, stem);
	file_name(stem, kind, "", "", name);
	if (unlinkat(journal->fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	return fsync(journal->fd) < 0 ? -errno : 0;
}

int journal_put_aside(const struct journal *journal, const char *stem, enum journal_kind kind)
{
	char name[FILE_NAME_SIZE], aside[FILE_NAME_SIZE];
	file_name(stem, kind, "", "", name);
	file_name(stem, kind, "", ".broken", aside);
	return renameat(journal->fd, name, journal->fd, aside) < 0 ? -errno : 0;
}
