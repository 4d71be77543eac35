/* ncurses, loaded when a screen is opened, so that no other command loads it. Its header supplies the types. */
#pragma once

#include "base/error.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1 // wide-character functions
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
	void *handle; // never closed: ncurses keeps allocated memory until exit
#define CURSES_MEMBER(name) __typeof__(name) *name;
	CURSES_SYMBOLS(CURSES_MEMBER)
#undef CURSES_MEMBER
};

// -ENOENT, -ENOSYS; *reterr names the missing package.
int curses_open(struct curses *ret_curses, struct wattle_error *reterr);
