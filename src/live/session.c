#include "live/session.h"

#include "base/util.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct user { // looked up once: a directory service may be slow
	uid_t uid;
	char name[32]; // "": unknown
};

struct session {
	struct session_options options;
	struct live_ui ui;
	struct monitor *state; // owned
	const struct monitor_sample *now;
	const struct live_run *run;
	struct live_rows rows;
	struct frame frame;
	struct monitor_history dt_s; // owned values
	int64_t first_ns;
	double target_j;
	char host[256];
	struct user *users; // owned
	size_t n_users, users_capacity;
};

/* ---- users ---- */

static struct user *find_user(struct session *session, uid_t uid)
{
	for (size_t i = 0; i < session->n_users; i++)
		if (session->users[i].uid == uid)
			return &session->users[i];
	return NULL;
}

static const char *user_name(void *data, uid_t uid)
{
	struct session *session = data;
	struct user *user = find_user(session, uid);
	if (user == NULL) {
		struct user *larger = array_reserve(session->users, session->n_users, &session->users_capacity,
			sizeof(*larger), 16);
		if (larger == NULL)
			return NULL;
		session->users = larger;
		user = &larger[session->n_users++];
		*user = (struct user){.uid = uid};
		const struct passwd *entry = getpwuid(uid);
		if (entry != NULL && entry->pw_name != NULL)
			text_copy(user->name, sizeof(user->name), entry->pw_name);
	}
	return user->name[0] != '\0' ? user->name : NULL;
}

/* ---- open and close ---- */

void session_close(struct session *session)
{
	if (session == NULL)
		return;
	monitor_close(session->state);
	live_rows_finish(&session->rows);
	frame_finish(&session->frame);
	free(session->dt_s.values);
	free(session->users);
	free(session);
}

int session_open(const struct session_options *options, struct session **ret_session, struct wattle_error *reterr)
{
	struct session *session = calloc(1, sizeof(*session));
	float *values = calloc_array(MONITOR_HISTORY, sizeof(*values));
	if (session == NULL || values == NULL) {
		free(session);
		free(values);
		return error_set(reterr, -ENOMEM, "out of memory");
	}
	session->options = *options;
	session->ui = options->ui;
	session->ui.has_target = options->pid != 0;
	session->dt_s = (struct monitor_history){.values = values, .capacity = MONITOR_HISTORY};
	session->target_j = (double)NAN;
	if (gethostname(session->host, sizeof(session->host) - 1) != 0)
		text_copy(session->host, sizeof(session->host), "this machine");
	const struct monitor_options now = {.env = options->env, .pid = options->pid, .history = MONITOR_HISTORY};
	int r = monitor_open(&now, &session->state, reterr);
	if (r < 0) {
		session_close(session);
		return r;
	}
	session->first_ns = env_now_ns(options->env);
	*ret_session = session;
	return 0;
}

/* ---- sampling ---- */

// Appends to a ring buffer as in monitor.h.
static void add_dt(struct monitor_history *history, double dt_s)
{
	history->values[history->next] = (float)dt_s;
	history->next = (history->next + 1) % history->capacity;
	history->n += history->n < history->capacity;
}

void session_sample(struct session *session)
{
	monitor_set_interval(session->state, session->ui.interval_ns); // the interval can change by key
	const struct monitor_sample *now = session->now = monitor_take_sample(session->state);
	add_dt(&session->dt_s, now->dt_s);
	double step_j = now->sum.target_w * now->dt_s;
	if (!isnan(step_j))
		session->target_j = isnan(session->target_j) ? step_j : session->target_j + step_j;
}

struct live_ui *session_ui(struct session *session)
{
	return &session->ui;
}

const struct monitor_sample *session_now(const struct session *session)
{
	return session->now;
}

void session_set_run(struct session *session, const struct live_run *run)
{
	session->run = run;
}

/* ---- frames ---- */

static void set_clock(int64_t wall_ns, char *out, size_t size)
{
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	struct tm local;
	localtime_r(&seconds, &local);
	strftime(out, size, "%H:%M:%S", &local);
}

static int fit_frame(struct session *session, int columns, int rows, bool utf8)
{
	struct frame *frame = &session->frame;
	if (frame->cells != NULL && frame->columns == columns && frame->rows == rows && frame->utf8 == utf8)
		return 0;
	frame_finish(frame);
	return frame_init(frame, columns, rows, utf8);
}

const struct frame *session_frame(struct session *session, int columns, int rows, bool utf8)
{
	const struct user_names users = {user_name, session};
	if (fit_frame(session, columns, rows, utf8) < 0 ||
		live_rows_make(&session->rows, session->now, &session->ui, &users) < 0)
		return NULL;
	char clock[16];
	set_clock(session->now->wall_ns, clock, sizeof(clock));
	struct live_view view = {
		.now = session->now,
		.run = session->run,
		.pid = session->options.pid,
		.target_j = session->target_j,
		.since_s = (double)(session->now->t_ns - session->first_ns) * 1e-9,
		.dt_history_s = &session->dt_s,
		.host = session->host,
		.clock = clock,
		.rows = &session->rows,
		.ui = &session->ui,
		.users = &users,
		.selected = -1,
		.is_once = session->options.is_once,
	};
	const struct live_need need = live_need_of(&view);
	struct live_layout layout;
	live_layout(&need, columns, rows, &layout);
	view.selected = live_rows_select(&session->rows, &session->ui, live_list_height(&layout));
	live_compose(&view, &layout, &session->frame);
	return &session->frame;
}
