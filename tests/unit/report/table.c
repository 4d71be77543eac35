// The tests of a program are a struct rows, too.
#define rows grid_rows
#include "report/section/grid.h"
#undef rows

#include "base/utf8.h"
#include "base/util.h"

#include "rows.h"

static const struct fit_row {
	const char *teaches, *text;
	size_t columns;
	bool keep_end;
	const char *fitted;
} fit_rows[] = {
	{"text that fits: unchanged", "abc", 3, false, "abc"},
	{"text too long: cut at the end", "abcdef", 4, false, "abc…"},
	{"path too long: its end is kept", "/a/b/train.py:12", 12, true, "…train.py:12"},
	{"width counts characters, not bytes", "äöü", 3, false, "äöü"},
	{"no character is cut in two", "äöüß", 3, true, "…üß"},
	{"wide characters take two columns", "東京東京", 5, false, "東京…"},
	{"half a wide character does not fit", "東京東京", 6, true, "…東京"},
	{"combining characters take none", "e\u0301e\u0301e\u0301", 3, false, "e\u0301e\u0301e\u0301"},
	{"control characters in a name: replaced", "a\033[31mb", 20, false, "a?[31mb"},
	{"line break: a blank", "a\nb", 20, false, "a b"},
};

static void check_fit(void **state)
{
	const struct fit_row *row = *state;
	struct buf out;
	buf_init(&out, 100);
	text_fit(&out, row->text, row->columns, row->keep_end);
	assert_string_equal(out.data, row->fitted);
	buf_finish(&out);
}

static void fits_middle(void **state)
{
	static const struct {
		const char *text, *fitted;
	} middles[] = {{"abcdefgh", "abcdefgh"}, {"abcdefghi", "abcd…ghi"}, {"äöüäöüäöü", "äöüä…äöü"}, {"", ""}};
	for (size_t i = 0; i < ARRAY_SIZE(middles); i++) {
		struct buf out;
		buf_init(&out, 100);
		buf_str(&out, "");
		text_fit_middle(&out, middles[i].text, 8);
		assert_string_equal(out.data, middles[i].fitted);
		buf_finish(&out);
	}
}

static const struct wrap_row {
	const char *teaches, *before, *text;
	size_t indent;
	const char *wrapped;
} wrap_rows[] = {
	{"short texts: on one line", "Label", "a few words", 8, "Label   a few words"},
	{"80 columns, then the next line at the same column", "L",
		"twelve words of which the last ones do not fit into one line of this width any more", 4,
		"L   twelve words of which the last ones do not fit into one line of this width\n    any more"},
	{"a word wider than a line is truncated in the middle", "L",
		"12345678901234567890123456789012345678901234567890123456789012345678901234567890 end", 4,
		"L   12345678901234567890123456789012345678…4567890123456789012345678901234567890\n    end"},
	{"label too long: one blank after it", "A long label", "text", 4, "A long label text"},
};

static void check_wrap(void **state)
{
	const struct wrap_row *row = *state;
	struct buf out;
	buf_init(&out, 1000);
	buf_str(&out, row->before);
	text_wrap(&out, 0, row->indent, row->text);
	assert_string_equal(out.data, row->wrapped);
	buf_finish(&out);
}

static void columns_align(void **state)
{
	static const struct table_column columns[] = {{"", false}, {"energy", true}, {"by", false}};
	static const char *const cells[] = {"gpu-0", "1 J", "sm time", "π", "12.3 kJ", ""};
	struct table table;
	struct buf out;
	buf_init(&out, 1000);
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		buf_str(table_cell(&table, false), cells[i]);
	table_print(&table, &out, style_for(false));
	assert_string_equal(out.data,
		"          energy  by\n"
		"  gpu-0      1 J  sm time\n"
		"  π      12.3 kJ\n");
	table_finish(&table);
	buf_finish(&out);
}

static void first_column_gives_way(void **state)
{
	static const struct table_column columns[] = {{"", false}, {"n", true}};
	struct table table;
	struct buf out;
	char name[121];
	memset(name, 'x', 117);
	text_copy(name + 117, 4, "end");
	buf_init(&out, 1000);
	table_init(&table, columns, ARRAY_SIZE(columns));
	buf_str(table_cell(&table, false), name);
	buf_str(table_cell(&table, false), "1");
	table_print(&table, &out, style_for(false));
	const char *row = strchr(out.data, '\n') + 1;
	assert_int_equal(utf8_text_columns(row, strlen(row) - 1), TEXT_WIDTH);
	assert_string_equal(row + strlen(row) - 8, "xend  1\n");
	table_finish(&table);
	buf_finish(&out);
}

struct item {
	const char *name, *remark;
	double zero, unknown;
};

static const struct field item_fields[] = {
	FIELD(struct item, name, NULL, "name"),
	FIELD(struct item, remark, NULL, "remark"),
	FIELD(struct item, zero, "W", "0", .title = "zero"),
	FIELD(struct item, unknown, "W", "unknown"),
};
static const struct object_type item_type = OBJECT_TYPE("item", "An item.", item_fields);

static void optional_columns(void **state)
{
	static const struct item items[] = {{"a", NULL, 0, (double)NAN}, {"long", "b", 0, (double)NAN}};
	static const struct column columns[] = {
		{"name", .kind = COLUMN_TEXT},
		{"zero", .is_optional = true},
		{"unknown", .is_optional = true, .keeps_zero = true},
		{"zero", .is_optional = true, .keeps_zero = true},
		{"remark", .kind = COLUMN_TEXT, .is_optional = true},
	};
	static const char *const expected[] = {"        zero\n  a      0 W\n  long   0 W  b\n",
		"a     0 W\nlong  0 W  b\n"};
	struct object_at at[ARRAY_SIZE(items)] = {{&item_type, &items[0]}, {&item_type, &items[1]}};
	const struct grid_rows items_rows = {.at = at, .n = ARRAY_SIZE(items), .shown = ARRAY_SIZE(items)};
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		const struct grid grid = GRID(NULL, columns, .is_plain = i == 1);
		struct buf out;
		buf_init(&out, 1000);
		grid_text(&grid, &items_rows, &out, style_for(false));
		assert_string_equal(out.data, expected[i]);
		buf_finish(&out);
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, fit_rows, check_fit);
	ROWS_ADD_ONE(&tests, "name too long: both ends are kept", fits_middle);
	ROWS_ADD(&tests, wrap_rows, check_wrap);
	ROWS_ADD_ONE(&tests, "columns as wide as their contents, numbers right-aligned", columns_align);
	ROWS_ADD_ONE(&tests, "table too wide: the name column is shortened", first_column_gives_way);
	ROWS_ADD_ONE(&tests, "optional columns: without a value omitted; plain: no titles, no indentation",
		optional_columns);
	return rows_run(&tests, "table");
}
