#include "spank/spank.h"

#include "rows.h"

#include <errno.h>
#include <string.h>

static const struct row {
	const char *teaches, *old, *line, *becomes;
} rows[] = {
	{"job without a comment: set", "", "5 J", "wattle: 5 J"},
	{"user's own comment: kept", "run 7", "5 J", "run 7; wattle: 5 J"},
	{"comment of an earlier step: replaced", "run 7; wattle: 5 J", "9 J", "run 7; wattle: 9 J"},
	{"text added by others: kept in order", "a; wattle: 5 J; b", "9 J", "a; b; wattle: 9 J"},
	{"comment that only mentions wattle: not replaced", "try wattle: soon", "5 J",
		"try wattle: soon; wattle: 5 J"},
	{"comment of wattle only: replaced", "wattle: 5 J", "9 J", "wattle: 9 J"},
};

static void check_made(void **state)
{
	const struct row *row = *state;
	char comment[256];
	assert_int_equal(comment_make(row->old, row->line, comment, sizeof(comment)), 0);
	assert_string_equal(comment, row->becomes);
}

static void check_no_room(void **state)
{
	char comment[16];
	assert_int_equal(comment_make("0123456789", "a long line", comment, sizeof(comment)), -EMSGSIZE);
	assert_int_equal(comment_make("01234567890123456789", "", comment, sizeof(comment)), -EMSGSIZE);
	assert_int_equal(comment_find("JobId=4\n   Comment=01234567890123456\n   Power=\n", comment, sizeof(comment)),
		-EMSGSIZE);
}

static const struct shown {
	const char *teaches, *shown, *found;
	int result;
} shown[] = {
	{"scontrol show job: the comment line", "JobId=4 JobName=a\n   Comment=run 7; b=c\n   Power=\n", "run 7; b=c"},
	{"blanks after the comment: removed", "JobId=4\n   Comment=run 7 \n   Power=\n", "run 7"},
	{"no comment shown: none", "JobId=4 JobName=a\n   Power=\n", ""},
	{"comment (null) of other versions: none", "JobId=4\n   Comment=(null) \n", ""},
	{"comment of several lines: not changed", "JobId=4\n   Comment=run 7\nsecond\n   Power=\n", "", -EILSEQ},
	{"comment whose second line is indented: not changed", "JobId=4\n   Comment=run 7\n   second line\n   Power=\n",
		"", -EILSEQ},
	{"comment followed by an empty line: not changed", "JobId=4\n   Comment=run 7\n\n   Power=\n", "", -EILSEQ},
	{"output truncated: not changed", "JobId=4\n   Comment=run 7", "", -EILSEQ},
	{"job whose name looks like a comment", "JobId=4 JobName=Comment=x\n   Power=\n", ""},
	{"administrator's comment: another field", "JobId=4\n   AdminComment=x\n", ""},
};

static void check_found(void **state)
{
	const struct shown *row = *state;
	char comment[256];
	assert_int_equal(comment_find(row->shown, comment, sizeof(comment)), row->result);
	assert_string_equal(comment, row->found);
}

static const struct state {
	const char *teaches, *shown;
	bool too_late;
} states[] = {
	{"running job: takes a comment", "JobId=4 JobName=a\n   JobState=RUNNING Reason=None\n", false},
	{"job to be requeued: takes a comment", "JobId=4 JobName=a\n   JobState=PENDING Reason=None\n", false},
	{"cancelled job: takes none", "JobId=4 JobName=a\n   JobState=CANCELLED Reason=None\n", true},
	{"completing job: takes none", "JobId=4 JobName=a\n   JobState=COMPLETING Reason=None\n", true},
	{"job out of time: takes none", "JobId=4 JobName=a\n   JobState=TIMEOUT Reason=TimeLimit\n", true},
	{"job whose name looks like a state", "JobId=4 JobName=JobState=TIMEOUT\n   JobState=RUNNING Reason=None\n",
		false},
	{"output without a job: none", "slurm_load_jobs error: Invalid job id specified\n", false},
};

static void check_state(void **state)
{
	const struct state *row = *state;
	assert_int_equal(comment_is_too_late(row->shown), row->too_late);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check_made);
	ROWS_ADD_ONE(&tests, "comment too long: not set, not truncated", check_no_room);
	ROWS_ADD(&tests, shown, check_found);
	ROWS_ADD(&tests, states, check_state);
	return rows_run(&tests, "comment");
}
