#include "cli/measure.h"

#include "base/utf8.h"
#include "report/table.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { CEILING = 8192, COLUMNS_DEFAULT = 80, ROWS_MIN = 4 };

static struct winsize size_of(const struct status_line *row)
{
	struct winsize size = {0};
	if (ioctl(row->fd, TIOCGWINSZ, &size) != 0)
		size = (struct winsize){0};
	return size;
}

size_t status_line_columns(const struct status_line *row)
{
	struct winsize size = size_of(row);
	return (size.ws_col > 1 ? size.ws_col : COLUMNS_DEFAULT) - 1;
}

static int row_to_keep(const struct status_line *row)
{
	const char *type = getenv("TERM");
	int rows = size_of(row).ws_row;
	if (type == NULL || type[0] == '\0' || strcmp(type, "dumb") == 0 || strcmp(type, "unknown") == 0)
		return 0;
	return rows >= ROWS_MIN ? rows : 0;
}

// Writes all or nothing: a partial escape sequence would be shown as text.
static bool put(const struct status_line *row, const struct buf *out)
{
	struct pollfd capacity = {.fd = row->fd, .events = POLLOUT};
	bool takes = out->failed == 0 && poll(&capacity, 1, 0) == 1 && (capacity.revents & POLLOUT) != 0;
	return takes && write(row->fd, out->data, out->size) == (ssize_t)out->size;
}

/* Setting the scroll region moves the cursor to the corner, so it is saved (ESC 7) and restored (ESC 8). If the cursor is in
 * the last row, "index" and "reverse index" (ESC D, ESC M) first move the content up by one row and keep the column. */
static void keep(struct buf *out, int rows)
{
	buf_printf(out, "\033D\033M\0337\033[1;%dr\0338", rows - 1);
}

// Resets the scroll region. If the terminal was resized, the position of the text is unknown, and the text stays.
static void give_back(const struct status_line *row, struct buf *out)
{
	buf_str(out, "\0337\033[r");
	if (row->kept == size_of(row).ws_row)
		buf_printf(out, "\033[%d;1H\033[K", row->kept);
	buf_str(out, "\0338");
}

static void add_blanks(struct buf *out, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		buf_char(out, ' ');
}

void status_line_draw(struct status_line *row, const char *text, size_t size)
{
	struct buf out;
	int kept = row_to_keep(row);
	size_t columns = utf8_text_columns(text, size);
	buf_init(&out, CEILING);
	if (kept != row->kept && row->kept > 0) // the terminal was resized
		give_back(row, &out);
	if (kept != row->kept && kept > 0)
		keep(&out, kept);
	if (kept > 0)
		buf_printf(&out, "\0337\033[%d;1H", kept);
	else
		buf_char(&out, '\r');
	buf_add(&out, text, size);
	if (kept > 0)
		buf_str(&out, "\033[K\0338");
	else
		add_blanks(&out, columns,
			row->shown < status_line_columns(row) ? row->shown : status_line_columns(row));
	if (put(row, &out)) {
		row->kept = kept;
		row->shown = columns;
	}
	buf_finish(&out);
}

void status_line_finish(struct status_line *row)
{
	struct buf out;
	buf_init(&out, CEILING);
	if (row->kept > 0) {
		give_back(row, &out);
	} else if (row->shown > 0) {
		buf_char(&out, '\r');
		add_blanks(&out, 0, row->shown);
		buf_char(&out, '\r');
	}
	if (out.size > 0)
		put(row, &out);
	buf_finish(&out);
	row->kept = 0;
	row->shown = 0;
}
