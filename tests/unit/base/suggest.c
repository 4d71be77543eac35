#include "base/suggest.h"

#include "base/util.h"
#include "rows.h"

static const char COMMANDS[] = "run|attach|report|list|compare|store|serve|top|cap|sensors";

static const struct row {
	const char *teaches;
	const char *word;
	const char *expected; // "" nothing is near
} rows[] = {
	{"a letter too many", "runn", " (did you mean 'run'?)"},
	{"a letter is missing", "atach", " (did you mean 'attach'?)"},
	{"two neighbours exchanged", "stroe", " (did you mean 'store'?)"},
	{"a wrong letter", "sarve", " (did you mean 'serve'?)"},
	{"another case", "REPORT", " (did you mean 'report'?)"},
	{"the beginning of one", "comp", " (did you mean 'compare'?)"},
	{"two letters off in a long word", "snesros", " (did you mean 'sensors'?)"},
	{"nothing is near", "xyzzy", ""},
	{"a short word is not near to every short word", "fly", ""},
	{"an empty word is near to nothing", "", ""},
	{"a word longer than any", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ""},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct suggest suggest;
	char text[SUGGEST_WORD_MAX + 32];
	suggest_begin(&suggest, row->word, strlen(row->word));
	suggest_offer_choices(&suggest, COMMANDS);
	assert_string_equal(suggest_text(&suggest, "", text), row->expected);
}

static void prefix(void **state)
{
	struct suggest suggest;
	char text[SUGGEST_WORD_MAX + 32];
	suggest_begin(&suggest, "ouput=x", strlen("ouput"));
	suggest_offer(&suggest, "output", strlen("output"));
	assert_string_equal(suggest_text(&suggest, "--", text), " (did you mean '--output'?)");
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "an option is shown with its dashes", prefix);
	return rows_run(&tests, "suggest");
}
