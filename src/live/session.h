/* One picture of the terminal as cells, before anything is drawn: what the tests look at, and what `--once` prints. Nothing here
 * knows a terminal. Texts are UTF-8 of unknown origin: what is no character, controls the terminal or its direction of
 * writing becomes '?', and where the terminal has no UTF-8 so does all that is not ASCII. How wide a character is, wcwidth()
 * says, so LC_CTYPE must be set. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "now/now.h"
#include "report/palette.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <wchar.h>

enum { CELL_RUNES = 3 }; // one with a width, then what is put upon it: accents

enum look { LOOK_BOLD = 1, LOOK_FAINT = 2, LOOK_REVERSE = 4 };

struct pen {
	enum colour colour; // COLOUR_INK: the terminal's own
	unsigned int looks;
};

struct cell {
	wchar_t runes[CELL_RUNES]; // the rest is 0
	uint8_t width;             // 2: of this cell and the next, which has 0
	uint8_t colour;            // enum colour
	uint8_t looks;
};

struct area { // nothing is there when width or height is 0
	int x, y, width, height;
};

struct frame {
	int columns, rows;
	bool utf8;
	struct cell *cells; // owned; rows of `columns`
};

int frame_init(struct frame *frame, int columns, int rows, bool utf8); // all blank; -ENOMEM
void frame_finish(struct frame *frame);
void frame_clear(struct frame *frame);
const struct cell *frame_cell(const struct frame *frame, int x, int y);

// One character at a place; whatever lies outside the frame is left out.
void frame_rune(struct frame *frame, int x, int y, wchar_t rune, struct pen pen);
void frame_look(struct frame *frame, struct area area, unsigned int looks); // adds looks to all cells
// As plain text: no blanks at ends of lines.
void frame_text(const struct frame *frame, struct buf *out);

/* Signs that there are two of. */
enum sign { SIGN_MORE, SIGN_DOT, SIGN_DOWN, SIGN_UP, SIGN_BRANCH, SIGN_LAST, SIGN_TRUNK, SIGN_DEGREE, SIGNS };
const char *sign(const struct frame *frame, enum sign which);

/* A line that is written from left to right until its end; what does not fit is cut with a sign. */
struct line {
	struct frame *frame;
	int x, y, end; // the next cell, and the first one that is not its own
	bool is_cut;
};
struct line line_in(struct frame *frame, struct area area, int row); // row `row` of an area
void line_text(struct line *line, struct pen pen, const char *text);
void line_printf(struct line *line, struct pen pen, const char *format, ...) __attribute__((format(printf, 3, 4)));
void line_blank(struct line *line, int n);
void line_to(struct line *line, int x); // blanks up to a column of the frame; back: no
// In a column of its own, cut there; to its right or left.
void line_column(struct line *line, struct pen pen, const char *text, int width, bool to_right);
int text_width(const struct frame *frame, const char *text); // in cells

/* Values over time and parts of a whole, as cells. */

enum graph_style {
	GRAPH_BRAILLE, // 2 x 4 dots a cell
	GRAPH_BLOCK,   // 1 x 8 steps a cell
	GRAPH_ASCII,   // 1 x 3 steps a cell
	GRAPH_STYLES
};
int graph_style_from_name(const char *name); // "braille", "block", "ascii"; or -EINVAL

struct graph {
	enum graph_style style;
	const double *values; // n, the newest last, at the right edge; NaN unknown: nothing is drawn there
	const double *parts;  // of each value, which is drawn in part_pen; NULL: none
	size_t n;
	double top; // value of the upper edge
	struct pen pen, part_pen;
};
size_t graph_room(enum graph_style style, int width); // how many values go into so many cells
// A known 0 has the lowest dot, so that it differs from what is unknown.
void graph_draw(struct frame *frame, struct area area, const struct graph *graph);
// The least of 1, 2, 5 times a power of ten that is no smaller: a scale that stands still while values move. At least `least`.
double graph_top(double value, double least);

/* A bar in one row: segments one after another, each a share of the width. What they are made of tells of them without colour. */
enum fill { FILL_SOLID, FILL_DENSE, FILL_HALF, FILL_STRIPES, FILL_THIN, FILL_DOT, FILLS };
struct bar_segment {
	double share; // of the whole; NaN and less than 0 are nothing
	enum fill fill;
	enum colour colour;
};
void bar_draw(struct frame *frame, struct area area, enum graph_style style, const struct bar_segment *segments,
	size_t n);
const char *fill_sign(const struct frame *frame, enum fill fill); // one cell of it
enum fill fill_of(enum provenance provenance);                    // measured is solid, estimated is hatched

/* What the person at the keys has chosen, and what a key changes in it. */

enum live_sort { SORT_POWER, SORT_ENERGY, SORT_CPU, SORT_MEMORY, SORT_GPU, SORT_GPU_MEMORY, SORT_PID, SORTS };
const char *live_sort_name(enum live_sort sort); // "power", "energy" …
int live_sort_from_name(const char *name);       // or -EINVAL

enum { FILTER_SIZE = 64 };

struct live_ui {
	enum live_sort sort;
	bool reverse, tree, only_target, paused, help, editing, no_spans;
	bool has_target; // there is one to show alone
	enum graph_style style;
	char filter[FILTER_SIZE]; // part of a command, user or pid; "" none
	pid_t selected;           // 0: none
	int moves;                // of the selection, not made yet; the drawing knows how far a page is
	int pages;
	int first; // row of the list that stands at its top
	int shift; // columns by which commands are moved to the left
	int64_t interval_ns;
};

/* Keys that are no characters; characters are their code points. */
enum live_key {
	KEY_CODE_UP = 0x200000,
	KEY_CODE_DOWN,
	KEY_CODE_LEFT,
	KEY_CODE_RIGHT,
	KEY_CODE_PAGE_UP,
	KEY_CODE_PAGE_DOWN,
	KEY_CODE_HOME,
	KEY_CODE_END,
	KEY_CODE_ERASE,
	KEY_CODE_ENTER,
	KEY_CODE_ESCAPE,
	KEY_CODE_HELP,
	KEY_CODE_QUIT,
	KEY_CODE_REDRAW
};

enum live_action { ACTION_NONE, ACTION_DRAW, ACTION_REDRAW /* from an empty screen */, ACTION_QUIT };
enum live_action live_key(struct live_ui *ui, uint32_t key);

/* The keys as help and the last line tell them. */
struct live_key_row {
	const char *keys, *brief, *does; // brief NULL: not in the last line
};
extern const struct live_key_row live_keys[];
extern const size_t n_live_keys;

/* Where what stands on the screen: a pure function of its size and of how much there is to show. */

enum panel {
	PANEL_HEAD,      // name, host, time; what looking costs
	PANEL_TOTAL,     // watts and joules of the machine
	PANEL_LEDGER,    // whose watts they are, as a bar
	PANEL_LEGEND,    // and in figures
	PANEL_MACHINE,   // cores and memory
	PANEL_TARGET,    // the run or process that is looked at
	PANEL_GRAPH,     // power over time
	PANEL_DOMAINS,   // a row each
	PANEL_SPANS,     // running now; its first row is a title
	PANEL_PROCESSES, // its first row is a title
	PANEL_KEYS,
	PANELS
};

struct live_need { // rows that there would be
	int domains, spans, processes;
	bool target;
	bool energy; // there is some: watts to draw
	bool past;   // there is one: more than one look
};

struct live_layout {
	struct area panels[PANELS]; // of no height: not shown
	bool is_wide;               // the graph stands beside the figures, spans beside processes
};

enum { LAYOUT_WIDE = 140 };

void live_layout(const struct live_need *need, int columns, int rows, struct live_layout *ret_layout);

/* Which processes stand in the list, and in what order. Pure. */

enum { TREE_DEPTH_MOST = 24 }; // of the lines that are drawn; what lies deeper stands at that depth

struct live_row {
	const struct now_process *process;
	uint32_t trunks; // bit d: at depth d a sibling comes after this branch
	uint8_t depth;   // 0: a root, or no tree
	bool is_last;    // of its siblings
};

struct live_rows {
	struct live_row *rows; // owned
	size_t n, room;
	struct row_node *nodes; // owned scratch
};

// The names of users: a function of whoever knows them; NULL: unknown.
struct user_names {
	const char *(*name_of)(void *data, uid_t uid);
	void *data;
};

void live_rows_finish(struct live_rows *rows);
// Filters and sorts; -ENOMEM, the old rows are gone then. Unknown values come last, also in reverse.
int live_rows_make(struct live_rows *rows, const struct now *now, const struct live_ui *ui,
	const struct user_names *users);
// Makes the moves of the selection and scrolls so that it is seen; the list has `height` rows. Its row is returned, or -1.
int live_rows_select(const struct live_rows *rows, struct live_ui *ui, int height);
double live_sort_value(const struct now_process *process, enum live_sort sort); // NaN unknown

/* Everything that one picture shows, and the picture itself. Pure: no clock, no terminal; what is unknown is told as such. */

enum { LIVE_SPAN_NAME_SIZE = 256 };

struct live_span { // of a run, running now
	char name[LIVE_SPAN_NAME_SIZE];
	int64_t begin_ns;
	int64_t pid, tid; // tid 0: unknown
	int depth;        // spans around it in its thread
};

struct live_run { // a run in progress, as its file tells
	const char *path, *command;
	double target_j, total_j; // so far, as its report would say; NaN unknown
	int64_t start_ns;         // of its segment, on the clock of this machine
	int64_t stored_ns;        // its last sample; VALUE_MISSING: none yet
	bool is_late;             // no sample came for much longer than its interval
	bool is_adding_up;        // its past is long and not yet all in the joules, which are unknown until then
	bool is_over;
	struct live_span *spans; // those that began first come first, inner ones after outer ones
	size_t n_spans;
	int64_t spans_open; // of them all; `spans` may be cut
};

struct live_view {
	const struct now *now;
	const struct live_run *run;             // NULL: none
	pid_t pid;                              // whose tree is the target; 0: none
	double target_j;                        // of it since it is looked at; NaN unknown
	double since_s;                         // how long that is
	const struct now_history *dt_history_s; // of the looks
	const char *host;
	const char *clock; // time of day, as text
	const struct live_rows *rows;
	const struct live_ui *ui;
	const struct user_names *users;
	int selected; // its row; -1: none
	bool is_once; // no keys, no selection
};

struct live_need live_need_of(const struct live_view *view);
// How many rows of processes the list shows, its title not counted.
int live_list_height(const struct live_layout *layout);
void live_compose(const struct live_view *view, const struct live_layout *layout, struct frame *frame);

/* What `wattle top` keeps from frame to frame: it looks, sums up and composes, and knows neither the terminal nor files. */

struct session_options {
	const struct wattle_env *env; // borrowed until close
	pid_t pid;                    // whose tree is the target; 0: none
	struct live_ui ui;            // at first
	bool is_once;
};

struct session;

// Opens the sensors and takes the first look, which knows no powers: for a picture it takes a second one, some time later.
int session_open(const struct session_options *options, struct session **ret_session, struct wattle_error *reterr);
void session_close(struct session *session); // NULL allowed
void session_look(struct session *session);
struct live_ui *session_ui(struct session *session);
const struct now *session_now(const struct session *session); // NULL before session_look
// Of the run that is looked at; borrowed until the next call. NULL: none.
void session_set_run(struct session *session, const struct live_run *run);
// Composes a picture of that size; lent until the next call. NULL: no memory.
const struct frame *session_frame(struct session *session, int columns, int rows, bool utf8);

/* The terminal, by ncurses: frames go in, keys come out. What is sent is what differs from the frame before, so a slow line
 * gets little. One at a time in a process, as ncurses has it. */

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
