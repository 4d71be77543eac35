/* Effects of keys. */
#include "live/session.h"

#include "base/util.h"
#include "rows.h"

enum { KEYS = 12 };

static const struct key_row {
	const char *teaches;
	struct live_ui before;
	uint32_t keys[KEYS];
	struct live_ui after;
	enum live_action action; // of the last key
} key_rows[] = {
	{"q quits", {0}, {'q'}, {0}, ACTION_QUIT},
	{"F10 quits, also while a filter is typed", {.editing = true}, {KEY_CODE_QUIT}, {.editing = true}, ACTION_QUIT},
	{"a letter sorts by its column", {.sort = SORT_POWER}, {'m'}, {.sort = SORT_MEMORY}, ACTION_DRAW},
	{"s sorts by the next column, after the last by the first", {.sort = SORT_PID}, {'s'}, {.sort = SORT_POWER},
		ACTION_DRAW},
	{"r and t toggle", {0}, {'r', 't', 't'}, {.reverse = true}, ACTION_DRAW},
	{"text typed after / is the filter", {0}, {'/', 'q', 't', 0xe9}, {.editing = true, .filter = "qt\xc3\xa9"},
		ACTION_DRAW},
	{"backspace removes whole characters", {.editing = true, .filter = "q\xc3\xa9"}, {KEY_CODE_ERASE},
		{.editing = true, .filter = "q"}, ACTION_DRAW},
	{"backspace in an empty filter: no effect", {.editing = true}, {KEY_CODE_ERASE}, {.editing = true},
		ACTION_DRAW},
	{"Enter keeps the filter", {.editing = true, .filter = "q"}, {KEY_CODE_ENTER}, {.filter = "q"}, ACTION_DRAW},
	{"Escape clears the filter while it is typed", {.editing = true, .filter = "q"}, {KEY_CODE_ESCAPE}, {0},
		ACTION_DRAW},
	{"Escape clears the filter later", {.filter = "q"}, {KEY_CODE_ESCAPE}, {0}, ACTION_DRAW},
	{"Escape closes the help first", {.help = true, .filter = "q"}, {KEY_CODE_ESCAPE}, {.filter = "q"},
		ACTION_DRAW},
	{"Escape clears the selection last", {.selected = 5, .first = 3}, {KEY_CODE_ESCAPE}, {0}, ACTION_DRAW},
	{"a lists all processes instead of the target's", {.has_target = true, .only_target = true}, {'a'},
		{.has_target = true}, ACTION_DRAW},
	{"without a target: no effect", {0}, {'a'}, {0}, ACTION_NONE},
	{"more often", {.interval_ns = NS_PER_S}, {'+', '+'}, {.interval_ns = NS_PER_S / 5}, ACTION_DRAW},
	{"shortest interval: 0.1 s", {.interval_ns = NS_PER_S / 10}, {'+'}, {.interval_ns = NS_PER_S / 10},
		ACTION_DRAW},
	{"longer interval, from one that is not in the list", {.interval_ns = 3 * NS_PER_S}, {'-'},
		{.interval_ns = 5 * NS_PER_S}, ACTION_DRAW},
	{"moves add up until they are drawn", {0}, {KEY_CODE_DOWN, 'j', KEY_CODE_PAGE_DOWN, KEY_CODE_UP},
		{.moves = 1, .pages = 1}, ACTION_DRAW},
	{"commands scroll sideways, not beyond their beginning", {0},
		{KEY_CODE_RIGHT, KEY_CODE_RIGHT, KEY_CODE_LEFT, KEY_CODE_LEFT, KEY_CODE_LEFT}, {0}, ACTION_DRAW},
	{"b selects the next graph style", {.style = GRAPH_ASCII}, {'b'}, {.style = GRAPH_BRAILLE}, ACTION_DRAW},
	{"Ctrl-L and a new size clear the screen", {0}, {KEY_CODE_REDRAW}, {0}, ACTION_REDRAW},
	{"any other key: no effect", {0}, {'z'}, {0}, ACTION_NONE},
};

static void check_keys(void **state)
{
	const struct key_row *row = *state;
	struct live_ui ui = row->before;
	enum live_action action = ACTION_NONE;
	for (size_t i = 0; i < KEYS && row->keys[i] != 0; i++)
		action = live_key(&ui, row->keys[i]);
	assert_int_equal(action, row->action);
	assert_string_equal(ui.filter, row->after.filter);
	memset(ui.filter, 0, sizeof(ui.filter)); // text behind the end of the filter
	struct live_ui after = row->after;
	memset(after.filter, 0, sizeof(after.filter));
	assert_memory_equal(&ui, &after, sizeof(ui));
}

static void a_filter_has_an_end(void **state)
{
	struct live_ui ui = {.editing = true};
	for (int i = 0; i < 1000; i++)
		live_key(&ui, i % 2 == 0 ? 0x1f525 : 'a');
	assert_true(strlen(ui.filter) < FILTER_SIZE);
	live_key(&ui, KEY_CODE_ERASE);
	while (ui.filter[0] != '\0')
		live_key(&ui, KEY_CODE_ERASE);
}

static void each_sort_has_a_name(void **state)
{
	for (int i = 0; i < SORTS; i++)
		assert_int_equal(live_sort_from_name(live_sort_name((enum live_sort)i)), i);
	assert_true(live_sort_from_name("watts") < 0);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, key_rows, check_keys);
	ROWS_ADD_ONE(&tests, "filter longer than its buffer: truncated", a_filter_has_an_end);
	ROWS_ADD_ONE(&tests, "each sort order has a name", each_sort_has_a_name);
	return rows_run(&tests, "ui");
}
