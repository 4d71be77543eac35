#include "store/tracking.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Line end of Python's csv module, which reads these files. */
#define LINE_END "\r\n"
enum { BATCH_CEILING = 1 << 26, HEAD_SIZE = 4096 };

// Writes a float as Python does: "0.0", so that pandas reads a float column in every file; an unknown value is empty.
static void put_float(struct buf *out, double value)
{
	if (isnan(value))
		return;
	size_t start = out->size;
	buf_double(out, value);
	if (out->failed == 0 && strspn(out->data + start, "-0123456789") == out->size - start)
		buf_str(out, ".0");
}

static void put_integer(struct buf *out, double value)
{
	if (!isnan(value))
		buf_i64(out, (int64_t)value);
}

static void put_names(struct buf *out)
{
	for (size_t i = 0; i < TRACKING_COLUMNS; i++)
		buf_printf(out, "%s%s", i > 0 ? "," : "", tracking_columns[i].name);
	buf_str(out, LINE_END);
}

static void put_static(struct buf *out, const struct tracking_metadata *facts)
{
	struct tracking_field fields[TRACKING_STATICS];
	tracking_statics(facts, fields);
	for (size_t i = 0; i < TRACKING_STATICS; i++)
		buf_printf(out, "%s%s", i > 0 ? "," : "", fields[i].name);
	buf_str(out, LINE_END);
	for (size_t i = 0; i < TRACKING_STATICS; i++) {
		if (i > 0)
			buf_char(out, ',');
		if (fields[i].text != NULL)
			buf_csv(out, fields[i].text);
		else if (fields[i].is_integer)
			put_integer(out, fields[i].number);
		else
			put_float(out, fields[i].number);
	}
	buf_str(out, LINE_END);
}

static int write_at(int fd, const struct buf *text, off_t at)
{
	for (size_t done = 0; done < text->size;) {
		ssize_t n = pwrite(fd, text->data + done, text->size - done, at + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

static int fail(const struct tracking_writer *writer, int code, struct wattle_error *reterr)
{
	return error_set(reterr, code, "%s: %s", writer->output.path, strerror(-code));
}

static int make(struct tracking_writer *writer, const struct tracking_metadata *facts, struct wattle_error *reterr)
{
	struct buf head;
	buf_init(&head, BATCH_CEILING);
	put_static(&head, facts);
	put_names(&head);
	int r = head.failed != 0 ? head.failed : write_at(writer->output.fd, &head, 0);
	buf_finish(&head);
	return r < 0 ? fail(writer, r, reterr) : 0;
}

// The n-th line of the text, without its end.
static char *line_of(char *text, int n)
{
	while (n-- > 0 && text != NULL) {
		text = strchr(text, '\n');
		text = text != NULL ? text + 1 : NULL;
	}
	if (text != NULL)
		text[strcspn(text, "\r\n")] = '\0';
	return text;
}

// The units come first in the static data: "gigabytes,gigabytes,hours,…".
static bool same_units(const char *line, const struct tracking_metadata *facts)
{
	const char *const units[] = {facts->ram_unit, facts->gpu_ram_unit, facts->time_unit};
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t n = strlen(units[i]);
		if (strncmp(line, units[i], n) != 0 || line[n] != ',')
			return false;
		line += n + 1;
	}
	return true;
}

static int check(struct tracking_writer *writer, const struct tracking_metadata *facts, struct wattle_error *reterr)
{
	char head[HEAD_SIZE + 1];
	ssize_t size = pread(writer->output.fd, head, HEAD_SIZE, 0);
	if (size < 0)
		return fail(writer, -errno, reterr);
	head[size] = '\0';
	struct buf names;
	buf_init(&names, HEAD_SIZE);
	put_names(&names);
	const char *third = line_of(head, 2); // the third line first: each call terminates the text at the line's end
	bool same_columns = names.failed == 0 && third != NULL && strncmp(names.data, third, names.size - 2) == 0 &&
		strlen(third) == names.size - 2;
	buf_finish(&names);
	if (!same_columns)
		return error_set(reterr, -EINVAL,
			"%s is not a tracking file with these columns: choose another file or give --overwrite",
			writer->output.path);
	const char *second = line_of(head, 1);
	if (second == NULL || !same_units(second, facts))
		return error_set(reterr, -EINVAL,
			"%s has units other than %s, %s and %s: use the same units to append to it",
			writer->output.path, facts->ram_unit, facts->gpu_ram_unit, facts->time_unit);
	return 0;
}

// Finds the end of the last whole line: a killed recorder may have left a partial line.
static int find_end(int fd, off_t *ret_end)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return -errno;
	off_t end = st.st_size;
	char last;
	while (end > 0) {
		if (pread(fd, &last, 1, end - 1) != 1)
			return -EIO;
		if (last == '\n')
			break;
		end--;
	}
	*ret_end = end;
	return ftruncate(fd, end) == 0 ? 0 : -errno;
}

static int resume(struct tracking_writer *writer, struct wattle_error *reterr)
{
	buf_init(&writer->text, BATCH_CEILING);
	int r = find_end(writer->output.fd, &writer->end);
	return r < 0 ? fail(writer, r, reterr) : 0;
}

static int begin(struct tracking_writer *writer, struct wattle_error *reterr)
{
	buf_clear(&writer->text);
	return 0;
}

static int flush_text(struct tracking_writer *writer, struct wattle_error *reterr)
{
	int r = writer->text.failed != 0 ? writer->text.failed
					 : write_at(writer->output.fd, &writer->text, writer->end);
	return r < 0 ? fail(writer, r, reterr) : 0;
}

static int add(struct tracking_writer *writer, const struct tracking_row *row, struct wattle_error *reterr)
{
	for (size_t i = 0; i < TRACKING_COLUMNS; i++) {
		if (i > 0)
			buf_char(&writer->text, ',');
		if (tracking_columns[i].is_integer)
			put_integer(&writer->text, row->values[i]);
		else
			put_float(&writer->text, row->values[i]);
	}
	buf_str(&writer->text, LINE_END);
	return writer->text.failed != 0 ? fail(writer, writer->text.failed, reterr) : 0;
}

static void rollback(struct tracking_writer *writer)
{
	buf_clear(&writer->text);
	// Removes the written part of the batch. If that fails too, the next batch overwrites it.
	int ignored = ftruncate(writer->output.fd, writer->end);
	(void)ignored;
}

static int commit(struct tracking_writer *writer, struct wattle_error *reterr)
{
	int r = flush_text(writer, reterr);
	if (r < 0)
		return r;
	writer->end += (off_t)writer->text.size;
	buf_clear(&writer->text);
	return 0;
}

static void end(struct tracking_writer *writer)
{
}

static void close_text(struct tracking_writer *writer)
{
	buf_finish(&writer->text);
}

const struct tracking_layout tracking_csv = {
	.ending = ".csv",
	.make = make,
	.check = check,
	.resume = resume,
	.begin = begin,
	.add = add,
	.commit = commit,
	.rollback = rollback,
	.end = end,
	.close = close_text,
};
