#include "helper/policy.h"

#include "base/util.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <unistd.h>

static const char default_group[] = "wattle";
static const int64_t default_period_ns = 10 * NS_PER_MS;

void policy_default(struct policy *ret_policy)
{
	*ret_policy = (struct policy){.periods_ns = {NS_PER_MS, default_period_ns}, .n_periods = 2};
	const struct group *group = getgrnam(default_group);
	if (group == NULL) {
		snprintf(ret_policy->note, sizeof(ret_policy->note),
			"group %s does not exist, so only root has access; run: groupadd --system %s", default_group,
			default_group);
		return;
	}
	ret_policy->rules[0] = (struct policy_rule){.who = POLICY_GROUP,
		.id = group->gr_gid,
		.subject = POLICY_READ,
		.class = 1};
	ret_policy->n = 1;
}

static bool is_member(gid_t gid, const gid_t *groups, size_t n_groups)
{
	for (size_t i = 0; i < n_groups; i++)
		if (groups[i] == gid)
			return true;
	return false;
}

struct policy_rights policy_rights_of(const struct policy *policy, uid_t uid, const gid_t *groups, size_t n_groups)
{
	struct policy_rights rights = {.all = uid == 0 || uid == geteuid()};
	for (size_t i = 0; i < policy->n; i++) {
		const struct policy_rule *rule = &policy->rules[i];
		bool fits = rule->who == POLICY_OTHERS || (rule->who == POLICY_USER && rule->id == uid) ||
			(rule->who == POLICY_GROUP && is_member(rule->id, groups, n_groups));
		if (fits)
			rights.rules |= UINT64_C(1) << i;
	}
	return rights;
}

bool policy_may_read(const struct policy *policy, struct policy_rights rights, size_t *ret_class)
{
	*ret_class = 0;
	if (rights.all)
		return true;
	for (size_t i = 0; i < policy->n; i++) {
		const struct policy_rule *rule = &policy->rules[i];
		if ((rights.rules >> i & 1) == 0 || rule->subject == POLICY_CAP)
			continue;
		*ret_class = rule->class;
		return rule->subject == POLICY_READ;
	}
	return false;
}

static bool means(const char *text, const char *device, const char *id)
{
	static const struct {
		const char *word, *prefix;
	} families[] = {{"any", ""}, {"gpus", "gpu-"}, {"packages", "package-"}};
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (strcmp(text, families[i].word) == 0)
			return strncmp(device, families[i].prefix, strlen(families[i].prefix)) == 0;
	return strcmp(text, device) == 0 || strcmp(text, id) == 0;
}

bool policy_may_cap(const struct policy *policy, struct policy_rights rights, const char *device, const char *id,
	enum policy_kind kind, double *ret_min, double *ret_max)
{
	*ret_min = -(double)INFINITY;
	*ret_max = (double)INFINITY;
	if (rights.all)
		return true;
	for (size_t i = 0; i < policy->n; i++) {
		const struct policy_rule *rule = &policy->rules[i];
		if ((rights.rules >> i & 1) == 0 || rule->subject == POLICY_READ)
			continue;
		if (rule->subject == POLICY_NOTHING)
			return false;
		if (rule->kind != kind || !means(rule->device, device, id))
			continue;
		*ret_min = rule->least;
		*ret_max = rule->most;
		return true;
	}
	return false;
}
