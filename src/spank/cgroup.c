#include "spank/spank.h"

#include "base/cleanup.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static const char *const mounts[] = {"/sys/fs/cgroup",
	"/sys/fs/cgroup/unified"}; // the second one in hybrid setups with cgroup v1

static const char *find_mount(void)
{
	struct statfs fs;
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
		if (statfs(mounts[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			return mounts[i];
	return NULL;
}

// "0::/system.slice/slurmd.service"
static bool find_own(char *out, size_t size)
{
	char line[512];
	bool found = false;
	FILE *file = fopen("/proc/self/cgroup", "re");
	while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, "0::/", 4) == 0 && text_copy(out, size, line + 3);
	}
	if (file != NULL)
		fclose(file);
	return found;
}

void own_cgroup_make(struct own_cgroup *ret_cgroup)
{
	char own[400];
	struct timespec now;
	const char *mount = find_mount();
	*ret_cgroup = (struct own_cgroup){.fd = -1};
	if (mount == NULL || !find_own(own, sizeof(own)))
		return;
	// Pids repeat in parallel pid namespaces; the time makes the name unique.
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(ret_cgroup->path, sizeof(ret_cgroup->path), "%s%s/wattle-%d-%llx", mount, own[1] != '\0' ? own : "",
		(int)getpid(), (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec);
	if (mkdir(ret_cgroup->path, 0755) != 0)
		return;
	ret_cgroup->fd = open(ret_cgroup->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret_cgroup->fd < 0)
		rmdir(ret_cgroup->path);
}

static bool write_file(int folder_fd, const char *name, const char *text)
{
	wattle_cleanup_close int fd = openat(folder_fd, name, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

void own_cgroup_join(const struct own_cgroup *cgroup)
{
	if (cgroup->fd >= 0)
		write_file(cgroup->fd, "cgroup.procs", "0");
}

// For Linux before 5.14. Members can fork meanwhile: call it until all have exited.
static void kill_each(int folder_fd)
{
	wattle_cleanup_close int fd = openat(folder_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *file = fd >= 0 ? fdopen(take_fd(&fd), "r") : NULL;
	int pid;
	while (file != NULL && fscanf(file, "%d", &pid) == 1)
		if (pid > 1)
			kill(pid, SIGKILL);
	if (file != NULL)
		fclose(file);
}

void own_cgroup_kill(const struct own_cgroup *cgroup)
{
	if (cgroup->fd >= 0 && !write_file(cgroup->fd, "cgroup.kill", "1"))
		kill_each(cgroup->fd);
}

int own_cgroup_remove(struct own_cgroup *cgroup)
{
	if (cgroup->fd < 0)
		return 0;
	if (rmdir(cgroup->path) != 0 && errno != ENOENT)
		return -errno;
	close(cgroup->fd);
	cgroup->fd = -1;
	return 0;
}
