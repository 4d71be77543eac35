#include "sensor/internal.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>

/* At open, systemd may still have to start the helper. Between two samples the time limit is short: a late sample is worse
 * than a missing value. */
static const int64_t OPEN_LIMIT_NS = 500 * NS_PER_MS, TICK_LIMIT_NS = 40 * NS_PER_MS;
// A helper that has exited costs one connect() per attempt; one that hangs costs the whole limit.
static const int64_t GONE_PAUSE_NS = 200 * NS_PER_MS, HANGS_PAUSE_NS = NS_PER_S, PAUSE_MAX_NS = 60 * NS_PER_S;
// If the helper reads counters less often than this, its period replaces the update period of the hardware.
static const int64_t SLOW_NS = 3 * NS_PER_MS;

static bool is_refusal(int code)
{
	return code == -EACCES || code == -EPERM;
}

void privileged_init(struct privileged *set, const struct wattle_env *env)
{
	*set = (struct privileged){.env = env, .client.fd = -1};
}

void privileged_close(struct privileged *set)
{
	for (size_t i = 0; i < set->n; i++)
		file_kept_close(&set->counters[i].file);
	free(set->counters);
	if (set->env != NULL)
		proto_client_close(&set->client);
	*set = (struct privileged){.client.fd = -1};
}

int privileged_add(struct privileged *set, const char *path, const char *name)
{
	struct privileged_counter *counters = array_reserve(set->counters, set->n, &set->capacity, sizeof(*counters),
		8);
	if (counters == NULL)
		return -ENOMEM;
	set->counters = counters;
	struct privileged_counter *counter = &counters[set->n];
	*counter = (struct privileged_counter){.number = -1, .last = {VALUE_MISSING, VALUE_MISSING}};
	counter->is_helped = is_refusal(file_kept_open(&counter->file, set->env->sysfs_fd, path));
	text_copy(counter->name, sizeof(counter->name), name);
	set->n_helped += counter->is_helped;
	return (int)set->n++;
}

/* ---- the helper ---- */

// Time left for one exchange with the helper. If a test's clock stands still, all of it is left.
static int left_ms(const struct privileged *set, int64_t deadline_ns)
{
	int64_t left_ns = deadline_ns - env_now_ns(set->env);
	return left_ns > 0 ? (int)(left_ns / NS_PER_MS) + 1 : 0;
}

static void failed(struct privileged *set, int code)
{
	bool again = set->code != 0, hangs = code == -ETIMEDOUT;
	set->code = code;
	if (proto_client_is_open(&set->client))
		return; // the helper answers, but lacks our counters
	set->pause_ns = !hangs                             ? GONE_PAUSE_NS
		: again && set->pause_ns >= HANGS_PAUSE_NS ? 2 * set->pause_ns
							   : HANGS_PAUSE_NS;
	set->pause_ns = set->pause_ns < PAUSE_MAX_NS ? set->pause_ns : PAUSE_MAX_NS;
	set->retry_ns = env_now_ns(set->env) + set->pause_ns;
}

// Looks up our counters in the table of the current helper.
static int find_numbers(struct privileged *set, int64_t deadline_ns)
{
	for (size_t i = 0; i < set->n; i++)
		set->counters[i].number = -1;
	for (uint32_t number = 0; number < set->hello.n_counters; number++) {
		struct proto_request request = {.type = PROTO_COUNTER, .number = number};
		struct proto_reply reply;
		int r = proto_client_request(&set->client, &request, left_ms(set, deadline_ns), &reply, NULL);
		if (r < 0)
			return r;
		for (size_t i = 0; i < set->n; i++)
			if (set->counters[i].is_helped && strcmp(set->counters[i].name, reply.counter.name) == 0)
				set->counters[i].number = (int)number;
	}
	return 0;
}

static int connect_helper(struct privileged *set, int64_t deadline_ns)
{
	proto_client_close(&set->client);
	int r = proto_client_open_within(&set->client, set->env, left_ms(set, deadline_ns), &set->hello, NULL);
	if (r == 0 && set->hello.may_read == 0)
		r = -EPERM;
	if (r == 0)
		r = find_numbers(set, deadline_ns);
	if (r < 0)
		proto_client_close(&set->client);
	return r;
}

static int read_some(struct privileged *set, uint32_t first, uint32_t count, int64_t deadline_ns)
{
	struct proto_request request = {.type = PROTO_READ, .number = first, .count = count};
	struct proto_reply reply;
	int r = proto_client_request(&set->client, &request, left_ms(set, deadline_ns), &reply, NULL);
	for (size_t i = 0; r == 0 && i < set->n; i++) {
		struct privileged_counter *counter = &set->counters[i];
		if (counter->number >= (int)first && counter->number < (int)(first + reply.readings.count))
			counter->last = reply.readings.readings[counter->number - (int)first];
	}
	return r;
}

// Reads the range from our first to our last counter: usually one request.
static int read_all(struct privileged *set, int64_t deadline_ns)
{
	int first = -1, last = -1, r = 0;
	for (size_t i = 0; i < set->n; i++) {
		int number = set->counters[i].number;
		first = number >= 0 && (first < 0 || number < first) ? number : first;
		last = number > last ? number : last;
	}
	for (int at = first; at >= 0 && at <= last && r == 0; at += PROTO_COUNTERS_MAX) {
		int count = last - at + 1 < PROTO_COUNTERS_MAX ? last - at + 1 : PROTO_COUNTERS_MAX;
		r = read_some(set, (uint32_t)at, (uint32_t)count, deadline_ns);
	}
	return r;
}

static int ask(struct privileged *set)
{
	bool is_first = set->client.env == NULL;
	int64_t deadline_ns = env_now_ns(set->env) + (is_first ? OPEN_LIMIT_NS : TICK_LIMIT_NS);
	if (proto_client_is_open(&set->client)) {
		int r = read_all(set, deadline_ns);
		// The helper drops idle clients and may have been restarted: then connect again.
		if (r != -EPIPE || proto_client_is_open(&set->client))
			return r;
	}
	int r = connect_helper(set, deadline_ns);
	return r < 0 ? r : read_all(set, deadline_ns);
}

void privileged_refresh(struct privileged *set)
{
	if (set->n_helped == 0)
		return;
	for (size_t i = 0; i < set->n; i++)
		set->counters[i].last = (struct proto_reading){VALUE_MISSING, VALUE_MISSING};
	if (!proto_client_is_open(&set->client) && env_now_ns(set->env) < set->retry_ns)
		return;
	int r = ask(set);
	if (r < 0)
		failed(set, r);
	else
		set->code = 0;
}

/* ---- a counter ---- */

int privileged_read(struct privileged *set, size_t index, uint64_t *ret_uj, int64_t *ret_t_ns)
{
	struct privileged_counter *counter = &set->counters[index];
	if (!counter->is_helped) {
		*ret_t_ns = VALUE_MISSING;
		return file_kept_read_u64(&counter->file, ret_uj);
	}
	if (set->code != 0 || counter->number < 0)
		return -EACCES;
	if (counter->last.energy_uj < 0) // one of the values is VALUE_MISSING
		return -EIO;
	*ret_uj = (uint64_t)counter->last.energy_uj;
	*ret_t_ns = counter->last.t_ns;
	return 0;
}

void privileged_fill(struct privileged *set, size_t index, int64_t row[DEVICE_COUNT])
{
	uint64_t energy_uj;
	int64_t read_ns;
	if (privileged_read(set, index, &energy_uj, &read_ns) < 0 || energy_uj > INT64_MAX)
		return;
	row[DEVICE_ENERGY_RAW] = (int64_t)energy_uj;
	row[DEVICE_ENERGY_TIME] = read_ns;
}

/* ---- notes ---- */

static int64_t period_ns(const struct privileged *set)
{
	return (int64_t)set->hello.read_period_us * 1000;
}

void privileged_note(const struct privileged *set, size_t index, struct domain *domain)
{
	const struct privileged_counter *counter = &set->counters[index];
	if (!counter->is_helped || !domain->readable)
		return;
	if (set->code != 0)
		snprintf(domain->note, sizeof(domain->note), "not read now: %s", proto_client_reason(set->code));
	else if (counter->number < 0)
		snprintf(domain->note, sizeof(domain->note), "not read now: the helper does not have %s",
			counter->name);
	else
		snprintf(domain->note, sizeof(domain->note), "read through the helper, at most every %g ms",
			(double)period_ns(set) / 1e6);
}

static void describe_refused(const struct privileged *set, const struct privileged_counter *counter,
	struct domain *domain)
{
	const char *remedy = proto_client_remedy(set->code);
	size_t length = strlen(domain->why);
	if (set->code == -ENODEV) // the helper is disabled
		return;
	if (set->code == 0)
		snprintf(domain->why + length, sizeof(domain->why) - length, ", and the helper does not have %s",
			counter->name);
	else
		snprintf(domain->why + length, sizeof(domain->why) - length, "; %s", proto_client_reason(set->code));
	if (remedy[0] != '\0')
		text_copy(domain->remedy, sizeof(domain->remedy), remedy);
}

void privileged_describe(const struct privileged *set, size_t index, int code, struct domain *domain)
{
	const struct privileged_counter *counter = &set->counters[index];
	domain->readable = domain->used = code == 0;
	if (code < 0) {
		domain_set_unreadable(domain, set->env, counter->file.path, code);
		if (counter->is_helped && is_refusal(code))
			describe_refused(set, counter, domain);
		return;
	}
	if (counter->is_helped && period_ns(set) >= SLOW_NS)
		domain->update_period_ns = period_ns(set);
	privileged_note(set, index, domain);
}
