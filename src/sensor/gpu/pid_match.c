#include "sensor/gpu/pid_match.h"

#include "base/search.h"
#include "base/util.h"

#include <assert.h>
#include <errno.h>

// The driver's samples of SM utilization are up to a second old.
static const int64_t recent_ns = 3 * NS_PER_S;
static const int64_t scan_period_ns = NS_PER_S;
// A driver's list may contain a process that has just ended; it indicates a foreign namespace for this long only.
static const int64_t foreign_ns = 10 * NS_PER_S;

static const char *const notes[] = {
	[PID_BY_EQUALITY] = "",
	[PID_BY_NSPID] = "process IDs belong to another PID namespace; matched by NSpid in /proc",
	[PID_BY_CGROUP] = "process IDs belong to another PID namespace; matched by cgroup",
	[PID_BY_DESCRIPTORS] = "process IDs belong to another PID namespace; matched by open /dev/nvidia descriptors",
	[PID_BY_EXCLUSIVITY] =
		("process IDs belong to another PID namespace; no other process here uses the GPU, so they count as the target's (exclusive use)"),
	[PID_UNMATCHED] =
		"process IDs belong to another PID namespace and could not be matched; the users of the GPU "
		"are unknown",
};
static_assert(ARRAY_SIZE(notes) == PID_UNMATCHED + 1, "a note for every method");

const char *pid_method_note(enum pid_method method)
{
	return notes[method];
}

int pid_match_open(struct pid_match *match, const struct wattle_env *env)
{
	*match = (struct pid_match){
		.env = env,
		.recent = calloc_array(PID_RECENT_MAX, sizeof(*match->recent)),
		.last_pids = calloc_array(PID_RECENT_MAX, sizeof(*match->last_pids)),
		.seen = calloc_array(PID_SEEN_MAX, sizeof(*match->seen)),
	};
	if (match->recent == NULL || match->last_pids == NULL || match->seen == NULL)
		return -ENOMEM;
	match->view = pid_proc_view(env, &match->own_pid);
	return 0;
}

void pid_match_close(struct pid_match *match)
{
	free(match->recent);
	free(match->last_pids);
	free(match->seen);
	*match = (struct pid_match){0};
}

/* ---- current and recent target ---- */

static bool is_target_now(const struct sensor_context *context, pid_t pid)
{
	return sensor_context_has_pid(context, pid);
}

// Removes processes that ended long ago, and marks those that exist.
static void age_recent(struct pid_match *match, const struct sensor_context *context)
{
	size_t kept = 0;
	for (size_t i = 0; i < match->n_recent; i++) {
		struct pid_recent recent = match->recent[i];
		if (is_target_now(context, recent.pid))
			recent.seen_ns = context->t_ns;
		else if (recent.seen_ns == match->t_ns)
			match->ended_ns = context->t_ns;
		if (context->t_ns - recent.seen_ns <= recent_ns)
			match->recent[kept++] = recent;
	}
	match->n_recent = kept;
}

static_assert(offsetof(struct pid_recent, pid) == 0 && offsetof(struct pid_seen, pid) == 0, "search_before_pid");

static size_t find_recent(const struct pid_match *match, pid_t pid)
{
	return search_first(match->recent, match->n_recent, sizeof(match->recent[0]), &pid, search_before_pid);
}

static bool is_recent(const struct pid_match *match, pid_t pid)
{
	size_t index = find_recent(match, pid);
	return index < match->n_recent && match->recent[index].pid == pid;
}

static void add_recent(struct pid_match *match, pid_t pid, int64_t t_ns)
{
	size_t index = find_recent(match, pid);
	if (match->n_recent == PID_RECENT_MAX || (index < match->n_recent && match->recent[index].pid == pid))
		return;
	struct pid_recent *here = &match->recent[index];
	memmove(here + 1, here, (match->n_recent - index) * sizeof(*here));
	*here = (struct pid_recent){.pid = pid, .seen_ns = t_ns};
	if (match->view == PID_VIEW_OUTER || match->view == PID_VIEW_MADE)
		here->inner = pid_proc_inner(match->env, pid);
	match->n_recent++;
}

// Most ticks have the same processes as the previous one; then a comparison suffices.
static bool is_unchanged(const struct pid_match *match, const struct sensor_context *context)
{
	return match->n_recent == context->n_target_pids && match->n_last == context->n_target_pids &&
		memcmp(match->last_pids, context->target_pids, match->n_last * sizeof(match->last_pids[0])) == 0;
}

void pid_match_update(struct pid_match *match, const struct sensor_context *context)
{
	size_t n = context->n_target_pids < PID_RECENT_MAX ? context->n_target_pids : PID_RECENT_MAX;
	bool is_first = context->main_pid != match->main_pid;
	match->main_pid = context->main_pid;
	if (n > 0 && is_unchanged(match, context)) {
		for (size_t i = 0; i < match->n_recent; i++)
			match->recent[i].seen_ns = context->t_ns;
		match->t_ns = context->t_ns;
		return;
	}
	age_recent(match, context);
	if (is_first && context->main_pid > 0) // the list follows a moment later
		add_recent(match, context->main_pid, context->t_ns);
	for (size_t i = 0; i < n; i++)
		add_recent(match, context->target_pids[i], context->t_ns);
	if (n > 0)
		memcpy(match->last_pids, context->target_pids, n * sizeof(match->last_pids[0]));
	match->n_last = n;
	match->t_ns = context->t_ns;
}

/* ---- ids that equality does not resolve ---- */

static size_t find_seen(const struct pid_match *match, pid_t pid)
{
	return search_first(match->seen, match->n_seen, sizeof(match->seen[0]), &pid, search_before_pid);
}

static void drop_old_seen(struct pid_match *match)
{
	size_t kept = 0;
	for (size_t i = 0; i < match->n_seen; i++)
		if (match->t_ns - match->seen[i].read_ns <= 2 * scan_period_ns)
			match->seen[kept++] = match->seen[i];
	match->n_seen = kept;
}

// Returns the entry of this id, refreshed from /proc if it is old; NULL: no room.
static struct pid_seen *see(struct pid_match *match, pid_t pid)
{
	size_t index = find_seen(match, pid);
	bool known = index < match->n_seen && match->seen[index].pid == pid;
	if (known && match->t_ns - match->seen[index].read_ns < scan_period_ns)
		return &match->seen[index];
	if (!known && match->n_seen == PID_SEEN_MAX) {
		drop_old_seen(match);
		index = find_seen(match, pid);
	}
	if (!known && match->n_seen == PID_SEEN_MAX)
		return NULL;
	struct pid_seen *seen = &match->seen[index];
	if (!known) {
		memmove(seen + 1, seen, (match->n_seen++ - index) * sizeof(*seen));
		*seen = (struct pid_seen){.pid = pid};
	}
	seen->read_ns = match->t_ns;
	pid_proc_scan(match, seen);
	return seen;
}

void pid_match_add_seen(struct pid_match *match, uint32_t pid)
{
	if (match->view != PID_VIEW_NESTED || pid == 0 || pid > INT32_MAX || is_recent(match, (pid_t)pid))
		return;
	const struct pid_seen *seen = see(match, (pid_t)pid);
	if (seen != NULL && !seen->visible)
		match->foreign_until_ns = match->t_ns + foreign_ns;
}

static bool is_foreign(const struct pid_match *match)
{
	return match->foreign_until_ns > match->t_ns;
}

static enum pid_side side_in_nested(struct pid_match *match, pid_t pid)
{
	if (is_foreign(match))
		return PID_UNKNOWN;
	if (is_recent(match, pid))
		return PID_TARGET;
	const struct pid_seen *seen = see(match, pid);
	return seen != NULL && seen->visible ? PID_OTHER : PID_UNKNOWN;
}

// Returns the target process with this innermost pid; 0: none.
static pid_t find_by_inner(const struct pid_match *match, pid_t inner)
{
	for (size_t i = 0; i < match->n_recent; i++)
		if (match->recent[i].inner == inner)
			return match->recent[i].pid;
	return 0;
}

// Whether the driver's id leads to a process whose own pid is one of the target's. This is possible only in test trees.
static bool leads_to_target(const struct pid_match *match, const struct pid_seen *seen)
{
	return match->view == PID_VIEW_MADE && seen->is_ours && is_recent(match, seen->inner);
}

// Used with the /proc of an outer namespace, in which the target's pids are valid, or with a test tree.
static enum pid_side side_by_proc(struct pid_match *match, pid_t pid, enum pid_method *ret_method, pid_t *ret_pid)
{
	if (is_recent(match, pid))
		return PID_TARGET;
	const struct pid_seen *seen = see(match, pid);
	if (seen == NULL)
		return PID_UNKNOWN;
	pid_t outer = match->view == PID_VIEW_OUTER || !seen->visible ? find_by_inner(match, pid) : 0;
	if (outer != 0 || leads_to_target(match, seen)) {
		*ret_method = PID_BY_NSPID;
		*ret_pid = outer != 0 ? outer : seen->inner;
		return PID_TARGET;
	}
	if (!seen->visible)
		return match->view == PID_VIEW_OUTER ? PID_UNKNOWN : PID_OTHER;
	if (seen->inner != 0 || !seen->same_cgroup)
		return PID_OTHER;
	*ret_method = PID_BY_CGROUP;
	return PID_TARGET;
}

enum pid_side pid_match_side(struct pid_match *match, uint32_t pid, enum pid_method *ret_method, pid_t *ret_pid)
{
	*ret_method = PID_BY_EQUALITY;
	*ret_pid = (pid_t)pid;
	if (match->main_pid == 0 || pid == 0 || pid > INT32_MAX)
		return PID_OTHER;
	if (match->view == PID_VIEW_INITIAL)
		return is_recent(match, (pid_t)pid) ? PID_TARGET : PID_OTHER;
	if (match->view == PID_VIEW_NESTED)
		return side_in_nested(match, (pid_t)pid);
	return side_by_proc(match, (pid_t)pid, ret_method, ret_pid);
}

pid_t pid_match_local(struct pid_match *match, uint32_t pid)
{
	enum pid_method method;
	pid_t local;
	if (pid == 0 || pid > INT32_MAX)
		return 0;
	if (pid_match_side(match, pid, &method, &local) == PID_TARGET)
		return local;
	return match->view == PID_VIEW_NESTED && is_foreign(match) ? 0 : (pid_t)pid;
}

/* ---- open devices ---- */

struct pid_holders pid_match_holders(struct pid_match *match, unsigned int minor)
{
	if (match->holders_ns == 0 || match->t_ns - match->holders_ns >= scan_period_ns) {
		match->holders_ns = match->t_ns;
		pid_proc_find_holders(match);
	}
	return minor < PID_MINORS_MAX ? match->holders[minor] : (struct pid_holders){0};
}
