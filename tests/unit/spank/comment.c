#include "spank/spank.h"

#include "rows.h"

#include <errno.h>
#include <string.h>

static const struct row {
	const char *teaches, *old, *line, *becomes;
} rows[] = {
	{"a job without a comment", "", "5 J", "wattle: 5 J"},
	{"the user's own comment stays", "run 7", "5 J", "run 7; wattle: 5 J"},
	{"what an earlier step said is replaced", "run 7; wattle: 5 J", "9 J", "run 7; wattle: 9 J"},
	{"what others have added stays, in its order", "a; wattle: 5 J; b", "9 J", "a; b; wattle: 9 J"},
	{"a comment that only speaks of wattle is not ours", "try wattle: soon", "5 J",
		"try wattle: soon; wattle: 5 J"},
	{"ours alone", "wattle: 5 J", "9 J", "wattle: 9 J"},
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
	{"the line of scontrol show job", "JobId=4 JobName=a\n   Comment=run 7; b=c\n   Power=\n", "run 7; b=c"},
	{"blanks behind it are none of it", "JobId=4\n   Comment=run 7 \n   Power=\n", "run 7"},
	{"none is shown at all", "JobId=4 JobName=a\n   Power=\n", ""},
	{"none, as other versions have it", "JobId=4\n   Comment=(null) \n", ""},
	{"one of several lines is not ours to change", "JobId=4\n   Comment=run 7\nsecond\n   Power=\n", "", -EILSEQ},
	{"its second line is indented", "JobId=4\n   Comment=run 7\n   second line\n   Power=\n", "", -EILSEQ},
	{"an empty line ends it", "JobId=4\n   Comment=run 7\n\n   Power=\n", "", -EILSEQ},
	{"what is shown was cut", "JobId=4\n   Comment=run 7", "", -EILSEQ},
	{"a job that is named so", "JobId=4 JobName=Comment=x\n   Power=\n", ""},
	{"the comment of the administrator is another", "JobId=4\n   AdminComment=x\n", ""},
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
	{"a job that runs takes a comment", "JobId=4 JobName=a\n   JobState=RUNNING Reason=None\n", false},
	{"one that is to be started again takes it too", "JobId=4 JobName=a\n   JobState=PENDING Reason=None\n", false},
	{"a cancelled one does not", "JobId=4 JobName=a\n   JobState=CANCELLED Reason=None\n", true},
	{"nor one of which the rest is ending", "JobId=4 JobName=a\n   JobState=COMPLETING Reason=None\n", true},
	{"nor one that is out of time", "JobId=4 JobName=a\n   JobState=TIMEOUT Reason=TimeLimit\n", true},
	{"a job that is named so", "JobId=4 JobName=JobState=TIMEOUT\n   JobState=RUNNING Reason=None\n", false},
	{"what is no job at all", "slurm_load_jobs error: Invalid job id specified\n", false},
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
	ROWS_ADD_ONE(&tests, "what is too long is not cut", check_no_room);
	ROWS_ADD(&tests, shown, check_found);
	ROWS_ADD(&tests, states, check_state);
	return rows_run(&tests, "comment");
}
