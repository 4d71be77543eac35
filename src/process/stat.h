/* One line of /proc/PID/stat. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_NAME_SIZE = 32 };

struct process_stat {
	char state;
	char name[PROCESS_NAME_SIZE]; // comm; the kernel cuts it at 15 bytes (kernel threads at more)
	pid_t ppid;
	int64_t own_ns;                     // utime + stime: all threads, those that have ended too
	int64_t children_ns;                // cutime + cstime: children that were waited for, recursively
	int64_t minor_faults, major_faults; // own
	int64_t children_minor_faults, children_major_faults; // of waited-for children
	int64_t threads;
	uint64_t start_ticks; // since boot; with the pid this is the identity of a process
	int64_t rss_bytes;
	int64_t file_bytes; // of it, pages of files and of shared memory: from statm, 0 where that is not read
};

/* Clock ticks and page size of this machine; both are constants of the kernel's interface. */
struct process_units {
	int64_t tick_ns;
	int64_t page_bytes;
};
struct process_units process_units_get(void);

/* Address at which the stack of the program starts. A fork keeps it and an exec chooses another one (address space
 * randomisation). 0: unknown. */
uint64_t process_stat_start_stack(const char *text, size_t size);

// 0 or -EINVAL. The name may hold blanks, parentheses and newlines.
int process_stat_parse(const char *text, size_t size, const struct process_units *units, struct process_stat *ret_stat);
