/* What a living process has read, written and waited for, its reaped children included where the kernel adds them. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct process_io {
	int64_t read_bytes, written_bytes;                // storage: read_bytes and write_bytes of /proc/PID/io
	int64_t voluntary_switches, involuntary_switches; // all living threads, without children
};

// 0 or negative errno (another user's process: -EACCES).
int process_io_read(int procfs_fd, pid_t pid, struct process_io *ret_io);
