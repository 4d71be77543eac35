#include "serve/server.h"

#include "base/util.h"
#include "monitor/monitor.h"
#include "serve/http.h"
#include "serve/totals.h"
#include "serve/view.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
	REQUEST_CAPACITY = 16
		<< 10, // memory per connection, bytes, including request headers; longer headers are refused (431)
	SWEEP_MS = 1000,
	FIRST_SAMPLE_MS = 200,
	SAVE_S = 60,      // maximum time between saves of the counters
	TEXTFILE_S = 300, // reads of a file are not observable, so ended series stay in it for this time
};

struct server {
	struct address address;
	struct token token;
	struct monitor *state; // owned
	struct mhd mhd;
	struct MHD_Daemon *daemon; // owned
	int epoll_fd;              // the daemon's
	int timer_fd;              // owned
	const struct wattle_env *env;
	char host[256], node[256];
	struct totals totals;
	struct state state_file;
	struct textfile textfile;
	int64_t saved_ns;
	char warning[1024]; // "": none
	bool has_warned;
	struct view view;
	struct history history;
	struct response_cache responses_cached;
	struct request_rules rules;
	struct connections connections;
	uint64_t n_ended; // ended connections before the last library run
	int64_t first_ns;
};

static void save(void *data)
{
	struct server *server = data;
	state_write(&server->state_file, server->state, server->view.now->n_domains, &server->totals,
		server->view.sample, false);
	server->saved_ns = server->view.now->t_ns;
	if (server->state_file.failed < 0 && !server->has_warned)
		snprintf(server->warning, sizeof(server->warning), "%s/%s: %s; counters start at 0 at the next start",
			server->env->state_dir, server->state_file.name, strerror(-server->state_file.failed));
}

static void write_textfile(struct server *server)
{
	if (server->textfile.path == NULL)
		return;
	save(server);
	textfile_write(&server->textfile, &server->view);
	if (server->textfile.failed < 0 && !server->has_warned)
		snprintf(server->warning, sizeof(server->warning), "%s: %s; wattle tries again at each sample",
			server->textfile.path, strerror(-server->textfile.failed));
}

// Drops ended series that every active scraper has received.
static void forget(struct server *server, int64_t t_ns)
{
	struct scraped seen = {.sample = UINT64_MAX, .t_ns = INT64_MAX};
	if (server->daemon != NULL)
		seen = scrapers_seen(&server->totals.scrapers, t_ns);
	if (server->textfile.path != NULL)
		seen.t_ns = t_ns - TEXTFILE_S * NS_PER_S;
	totals_drop_scraped(&server->totals, &seen);
}

static void sample(struct server *server)
{
	const struct monitor_sample *now = monitor_take_sample(server->state);
	server->view.now = now;
	forget(server, now->t_ns);
	totals_update(&server->totals, now, ++server->view.sample);
	server->view.up_ns = now->t_ns - server->first_ns;
	if (server->history.domains == NULL && history_init(&server->history, now->n_domains) < 0)
		return;
	history_add(&server->history, now);
	response_cache_clear(&server->responses_cached);
	write_textfile(server);
	if (now->t_ns - server->saved_ns >= SAVE_S * NS_PER_S)
		save(server);
}

/* ---- callbacks of the library's `run` ---- */

static void on_connection(void *data, struct MHD_Connection *connection, void **entry,
	enum MHD_ConnectionNotificationCode what)
{
	connections_notify(&((struct server *)data)->connections, connection, entry, what);
}

/* Called when the headers have arrived and again when the request is complete. Answering in the first call would cost the
 * connection. No route takes a body: a GET with a body closes the connection, and other methods are refused before their
 * body arrives. */
static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *path, const char *method,
	const char *version, const char *upload, size_t *upload_size, void **request)
{
	struct server *server = data;
	bool is_whole = *request != NULL;
	if (!is_whole && request_is_reading(method)) {
		*request = server;
		return MHD_YES;
	}
	if (is_whole && *upload_size > 0)
		return MHD_NO;
	bool is_scrape;
	enum MHD_Result r = request_answer(&server->rules, &server->responses_cached, &server->view, connection, path,
		method, &is_scrape);
	connections_request(&server->connections, connection, is_scrape ? server->view.sample : 0);
	return r;
}

static void on_answered(void *data, struct MHD_Connection *connection, void **request,
	enum MHD_RequestTerminationCode how)
{
	connections_completed(&((struct server *)data)->connections, connection, how);
}

/* ---- opening ---- */

static int start_daemon(struct server *server, struct wattle_error *reterr)
{
	server->daemon = server->mhd.start(MHD_USE_EPOLL, 0, NULL, NULL, on_request, server, // external event loop
		MHD_OPTION_LISTEN_SOCKET, server->address.fd,                                //
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTION_TABLE_MAX,             //
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_CAPACITY,                //
		MHD_OPTION_STRICT_FOR_CLIENT, 1,                                             //
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,                         //
		MHD_OPTION_NOTIFY_COMPLETED, on_answered, server,                            //
		MHD_OPTION_END);
	if (server->daemon == NULL)
		return error_set(reterr, -ENOSYS, "libmicrohttpd can't serve %s", server->address.url);
	const union MHD_DaemonInfo *info = server->mhd.daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (info == NULL)
		return error_set(reterr, -ENOSYS, "libmicrohttpd is built without epoll");
	server->epoll_fd = info->epoll_fd;
	return 0;
}

// Shows command lines of other users only if every reader has the token. Textfile readers don't need one.
static enum monitor_arguments arguments_shown(const struct server_options *options)
{
	if (options->hide_command)
		return MONITOR_ARGUMENTS_NONE;
	return options->token_file != NULL && options->textfile == NULL ? MONITOR_ARGUMENTS_ALL : MONITOR_ARGUMENTS_OWN;
}

/* Power is known from the second sample on, and an interval of almost zero would be noise. The first published sample is
 * therefore taken a moment after opening. */
static int open_and_sample(struct server *server, const struct server_options *options, struct wattle_error *reterr)
{
	static const struct timespec first_interval = {.tv_nsec = FIRST_SAMPLE_MS * NS_PER_MS};
	struct state_read kept;
	state_read(&server->state_file, &kept);
	struct monitor_options now = {
		.env = options->env,
		.pid = options->pid,
		.kept = kept.domains,
		.n_kept = kept.n_domains,
		.same_boot = kept.same_boot,
		.arguments = arguments_shown(options),
	};
	for (int k = 0; k < MONITOR_GROUPINGS; k++)
		now.groups[k] = options->most[k] > 0;
	totals_read(&server->totals, kept.object, kept.same_boot, env_now_ns(server->env));
	struct monitor_kept_process *processes = process_rows_kept(&server->totals.processes, &now.n_kept_processes);
	now.kept_processes = processes;
	int r = monitor_open(&now, &server->state, reterr);
	free(processes);
	state_read_finish(&kept);
	if (r < 0)
		return r;
	monitor_set_interval(server->state, server->view.interval_ns);
	server->first_ns = env_now_ns(server->env);
	nanosleep(&first_interval, NULL);
	sample(server);
	server->view.opened_wall_ns = server->view.now->wall_ns - server->view.up_ns;
	return server->history.domains != NULL ? 0 : error_set(reterr, -ENOMEM, "%s", strerror(ENOMEM));
}

static int start_timer(struct server *server, int64_t interval_ns, struct wattle_error *reterr)
{
	const struct timespec interval = {interval_ns / NS_PER_S, interval_ns % NS_PER_S};
	const struct itimerspec times = {.it_interval = interval, .it_value = interval};
	server->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (server->timer_fd < 0 || timerfd_settime(server->timer_fd, 0, &times, NULL) < 0)
		return error_set(reterr, -errno, "timer: %s", strerror(errno));
	return 0;
}

static int open_door(struct server *server, const struct server_options *options, struct wattle_error *reterr)
{
	int r = mhd_open(&server->mhd, reterr);
	if (r < 0)
		return r;
	r = options->token_file != NULL ? token_read(&server->token, options->token_file, reterr) : 0;
	if (r < 0)
		return r;
	r = address_open(&server->address, options->listen, options->token_file != NULL, reterr);
	if (r < 0)
		return r;
	// Without a token, DNS rebinding would let foreign pages read the data; check Host.
	server->rules.checks_host = server->token.length == 0 && server->address.socket_path[0] == '\0';
	return 0;
}

// A failure to open the state file is a warning only.
static void open_state(struct server *server, const struct server_options *options)
{
	struct wattle_error error = {0};
	static const char scheme[] = "http://";
	const char *url = server->address.url,
		   *key = strncmp(url, scheme, strlen(scheme)) == 0 ? url + strlen(scheme) : url;
	if (state_open(&server->state_file, options->env, server->node,
		    options->listen != NULL ? key : options->textfile, &error) < 0)
		text_copy(server->warning, sizeof(server->warning), error.text);
}

static int open_parts(struct server *server, const struct server_options *options, struct wattle_error *reterr)
{
	const struct totals_options rows = {
		.most = {[MONITOR_JOBS] = options->most[MONITOR_JOBS],
			[MONITOR_CGROUPS] = options->most[MONITOR_CGROUPS]},
		.max_processes = options->max_processes,
		.arguments = arguments_shown(options),
	};
	if (options->node != NULL && strlen(options->node) >= sizeof(server->node))
		return error_set(reterr, -EINVAL, "--node: the name has %zu bytes; give at most %zu",
			strlen(options->node), sizeof(server->node) - 1);
	totals_init(&server->totals, &rows);
	int r = textfile_open(&server->textfile, options->textfile, reterr);
	if (r == 0 && options->listen != NULL)
		r = open_door(server, options, reterr);
	if (r < 0)
		return r;
	open_state(server, options);
	r = open_and_sample(server, options, reterr);
	if (r == 0 && server->textfile.failed < 0)
		r = error_set(reterr, server->textfile.failed, "--textfile %s: %s", options->textfile,
			strerror(-server->textfile.failed));
	if (r == 0)
		r = start_timer(server, options->interval_ns, reterr);
	return r == 0 && options->listen != NULL ? start_daemon(server, reterr) : r;
}

static void set_up(struct server *server, const struct server_options *options)
{
	server->env = options->env;
	server->address.fd = server->timer_fd = server->epoll_fd = -1;
	server->state_file.folder_fd = server->state_file.lock_fd = -1;
	if (gethostname(server->host, sizeof(server->host) - 1) < 0)
		server->host[0] = '\0';
	text_copy(server->node, sizeof(server->node), options->node != NULL ? options->node : server->host);
	server->view = (struct view){
		.history = &server->history,
		.totals = &server->totals,
		.node = server->node,
		.host = server->host,
		.interval_ns = options->interval_ns,
		.has_target = options->pid != 0,
		.seed_names = options->seed_names,
	};
	server->responses_cached.mhd = &server->mhd;
	server->responses_cached.before_metrics = save;
	server->responses_cached.data = server;
	server->rules = (struct request_rules){
		.mhd = &server->mhd,
		.name = server->address.host,
		.token = &server->token,
	};
	connections_init(&server->connections, &server->mhd, server->env, &server->totals.scrapers);
}

int serve_open(const struct server_options *options, struct server **ret_server, struct wattle_error *reterr)
{
	struct server *server = calloc(1, sizeof(*server));
	if (server == NULL)
		return error_set(reterr, -ENOMEM, "%s", strerror(ENOMEM));
	set_up(server, options);
	int r = open_parts(server, options, reterr);
	if (r < 0)
		serve_close(server);
	else
		*ret_server = server;
	return r;
}

void serve_close(struct server *server)
{
	if (server == NULL)
		return;
	if (server->daemon != NULL) {
		response_cache_clear(&server->responses_cached);
		server->mhd.stop(server->daemon);
		server->address.fd = -1; // the daemon has closed it
	}
	if (server->timer_fd >= 0)
		close(server->timer_fd);
	if (server->view.now != NULL)
		state_write(&server->state_file, server->state, server->view.now->n_domains, &server->totals,
			server->view.sample, true);
	state_close(&server->state_file);
	textfile_close(&server->textfile);
	monitor_close(server->state);
	totals_finish(&server->totals);
	history_finish(&server->history);
	address_close(&server->address);
	mhd_close(&server->mhd);
	free(server);
}

const char *server_warning(struct server *server)
{
	if (server->warning[0] == '\0' || server->has_warned)
		return NULL;
	server->has_warned = true;
	return server->warning;
}

const char *server_url(const struct server *server)
{
	return server->address.url;
}

const char *server_problem(const struct server *server)
{
	return server->view.now->problem;
}

bool server_token_is_short(const struct server *server)
{
	return server->token.length > 0 && server->token.length < TOKEN_SHORT;
}

/* ---- running ---- */

static int timeout_ms(struct server *server)
{
	MHD_UNSIGNED_LONG_LONG wanted_ms;
	int ms = server->connections.table.n > 0 ? SWEEP_MS : -1;
	if (server->daemon == NULL)
		return -1;
	// The library closes connections and resumes listening only when it runs, and nothing wakes it for that.
	if (server->connections.table.n_ended != server->n_ended)
		return 0;
	if (server->mhd.timeout(server->daemon, &wanted_ms) == MHD_YES && (ms < 0 || wanted_ms < (unsigned int)ms))
		ms = wanted_ms < SWEEP_MS ? (int)wanted_ms : SWEEP_MS;
	return ms;
}

// Takes one sample however late the timer is: its energy covers the missed intervals.
static void sample_if_due(struct server *server)
{
	uint64_t ticks;
	if (read(server->timer_fd, &ticks, sizeof(ticks)) == (ssize_t)sizeof(ticks))
		sample(server);
}

static void pass_on(struct server *server, void (*warn)(const char *text))
{
	const char *warning = server_warning(server);
	if (warning != NULL)
		warn(warning);
}

int server_run(struct server *server, int stop_fd, void (*warn)(const char *text))
{
	struct pollfd fds[] = {
		{.fd = stop_fd, .events = POLLIN},
		{.fd = server->timer_fd, .events = POLLIN},
		{.fd = server->epoll_fd, .events = POLLIN},
	};
	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), timeout_ms(server)) < 0 && errno != EINTR)
			return -errno;
		if ((fds[0].revents & POLLIN) != 0)
			return 0;
		sample_if_due(server);
		pass_on(server, warn);
		server->n_ended = server->connections.table.n_ended;
		server->connections.table.run++;
		if (server->daemon != NULL && server->mhd.run(server->daemon) != MHD_YES)
			return -EIO;
		connection_table_expire(&server->connections.table, env_now_ns(server->env));
	}
}
