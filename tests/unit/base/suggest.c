#include "base/suggest.h"

#include "base/util.h"
#include "rows.h"

static const char COMMANDS[] = "run|attach|report|list|compare|store|serve|top|cap|sensors|code-blocks";

static const struct row {
	const char *teaches;
	const char *word;
	const char *expected; // "": no suggestion
} rows[] = {
	{"one letter too many: suggested", "runn", " (did you mean 'run'?)"},
	{"one letter missing: suggested", "atach", " (did you mean 'attach'?)"},
	{"two neighbouring letters exchanged: suggested", "stroe", " (did you mean 'store'?)"},
	{"one wrong letter: suggested", "sarve", " (did you mean 'serve'?)"},
	{"another case", "REPORT", " (did you mean 'report'?)"},
	{"beginning of a word: suggested", "comp", " (did you mean 'compare'?)"},
	{"two letters wrong in a long word: suggested", "snesros", " (did you mean 'sensors'?)"},
	{"one word of a name with hyphens: suggested", "blocks", " (did you mean 'code-blocks'?)"},
	{"two letters wrong in one word of a name with hyphens: suggested", "blokcs", " (did you mean 'code-blocks'?)"},
	{"no similar word: no suggestion", "xyzzy", ""},
	{"a short word is not similar to every short word", "fly", ""},
	{"an empty word: no suggestion", "", ""},
	{"a word longer than all known ones",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ""},
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
	ROWS_ADD_ONE(&tests, "an option is suggested with its dashes", prefix);
	return rows_run(&tests, "suggest");
}
