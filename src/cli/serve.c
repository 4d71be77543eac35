/* wattle serve: serves this machine's power to Prometheus and browsers. */
#include "cli/command.h"

#include "base/env.h"
#include "base/util.h"
#include "serve/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

struct values {
	const char *listen, *token_file, *textfile, *node;
	bool seed_names, hide_command;
	int64_t interval_ns, pid, processes, jobs, cgroups, exit_with;
};

static const struct option options[] = {
	{"listen", 0, "ADDRESS",
		"HOST:PORT or unix:PATH (default 127.0.0.1:9095; port 0: any\nfree port); other machines "
		"need --token-file",
		OPTION_TEXT, .offset = offsetof(struct values, listen)},
	{"token-file", 0, "FILE",
		"require the token in FILE (one line) from clients: as\n`Authorization: Bearer TOKEN`, or as "
		"the password of any user;\nFILE must be readable by its owner only",
		OPTION_TEXT, .offset = offsetof(struct values, token_file)},
	{"interval", 'i', "DUR", "sampling interval (default 1s); all clients receive the last\nsample",
		OPTION_DURATION, .offset = offsetof(struct values, interval_ns), .least = 1e8, .most = 6e10,
		.range = "100ms to 1m"},
	{"pid", 0, "PID", "show this process and its child processes as the target", OPTION_INTEGER,
		.offset = offsetof(struct values, pid), .least = 1, .most = 4194304, .range = "a process id"},
	{"processes", 0, "N",
		"number of processes with their own metrics, those with the most\npower (default 0: each is "
		"a series that Prometheus stores)",
		OPTION_INTEGER, .offset = offsetof(struct values, processes), .least = 0, .most = 1000,
		.range = "0 to 1000"},
	{"jobs", 0, "N",
		"number of scheduler jobs with their own metrics (default 100);\nfurther jobs are added up "
		"as \"other\"",
		OPTION_INTEGER, .offset = offsetof(struct values, jobs), .least = 0, .most = 1000,
		.range = "0 to 1000"},
	{"cgroups", 0, "N", "number of cgroups (systemd units, containers) with their own\nmetrics (default 0)",
		OPTION_INTEGER, .offset = offsetof(struct values, cgroups), .least = 0, .most = 1000,
		.range = "0 to 1000"},
	{"textfile", 0, "FILE",
		"write the metrics to FILE (*.prom) at each sample, for\nnode_exporter's textfile collector; "
		"nothing is served unless\n--listen is given too",
		OPTION_TEXT, .offset = offsetof(struct values, textfile)},
	{"node", 0, "NAME", "name of this machine in metrics (default: its host name)", OPTION_TEXT,
		.offset = offsetof(struct values, node)},
	{"exit-with", 0, "PID", "exit when this process ends", OPTION_INTEGER,
		.offset = offsetof(struct values, exit_with), .least = 1, .most = 4194304, .range = "a process id"},
	{"hide-command", 0, NULL,
		"show only program names without arguments, for all processes\n(default: for root's and "
		"other users' processes, unless there\nis a token)",
		OPTION_FLAG, .offset = offsetof(struct values, hide_command)},
	{"seed-names", 0, NULL, "also serve AIPowerMeter's gauges (power_draw_cpu, …) at /metrics", OPTION_FLAG,
		.offset = offsetof(struct values, seed_names)},
};

// Opens a descriptor that becomes readable when a signal requests the end.
static int open_signals(void)
{
	sigset_t stops;
	sigemptyset(&stops);
	sigaddset(&stops, SIGINT);
	sigaddset(&stops, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &stops, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return -errno;
	int fd = signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int watch(int stop_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	return epoll_ctl(stop_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

struct stops {
	int fd;      // becomes readable when there is a reason to end
	int signals; // signalfd, part of fd
	int process; // pidfd of a process to end with; -1: none
};

static void close_stops(struct stops *stops)
{
	const int fds[] = {stops->fd, stops->signals, stops->process};
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int open_stops(struct stops *stops, pid_t exit_with, struct wattle_error *reterr)
{
	*stops = (struct stops){.fd = epoll_create1(EPOLL_CLOEXEC), .signals = open_signals(), .process = -1};
	int r = stops->fd < 0 ? -errno : stops->signals < 0 ? stops->signals : watch(stops->fd, stops->signals);
	if (r < 0)
		return error_set(reterr, r, "can't create a signal descriptor: %s", strerror(-r));
	if (exit_with == 0)
		return 0;
	stops->process = (int)syscall(SYS_pidfd_open, exit_with, 0);
	r = stops->process < 0 ? -errno : watch(stops->fd, stops->process);
	return r < 0 ? error_set(reterr, r, "--exit-with %d: %s", (int)exit_with, strerror(-r)) : 0;
}

static int fail(const struct command *command, int r, const struct wattle_error *error)
{
	if (r == -EINVAL || r == -EPERM)
		return cli_usage(command, EXIT_USAGE, "%s", error->text);
	return cli_fail(EXIT_FAILED, error);
}

static void tell(struct server *server, const struct server_options *wanted)
{
	if (server_token_is_short(server))
		cli_warn("the token is short and can be guessed; use 32 random characters");
	const char *warning = server_warning(server);
	if (warning != NULL)
		cli_warn(warning);
	if (server_problem(server) != NULL)
		cli_warn(server_problem(server));
	if (wanted->textfile != NULL)
		fprintf(stderr, "wattle: writing %s\n", wanted->textfile);
	if (wanted->listen == NULL)
		return;
	fprintf(stderr, "wattle: serving at %s (metrics at %s%s)\n", server_url(server), server_url(server),
		strncmp(server_url(server), "unix:", 5) == 0 ? ":/metrics" : "metrics");
}

static int serve(const struct command *command, const struct server_options *wanted, int stop_fd)
{
	struct wattle_error error = {0};
	struct server *server;
	int r = serve_open(wanted, &server, &error);
	if (r < 0)
		return fail(command, r, &error);
	tell(server, wanted);
	r = server_run(server, stop_fd, cli_warn);
	serve_close(server);
	if (r == 0)
		return EXIT_DONE;
	error_set(&error, r, "serving ended: %s", strerror(-r));
	return cli_fail(EXIT_FAILED, &error);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {.interval_ns = NS_PER_S, .jobs = 100};
	struct option_list words;
	struct wattle_error error = {0};
	struct wattle_env env;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n > 0)
		return cli_usage(command, EXIT_USAGE, "unexpected argument '%s'", words.items[0]);
	if (env_open(&env, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	const struct server_options wanted = {
		.env = &env,
		.listen = values.listen != NULL || values.textfile != NULL ? values.listen : "127.0.0.1:9095",
		.textfile = values.textfile,
		.node = values.node,
		.most = {[MONITOR_JOBS] = (size_t)values.jobs, [MONITOR_CGROUPS] = (size_t)values.cgroups},
		.token_file = values.token_file,
		.seed_names = values.seed_names,
		.hide_command = values.hide_command,
		.interval_ns = values.interval_ns,
		.pid = (pid_t)values.pid,
		.max_processes = (size_t)values.processes,
	};
	struct stops stops;
	status = open_stops(&stops, (pid_t)values.exit_with, &error) < 0 ? cli_fail(EXIT_FAILED, &error)
									 : serve(command, &wanted, stops.fd);
	close_stops(&stops);
	env_close(&env);
	return status;
}

const struct command command_serve = {
	.name = "serve",
	.usage = "[--listen ADDRESS] [--token-file FILE] [OPTIONS]",
	.summary = "serve this machine's power as metrics for Prometheus and as a live page",
	.details =
		"Serves a page at /, OpenMetrics at /metrics and the same data as JSON at /now.json, until "
		"SIGINT or\nSIGTERM. Access is read-only. Power readings can reveal secrets of programs on a "
		"machine, so restrict who can\nconnect. Arguments of other users' programs are shown only if "
		"a token is required. See docs/serve.md.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
