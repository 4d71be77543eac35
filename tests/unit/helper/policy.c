/* Who may do what: the rows of a policy file, and what follows from them. */
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
	int64_t period_ms; // 0: may not read
} readings[] = {
	{"an empty policy lets nobody read", "", ALICE, {TEAM}, 1, 0},
	{"root reads whatever the policy says", "others nothing", 0, {0}, 1, 1},
	{"a user by number, every millisecond", "user 61001 read", ALICE, {0}, 0, 1},
	{"another user is not meant", "user 61001 read", BOB, {0}, 0, 0},
	{"a group by any of the user's groups", "group 62002 read", ALICE, {TEAM, LAB}, 2, 1},
	{"others read every 100 ms if nothing else is said", "others read", BOB, {0}, 0, 100},
	{"a period in words", "others read every 2s", BOB, {0}, 0, 2000},
	{"the first rule that fits decides: the slow one", "user 61001 read every 1s\nothers read", ALICE, {0}, 0,
		1000},
	{"the first rule that fits decides: the fast one", "group 62001 read\nuser 61001 read every 1s", ALICE, {TEAM},
		1, 1},
	{"who gets nothing gets nothing from later rules", "user 61001 nothing\ngroup 62001 read", ALICE, {TEAM}, 1, 0},
	{"rules about limits say nothing of reading", "user 61001 cap any\nothers read", ALICE, {0}, 0, 100},
	{"comments, blanks, empty lines, no newline at the end", "# x\n\n  others\tread   # all\r\n#", BOB, {0}, 0,
		100},
	{"a group of root's number is not root", "group 62001 read", ALICE, {0}, 1, 0},
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
	{"any device, any power", "others cap any", "gpu-1", "GPU-x", POLICY_POWER, true, -INFINITY, INFINITY},
	{"clocks have to be named", "others cap any", "gpu-1", "GPU-x", POLICY_CLOCKS, false, 0, 0},
	{"clocks in a range", "others cap gpus clocks 600..1980", "gpu-1", "GPU-x", POLICY_CLOCKS, true, 600, 1980},
	{"a rule for clocks is none for power", "others cap gpus clocks", "gpu-1", "GPU-x", POLICY_POWER, false, 0, 0},
	{"gpus are no packages", "others cap gpus", "package-0", "package-0", POLICY_POWER, false, 0, 0},
	{"packages", "others cap packages 50..", "package-0", "package-0", POLICY_POWER, true, 50, INFINITY},
	{"by name", "others cap gpu-1 power ..250.5", "gpu-1", "GPU-x", POLICY_POWER, true, -INFINITY, 250.5},
	{"gpu-1 is not gpu-10", "others cap gpu-1", "gpu-10", "GPU-x", POLICY_POWER, false, 0, 0},
	{"by id", "others cap GPU-8f2c", "gpu-3", "GPU-8f2c", POLICY_POWER, true, -INFINITY, INFINITY},
	{"the first rule for the device decides", "others cap gpu-1 100..200\nothers cap any", "gpu-1", "GPU-x",
		POLICY_POWER, true, 100, 200},
	{"rules about reading say nothing of limits", "others read\nothers cap any 1..2", "gpu-1", "GPU-x",
		POLICY_POWER, true, 1, 2},
	{"nothing is nothing", "others nothing\nothers cap any", "gpu-1", "GPU-x", POLICY_POWER, false, 0, 0},
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
	{"a verb that is not there", "others write", "policy:1: 'write' is not a permission"},
	{"the line is counted with comments and empty lines", "#\n\nothers\n", "policy:3: the rule ends too early"},
	{"a period without unit", "others read every 100", "is not a time from 1ms to 1h; write a number and a unit"},
	{"a period below a millisecond", "others read every 999us", "is not a time"},
	{"a period without its word", "others read 100ms", "'100ms' after `read`: only `every TIME`"},
	{"a user that is not there", "user no-such-user-here read", "there is no user"},
	{"a group that is not there", "group no-such-group-here read", "there is no group"},
	{"a number beyond all users", "user 4294967295 read", "there is no user"},
	{"a misspelt family", "others cap gpu", "not 'gpu' (did you mean 'gpus'?)"},
	{"a misspelt permission", "others raed", "(did you mean 'read'?)"},
	{"a misspelt first word", "grop x read", "not with 'grop' (did you mean 'group'?)"},
	{"a misspelt kind of limit", "others cap any clock", "(did you mean 'clocks'?)"},
	{"a misspelt account of this machine", "user rooot read", "there is no user 'rooot' on this machine (did you mean 'root'?)"},
	{"a range upside down", "others cap any 300..200", "is not a range"},
	{"a range of nothing", "others cap any ..", "is not a range"},
	{"a negative range", "others cap any -5..5", "is not a range"},
	{"a range that is no number", "others cap any 1..nan", "is not a range"},
	{"a word too many", "others cap any 1..2 W", "unexpected word 'W'"},
	{"more words than any rule has", "a b c d e f g h i j", "more than 8 words"},
	{"bytes that are no text", "others \x01 read", "is not text"},
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
	{"each kind of rule", "user 61001 nothing\ngroup 0 read\ngroup 61001 cap gpus 200..500\nuser 0 cap gpu-1 clocks ..1980\n"
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
		"Warning: readings faster than every 10 ms can reveal secret keys of other users (PLATYPUS). Permit them only to users "
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

// Every cut and every changed byte of a file with all there is: parsed or refused, never a crash.
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
	ROWS_ADD_ONE(&tests, "64 rules are taken, 65 are not", sixty_four);
	ROWS_ADD_ONE(&tests, "a damaged file is parsed or refused", damaged);
	return rows_run(&tests, "policy");
}
