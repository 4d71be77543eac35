#include "helper/server.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static bool is_zero(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

// Printable ASCII up to its NUL, because it goes into the log, the journal and messages to other users.
static bool is_name(const char *name, size_t size)
{
	size_t n = strnlen(name, size);
	for (size_t i = 0; i < n; i++)
		if (name[i] < ' ' || name[i] > '~')
			return false;
	return n < size;
}

bool request_is_sound(const struct proto_request *request)
{
	return request->magic == PROTO_MAGIC && request->type >= PROTO_HELLO && request->type <= PROTO_RESET &&
		is_zero(request->reserved, sizeof(request->reserved)) && is_name(request->name, sizeof(request->name));
}

static int refuse(struct proto_reply *reply, int code, const char *text)
{
	text_copy(reply->outcome.text, sizeof(reply->outcome.text), text);
	return code;
}

static const char may_not_read[] =
	"the helper's policy does not let you read energy counters; an administrator can add you: usermod "
	"-aG wattle USER";

static int hello(const struct request_context *context, const struct client_identity *identity,
	const struct proto_request *request, struct proto_reply *reply)
{
	const struct server_parts *parts = context->parts;
	size_t class;
	bool may_read = policy_may_read(identity->policy, identity->rights, &class);
	reply->hello = (struct proto_hello){
		.n_counters = (uint32_t)parts->counters->n,
		.n_devices = (uint32_t)limits_count(parts->limits),
		.may_read = may_read,
		.may_cap = limits_may_any(parts->limits, identity->policy, identity->rights),
		.read_period_us = may_read ? (uint32_t)(context->classes[class].period_ns / 1000) : 0,
		.pid = (uint32_t)getpid(),
	};
	return 0;
}

static int counter(const struct request_context *context, const struct client_identity *identity,
	const struct proto_request *request, struct proto_reply *reply)
{
	const struct counters *counters = context->parts->counters;
	size_t class;
	if (!policy_may_read(identity->policy, identity->rights, &class))
		return refuse(reply, -EACCES, may_not_read);
	if (request->number >= counters->n)
		return refuse(reply, -ENOENT, "no counter has this number");
	text_copy(reply->counter.name, sizeof(reply->counter.name), counters->rows[request->number].name);
	return 0;
}

static int read_counters(const struct request_context *context, const struct client_identity *identity,
	const struct proto_request *request, struct proto_reply *reply)
{
	const struct server_parts *parts = context->parts;
	size_t class;
	if (!policy_may_read(identity->policy, identity->rights, &class))
		return refuse(reply, -EACCES, may_not_read);
	if (request->number >= parts->counters->n)
		return refuse(reply, -ENOENT, "no counter has this number");
	if (request->count == 0 || request->count > PROTO_COUNTERS_MAX)
		return refuse(reply, -EINVAL, "give 1 to 16 counters per request");
	size_t left = parts->counters->n - request->number;
	size_t n = request->count < left ? request->count : left;
	for (size_t i = 0; i < n; i++)
		reply->readings.readings[i] = counters_read(parts->counters, &context->classes[class],
			request->number + i, env_now_ns(parts->env));
	reply->readings.count = (uint32_t)n;
	return 0;
}

static int limit(const struct request_context *context, const struct client_identity *identity,
	const struct proto_request *request, struct proto_reply *reply)
{
	return limits_serve(context->parts->limits, identity, request, reply);
}

void request_serve(const struct request_context *context, const struct client_identity *identity,
	const struct proto_request *request, struct proto_reply *ret_reply)
{
	static int (*const kinds[])(const struct request_context *, const struct client_identity *,
		const struct proto_request *, struct proto_reply *) = {
		[PROTO_HELLO] = hello,
		[PROTO_COUNTER] = counter,
		[PROTO_READ] = read_counters,
		[PROTO_DEVICE] = limit,
		[PROTO_SET] = limit,
		[PROTO_CHECK] = limit,
		[PROTO_END] = limit,
		[PROTO_KEEP] = limit,
		[PROTO_RESET] = limit,
	};
	memset(ret_reply, 0, sizeof(*ret_reply)); // the whole struct is sent: it must not contain other memory of this process
	ret_reply->magic = PROTO_MAGIC;
	ret_reply->type = request->type;
	ret_reply->code = kinds[request->type](context, identity, request, ret_reply);
}
