/* ncurses, loaded when a screen is opened: no other command should have to start with it. Its header gives the types. */
#pragma once

#include "base/error.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1 // the calls for wide characters
#include <curses.h>

// SYMBOL(name): functions and variables
#define CURSES_SYMBOLS(SYMBOL)                                                                                         \
	SYMBOL(COLORS)                                                                                                 \
	SYMBOL(COLOR_PAIRS)                                                                                            \
	SYMBOL(cbreak)                                                                                                 \
	SYMBOL(clearok)                                                                                                \
	SYMBOL(curs_set)                                                                                               \
	SYMBOL(delscreen)                                                                                              \
	SYMBOL(endwin)                                                                                                 \
	SYMBOL(getmaxx)                                                                                                \
	SYMBOL(getmaxy)                                                                                                \
	SYMBOL(has_colors)                                                                                             \
	SYMBOL(init_pair)                                                                                              \
	SYMBOL(keypad)                                                                                                 \
	SYMBOL(newterm)                                                                                                \
	SYMBOL(nodelay)                                                                                                \
	SYMBOL(noecho)                                                                                                 \
	SYMBOL(nonl)                                                                                                   \
	SYMBOL(set_escdelay)                                                                                           \
	SYMBOL(start_color)                                                                                            \
	SYMBOL(stdscr)                                                                                                 \
	SYMBOL(tigetstr)                                                                                               \
	SYMBOL(use_default_colors)                                                                                     \
	SYMBOL(waddnwstr)                                                                                              \
	SYMBOL(wattr_set)                                                                                              \
	SYMBOL(werase)                                                                                                 \
	SYMBOL(wget_wch)                                                                                               \
	SYMBOL(wmove)                                                                                                  \
	SYMBOL(wrefresh)

struct curses {
	void *handle; // never closed: ncurses keeps memory of its own to the end
#define CURSES_MEMBER(name) __typeof__(name) *name;
	CURSES_SYMBOLS(CURSES_MEMBER)
#undef CURSES_MEMBER
};

// -ENOENT, -ENOSYS: a sentence that names the package.
int curses_open(struct curses *ret_curses, struct wattle_error *reterr);
