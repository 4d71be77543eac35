/* Makes writes to plain files below WATTLE_FAKE_KERNEL behave as the kernel's; to be preloaded (LD_PRELOAD).
 *
 *	…/constraint_N_power_limit_uw   rounded down to 1/8 W; ENODATA if there is a file `locked` beside it (by the firmware)
 *	…/enabled                       0 or 1, else EINVAL; ENODATA likewise
 *	…/power1_cap                    amdgpu: whole watts; EINVAL outside power1_cap_min … power1_cap_max
 *	…/power1_max                    Intel GPUs: rounded down to 1/8 W; ENODEV if there is a file `gone` beside it
 *
 * No number: EINVAL. A write replaces the value, at any offset, and reads back with a newline. The file's mode determines who
 * may write. Every accepted write is a line of WATTLE_FAKE_KERNEL_LOG: "T_NS PID VALUE PATH" (CLOCK_MONOTONIC,
 * the path within the tree). WATTLE_FAKE_KERNEL_DELAY_MS is its duration, half before it takes effect, half after. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct attribute {
	const char *name; // suffix of the path
	int64_t step;
	const char *refused_by; // a file beside it
	int refusal;
	bool has_range, is_switch;
};
static const struct attribute attributes[] = {
	{"_power_limit_uw", 125000, "locked", ENODATA, false, false},
	{"/enabled", 1, "locked", ENODATA, false, true},
	{"/power1_cap", 1000000, "gone", ENODEV, true, false},
	{"/power1_max", 125000, "gone", ENODEV, false, false},
};

static const struct attribute *find(const char *path)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		size_t length = strlen(path), ending = strlen(attributes[i].name);
		if (length > ending && strcmp(path + length - ending, attributes[i].name) == 0)
			return &attributes[i];
	}
	return NULL;
}

// Begin of the path within the tree; NULL: not in it.
static const char *within_tree(const char *path)
{
	char real[PATH_MAX];
	const char *root = getenv("WATTLE_FAKE_KERNEL");
	if (root == NULL || realpath(root, real) == NULL)
		return NULL;
	size_t length = strlen(real);
	return strncmp(path, real, length) == 0 && path[length] == '/' ? path + length + 1 : NULL;
}

static void beside(const char *path, const char *name, char *out, size_t size)
{
	snprintf(out, size, "%.*s/%s", (int)(strrchr(path, '/') - path), path, name);
}

static bool read_beside(const char *path, const char *name, int64_t *ret_value)
{
	char other[PATH_MAX];
	beside(path, name, other, sizeof(other));
	FILE *file = fopen(other, "re");
	bool good = file != NULL && fscanf(file, "%" SCNd64, ret_value) == 1;
	if (file != NULL)
		fclose(file);
	return good;
}

// 0, or the errno with which the kernel refuses.
static int judge(const struct attribute *attribute, const char *path, const char *text, int64_t *ret_value)
{
	char *end, other[PATH_MAX];
	int64_t value = strtoll(text, &end, 10), min, max;
	if (end == text || end[strspn(end, "\n")] != '\0')
		return EINVAL;
	beside(path, attribute->refused_by, other, sizeof(other));
	if (access(other, F_OK) == 0)
		return attribute->refusal;
	if (value < 0 || (attribute->is_switch && value > 1))
		return EINVAL;
	if (attribute->has_range && read_beside(path, "power1_cap_min", &min) && value < min)
		return EINVAL;
	if (attribute->has_range && read_beside(path, "power1_cap_max", &max) && value > max)
		return EINVAL;
	*ret_value = value - value % attribute->step;
	return 0;
}

static void wait_half(void)
{
	const char *text = getenv("WATTLE_FAKE_KERNEL_DELAY_MS");
	long half_us = text != NULL ? strtol(text, NULL, 10) * 500 : 0;
	struct timespec left = {half_us / 1000000, half_us % 1000000 * 1000};
	while (half_us > 0 && nanosleep(&left, &left) < 0)
		continue;
}

static void note(const char *path, int64_t value)
{
	struct timespec now;
	const char *log = getenv("WATTLE_FAKE_KERNEL_LOG");
	int fd = log != NULL ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	if (fd < 0)
		return;
	char line[PATH_MAX + 64];
	clock_gettime(CLOCK_MONOTONIC, &now);
	int length = snprintf(line, sizeof(line), "%" PRId64 " %d %" PRId64 " %s\n",
		(int64_t)now.tv_sec * 1000000000 + now.tv_nsec, (int)getpid(), value, within_tree(path));
	syscall(SYS_write, fd, line, (size_t)length);
	close(fd);
}

static ssize_t store(int fd, const struct attribute *attribute, const char *path, const void *data, size_t size)
{
	char text[64];
	int64_t value;
	if (size >= sizeof(text)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(text, data, size);
	text[size] = '\0';
	int refusal = judge(attribute, path, text, &value);
	if (refusal != 0) {
		errno = refusal;
		return -1;
	}
	wait_half();
	// Truncated only afterwards: no reader finds it empty.
	int length = snprintf(text, sizeof(text), "%" PRId64 "\n", value);
	ssize_t written = syscall(SYS_pwrite64, fd, text, (size_t)length, 0l);
	if (written < 0 || ftruncate(fd, length) < 0)
		return -1;
	note(path, value);
	wait_half();
	return (ssize_t)size;
}

static const struct attribute *of_kernel(int fd, char *path, size_t size)
{
	char link[64];
	if (getenv("WATTLE_FAKE_KERNEL") == NULL)
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, size - 1);
	path[length > 0 ? length : 0] = '\0';
	return within_tree(path) != NULL ? find(path) : NULL;
}

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
	char path[PATH_MAX];
	const struct attribute *attribute = of_kernel(fd, path, sizeof(path));
	return attribute != NULL ? store(fd, attribute, path, data, size) : syscall(SYS_write, fd, data, size);
}

static ssize_t write_at(int fd, const void *data, size_t size, off_t offset)
{
	char path[PATH_MAX];
	const struct attribute *attribute = of_kernel(fd, path, sizeof(path));
	return attribute != NULL ? store(fd, attribute, path, data, size)
				 : syscall(SYS_pwrite64, fd, data, size, offset);
}

// Both names of pwrite in the C library, for either size of off_t.
EXPORT ssize_t pwrite_named(int fd, const void *data, size_t size, off_t offset) __asm__("pwrite");
ssize_t pwrite_named(int fd, const void *data, size_t size, off_t offset)
{
	return write_at(fd, data, size, offset);
}

EXPORT ssize_t pwrite64_named(int fd, const void *data, size_t size, off_t offset) __asm__("pwrite64");
ssize_t pwrite64_named(int fd, const void *data, size_t size, off_t offset)
{
	return write_at(fd, data, size, offset);
}
