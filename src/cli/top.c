/* wattle top: current activity and power of this machine, on a terminal. */
#include "cli/top.h"

#include "base/num.h"
#include "base/util.h"
#include "cli/command.h"
#include "live/session.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

struct values {
	bool once, tree, all;
	int64_t pid, interval_ns;
	const char *sort, *graph, *colours, *filter;
};

static const struct option options[] = {
	{"pid", 'p', "PID", "show this process and its child processes as the target", OPTION_INTEGER,
		.offset = offsetof(struct values, pid), .least = 1, .most = INT32_MAX, .range = "a process id"},
	{"interval", 'i', "DUR", "sampling interval (default 1s)", OPTION_DURATION,
		.offset = offsetof(struct values, interval_ns), .least = 1e8, .most = 3600e9, .range = "100ms to 1h"},
	{"once", 0, NULL, "print one frame as plain text after one interval (default without a\nterminal)", OPTION_FLAG,
		.offset = offsetof(struct values, once)},
	{"sort", 0, "COLUMN", "sort processes by power (default), energy, cpu, memory, gpu, gpu-memory, pid",
		OPTION_CHOICE, .offset = offsetof(struct values, sort),
		.choices = "power|energy|cpu|memory|gpu|gpu-memory|pid"},
	{"tree", 0, NULL, "show processes as a tree", OPTION_FLAG, .offset = offsetof(struct values, tree)},
	{"all", 'a', NULL, "show all processes, not only those of the target", OPTION_FLAG,
		.offset = offsetof(struct values, all)},
	{"filter", 0, "TEXT", "show only processes whose command, user or process ID contains this text", OPTION_TEXT,
		.offset = offsetof(struct values, filter)},
	{"graph", 0, "STYLE", "braille (default where the terminal has UTF-8), block, ascii", OPTION_CHOICE,
		.offset = offsetof(struct values, graph), .choices = "braille|block|ascii"},
	{"colours", 0, "WHICH",
		"for a dark or a light background, or none (default: from COLORFGBG and NO_COLOR, else dark)",
		OPTION_CHOICE, .offset = offsetof(struct values, colours), .choices = "dark|light|none"},
};

/* ---- terminal capabilities ---- */

static bool has_utf8(void)
{
	return setlocale(LC_CTYPE, "") != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

// rxvt, Konsole and others set COLORFGBG to "foreground;background"; 7 and 15 are white.
static bool is_light(void)
{
	const char *colours = getenv("COLORFGBG");
	const char *back = colours != NULL ? strrchr(colours, ';') : NULL;
	return back != NULL && (strcmp(back, ";7") == 0 || strcmp(back, ";15") == 0);
}

static enum screen_colours colours_of(const struct values *values)
{
	const char *no_colour = getenv("NO_COLOR");
	if (values->colours != NULL)
		return values->colours[0] == 'n'    ? SCREEN_NO_COLOURS
			: values->colours[0] == 'l' ? SCREEN_ON_LIGHT
						    : SCREEN_ON_DARK;
	if (no_colour != NULL && no_colour[0] != '\0')
		return SCREEN_NO_COLOURS;
	return is_light() ? SCREEN_ON_LIGHT : SCREEN_ON_DARK;
}

// The font of the Linux console has 512 characters, without braille.
static enum graph_style style_of(const struct values *values, bool utf8)
{
	const char *type = getenv("TERM");
	if (values->graph != NULL)
		return (enum graph_style)graph_style_from_name(values->graph);
	if (!utf8 || (type != NULL && strcmp(type, "linux") == 0))
		return GRAPH_ASCII;
	return GRAPH_BRAILLE;
}

static bool can_place_cursor(void)
{
	const char *type = getenv("TERM");
	return type != NULL && type[0] != '\0' && strcmp(type, "dumb") != 0;
}

/* ---- a single frame ---- */

static int number_from(const char *variable, int most)
{
	uint64_t value;
	const char *text = getenv(variable);
	if (text == NULL || num_parse_u64(text, &value) < 0 || value == 0)
		return 0;
	return value < (uint64_t)most ? (int)value : most;
}

static void size_of_text(int *ret_columns, int *ret_rows)
{
	struct winsize size = {0};
	bool is_terminal = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
	int columns = number_from("COLUMNS", 1000), rows = number_from("LINES", 1000);
	if (columns == 0)
		columns = is_terminal && size.ws_col > 0 ? size.ws_col : 80;
	if (rows == 0)
		rows = is_terminal && size.ws_row > 1 ? size.ws_row - 1 : 40;
	*ret_columns = columns;
	*ret_rows = rows;
}

static void sleep_ns(int64_t ns)
{
	struct timespec left = {ns / NS_PER_S, ns % NS_PER_S};
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

static int print_once(struct session *session, struct top_run *run, bool utf8)
{
	int columns, rows;
	top_run_update(run, session_now(session)->t_ns, true);
	size_of_text(&columns, &rows);
	const struct frame *frame = session_frame(session, columns, rows, utf8);
	if (frame == NULL)
		return cli_no_memory();
	struct buf out = cli_buf();
	frame_text(frame, &out);
	while (out.size > 1 && out.data[out.size - 1] == '\n' && out.data[out.size - 2] == '\n')
		out.size--; // drop empty rows at the end
	return cli_finish(&out, "-");
}

/* ---- interactive loop ---- */

struct loop {
	struct session *session;
	struct screen *screen;
	struct top_run *run;
	int in_fd;
	bool utf8, redraw_all;
	_Atomic bool is_drawing;
	struct termios found_modes; // modes of the terminal before the start
	sigset_t ends;              // signals that end the program
	pthread_t watcher;          // thread that waits for them
	int end_fd;                 // owned: eventfd, readable after such a signal
	sigset_t waiting, drawing;  // signal masks while waiting and while drawing
};

/* Runs in its own thread: if the terminal stops accepting output (Ctrl-S, a dead connection), ncurses blocks in the middle of a
 * frame and never returns to the loop. */
static void *watch_for_end(void *data)
{
	struct loop *loop = data;
	int signal;
	if (sigwait(&loop->ends, &signal) != 0)
		return NULL;
	if (loop->is_drawing && tcsetattr(STDOUT_FILENO, TCSANOW, &loop->found_modes) == 0)
		_exit(EXIT_DONE);
	eventfd_write(loop->end_fd, 1);
	return NULL;
}

// The signals that ncurses handles, for a new size and for job control, are unblocked only while waiting, when ncurses is not
// drawing.
static int watch_signals(struct loop *loop, struct wattle_error *reterr)
{
	sigemptyset(&loop->ends);
	for (size_t i = 0; i < 4; i++)
		sigaddset(&loop->ends, (const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT}[i]);
	sigprocmask(SIG_BLOCK, &loop->ends, NULL);
	sigprocmask(SIG_SETMASK, NULL, &loop->waiting);
	sigdelset(&loop->waiting, SIGWINCH);
	sigdelset(&loop->waiting, SIGTSTP);
	loop->drawing = loop->waiting;
	sigaddset(&loop->drawing, SIGWINCH);
	sigaddset(&loop->drawing, SIGTSTP);
	sigprocmask(SIG_SETMASK, &loop->drawing, NULL);
	loop->end_fd = eventfd(0, EFD_CLOEXEC);
	int code = loop->end_fd >= 0 ? pthread_create(&loop->watcher, NULL, watch_for_end, loop) : errno;
	return code == 0 ? 0 : error_set(reterr, -code, "can't create a signal descriptor: %s", strerror(code));
}

static void draw(struct loop *loop)
{
	int columns, rows;
	if (screen_is_behind(loop->screen))
		return;
	screen_size(loop->screen, &columns, &rows);
	const struct frame *frame = session_frame(loop->session, columns, rows, loop->utf8);
	if (frame == NULL)
		return;
	loop->is_drawing = true;
	screen_draw(loop->screen, frame, loop->redraw_all);
	loop->is_drawing = false;
	loop->redraw_all = false;
}

// Waits for a key or the next update; false: the terminal is gone, or a signal requests the end.
static bool wait_for(struct loop *loop, int64_t ns)
{
	struct pollfd fds[] = {{.fd = loop->in_fd, .events = POLLIN}, {.fd = loop->end_fd, .events = POLLIN}};
	struct timespec timeout = {ns / NS_PER_S, ns % NS_PER_S};
	int n = ppoll(fds, ARRAY_SIZE(fds), &timeout, &loop->waiting);
	return n <= 0 || ((fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0 && fds[1].revents == 0);
}

// Handles all pressed keys; false: quit.
static bool take_keys(struct loop *loop, bool *ret_draw)
{
	for (uint32_t key; (key = screen_key(loop->screen)) != 0;) {
		enum live_action action = live_key(session_ui(loop->session), key);
		if (action == ACTION_QUIT)
			return false;
		*ret_draw |= action != ACTION_NONE;
		loop->redraw_all |= action == ACTION_REDRAW;
	}
	return true;
}

static void poll_once(struct loop *loop)
{
	if (session_ui(loop->session)->paused)
		return;
	session_sample(loop->session);
	top_run_update(loop->run, session_now(loop->session)->t_ns, false);
}

static void follow(struct loop *loop, const struct wattle_env *env)
{
	int64_t interval_ns = session_ui(loop->session)->interval_ns, next_ns = env_now_ns(env) + interval_ns;
	draw(loop);
	for (;;) {
		bool is_changed = false;
		int64_t left_ns = next_ns - env_now_ns(env);
		bool is_there = wait_for(loop, left_ns > 0 ? left_ns : 0);
		if (!is_there || !take_keys(loop, &is_changed))
			return;
		int64_t now_ns = env_now_ns(env), step_ns = session_ui(loop->session)->interval_ns;
		if (step_ns != interval_ns) {
			interval_ns = step_ns;
			next_ns = next_ns < now_ns + step_ns ? next_ns : now_ns + step_ns;
		}
		if (now_ns >= next_ns) {
			poll_once(loop);
			next_ns = next_ns + interval_ns > now_ns ? next_ns + interval_ns : now_ns + interval_ns;
			is_changed = true;
		}
		if (is_changed)
			draw(loop);
	}
}

static int show(struct session *session, struct top_run *run, const struct values *values, bool utf8,
	const struct wattle_env *env)
{
	struct wattle_error error = {0};
	struct loop loop = {.session = session, .run = run, .utf8 = utf8, .end_fd = -1};
	FILE *in = isatty(STDIN_FILENO) ? stdin : fopen("/dev/tty", "re");
	if (in == NULL)
		return print_once(session, run, utf8);
	loop.in_fd = fileno(in);
	tcgetattr(STDOUT_FILENO, &loop.found_modes);
	int watched = watch_signals(&loop, &error);
	int r = watched == 0 ? screen_open(in, stdout, colours_of(values), &loop.screen, &error) : watched;
	if (r == 0)
		follow(&loop, env);
	screen_close(loop.screen);
	tcsetattr(STDOUT_FILENO, TCSANOW, &loop.found_modes); // if ncurses could not restore the modes
	if (watched == 0) {
		pthread_cancel(loop.watcher);
		pthread_join(loop.watcher, NULL);
	}
	if (loop.end_fd >= 0)
		close(loop.end_fd);
	if (in != stdin)
		fclose(in);
	return r < 0 ? cli_fail(EXIT_FAILED, &error) : EXIT_DONE;
}

/* ---- the command ---- */

static struct live_ui ui_of(const struct values *values, bool utf8)
{
	struct live_ui ui = {.style = style_of(values, utf8),
		.tree = values->tree,
		.only_target = !values->all,
		.interval_ns = values->interval_ns};
	int sort = live_sort_from_name(values->sort);
	ui.sort = sort < 0 ? SORT_POWER : (enum live_sort)sort;
	if (values->filter != NULL)
		text_copy(ui.filter, sizeof(ui.filter), values->filter);
	return ui;
}

// The first frame appears early, with values over a short interval.
static const int64_t FIRST_NS = 300 * NS_PER_MS;

static int top(const struct values *values, const char *path, const struct wattle_env *env)
{
	struct wattle_error error = {0};
	struct top_run *run = NULL;
	struct session *session = NULL;
	bool utf8 = has_utf8(), is_terminal = isatty(STDOUT_FILENO) && can_place_cursor();
	int status = EXIT_FAILED;
	struct session_options session_options = {.env = env,
		.pid = (pid_t)values->pid,
		.ui = ui_of(values, utf8),
		.is_once = values->once || !is_terminal};
	if (path != NULL && top_run_open(path, &run, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	if (run != NULL)
		session_options.pid = top_run_pid(run);
	if (session_open(&session_options, &session, &error) < 0) {
		top_run_close(run);
		return cli_fail(EXIT_FAILED, &error);
	}
	session_set_run(session, top_run_view(run));
	if (!values->once && isatty(STDOUT_FILENO) && !is_terminal)
		cli_warn("this terminal type can't position its cursor; printing one frame (set TERM=vt100 or xterm)");
	int64_t first_ns = session_options.is_once || values->interval_ns < FIRST_NS ? values->interval_ns : FIRST_NS;
	sleep_ns(first_ns);
	session_sample(session);
	if (top_run_check(run, session_now(session), &error) < 0) {
		session_close(session);
		top_run_close(run);
		return cli_fail(EXIT_FAILED, &error);
	}
	if (!session_options.is_once)
		top_run_update(run, session_now(session)->t_ns, false);
	if (session_options.is_once)
		status = print_once(session, run, utf8);
	else
		status = show(session, run, values, utf8, env);
	session_close(session);
	top_run_close(run);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {.interval_ns = NS_PER_S, .sort = "power"};
	struct option_list words;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n > 1)
		return cli_usage(command, EXIT_USAGE, "more than one run file given");
	if (words.n == 1 && values.pid != 0)
		return cli_usage(command, EXIT_USAGE,
			"--pid: can't be combined with a run file, which has its own process");
	struct wattle_env env;
	struct wattle_error error = {0};
	if (env_open(&env, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	status = top(&values, words.n == 1 ? words.items[0] : NULL, &env);
	env_close(&env);
	return status;
}

const struct command command_top = {
	.name = "top",
	.usage = "[RUN | --pid PID] [OPTIONS]",
	.summary = "show power, processes and open spans of this machine live",
	.details =
		"Without RUN and --pid, shows the whole machine. RUN is the file of a run in progress; its "
		"energy so far and\nits open spans are shown. The last line shows the main keys; ? lists all "
		"keys. If standard output is not a\nterminal, wattle prints one frame as text, COLUMNS wide "
		"(default 80).",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
