/* The policy in plain English. */
#include "helper/policy.h"

#include "base/buf.h"
#include "base/util.h"

#include <grp.h>
#include <math.h>
#include <pwd.h>

static const int64_t SAFE_PERIOD_NS = 10 * NS_PER_MS; // docs/helper.md, "Reading counters"

static void add_who(struct buf *out, const struct policy_rule *rule)
{
	const struct passwd *user = rule->who == POLICY_USER ? getpwuid(rule->id) : NULL;
	const struct group *group = rule->who == POLICY_GROUP ? getgrgid(rule->id) : NULL;
	const char *name = user != NULL ? user->pw_name : group != NULL ? group->gr_name : NULL;
	if (rule->who == POLICY_OTHERS)
		buf_str(out, "every user");
	else if (name != NULL)
		buf_printf(out, "%s %s (%s %u)", rule->who == POLICY_USER ? "user" : "members of group", name,
			rule->who == POLICY_USER ? "uid" : "gid", rule->id);
	else
		buf_printf(out, "%s %u", rule->who == POLICY_USER ? "user with uid" : "members of the group with gid",
			rule->id);
}

static void add_period(struct buf *out, int64_t period_ns)
{
	bool is_seconds = period_ns >= NS_PER_S;
	buf_double(out, (double)period_ns / (double)(is_seconds ? NS_PER_S : NS_PER_MS));
	buf_str(out, is_seconds ? " s" : " ms");
}

static void add_range(struct buf *out, const struct policy_rule *rule)
{
	const char *unit = rule->kind == POLICY_CLOCKS ? "MHz" : "W";
	if (isinf(rule->least) && isinf(rule->most)) {
		buf_str(out, "within the device's own range");
		return;
	}
	if (isinf(rule->most))
		buf_str(out, "to at least ");
	else
		buf_str(out, isinf(rule->least) ? "to at most " : "to between ");
	if (!isinf(rule->least))
		buf_double(out, rule->least);
	if (!isinf(rule->least) && !isinf(rule->most))
		buf_str(out, " and ");
	if (!isinf(rule->most))
		buf_double(out, rule->most);
	buf_printf(out, " %s", unit);
}

static const char *device_words(const char *device)
{
	static const char *const families[][2] = {{"any", "any device"}, {"gpus", "any GPU"},
		{"packages", "any CPU package"}};
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (strcmp(device, families[i][0]) == 0)
			return families[i][1];
	return device;
}

static void add_rule(struct buf *out, const struct policy *policy, const struct policy_rule *rule)
{
	buf_printf(out, "  line %d: ", rule->line);
	add_who(out, rule);
	if (rule->subject == POLICY_NOTHING) {
		buf_str(out, " may do nothing; later rules do not apply to them\n");
		return;
	}
	if (rule->subject == POLICY_READ) {
		buf_str(out, " may read energy counters, each at most every ");
		add_period(out, policy->periods_ns[rule->class]);
	} else {
		buf_printf(out, " may %s of %s ", rule->kind == POLICY_CLOCKS ? "lock the clocks" : "limit the power",
			device_words(rule->device));
		add_range(out, rule);
	}
	buf_char(out, '\n');
}

static bool has(const struct policy *policy, bool (*test)(const struct policy *policy, const struct policy_rule *rule))
{
	for (size_t i = 0; i < policy->n; i++)
		if (test(policy, &policy->rules[i]))
			return true;
	return false;
}

static bool is_fast(const struct policy *policy, const struct policy_rule *rule)
{
	return rule->subject == POLICY_READ && policy->periods_ns[rule->class] < SAFE_PERIOD_NS;
}

static bool is_cap(const struct policy *policy, const struct policy_rule *rule)
{
	return rule->subject == POLICY_CAP;
}

void policy_describe(const struct policy *policy, const char *path, struct buf *out)
{
	buf_printf(out, "%s: valid, %zu rule%s. For each request the first matching rule decides.\n", path, policy->n,
		policy->n == 1 ? "" : "s");
	for (size_t i = 0; i < policy->n; i++)
		add_rule(out, policy, &policy->rules[i]);
	buf_str(out, "  always: root and the user who runs wattled may do everything; all other requests are denied\n");
	if (!has(policy, is_cap))
		buf_str(out, "No rule permits power limits or clock limits.\n");
	if (has(policy, is_fast))
		buf_str(out,
			"Warning: reading faster than every 10 ms can reveal secret keys of other users (PLATYPUS). Permit it "
			"only to users who may know each other's secrets.\n");
}
