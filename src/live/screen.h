/* The terminal, by ncurses: frames go in, keys come out. What is sent is what differs from the frame before, so a slow line
 * gets little. One at a time in a process, as ncurses has it. */
#pragma once

#include "base/error.h"
#include "live/frame.h"

#include <stdio.h>

enum screen_colours { SCREEN_NO_COLOURS, SCREEN_ON_DARK, SCREEN_ON_LIGHT };

struct screen;

// `in` and `out` are borrowed until close. -ENOTTY: this kind of terminal can't place its cursor; with a sentence.
int screen_open(FILE *in, FILE *out, enum screen_colours colours, struct screen **ret_screen,
	struct wattle_error *reterr);
void screen_close(struct screen *screen); // leaves the terminal as it was; NULL allowed
void screen_size(const struct screen *screen, int *ret_columns, int *ret_rows);
// `anew`: whatever stands there now.
void screen_draw(struct screen *screen, const struct frame *frame, bool anew);
// The next key that was pressed, a code point or an enum live_key; 0: none now.
uint32_t screen_key(struct screen *screen);
// Whether the terminal has yet to take what was drawn last: on a slow line a frame is better left out than queued.
bool screen_is_behind(const struct screen *screen);
