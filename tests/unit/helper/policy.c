/* Rows of a policy file and the rights that follow from them. */
#include "helper/policy.h"

#include "base/buf.h"

#include "rows.h"

#include <math.h>
#include <string.h>

static int parse(const char *text, struct policy *ret_policy, struct wattle_error *reterr)
{
	return policy_parse(text, strlen(text), "policy", ret_policy, reterr);
}

enum { ALICE = 61001, BOB = 61002, TEAM = 62001, LAB = 62002 };

static const struct reading {
	const char *teaches;
	const char *policy;
	uid_t uid;
	gid_t groups[3];
	size_t n_groups;
	int64_t period_ms; // 0: no read access
} readings[] = {
	{"empty policy: no user may read", "", ALICE, {TEAM}, 1, 0},
	{"root: may read whatever the policy states", "others nothing", 0, {0}, 1, 1},
	{"user by number, every millisecond", "user 61001 read", ALICE, {0}, 0, 1},
	{"rule for another user: does not apply", "user 61001 read", BOB, {0}, 0, 0},
	{"group: any of the user's groups matches", "group 62002 read", ALICE, {TEAM, LAB}, 2, 1},
	{"others: every 100 ms by default", "others read", BOB, {0}, 0, 100},
	{"period spelled out", "others read every 2s", BOB, {0}, 0, 2000},
	{"first matching rule decides: the slow one", "user 61001 read every 1s\nothers read", ALICE, {0}, 0, 1000},
	{"first matching rule decides: the fast one", "group 62001 read\nuser 61001 read every 1s", ALICE, {TEAM}, 1,
		1},
	{"first matching rule denies: later rules don't apply", "user 61001 nothing\ngroup 62001 read", ALICE, {TEAM},
		1, 0},
	{"rules for limits grant no read access", "user 61001 cap any\nothers read", ALICE, {0}, 0, 100},
	{"comments, blanks, empty lines, no newline at the end", "# x\n\n  others\tread   # all\r\n#", BOB, {0}, 0,
		100},
	{"group number 0 is not root", "group 62001 read", ALICE, {0}, 1, 0},
};

static void check_reading(void **state)
{
	const struct reading *row = *state;
	struct policy policy;
	size_t class;
	assert_int_equal(parse(row->policy, &policy, NULL), 0);
	struct policy_rights rights = policy_rights_of(&policy, row->uid, row->groups, row->n_groups);
	assert_int_equal(policy_may_read(&policy, rights, &class), row->period_ms > 0);
	if (row->period_ms > 0)
		assert_int_equal(policy.periods_ns[class], row->period_ms * 1000000);
}

static const struct limit {
	const char *teaches;
	const char *policy;
	const char *device, *id;
	enum policy_kind kind;
	bool may;
	double least, most;
} limits[] = {
	{"limit rule: any device, any power", "others cap any", "gpu-1", "GPU-x", POLICY_POWER, true, -INFINITY,
		INFINITY},
	{"clocks must be named", "others cap any", "gpu-1", "GPU-x", POLICY_CLOCKS, false, 0, 0},
	{"clocks in a range", "others cap gpus clocks 600..1980", "gpu-1", "GPU-x", POLICY_CLOCKS, true, 600, 1980},
	{"rule for clocks grants no power limits", "others cap gpus clocks", "gpu-1", "GPU-x", POLICY_POWER, false, 0,
		0},
	{"rule for GPUs does not match packages", "others cap gpus", "package-0", "package-0", POLICY_POWER, false, 0,
		0},
	{"packages", "others cap packages 50..", "package-0", "package-0", POLICY_POWER, true, 50, INFINITY},
	{"by name", "others cap gpu-1 power ..250.5", "gpu-1", "GPU-x", POLICY_POWER, true, -INFINITY, 250.5},
	{"gpu-1 does not match gpu-10", "others cap gpu-1", "gpu-10", "GPU-x", POLICY_POWER, false, 0, 0},
	{"by id", "others cap GPU-8f2c", "gpu-3", "GPU-8f2c", POLICY_POWER, true, -INFINITY, INFINITY},
	{"first rule for the device decides", "others cap gpu-1 100..200\nothers cap any", "gpu-1", "GPU-x",
		POLICY_POWER, true, 100, 200},
	{"rules for reading grant no limits", "others read\nothers cap any 1..2", "gpu-1", "GPU-x", POLICY_POWER, true,
		1, 2},
	{"rule `nothing`: no rights", "others nothing\nothers cap any", "gpu-1", "GPU-x", POLICY_POWER, false, 0, 0},
};

static void check_limit(void **state)
{
	const struct limit *row = *state;
	struct policy policy;
	double least, most;
	assert_int_equal(parse(row->policy, &policy, NULL), 0);
	struct policy_rights rights = policy_rights_of(&policy, ALICE, NULL, 0);
	assert_int_equal(policy_may_cap(&policy, rights, row->device, row->id, row->kind, &least, &most), row->may);
	if (row->may)
		assert_true(least == row->least && most == row->most);
}

static const struct mistake {
	const char *teaches;
	const char *policy, *says;
} mistakes[] = {
	{"unknown verb: refused", "others write", "policy:1: 'write' is not a permission"},
	{"the line number in an error counts comments and empty lines", "#\n\nothers\n",
		"policy:3: the rule ends too early"},
	{"period without a unit: refused", "others read every 100",
		"is not a time from 1ms to 1h; write a number and a unit"},
	{"period below a millisecond: refused", "others read every 999us", "is not a time"},
	{"period without its keyword: refused", "others read 100ms", "'100ms' after `read`; only `every TIME`"},
	{"unknown user: refused", "user no-such-user-here read", "unknown user"},
	{"unknown group: refused", "group no-such-group-here read", "unknown group"},
	{"user number out of range: refused", "user 4294967295 read", "unknown user"},
	{"misspelt device family: refused", "others cap gpu", "not 'gpu' (did you mean 'gpus'?)"},
	{"misspelt permission: refused, with the nearest one", "others raed", "(did you mean 'read'?)"},
	{"misspelt first word: refused, with the nearest one", "grop x read",
		"not with 'grop' (did you mean 'group'?)"},
	{"misspelt kind of limit: refused, with the nearest one", "others cap any clock", "(did you mean 'clocks'?)"},
	{"misspelt account: refused, with the nearest one", "user rooot read",
		"unknown user 'rooot' on this machine (did you mean 'root'?)"},
	{"range with its ends exchanged: refused", "others cap any 300..200", "is not a range"},
	{"empty range: refused", "others cap any ..", "is not a range"},
	{"negative range: refused", "others cap any -5..5", "is not a range"},
	{"range that is no number: refused", "others cap any 1..nan", "is not a range"},
	{"one word too many: refused", "others cap any 1..2 W", "unexpected word 'W'"},
	{"more words than any rule has: refused", "a b c d e f g h i j", "more than 8 words"},
	{"bytes that are no text: refused", "others \x01 read", "is not text"},
};

static void check_mistake(void **state)
{
	const struct mistake *row = *state;
	struct policy policy = {.n = 7};
	struct wattle_error error = {0};
	assert_int_equal(parse(row->policy, &policy, &error), -22);
	assert_non_null(strstr(error.text, row->says));
	assert_int_equal(policy.n, 7); // untouched
}

static const struct description {
	const char *teaches;
	const char *policy, *expected;
} descriptions[] = {
	{"an empty policy permits root only", "",
		"policy: valid, 0 rules. For each request the first matching rule decides.\n"
		"  always: root and the user who runs wattled may do everything; all other requests are denied\n"
		"No rule permits power limits or clock limits.\n"},
	{"slow reading for everybody", "# x\nothers read\n",
		"policy: valid, 1 rule. For each request the first matching rule decides.\n"
		"  line 2: every user may read energy counters, each at most every 100 ms\n"
		"  always: root and the user who runs wattled may do everything; all other requests are denied\n"
		"No rule permits power limits or clock limits.\n"},
	{"each kind of rule",
		"user 61001 nothing\ngroup 0 read\ngroup 61001 cap gpus 200..500\nuser 0 cap gpu-1 clocks ..1980\n"
		"others cap packages 50..\nothers cap any\nothers read every 1.5s",
		"policy: valid, 7 rules. For each request the first matching rule decides.\n"
		"  line 1: user with uid 61001 may do nothing; later rules do not apply to them\n"
		"  line 2: members of group root (gid 0) may read energy counters, each at most every 1 ms\n"
		"  line 3: members of the group with gid 61001 may limit the power of any GPU to between 200 and 500 W\n"
		"  line 4: user root (uid 0) may lock the clocks of gpu-1 to at most 1980 MHz\n"
		"  line 5: every user may limit the power of any CPU package to at least 50 W\n"
		"  line 6: every user may limit the power of any device within the device's own range\n"
		"  line 7: every user may read energy counters, each at most every 1.5 s\n"
		"  always: root and the user who runs wattled may do everything; all other requests are denied\n"
		"Warning: reading faster than every 10 ms can reveal secret keys of other users (PLATYPUS). Permit it only to users "
		"who may know each other's secrets.\n"},
};

static void check_description(void **state)
{
	const struct description *row = *state;
	struct policy policy;
	struct buf out;
	assert_int_equal(parse(row->policy, &policy, NULL), 0);
	buf_init(&out, 1 << 16);
	policy_describe(&policy, "policy", &out);
	assert_string_equal(out.data, row->expected);
	buf_finish(&out);
}

static void sixty_four(void **state)
{
	char text[65 * 12 + 1] = "";
	struct policy policy;
	for (int i = 0; i < 64; i++)
		strcat(text, "others read\n");
	assert_int_equal(parse(text, &policy, NULL), 0);
	assert_int_equal(policy.n, 64);
	assert_true(policy_rights_of(&policy, ALICE, NULL, 0).rules == UINT64_MAX);
	strcat(text, "others read\n");
	assert_int_equal(parse(text, &policy, NULL), -22);
}

// Every truncation and every changed byte of a complete file: parsed or refused, never a crash.
static void damaged(void **state)
{
	static const char whole[] = "user 61001 read every 5ms # x\ngroup 62001 cap GPU-8f2c clocks 100..200\n"
				    "others cap packages power ..95.5\nothers nothing\n";
	static const char bytes[] = {0, 1, '\n', ' ', '#', '9', '.', (char)0xff};
	char text[sizeof(whole)];
	struct policy policy;
	struct wattle_error error;
	for (size_t i = 0; i < sizeof(whole); i++) {
		policy_parse(whole, i, "policy", &policy, &error);
		for (size_t k = 0; k < sizeof(bytes); k++) {
			memcpy(text, whole, sizeof(whole));
			text[i] = bytes[k];
			if (policy_parse(text, sizeof(whole) - 1, "policy", &policy, &error) == 0)
				assert_true(policy.n <= POLICY_RULES_MAX && policy.n_periods <= POLICY_RULES_MAX + 1);
		}
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, readings, check_reading);
	ROWS_ADD(&tests, limits, check_limit);
	ROWS_ADD(&tests, mistakes, check_mistake);
	ROWS_ADD(&tests, descriptions, check_description);
	ROWS_ADD_ONE(&tests, "64 rules are accepted, 65 are refused", sixty_four);
	ROWS_ADD_ONE(&tests, "damaged file: parsed or refused", damaged);
	return rows_run(&tests, "policy");
}
