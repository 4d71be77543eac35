#include "base/buf.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/utf8.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void buf_init(struct buf *b, size_t ceiling)
{
	*b = (struct buf){.ceiling = ceiling};
}

void buf_finish(struct buf *b)
{
	free(b->data);
	*b = (struct buf){.ceiling = b->ceiling};
}

void buf_clear(struct buf *b)
{
	b->size = 0;
	b->failed = 0;
	if (b->data != NULL)
		b->data[0] = '\0';
}

char *buf_take(struct buf *b)
{
	if (b->failed != 0)
		return NULL;
	char *text = b->data != NULL ? b->data : strdup("");
	*b = (struct buf){.ceiling = b->ceiling};
	return text;
}

// Makes room for `more` bytes and the NUL, or sets the sticky error.
static bool grow(struct buf *b, size_t more)
{
	if (b->failed != 0)
		return false;
	if (more > b->ceiling || b->size > b->ceiling - more) {
		b->failed = -EFBIG;
		return false;
	}
	size_t need = b->size + more + 1;
	if (need <= b->capacity)
		return true;
	size_t capacity = b->capacity > 0 ? b->capacity : 256;
	while (capacity < need)
		capacity *= 2;
	char *data = realloc(b->data, capacity);
	if (data == NULL) {
		b->failed = -ENOMEM;
		return false;
	}
	b->data = data;
	b->capacity = capacity;
	return true;
}

void buf_add(struct buf *b, const void *bytes, size_t size)
{
	if (!grow(b, size))
		return;
	if (size > 0)
		memcpy(b->data + b->size, bytes, size);
	b->size += size;
	b->data[b->size] = '\0';
}

void buf_str(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_utf8(struct buf *b, const char *text)
{
	for (size_t length; *text != '\0'; text += length > 0 ? length : 1) {
		length = utf8_length(text);
		buf_add(b, length > 0 ? text : UTF8_REPLACEMENT, length > 0 ? length : strlen(UTF8_REPLACEMENT));
	}
}

void buf_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_u64(struct buf *b, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	buf_add(b, digits + at, sizeof(digits) - at);
}

void buf_i64(struct buf *b, int64_t value)
{
	if (value < 0)
		buf_char(b, '-');
	buf_u64(b, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void buf_double(struct buf *b, double value)
{
	char text[40];
	buf_add(b, text, num_format_double(text, sizeof(text), value));
}

void buf_fixed(struct buf *b, double value, int decimals)
{
	char text[360]; // DBL_MAX has 309 digits before the point
	buf_add(b, text, num_format_fixed(text, sizeof(text), value, decimals));
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	va_list again;
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length >= 0 && grow(b, (size_t)length)) {
		vsnprintf(b->data + b->size, (size_t)length + 1, format, again);
		b->size += (size_t)length;
	}
	va_end(again);
}

void buf_pad_to(struct buf *b, size_t line_start, size_t columns)
{
	size_t width = line_start < b->size ? utf8_text_columns(b->data + line_start, b->size - line_start) : 0;
	for (; width < columns; width++)
		buf_char(b, ' ');
}

void buf_csv(struct buf *b, const char *text)
{
	if (strpbrk(text, ",\"\r\n") == NULL) {
		buf_str(b, text);
		return;
	}
	buf_char(b, '"');
	for (const char *c = text; *c != '\0'; c++) {
		if (*c == '"')
			buf_char(b, '"');
		buf_char(b, *c);
	}
	buf_char(b, '"');
}

int buf_write_fd(const struct buf *b, int fd)
{
	for (size_t at = 0; at < b->size;) {
		ssize_t written = write(fd, b->data + at, b->size - at);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		at += (size_t)written;
	}
	return 0;
}

// Targets that rename can't replace: devices, pipes, and /dev/stdout and similar links. Those lead to an open descriptor,
// perhaps a regular file to which the measured command writes as well.
static bool is_special(const char *path)
{
	static const char *const descriptors[] = {"/dev/std", "/dev/fd/", "/proc/"};
	for (size_t i = 0; i < ARRAY_SIZE(descriptors); i++)
		if (strncmp(path, descriptors[i], strlen(descriptors[i])) == 0)
			return true;
	struct stat st;
	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static int write_special(const struct buf *b, const char *path)
{
	wattle_cleanup_close int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	return fd < 0 ? -errno : buf_write_fd(b, fd);
}

int buf_write_file(const struct buf *b, const char *path)
{
	if (b->failed != 0)
		return b->failed;
	if (strcmp(path, "-") == 0)
		return buf_write_fd(b, STDOUT_FILENO);
	if (is_special(path))
		return write_special(b, path);
	// A symlink is kept: its target is replaced.
	wattle_cleanup_free char *target = realpath(path, NULL);
	const char *final = target != NULL ? target : path;
	char temporary[4096];
	int length = snprintf(temporary, sizeof(temporary), "%s.%ld.tmp", final, (long)getpid());
	if (length < 0 || (size_t)length >= sizeof(temporary))
		return -ENAMETOOLONG;
	unlink(temporary); // left by a killed process with this pid, or planted: never write through it
	wattle_cleanup_close int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	int r = buf_write_fd(b, fd);
	if (r == 0 && rename(temporary, final) != 0)
		r = -errno;
	if (r != 0)
		unlink(temporary);
	return r;
}
