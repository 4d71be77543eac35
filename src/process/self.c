#include "process/machine.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/util.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PAGE_MAX = 1 << 20 }; // upper limit of the page size, bytes

int64_t self_rss_bytes(void)
{
	char text[64];
	wattle_cleanup_close int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (length <= 0)
		return VALUE_MISSING;
	text[length] = '\0';
	const char *resident = strchr(text, ' '); // the second number
	uint64_t pages;
	if (resident == NULL || num_parse_sysfs_u64(resident + 1, strcspn(resident + 1, " "), &pages) < 0)
		return VALUE_MISSING;
	return pages < INT64_MAX / PAGE_MAX ? (int64_t)pages * sysconf(_SC_PAGESIZE) : VALUE_MISSING;
}
