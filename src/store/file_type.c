#include "store/output_file.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/util.h"
#include "span/reader/reader.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// https://www.sqlite.org/fileformat2.html section 1.3
enum { HEADER_SIZE = 100, USER_VERSION_AT = 60, APPLICATION_ID_AT = 68 };
static const char magic[16] = "SQLite format 3";

static uint32_t big_endian(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static int check_header(const unsigned char *header, ssize_t size, const char *path, struct wattle_error *reterr)
{
	if (size < HEADER_SIZE || memcmp(header, magic, sizeof(magic)) != 0 ||
		big_endian(header + APPLICATION_ID_AT) != SCHEMA_APPLICATION_ID)
		return error_set(reterr, -EINVAL, "%s is not a wattle run file", path);
	uint32_t version = big_endian(header + USER_VERSION_AT);
	if (version > SCHEMA_VERSION)
		return error_set(reterr, -ENOTSUP,
			"%s was written by a newer wattle (schema %u, this wattle supports up to %d): update "
			"wattle to read it",
			path, (unsigned)version, SCHEMA_VERSION);
	return 0;
}

int file_type_check_run(const char *path, struct wattle_error *reterr)
{
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0) {
		int code = -errno;
		return error_set(reterr, code, "%s: %s", path, strerror(-code));
	}
	if (!S_ISREG(st.st_mode))
		return error_set(reterr, -EINVAL, "%s is not a wattle run file but a %s", path,
			S_ISDIR(st.st_mode) ? "folder" : "device or pipe");
	unsigned char header[HEADER_SIZE];
	ssize_t size = pread(fd, header, sizeof(header), 0);
	return check_header(header, size, path, reterr);
}

static bool probe_database(const char *path)
{
	char head[sizeof(magic)];
	return file_head(path, head, sizeof(head)) == (ssize_t)sizeof(head) && memcmp(head, magic, sizeof(head)) == 0;
}

bool file_type_is_measurements(const char *path)
{
	return probe_database(path) || span_file_probe(path);
}
