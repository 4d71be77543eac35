#include "store/tracking.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_SIZE = 1 << 18, RECORD_MAX = 1 << 26 };

int csv_file_open(struct csv_file *file, const char *path, struct wattle_error *reterr)
{
	*file = (struct csv_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)};
	file->csv.path = path;
	if (file->fd < 0) {
		int code = -errno;
		return error_set(reterr, code, "%s: %s", path, strerror(-code));
	}
	file->text = malloc(PIECE_SIZE);
	if (file->text == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	file->capacity = PIECE_SIZE;
	file->text[0] = '\0';
	csv_init(&file->csv, file->text, path);
	return 0;
}

void csv_file_close(struct csv_file *file)
{
	free(file->text);
	if (file->fd >= 0)
		close(file->fd);
	*file = (struct csv_file){.fd = -1};
}

// Offset after the last line end outside quotes; 0: no such line end.
static size_t records_end(const char *text, size_t size)
{
	if (memchr(text, '"', size) == NULL) {
		const char *last = memrchr(text, '\n', size);
		return last != NULL ? (size_t)(last - text) + 1 : 0;
	}
	size_t end = 0;
	bool quoted = false, field_starts = true;
	for (size_t i = 0; i < size; i++) {
		char c = text[i];
		if (quoted) {
			if (c == '"' && i + 1 < size && text[i + 1] == '"')
				i++;
			else
				quoted = c != '"';
			continue;
		}
		quoted = c == '"' && field_starts;
		field_starts = c == ',' || c == '\n' || c == '\r';
		if (c == '\n')
			end = i + 1;
	}
	return end;
}

// Moves the incomplete record at the end of the buffer to the front.
static void move_rest(struct csv_file *file)
{
	if (file->end < file->size)
		file->text[file->end] = file->kept;
	memmove(file->text, file->text + file->end, file->size - file->end);
	file->size -= file->end;
	file->end = 0;
}

static int fill(struct csv_file *file)
{
	while (!file->all_read && file->size + 1 < file->capacity) {
		ssize_t n = read(file->fd, file->text + file->size, file->capacity - 1 - file->size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (memchr(file->text + file->size, '\0', (size_t)n) != NULL)
			return -EILSEQ;
		file->size += (size_t)n;
		file->all_read = n == 0;
	}
	return 0;
}

static int grow(struct csv_file *file)
{
	if (file->capacity >= RECORD_MAX)
		return -EFBIG;
	char *larger = realloc_array(file->text, file->capacity * 2, 1);
	if (larger == NULL)
		return -ENOMEM;
	file->text = larger;
	file->capacity *= 2;
	return 0;
}

// Reads at least one whole record, or the rest of the file.
static int next_piece(struct csv_file *file)
{
	move_rest(file);
	for (;;) {
		int r = fill(file);
		if (r < 0)
			return r;
		file->end = file->all_read ? file->size : records_end(file->text, file->size);
		if (file->end > 0 || file->all_read)
			break;
		if ((r = grow(file)) < 0)
			return r;
	}
	file->kept = file->text[file->end];
	file->text[file->end] = '\0';
	return 0;
}

static int fail(const struct csv_file *file, int code, struct wattle_error *reterr)
{
	const struct csv *csv = &file->csv;
	if (code == -EILSEQ)
		return error_set(reterr, -EINVAL, "%s contains NUL bytes: it is not a CSV file", csv->path);
	if (code == -EFBIG)
		return error_set(reterr, -EINVAL, "%s, line %d: longer than %d MiB", csv->path, csv->next_line,
			RECORD_MAX >> 20);
	return error_set(reterr, code, "%s: %s", csv->path, strerror(-code));
}

int csv_file_next(struct csv_file *file, char **fields, int max, struct wattle_error *reterr)
{
	for (;;) {
		int n = csv_next(&file->csv, fields, max, reterr);
		if (n != 0 || (file->all_read && file->end == file->size))
			return n;
		bool first = file->csv.line == 0 && file->csv.next_line == 1;
		int r = next_piece(file);
		if (r < 0)
			return fail(file, r, reterr);
		if (first)
			csv_init(&file->csv, file->text, file->csv.path);
		else
			file->csv.at = file->text;
	}
}
