#include "process/internal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/folder.h"
#include "base/num.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each level of the walk holds a descriptor and part of a folder listing on the stack. systemd, Kubernetes and Slurm
 * nest about a dozen levels. */
enum { DEPTH_MAX = 32 };

struct walk {
	struct cgroup *cgroup;
	void (*found)(void *data, pid_t pid);
	void *data;
	int64_t n;
};

struct level { // a folder on the path of the walk
	struct walk *walk;
	int fd, depth;
};

/* ---- processes ---- */

// A number may be split between two pieces of the file; *number is -1 outside a number.
static void take_pids(struct walk *walk, const char *text, size_t size, pid_t *number)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] >= '0' && text[i] <= '9') {
			*number = (*number < 0 ? 0 : *number) * 10 + (text[i] - '0');
			continue;
		}
		if (*number >= 0) {
			walk->n++;
			if (*number > 0) // 0: a process that is not visible in our pid namespace
				walk->found(walk->data, *number);
		}
		*number = -1;
	}
}

// The file is reopened each time: in version 1 an open descriptor returns a cached list for up to a second.
static int read_processes(struct walk *walk, int fd)
{
	wattle_cleanup_close int procs_fd = file_open_in(fd, "cgroup.procs", O_RDONLY);
	if (procs_fd < 0)
		return procs_fd;
	pid_t number = -1;
	ssize_t n;
	while ((n = read(procs_fd, walk->cgroup->text, CGROUP_TEXT_SIZE)) > 0)
		take_pids(walk, walk->cgroup->text, (size_t)n, &number);
	int r = n < 0 ? -errno : 0;
	take_pids(walk, "\n", 1, &number);
	return r;
}

static int walk_folder(const struct level *level);

static void entry_found(const struct level *above, const char *name, unsigned char type)
{
	if (type != DT_DIR && type != DT_UNKNOWN)
		return;
	wattle_cleanup_close int fd = openat(above->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		walk_folder(&(struct level){above->walk, fd, above->depth + 1});
}

// A folder has one link from each subfolder, plus its name and its dot; file systems that do not count report 1.
static bool has_folders(int fd)
{
	struct stat st;
	return fstat(fd, &st) != 0 || st.st_nlink != 2;
}

// A sub-cgroup that disappears during the walk has no processes; only the top one must exist.
static int walk_folder(const struct level *level)
{
	int r = read_processes(level->walk, level->fd);
	if (r < 0 && level->depth == 0)
		return r;
	if (level->depth == DEPTH_MAX || !has_folders(level->fd))
		return 0;
	char text[FOLDER_TEXT_SIZE] __attribute__((aligned(8)));
	struct folder_walk folder = folder_walk_begin(level->fd, text, sizeof(text));
	unsigned char type;
	for (const char *name; (name = folder_walk_next(&folder, &type)) != NULL;)
		entry_found(level, name, type);
	return 0;
}

int64_t cgroup_each_process(struct cgroup *cgroup, void (*found)(void *, pid_t), void *data)
{
	struct walk walk = {.cgroup = cgroup, .found = found, .data = data};
	int r = walk_folder(&(struct level){&walk, cgroup->fd, 0});
	return r < 0 ? r : walk.n;
}

/* ---- CPU time and memory ---- */

// usage_usec is the first line since Linux 4.15, but may be anywhere in test trees.
static int64_t parse_cpu_stat(const char *text)
{
	static const char key[] = "usage_usec ";
	for (const char *line = text; line != NULL && *line != '\0';) {
		uint64_t usec;
		size_t length = strcspn(line, "\n");
		if (strncmp(line, key, sizeof(key) - 1) == 0)
			return num_parse_sysfs_u64(line + sizeof(key) - 1, length - (sizeof(key) - 1), &usec) == 0 &&
					usec <= INT64_MAX / 1000
				? (int64_t)usec * 1000
				: VALUE_MISSING;
		line += length + (line[length] == '\n');
	}
	return VALUE_MISSING;
}

static int64_t read_account(struct cgroup *cgroup)
{
	char text[2048];
	uint64_t ns;
	ssize_t n = cgroup->cpu == CGROUP_CPU_NONE ? -ENOENT : file_kept_read(&cgroup->cpu_file, text, sizeof(text));
	if (n < 0)
		return VALUE_MISSING;
	if (cgroup->cpu == CGROUP_CPU_STAT)
		return parse_cpu_stat(text);
	bool ok = num_parse_sysfs_u64(text, (size_t)n, &ns) == 0 && ns <= INT64_MAX;
	return ok ? (int64_t)ns : VALUE_MISSING;
}

int64_t cgroup_cpu_ns(struct cgroup *cgroup)
{
	int64_t account_ns = read_account(cgroup);
	if (!value_ok(account_ns) || !cgroup->has_self)
		return account_ns;
	return account_ns - clock_cpu_ns();
}

const char *cgroup_cpu_method(const struct cgroup *cgroup)
{
	static const char *const names[] = {
		[CGROUP_CPU_NONE] = "proc",
		[CGROUP_CPU_STAT] = "cgroup cpu.stat",
		[CGROUP_CPUACCT] = "cgroup cpuacct",
	};
	return names[cgroup->cpu];
}

bool cgroup_is_populated(const struct cgroup *cgroup)
{
	char text[256];
	if (cgroup->events_fd < 0)
		return true;
	ssize_t n = pread(cgroup->events_fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return n >= 0 && strstr(text, "populated 0") == NULL;
}

int64_t cgroup_memory_peak_bytes(const struct cgroup *cgroup)
{
	uint64_t bytes;
	if (file_read_u64_in(cgroup->fd, "memory.peak", &bytes) < 0 &&
		file_read_u64_in(cgroup->fd, "memory.max_usage_in_bytes", &bytes) < 0)
		return VALUE_MISSING;
	return bytes <= INT64_MAX ? (int64_t)bytes : VALUE_MISSING;
}

/* ---- opening and closing ---- */

static enum cgroup_cpu try_account(struct cgroup *cgroup, int folder_fd, const char *name, enum cgroup_cpu cpu)
{
	cgroup->cpu = cpu;
	if (file_kept_open(&cgroup->cpu_file, folder_fd, name) == 0 && value_ok(read_account(cgroup)))
		return cpu;
	file_kept_close(&cgroup->cpu_file);
	return cgroup->cpu = CGROUP_CPU_NONE;
}

bool cgroup_take_account(struct cgroup *cgroup, int folder_fd)
{
	if (try_account(cgroup, folder_fd, "cpu.stat", CGROUP_CPU_STAT) == CGROUP_CPU_NONE)
		try_account(cgroup, folder_fd, "cpuacct.usage", CGROUP_CPUACCT);
	return cgroup->cpu != CGROUP_CPU_NONE;
}

void cgroup_close(struct cgroup *cgroup)
{
	if (cgroup->text == NULL) // never opened
		return;
	file_kept_close(&cgroup->cpu_file);
	const int fds[] = {cgroup->fd, cgroup->cpu_folder_fd, cgroup->events_fd};
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(cgroup->text);
	cgroup->text = NULL;
}
