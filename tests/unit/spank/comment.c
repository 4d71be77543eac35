#include "spank/step_end.h"

#include "rows.h"

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
	comment_make(row->old, row->line, comment, sizeof(comment));
	assert_string_equal(comment, row->becomes);
}

static void check_cut(void **state)
{
	char comment[16];
	comment_make("0123456789", "a long line", comment, sizeof(comment));
	assert_string_equal(comment, "0123456789; wat");
}

static const struct shown {
	const char *teaches, *shown, *found;
} shown[] = {
	{"the line of scontrol show job", "JobId=4 JobName=a\n   Comment=run 7; b=c\n   Power=\n", "run 7; b=c"},
	{"blanks behind it are none of it", "JobId=4\n   Comment=run 7 \n   Power=\n", "run 7"},
	{"none is shown at all", "JobId=4 JobName=a\n   Power=\n", ""},
	{"none, as other versions have it", "JobId=4\n   Comment=(null) \n", ""},
	{"a job that is named so", "JobId=4 JobName=Comment=x\n   Power=\n", ""},
	{"the comment of the administrator is another", "JobId=4\n   AdminComment=x\n", ""},
};

static void check_found(void **state)
{
	const struct shown *row = *state;
	char comment[256];
	comment_find(row->shown, comment, sizeof(comment));
	assert_string_equal(comment, row->found);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check_made);
	ROWS_ADD_ONE(&tests, "what is too long is cut", check_cut);
	ROWS_ADD(&tests, shown, check_found);
	return rows_run(&tests, "comment");
}
