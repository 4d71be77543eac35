#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Memory is only reserved: pages that are never written cost nothing.
enum { CHANGES_MAX = 1 << 20 };

static bool has_room(struct fake_log *log)
{
	if (log->changes == NULL) {
		void *buffer = mmap(NULL, CHANGES_MAX * sizeof(*log->changes), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		log->changes = buffer != MAP_FAILED ? buffer : NULL;
	}
	return log->changes != NULL && log->n < CHANGES_MAX;
}

// A line left incomplete by a killed writer has no pid and is ignored.
static void take_line(const char *line, struct fake_log *log)
{
	struct fake_change change;
	int pid;
	if (sscanf(line, "%" SCNd64 " %u %u %d", &change.t_ns, &change.index, &change.value, &pid) == 4 &&
		has_room(log))
		log->changes[log->n++] = change;
}

static int open_log(const char *path)
{
	return open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

void fake_log_keep(const char *config_path, struct fake_log *log)
{
	char path[600];
	snprintf(path, sizeof(path), "%s%s", config_path, log->suffix);
	if (log->kept_fd > 0)
		return;
	int fd = open_log(path);
	log->kept_fd = fd > 0 ? fd : 0;
}

// The open file, if it is still the one of that name.
static int reopen(const char *path, const struct fake_log *log)
{
	struct stat kept, now;
	bool is_same = log->kept_fd > 0 && fstat(log->kept_fd, &kept) == 0 && stat(path, &now) == 0 &&
		kept.st_ino == now.st_ino && kept.st_dev == now.st_dev;
	return is_same ? fcntl(log->kept_fd, F_DUPFD_CLOEXEC, 0) : open_log(path);
}

// Only lines added since the last time; all of them if the file is another one, or was truncated.
void fake_log_read(const char *config_path, struct fake_log *log)
{
	char path[600], line[128];
	struct stat now;
	snprintf(path, sizeof(path), "%s%s", config_path, log->suffix);
	if (stat(path, &now) < 0) {
		log->n = 0;
		log->inode = 0;
		return;
	}
	if (now.st_ino != log->inode || now.st_size < log->read_bytes) {
		log->n = 0;
		log->read_bytes = 0;
		log->inode = now.st_ino;
	}
	if (now.st_size == log->read_bytes)
		return;
	FILE *file = log->kept_fd > 0 ? fdopen(reopen(path, log), "r") : fopen(path, "re");
	if (file == NULL)
		return;
	fseek(file, log->read_bytes, SEEK_SET);
	while (fgets(line, sizeof(line), file) != NULL && strchr(line, '\n') != NULL) {
		take_line(line, log);
		log->read_bytes = ftell(file);
	}
	fclose(file);
}

void fake_logs_read(const char *config_path, struct fake_logs *logs)
{
	for (size_t i = 0; i < FAKE_LOGS; i++)
		fake_log_read(config_path, &logs->of[i]);
}

// A writer killed within its write may have left an incomplete line: it is ended, so that this one starts a new line.
static bool ends_in_line(int fd)
{
	char last = '\n';
	off_t size = lseek(fd, 0, SEEK_END);
	return size <= 0 || pread(fd, &last, 1, size - 1) != 1 || last == '\n';
}

int fake_logs_lock(const char *config_path, int operation)
{
	int fd = open(config_path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && flock(fd, operation) < 0 && errno == EINTR)
		continue;
	return fd;
}

// A child that was forked meanwhile has a copy of the descriptor: closing ours would not end the lock.
void fake_logs_unlock(int lock_fd)
{
	if (lock_fd < 0)
		return;
	flock(lock_fd, LOCK_UN);
	close(lock_fd);
}

bool fake_log_add(const char *config_path, const struct fake_log *log, unsigned int index, const char *words)
{
	char path[600], line[128];
	snprintf(path, sizeof(path), "%s%s", config_path, log->suffix);
	int fd = reopen(path, log);
	if (fd < 0)
		return false;
	int lock_fd = fake_logs_lock(config_path, LOCK_EX);
	int length = snprintf(line, sizeof(line), "%s%" PRId64 " %u %s\n", ends_in_line(fd) ? "" : "\n", fake_now_ns(),
		index, words);
	bool written = write(fd, line, (size_t)length) == length;
	fake_logs_unlock(lock_fd);
	close(fd);
	return written;
}
