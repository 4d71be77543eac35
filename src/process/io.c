#include "process/tree.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static int64_t number_after(const char *text, const char *key)
{
	const char *line = strstr(text, key);
	return line != NULL ? strtoll(line + strlen(key), NULL, 10) : 0;
}

static void add_switches(int procfs_fd, pid_t pid, const char *tid, struct process_io *io)
{
	char path[300], text[4096];
	snprintf(path, sizeof(path), "%d/task/%s/status", pid, tid);
	if (file_read_in(procfs_fd, path, text, sizeof(text)) <= 0)
		return;
	io->voluntary_switches += number_after(text, "\nvoluntary_ctxt_switches:");
	io->involuntary_switches += number_after(text, "\nnonvoluntary_ctxt_switches:");
}

int process_io_read(int procfs_fd, pid_t pid, struct process_io *ret_io)
{
	char path[32], text[512];
	snprintf(path, sizeof(path), "%d/io", pid);
	ssize_t n = file_read_in(procfs_fd, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	struct process_io io = {
		.read_bytes = number_after(text, "\nread_bytes:"),
		.written_bytes = number_after(text, "\nwrite_bytes:"),
	};
	snprintf(path, sizeof(path), "%d/task", pid);
	wattle_cleanup_close int fd = file_open_in(procfs_fd, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	char entries[FOLDER_TEXT_SIZE] __attribute__((aligned(8)));
	struct folder_walk tasks = folder_walk_begin(fd, entries, sizeof(entries));
	for (const char *tid; (tid = folder_walk_next(&tasks, NULL)) != NULL;)
		add_switches(procfs_fd, pid, tid, &io);
	*ret_io = io;
	return 0;
}
