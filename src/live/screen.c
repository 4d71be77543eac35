#include "live/session.h"

#include "base/util.h"
#include "live/curses_library.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

struct screen {
	struct curses curses;
	SCREEN *terminal; // owned; NULL: unknown terminal type
	int out_fd;
	bool has_colours, can_faint;
};

/* ---- colours ---- */

// The nearest of xterm's 6 x 6 x 6 cube and 24 greys.
static int nearest_of_256(uint32_t rgb)
{
	static const int levels[] = {0, 95, 135, 175, 215, 255};
	int best = 16, best_distance = INT32_MAX;
	for (int i = 16; i < 256; i++) {
		int grey = 8 + 10 * (i - 232);
		int cube[3] = {levels[(i - 16) / 36 % 6], levels[(i - 16) / 6 % 6], levels[(i - 16) % 6]};
		int distance = 0;
		for (int c = 0; c < 3; c++) {
			int wanted = (int)(rgb >> (16 - 8 * c) & 0xff), have = i < 232 ? cube[c] : grey;
			distance += (wanted - have) * (wanted - have);
		}
		if (distance < best_distance) {
			best = i;
			best_distance = distance;
		}
	}
	return best;
}

// For terminals with eight colours, in the order of the palette.
static const short of_eight[COLOURS] = {
	[COLOUR_BACK] = -1,
	[COLOUR_PANEL] = -1,
	[COLOUR_INK] = -1,
	[COLOUR_FAINT] = -1,
	[COLOUR_LINE] = -1,
	[COLOUR_SERIES_0] = COLOR_BLUE,
	[COLOUR_SERIES_1] = COLOR_YELLOW,
	[COLOUR_SERIES_2] = COLOR_GREEN,
	[COLOUR_SERIES_3] = COLOR_MAGENTA,
	[COLOUR_SERIES_4] = COLOR_CYAN,
	[COLOUR_SERIES_5] = COLOR_RED,
	[COLOUR_SERIES_6] = COLOR_YELLOW,
	[COLOUR_SERIES_7] = -1,
	[COLOUR_SERIES_8] = COLOR_BLUE, // colours repeat from here
	[COLOUR_SERIES_9] = COLOR_YELLOW,
	[COLOUR_SERIES_10] = COLOR_GREEN,
	[COLOUR_SERIES_11] = COLOR_MAGENTA,
	[COLOUR_SERIES_12] = COLOR_CYAN,
	[COLOUR_SERIES_13] = COLOR_RED,
	[COLOUR_SERIES_14] = COLOR_YELLOW,
	[COLOUR_SERIES_15] = -1,
	[COLOUR_TARGET] = COLOR_CYAN,
	[COLOUR_OTHERS] = COLOR_YELLOW,
	[COLOUR_WATTLE] = COLOR_MAGENTA,
	[COLOUR_IDLE] = -1,
	[COLOUR_UNATTRIBUTED] = -1,
	[COLOUR_WARN] = COLOR_RED,
	[COLOUR_GOOD] = COLOR_GREEN,
};

static bool begin_colours(const struct curses *nc, enum screen_colours colours)
{
	if (colours == SCREEN_NO_COLOURS || !nc->has_colors() || nc->start_color() == ERR ||
		*nc->COLOR_PAIRS <= COLOURS)
		return false;
	bool has_default = nc->use_default_colors() == OK;
	for (int i = 0; i < COLOURS; i++) {
		uint32_t rgb = colours == SCREEN_ON_LIGHT ? palette[i].light : palette[i].dark;
		int colour = *nc->COLORS >= 256 ? nearest_of_256(rgb) : of_eight[i];
		if (i == COLOUR_INK)
			colour = -1; // the terminal's default colour
		nc->init_pair((short)(i + 1), (short)(colour < 0 && !has_default ? COLOR_WHITE : colour),
			has_default ? -1 : COLOR_BLACK);
	}
	return true;
}

/* ---- open and close ---- */

static int refuse(struct screen *screen, struct wattle_error *reterr)
{
	const char *type = getenv("TERM"), *name = type != NULL ? type : "";
	bool is_known = screen->terminal != NULL;
	screen_close(screen);
	if (!is_known)
		return error_set(reterr, -ENOTTY,
			"unknown terminal type '%s'; set TERM=xterm-256color, or print one frame with --once",
			name);
	return error_set(reterr, -ENOTTY,
		"terminal type '%s' can't position its cursor; set TERM=vt100 or xterm, or print one frame with --once",
		name);
}

// Looks up capabilities by name, because the macros of <term.h> have names such as `columns` and `lines`.
static bool has_capability(const struct curses *nc, const char *name)
{
	const char *value = nc->tigetstr(name);
	return value != NULL && value != (const char *)-1;
}

int screen_open(FILE *in, FILE *out, enum screen_colours colours, struct screen **ret_screen,
	struct wattle_error *reterr)
{
	struct screen *screen = calloc(1, sizeof(*screen));
	if (screen == NULL)
		return error_set(reterr, -ENOMEM, "out of memory for the screen");
	struct curses *nc = &screen->curses;
	int r = curses_open(nc, reterr);
	if (r < 0) {
		free(screen);
		return r;
	}
	screen->out_fd = fileno(out);
	screen->terminal = nc->newterm(NULL, out, in);
	if (screen->terminal == NULL || !has_capability(nc, "cup"))
		return refuse(screen, reterr);
	screen->has_colours = begin_colours(nc, colours);
	screen->can_faint = has_capability(nc, "dim");
	nc->cbreak();
	nc->noecho();
	nc->nonl();
	nc->curs_set(0);
	nc->keypad(*nc->stdscr, TRUE);
	nc->nodelay(*nc->stdscr, TRUE);
	nc->set_escdelay(25);
	*ret_screen = screen;
	return 0;
}

static bool takes_output(const struct screen *screen, int timeout_ms)
{
	struct pollfd out = {.fd = screen->out_fd, .events = POLLOUT};
	return poll(&out, 1, timeout_ms) != 0;
}

// ncurses waits until its final output is accepted; a dead connection never accepts it.
enum { LAST_KEY_MS = 500 };

void screen_close(struct screen *screen)
{
	if (screen == NULL)
		return;
	if (screen->terminal != NULL) {
		// Resumes output stopped by Ctrl-S. Linux resumes only output that TCOOFF has stopped too.
		tcflow(screen->out_fd, TCOOFF);
		tcflow(screen->out_fd, TCOON);
		if (takes_output(screen, LAST_KEY_MS))
			screen->curses.endwin();
		screen->curses.delscreen(screen->terminal);
	}
	free(screen);
}

void screen_size(const struct screen *screen, int *ret_columns, int *ret_rows)
{
	const struct curses *nc = &screen->curses;
	*ret_rows = nc->getmaxy(*nc->stdscr);
	*ret_columns = nc->getmaxx(*nc->stdscr);
}

bool screen_is_behind(const struct screen *screen)
{
	int queued = 0;
	// Pseudoterminals don't report queued output; serial lines do.
	return !takes_output(screen, 0) || (ioctl(screen->out_fd, TIOCOUTQ, &queued) == 0 && queued > 0);
}

/* ---- frames ---- */

static attr_t attributes_of(const struct screen *screen, const struct cell *cell)
{
	attr_t attributes = 0;
	bool has_own_colour = screen->has_colours && cell->colour != COLOUR_INK;
	if (cell->cell_attributes & ATTRIBUTE_BOLD)
		attributes |= A_BOLD;
	if (cell->cell_attributes & ATTRIBUTE_REVERSE)
		attributes |= A_REVERSE;
	// With 256 colours, faint text has a colour of its own, which is easier to read than the terminal's "dim".
	if ((cell->cell_attributes & ATTRIBUTE_FAINT) && screen->can_faint &&
		!(has_own_colour && *screen->curses.COLORS >= 256))
		attributes |= A_DIM;
	return attributes;
}

static bool is_same_style(const struct cell *a, const struct cell *b)
{
	return a->colour == b->colour && a->cell_attributes == b->cell_attributes;
}

static void draw_row(const struct screen *screen, const struct frame *frame, int y, int columns)
{
	const struct curses *nc = &screen->curses;
	WINDOW *window = *nc->stdscr;
	wchar_t text[256 * CELL_RUNES];
	for (int x = 0; x < columns;) {
		const struct cell *first = frame_cell(frame, x, y), *cell = first;
		size_t n = 0;
		int start = x;
		for (; x < columns && n + CELL_RUNES < ARRAY_SIZE(text) &&
			is_same_style(first, cell = frame_cell(frame, x, y));
			x++)
			for (size_t i = 0; i < CELL_RUNES && cell->runes[i] != 0; i++)
				text[n++] = cell->runes[i];
		nc->wattr_set(window, attributes_of(screen, first),
			(short)(screen->has_colours ? first->colour + 1 : 0), NULL);
		if (nc->wmove(window, y, start) != ERR)
			nc->waddnwstr(window, text, (int)n);
	}
}

void screen_draw(struct screen *screen, const struct frame *frame, bool anew)
{
	const struct curses *nc = &screen->curses;
	WINDOW *window = *nc->stdscr;
	int columns, rows;
	screen_size(screen, &columns, &rows);
	columns = columns < frame->columns ? columns : frame->columns;
	rows = rows < frame->rows ? rows : frame->rows;
	nc->werase(window);
	for (int y = 0; y < rows; y++)
		draw_row(screen, frame, y, columns);
	nc->wattr_set(window, A_NORMAL, 0, NULL);
	if (anew)
		nc->clearok(window, TRUE);
	nc->wrefresh(window);
}

/* ---- keys ---- */

static const struct {
	uint32_t curses, key;
} function_keys[] = {
	{KEY_UP, KEY_CODE_UP},
	{KEY_DOWN, KEY_CODE_DOWN},
	{KEY_LEFT, KEY_CODE_LEFT},
	{KEY_RIGHT, KEY_CODE_RIGHT},
	{KEY_PPAGE, KEY_CODE_PAGE_UP},
	{KEY_NPAGE, KEY_CODE_PAGE_DOWN},
	{KEY_HOME, KEY_CODE_HOME},
	{KEY_END, KEY_CODE_END},
	{KEY_BACKSPACE, KEY_CODE_ERASE},
	{KEY_ENTER, KEY_CODE_ENTER},
	{KEY_F(1), KEY_CODE_HELP},
	{KEY_F(10), KEY_CODE_QUIT},
	{KEY_RESIZE, KEY_CODE_REDRAW},
};
static const struct {
	uint32_t rune, key;
} control_keys[] = {
	{'\r', KEY_CODE_ENTER},
	{'\n', KEY_CODE_ENTER},
	{0x7f, KEY_CODE_ERASE},
	{'\b', KEY_CODE_ERASE},
	{0x1b, KEY_CODE_ESCAPE},
	{'L' & 0x1f, KEY_CODE_REDRAW},
};
enum { UNKNOWN_KEY = 0x7fffffff };

uint32_t screen_key(struct screen *screen)
{
	wint_t key;
	int kind = screen->curses.wget_wch(*screen->curses.stdscr, &key);
	if (kind == ERR)
		return 0;
	if (kind == KEY_CODE_YES) {
		for (size_t i = 0; i < ARRAY_SIZE(function_keys); i++)
			if (function_keys[i].curses == key)
				return function_keys[i].key;
		return UNKNOWN_KEY;
	}
	for (size_t i = 0; i < ARRAY_SIZE(control_keys); i++)
		if (control_keys[i].rune == key)
			return control_keys[i].key;
	return key == 0 ? UNKNOWN_KEY : (uint32_t)key;
}
