#include "helper/limits.h"

#include "base/util.h"
#include "helper/request.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

struct limits {
	const struct wattle_env *env; // borrowed
	int epoll_fd;                 // owned
};

int limits_open(const struct wattle_env *env, struct limits **ret_limits, struct wattle_error *reterr)
{
	struct limits *limits = calloc(1, sizeof(*limits));
	if (limits == NULL)
		return error_set(reterr, -ENOMEM, "no memory for the devices");
	limits->env = env;
	limits->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	*ret_limits = limits;
	return 0;
}

void limits_close(struct limits *limits)
{
	close(limits->epoll_fd);
	free(limits);
}

int limits_fd(const struct limits *limits)
{
	return limits->epoll_fd;
}

void limits_turn(struct limits *limits)
{
}

void limits_sweep(struct limits *limits, int64_t now_ns)
{
}

size_t limits_count(const struct limits *limits)
{
	return 0;
}

bool limits_need_admin(const struct limits *limits)
{
	return false;
}

bool limits_may_any(const struct limits *limits, const struct policy *policy, struct policy_rights rights)
{
	return false;
}

int limits_serve(struct limits *limits, const struct policy *policy, const struct asker *asker,
	const struct proto_request *request, struct proto_reply *reply)
{
	return -ENOENT;
}
