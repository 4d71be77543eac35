#include "store/tracking.h"

#include "rows.h"

#include <errno.h>
#include <string.h>

/* Records as one text: fields in [], records separated by |, or the error. */
static const struct row {
	const char *teaches, *text, *records;
} table[] = {
	{"plain fields", "a,b\nc,d\n", "[a][b]|[c][d]|"},
	{"last line without a newline", "a,b\nc,d", "[a][b]|[c][d]|"},
	{"Windows line ends", "a,b\r\nc,d\r\n", "[a][b]|[c][d]|"},
	{"byte order mark: not part of the first name",
		"\xef\xbb\xbf"
		"a,b\n",
		"[a][b]|"},
	{"empty fields are fields", ",\n,,\n", "[][]|[][][]|"},
	{"empty lines are skipped", "\na\n\n\r\nb\n", "[a]|[b]|"},
	{"empty text: no records", "", ""},
	{"quotes protect commas", "\"a,b\",c\n", "[a,b][c]|"},
	{"doubled quotes become one", "\"say \"\"hi\"\"\",c\n", "[say \"hi\"][c]|"},
	{"quotes protect line breaks", "\"a\r\nb\",c\nd\n", "[a\r\nb][c]|[d]|"},
	{"empty quoted field", "\"\",\"\"\n", "[][]|"},
	{"quote inside an unquoted field: a plain character", "a\"b,c\n", "[a\"b][c]|"},
	{"open quote: the error names the line where it began", "a\n\"b\nc\n",
		"[a]|f.csv, line 2: a quote is opened and never closed"},
	{"line numbers count lines inside quotes", "\"a\nb\"\n\"c",
		"[a\nb]|f.csv, line 3: a quote is opened and never closed"},
	{"text after a closing quote: an error", "\"a\"b,c\n", "f.csv, line 1: text follows a closing quote"},
	{"too many fields: an error", "1,2,3,4,5\n", "f.csv, line 1: more than 4 fields"},
};

static void check(void **state)
{
	const struct row *row = *state;
	char text[256], seen[512] = "";
	strcpy(text, row->text);
	struct csv csv;
	csv_init(&csv, text, "f.csv");
	char *fields[4];
	struct wattle_error error = {0};
	int n;
	while ((n = csv_next(&csv, fields, 4, &error)) > 0) {
		for (int i = 0; i < n; i++) {
			strcat(seen, "[");
			strcat(seen, fields[i]);
			strcat(seen, "]");
		}
		strcat(seen, "|");
	}
	assert_true(n == 0 || n == -EINVAL);
	strcat(seen, error.text);
	assert_string_equal(seen, row->records);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, table, check);
	return rows_run(&rows, "CSV reader");
}
