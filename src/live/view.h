/* Everything that one picture shows, and the picture itself. Pure: no clock, no terminal; what is unknown is told as such. */
#pragma once

#include "live/layout.h"
#include "live/rows.h"
#include "now/now.h"

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
