/* What `wattle top` keeps from frame to frame: it looks, sums up and composes, and knows neither the terminal nor files. */
#pragma once

#include "live/view.h"

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
