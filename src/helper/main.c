/* wattled: the order in which it comes up and goes down. */
#include "base/env.h"
#include "base/util.h"
#include "helper/counters.h"
#include "helper/limits.h"
#include "helper/listen.h"
#include "helper/log.h"
#include "helper/notify.h"
#include "helper/options.h"
#include "helper/policy.h"
#include "helper/server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

// What serving needs; zeroed, with closed descriptors, it is valid to close.
struct helper {
	struct wattle_env env;
	struct policy policy;
	struct counters counters;
	struct limits *limits;
	struct listener listener;
	struct server *server;
	int stop_fd;
};

static int open_policy(const struct helper_options *options, struct policy *ret_policy, struct wattle_error *reterr)
{
	if (options->policy != NULL)
		return policy_load(options->policy, ret_policy, reterr);
	policy_default(ret_policy);
	return 0;
}

static int open_stop(int *ret_fd, struct wattle_error *reterr)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	*ret_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret_fd < 0 ? error_set(reterr, -errno, "signalfd: %s", strerror(errno)) : 0;
}

static int helper_open(struct helper *helper, const struct helper_options *options, struct wattle_error *reterr)
{
	const struct env_options places = {options->sysfs, options->procfs, options->nvml, options->state};
	*helper = (struct helper){.listener = {.fd = -1, .lock_fd = -1}, .stop_fd = -1};
	int r = env_open_with(&helper->env, &places, reterr);
	if (r < 0)
		return r;
	r = open_policy(options, &helper->policy, reterr);
	if (r < 0)
		return r;
	if (helper->policy.note[0] != '\0')
		log_line(LOG_LEVEL_WARNING, "%s", helper->policy.note);
	r = counters_open(&helper->counters, &helper->env);
	if (r < 0)
		return error_set(reterr, r, "no memory for the counters");
	r = limits_open(&helper->env, &helper->limits, reterr);
	if (r < 0)
		return r;
	r = open_stop(&helper->stop_fd, reterr);
	if (r < 0)
		return r;
	r = listener_open(&helper->listener, options->socket != NULL ? options->socket : PROTO_SOCKET_DEFAULT, reterr);
	if (r < 0)
		return r;
	const struct server_parts parts = {&helper->env, &helper->policy, &helper->counters, helper->limits};
	return server_open(&parts, helper->listener.fd, helper->stop_fd, &helper->server, reterr);
}

static void helper_close(struct helper *helper)
{
	listener_close(&helper->listener);
	server_close(helper->server);
	if (helper->limits != NULL)
		limits_close(helper->limits);
	counters_close(&helper->counters);
	if (helper->stop_fd >= 0)
		close(helper->stop_fd);
	env_close(&helper->env);
}

static int serve(struct helper *helper)
{
	log_line(LOG_LEVEL_INFO, "serves %zu counters and %zu devices at %s", helper->counters.n,
		limits_count(helper->limits),
		helper->listener.path[0] != '\0' ? helper->listener.path : "systemd's socket");
	notify("READY=1\nSTATUS=%zu counters, %zu devices that can be limited", helper->counters.n,
		limits_count(helper->limits));
	int r = 0;
	while (r == 0)
		r = server_turn(helper->server, -1);
	notify("STOPPING=1");
	return r;
}

static int fail(const struct wattle_error *error, int status)
{
	log_line(LOG_LEVEL_ERROR, "%s", error->text);
	return status;
}

static int say(const char *text)
{
	ssize_t written = write(STDOUT_FILENO, text, strlen(text));
	return written < 0 ? STATUS_FAILED : STATUS_DONE;
}

int main(int argc, char **argv)
{
	static struct helper helper; // half a megabyte
	struct helper_options options;
	struct wattle_error error = {0};
	log_start();
	if (helper_options_parse(argc, argv, &options, &error) < 0)
		return fail(&error, STATUS_USAGE);
	if (options.help)
		return say(helper_help);
	if (options.version)
		return say("wattled " WATTLE_VERSION "\n");
	int r = helper_open(&helper, &options, &error);
	if (r == 0)
		r = serve(&helper);
	helper_close(&helper);
	return r < 0 ? fail(&error, STATUS_FAILED) : STATUS_DONE;
}
