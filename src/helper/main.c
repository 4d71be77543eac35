/* wattled: order of start and shutdown. */
#include "base/buf.h"
#include "base/env.h"
#include "base/util.h"
#include "cap/journal.h"
#include "cap/lease.h"
#include "helper/helper.h"
#include "helper/policy.h"
#include "helper/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

// Besides connections and counters: logs, devices, journal, one lock per device and NVML's files.
enum { DESCRIPTORS = SERVER_CLIENTS_MAX + COUNTERS_MAX + 256 };

// Resources of the serving process; valid to close when zeroed, with closed descriptors.
struct helper {
	struct policy policy;
	struct counters counters;
	struct limits *limits;
	struct listener listener;
	struct server *server;
	int policy_fd; // owned; to the process that reads the policy; -1: none
};

static void log_message(void *data, const char *text)
{
	log_line(LOG_LEVEL_NOTICE, "%s", text);
}

// Creates the journal with root's rights, at any path the admin chooses; without it no limit is changed.
static void make_journal(const struct wattle_env *env)
{
	struct wattle_error error = {0};
	struct journal journal;
	if (journal_open(env, true, &journal, &error) == 0)
		journal_close(&journal);
	else
		log_line(LOG_LEVEL_WARNING, "%s (--state), so limits can't be set", error.text);
}

static int helper_open(struct helper *helper, const struct wattle_env *env, const struct helper_options *options,
	size_t n_handed_over, const struct guard *guard, struct wattle_error *reterr)
{
	*helper = (struct helper){.listener = {.fd = -1, .lock_fd = -1}, .policy_fd = -1};
	int r = policy_open(options->policy, &helper->policy, reterr);
	if (r == 0) // while this process has one thread and no device
		r = policy_reader_start(options->policy, &helper->policy_fd, reterr);
	if (r < 0)
		return r;
	r = counters_open(&helper->counters, env);
	if (r < 0)
		return error_set(reterr, r, "out of memory for the counters");
	r = limits_open(env, &helper->limits, reterr);
	if (r < 0)
		return r;
	/* After the seconds that NVML needs, so that no client waits; before restoring or logging anything, so that a
	 * second wattled does not interfere with the first one. */
	r = listener_open(&helper->listener, n_handed_over,
		options->socket != NULL ? options->socket : PROTO_SOCKET_DEFAULT, reterr);
	if (r < 0)
		return r;
	if (helper->policy.note[0] != '\0')
		log_line(LOG_LEVEL_WARNING, "%s", helper->policy.note);
	cap_recover(env, log_message, NULL);
	if (limits_count(helper->limits) > 0)
		make_journal(env);
	const struct server_parts parts = {env, &helper->policy, &helper->counters, helper->limits};
	const struct server_sockets sockets = {helper->listener.fd, guard->stop_fd, guard->pipe_fd, helper->policy_fd};
	return server_open(&parts, &sockets, &helper->server, reterr);
}

static void helper_close(struct helper *helper)
{
	listener_close(&helper->listener); // first: later clients belong to the next wattled
	server_close(helper->server);
	limits_close(helper->limits);
	counters_close(&helper->counters);
	if (helper->policy_fd >= 0)
		close(helper->policy_fd); // ends the process that reads the policy
}

// Enters the sandbox before starting the worker thread, so that the thread is restricted too.
static int enter_sandbox(const struct helper *helper, const struct wattle_env *env, struct wattle_error *reterr)
{
	struct sandbox_report report;
	const struct cap_devices *devices = limits_devices(helper->limits);
	const struct sandbox_needs needs = {env, devices, limits_need_admin(devices), helper->listener.path};
	int r = sandbox_enter(&needs, &report, reterr);
	if (r < 0)
		return r;
	log_line(report.is_whole ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "%s", report.text);
	r = limits_count(helper->limits) > 0 ? server_start_worker(helper->server) : 0;
	if (r < 0)
		log_line(LOG_LEVEL_WARNING,
			"can't create the thread for limits (%s): reading counters waits while limits change",
			strerror(-r));
	return 0;
}

// 0 after SIGTERM or SIGINT.
static int serve(struct helper *helper, struct guard *guard, struct wattle_error *reterr)
{
	char status[160];
	snprintf(status, sizeof(status), "serves %zu counters and %zu limits at %s", helper->counters.n,
		limits_count(helper->limits),
		helper->listener.path[0] != '\0' ? helper->listener.path : "systemd's socket");
	log_line(LOG_LEVEL_INFO, "%s", status);
	guard_send_ready(guard, status);
	for (;;) {
		struct signalfd_siginfo info = {0};
		int r = server_turn(helper->server, -1);
		if (r < 0)
			return error_set(reterr, r, "server: %s", strerror(-r));
		if (r == 0)
			continue;
		if (read(guard->stop_fd, &info, sizeof(info)) != sizeof(info))
			return error_set(reterr, -EPIPE,
				"the guard was killed; limits can't be held without it, so wattled exits");
		if (info.ssi_signo != SIGHUP)
			return 0;
		server_reload(helper->server);
	}
}

static int fail(const struct wattle_error *error, int status)
{
	log_line(LOG_LEVEL_ERROR, "%s", error->text);
	return status;
}

static int check_policy(const char *path)
{
	struct policy policy;
	struct wattle_error error = {0};
	struct buf out;
	int r = policy_load(path, &policy, &error);
	if (r < 0)
		return fail(&error, STATUS_FAILED);
	buf_init(&out, 64 * 1024);
	policy_describe(&policy, path, &out);
	r = out.failed ? out.failed : buf_write_fd(&out, STDOUT_FILENO);
	buf_finish(&out);
	return r < 0 ? STATUS_FAILED : STATUS_DONE;
}

static void version(struct buf *out)
{
	buf_str(out, "wattled " WATTLE_VERSION "\n");
}

static int print_all(void (*print_log)(struct buf *out))
{
	struct buf out;
	buf_init(&out, 64 * 1024);
	print_log(&out);
	int r = out.failed ? -ENOMEM : buf_write_fd(&out, STDOUT_FILENO);
	buf_finish(&out);
	return r < 0 ? STATUS_FAILED : STATUS_DONE;
}

static int run_server(struct guard *guard, const struct wattle_env *env, const struct helper_options *options,
	size_t n_handed_over)
{
	struct helper helper; // about 100 kB
	struct wattle_error error = {0};
	int r = helper_open(&helper, env, options, n_handed_over, guard, &error);
	if (r == 0)
		r = enter_sandbox(&helper, env, &error);
	if (r == 0)
		r = serve(&helper, guard, &error);
	helper_close(&helper);
	return r < 0 ? fail(&error, STATUS_FAILED) : STATUS_DONE;
}

/* If wattled is started with descriptor 0, 1 or 2 closed, later files would get these numbers, and the log would go to
 * a client's socket. */
static void fill_standard_files(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct helper_options options;
	struct wattle_error error = {0};
	struct wattle_env env;
	struct guard guard;
	fill_standard_files();
	signal(SIGPIPE, SIG_IGN); // the reader of the log may exit
	if (helper_options_parse(argc, argv, &options, &error) < 0)
		return fail(&error, STATUS_USAGE);
	if (options.help || options.manual || options.version)
		return print_all(options.help ? helper_help : options.manual ? helper_manual : version);
	if (options.check_policy != NULL)
		return check_policy(options.check_policy);
	const struct env_options root_options = {options.sysfs, options.procfs, options.nvml, options.state};
	size_t n_handed_over = listener_handed_over();
	sandbox_limit_resources(DESCRIPTORS);
	if (env_open_with(&env, &root_options, &error) < 0 || guard_split(&guard, &error) < 0)
		return fail(&error, STATUS_FAILED);
	int status = guard.pid == 0 ? run_server(&guard, &env, &options, n_handed_over) : guard_wait(&guard, &env);
	guard_close(&guard);
	env_close(&env);
	return status;
}
