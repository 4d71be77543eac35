/* One frame of the screen as a grid of cells, independent of any terminal. Tests inspect it, and `--once` prints it.
 *
 * Texts are UTF-8 of unknown origin. Invalid bytes, control characters and characters that change the writing direction
 * become '?'. On terminals without UTF-8, so does all non-ASCII text. wcwidth() supplies character widths, so LC_CTYPE
 * must be set. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "monitor/monitor.h"
#include "report/palette.h"
#include "sensor/sensor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <wchar.h>

enum { CELL_RUNES = 3 }; // a base character, then combining characters

enum cell_attribute { ATTRIBUTE_BOLD = 1, ATTRIBUTE_FAINT = 2, ATTRIBUTE_REVERSE = 4 };

struct pen {
	enum colour colour; // COLOUR_INK: the terminal's default colour
	unsigned int cell_attributes;
};

struct cell {
	wchar_t runes[CELL_RUNES]; // unused entries are 0
	uint8_t width;             // columns; 2: a wide character, whose second cell has width 0
	uint8_t colour;            // enum colour
	uint8_t cell_attributes;
};

struct area { // empty if width or height is 0
	int x, y, width, height;
};

struct frame {
	int columns, rows;
	bool utf8;
	struct cell *cells; // owned; `rows` rows of `columns` cells
};

int frame_init(struct frame *frame, int columns, int rows, bool utf8); // all cells blank; -ENOMEM
void frame_finish(struct frame *frame);
void frame_clear(struct frame *frame);
const struct cell *frame_cell(const struct frame *frame, int x, int y);

// Writes one character; ignores positions outside the frame.
void frame_rune(struct frame *frame, int x, int y, wchar_t rune, struct pen pen);
void frame_set_attributes(struct frame *frame, struct area area,
	unsigned int cell_attributes); // adds attributes to all cells of the area
// Writes the frame as plain text, without trailing blanks.
void frame_text(const struct frame *frame, struct buf *out);

/* Symbols with a UTF-8 and an ASCII form. */
enum sign { SIGN_MORE, SIGN_DOT, SIGN_DOWN, SIGN_UP, SIGN_BRANCH, SIGN_LAST, SIGN_TREE_LINE, SIGN_DEGREE, SIGNS };
const char *sign(const struct frame *frame, enum sign which);

/* A text cursor that writes from left to right within one row. Text that does not fit is truncated with a mark. */
struct line {
	struct frame *frame;
	int x, y, end; // the next column, and the end of the range (exclusive)
	bool is_cut;
};
struct line line_in(struct frame *frame, struct area area, int row); // row `row` of the area
void line_text(struct line *line, struct pen pen, const char *text);
void line_printf(struct line *line, struct pen pen, const char *format, ...) __attribute__((format(printf, 3, 4)));
void line_blank(struct line *line, int n);
void line_to(struct line *line, int x); // writes blanks up to a column of the frame; never moves back
// Writes text into a column of `width` cells, truncated there, aligned right or left.
void line_column(struct line *line, struct pen pen, const char *text, int width, bool to_right);
int text_width(const struct frame *frame, const char *text); // in cells

/* Graphs over time, and bars of shares. */

enum graph_style {
	GRAPH_BRAILLE, // 2 x 4 dots per cell
	GRAPH_BLOCK,   // 1 x 8 steps per cell
	GRAPH_ASCII,   // 1 x 3 steps per cell
	GRAPH_STYLES
};
int graph_style_from_name(const char *name); // "braille", "block", "ascii"; else -EINVAL

struct graph {
	enum graph_style style;
	const double *values; // n values, the newest last, at the right edge; NaN: unknown, not drawn
	const double *parts;  // part of each value, drawn in part_pen; NULL: none
	size_t n;
	double top; // value at the upper edge
	struct pen pen, part_pen;
};
size_t graph_capacity(enum graph_style style, int width); // number of values that fit into `width` cells
// A known 0 is drawn as the lowest dot, to distinguish it from unknown values.
void graph_draw(struct frame *frame, struct area area, const struct graph *graph);
// Returns the smallest of 1, 2, 5 times a power of ten that is at least `value` and `least`. The scale therefore stays
// constant while values vary.
double graph_top(double value, double least);

/* A bar in one row: consecutive segments, each a share of the width. Fill patterns distinguish the segments without
 * colour. */
enum fill { FILL_SOLID, FILL_DENSE, FILL_HALF, FILL_STRIPES, FILL_THIN, FILL_DOT, FILLS };
struct bar_segment {
	double share; // of the width; NaN and negative values draw nothing
	enum fill fill;
	enum colour colour;
};
void bar_draw(struct frame *frame, struct area area, enum graph_style style, const struct bar_segment *segments,
	size_t n);
const char *fill_sign(const struct frame *frame, enum fill fill); // one cell of the pattern
enum fill fill_of(enum provenance provenance);                    // measured: solid; estimated: hatched

/* User interface state, and its changes by keys. */

enum live_sort { SORT_POWER, SORT_ENERGY, SORT_CPU, SORT_MEMORY, SORT_GPU, SORT_GPU_MEMORY, SORT_PID, SORTS };
const char *live_sort_name(enum live_sort sort); // "power", "energy" …
int live_sort_from_name(const char *name);       // else -EINVAL

enum { FILTER_SIZE = 64 };

struct live_ui {
	enum live_sort sort;
	bool reverse, tree, only_target, paused, help, editing, no_spans;
	bool has_target; // a target exists that can be shown alone
	enum graph_style style;
	char filter[FILTER_SIZE]; // part of a command, user or pid; "": none
	pid_t selected;           // 0: none
	int moves;                // pending moves of the selection, rows; applied when drawing, which knows the page size
	int pages;
	int first; // first visible row of the list
	int shift; // horizontal scroll of commands, columns
	int64_t interval_ns;
};

/* Codes of special keys; characters are their code points. */
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

enum live_action { ACTION_NONE, ACTION_DRAW, ACTION_REDRAW /* clears the screen first */, ACTION_QUIT };
enum live_action live_key(struct live_ui *ui, uint32_t key);

/* Key descriptions for the help panel and the last line. */
struct live_key_row {
	const char *keys, *brief, *does; // brief NULL: not shown in the last line
};
extern const struct live_key_row live_keys[];
extern const size_t n_live_keys;

/* Screen layout: a pure function of the screen size and of the amount of data. */

enum panel {
	PANEL_HEAD,      // name, host, time; measurement overhead
	PANEL_TOTAL,     // power and energy of the machine
	PANEL_LEDGER,    // power by consumer, as a bar
	PANEL_LEGEND,    // power by consumer, as numbers
	PANEL_MACHINE,   // cores and memory
	PANEL_TARGET,    // the run or process tree of interest
	PANEL_GRAPH,     // power over time
	PANEL_DOMAINS,   // one row per domain
	PANEL_SPANS,     // running spans; the first row is a title
	PANEL_PROCESSES, // the first row is a title
	PANEL_KEYS,
	PANELS
};

struct live_need { // rows wanted by each panel
	int domains, spans, processes;
	bool target;
	bool energy; // energy is measured, so power can be drawn
	bool past;   // a history exists: more than one sample
};

struct live_layout {
	struct area panels[PANELS]; // height 0: not shown
	bool is_wide;               // the graph is beside the figures, spans are beside processes
};

enum { LAYOUT_WIDE = 140 };

void live_layout(const struct live_need *need, int columns, int rows, struct live_layout *ret_layout);

/* Selection and order of the processes in the list. Pure. */

enum { TREE_DEPTH_MAX = 24 }; // of the drawn branches; deeper processes are shown at that depth

struct live_row {
	const struct monitor_process *process;
	uint32_t branch_bits; // bit d: at depth d, a sibling follows this branch
	uint8_t depth;   // 0: a root, or no tree view
	bool is_last;    // last of its siblings
};

struct live_rows {
	struct live_row *rows; // owned
	size_t n, capacity;
	struct row_node *nodes; // owned; scratch
};

// User name lookup, supplied by the caller; NULL: unknown.
struct user_names {
	const char *(*name_of)(void *data, uid_t uid);
	void *data;
};

void live_rows_finish(struct live_rows *rows);
// Filters and sorts. -ENOMEM: the old rows are lost. Unknown values come last, in reverse order too.
int live_rows_make(struct live_rows *rows, const struct monitor_sample *now, const struct live_ui *ui,
	const struct user_names *users);
// Applies the pending moves of the selection and scrolls to make it visible; the list has `height` rows. Returns the selected
// row, or -1.
int live_rows_select(const struct live_rows *rows, struct live_ui *ui, int height);
double live_sort_value(const struct monitor_process *process, enum live_sort sort); // NaN: unknown

/* All data of one frame, and its composition. Pure: no clock, no terminal; unknown values are shown as such. */

enum { LIVE_SPAN_NAME_SIZE = 256 };

struct live_span { // a running span of a run
	char name[LIVE_SPAN_NAME_SIZE];
	int64_t begin_ns;
	int64_t pid, tid; // tid 0: unknown
	int depth;        // number of enclosing spans in its thread
};

struct live_run { // a run in progress, read from its file
	const char *path, *command;
	double target_j, total_j; // so far, as in the run's report, J; NaN: unknown
	int64_t start_ns;         // start of the segment, on this machine's clock
	int64_t stored_ns;        // time of the last sample; VALUE_MISSING: none yet
	bool is_late;             // the last sample is much older than the interval
	bool is_adding_up;        // the run's history is long and still being summed; energy is unknown until then
	bool is_over;
	struct live_span *spans; // ordered by start; outer spans before inner ones
	size_t n_spans;
	int64_t spans_open; // total number; `spans` may be truncated
};

struct live_view {
	const struct monitor_sample *now;
	const struct live_run *run;             // NULL: none
	pid_t pid;                              // root of the target process tree; 0: none
	double target_j;                        // energy of the target since monitoring began; NaN: unknown
	double since_s;                         // time since monitoring began
	const struct monitor_history *dt_history_s; // durations of the last sampling intervals
	const char *host;
	const char *clock; // time of day, as text
	const struct live_rows *rows;
	const struct live_ui *ui;
	const struct user_names *users;
	int selected; // selected row; -1: none
	bool is_once; // single output: no keys, no selection
};

struct live_need live_need_of(const struct live_view *view);
// Number of visible process rows, without the title.
int live_list_height(const struct live_layout *layout);
void live_compose(const struct live_view *view, const struct live_layout *layout, struct frame *frame);

/* State of `wattle top` across frames: takes samples, accumulates and composes. Independent of the terminal and of files. */

struct session_options {
	const struct wattle_env *env; // borrowed until close
	pid_t pid;                    // root of the target process tree; 0: none
	struct live_ui ui;            // initial state
	bool is_once;
};

struct session;

// Opens the sensors and takes the first sample, which has no power values. A frame needs a second sample some time later.
int session_open(const struct session_options *options, struct session **ret_session, struct wattle_error *reterr);
void session_close(struct session *session); // NULL allowed
void session_sample(struct session *session);
struct live_ui *session_ui(struct session *session);
const struct monitor_sample *session_now(const struct session *session); // NULL before session_sample
// Sets the run to show; borrowed until the next call. NULL: none.
void session_set_run(struct session *session, const struct live_run *run);
// Composes a frame of that size; borrowed until the next call. NULL: no memory.
const struct frame *session_frame(struct session *session, int columns, int rows, bool utf8);

/* Terminal output and key input through ncurses. Only cells that changed since the previous frame are sent, which keeps
 * slow connections usable. At most one screen per process, a limit of ncurses. */

enum screen_colours { SCREEN_NO_COLOURS, SCREEN_ON_DARK, SCREEN_ON_LIGHT };

struct screen;

// `in` and `out` are borrowed until close. -ENOTTY: the terminal type has no cursor addressing; *reterr is set.
int screen_open(FILE *in, FILE *out, enum screen_colours colours, struct screen **ret_screen,
	struct wattle_error *reterr);
void screen_close(struct screen *screen); // restores the terminal; NULL allowed
void screen_size(const struct screen *screen, int *ret_columns, int *ret_rows);
// anew: redraws all cells, whatever the screen shows.
void screen_draw(struct screen *screen, const struct frame *frame, bool anew);
// Next pressed key, a code point or an enum live_key; 0: none.
uint32_t screen_key(struct screen *screen);
// True if the terminal has not yet accepted the previous frame. On a slow connection, skipping a frame is better than
// queueing it.
bool screen_is_behind(const struct screen *screen);
