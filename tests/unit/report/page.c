/* Small parts of the page: names, the data block, the security policy, and a search stored in a run file. */
#include "report/html.h"
#include "report/page/page.h"

#include "base/arena.h"
#include "report/cap_report.h"
#include "report/report.h"
#include "report/section/html_section.h"

#include "rows.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- names ---- */

static const struct name_row {
	const char *teaches, *name, *html;
} names[] = {
	{"name: isolated in its direction of writing", "step", "<bdi>step</bdi>"},
	{"markup in a name: shown as text", "</script><b>", "<bdi>&lt;/script&gt;&lt;b&gt;</bdi>"},
	{"quotes in a name: end no attribute", "a\"b'c", "<bdi>a&quot;b&#39;c</bdi>"},
	{"control characters: shown as replacement characters", "a\x01z", "<bdi>a\xef\xbf\xbdz</bdi>"},
	{"invisible name: its code points are shown", " \t", "<span class=\"faint\">(U+0020 U+0009)</span>"},
	{"name of zero-width characters: its code points are shown", "\xef\xbb\xbf\xe2\x80\x8b\xc2\xad",
		"<span class=\"faint\">(U+FEFF U+200B U+00AD)</span>"},
	{"long invisible name: its code points are shortened", "\xe3\x85\xa4     ",
		"<span class=\"faint\">(U+3164 U+0020 U+0020 U+0020 …)</span>"},
	{"invalid byte: shown as a replacement character", "\xff", "<bdi>\xef\xbf\xbd</bdi>"},
	{"truncated character: shown as a replacement character", "a\xe2\x82", "<bdi>a\xef\xbf\xbd\xef\xbf\xbd</bdi>"},
	{"no name", "", "<span class=\"faint\">(unnamed)</span>"},
	{"unknown name", NULL, "<span class=\"faint\">(unnamed)</span>"},
	{"letters of any script: kept", "日本語 🔥", "<bdi>日本語 🔥</bdi>"},
};

static void check_name(void **state)
{
	const struct name_row *row = *state;
	struct buf out;
	buf_init(&out, 1000);
	part_name(&out, row->name);
	assert_string_equal(out.data, row->html);
	buf_finish(&out);
}

// Both ends of a long name are shown; no character is cut in two.
static void check_long_name(void **state)
{
	char name[10001];
	for (size_t i = 0; i < 10000; i += 4)
		memcpy(name + i, "\xf0\x9f\x94\xa5", 4);
	name[10000] = '\0';
	for (size_t shift = 0; shift < 4; shift++) { // the cut may begin anywhere in a character
		struct buf out;
		buf_init(&out, 1000);
		memset(name, 'a', shift);
		memmove(name + shift, name + (shift == 0 ? 0 : 4), 4000);
		part_name(&out, name);
		assert_int_equal(out.failed, 0);
		assert_true(out.size < 200);
		assert_non_null(strstr(out.data, "…"));
		for (const char *c = out.data; *c != '\0'; c++)
			if (((unsigned char)*c & 0xf8) == 0xf0)
				assert_memory_equal(c, "\xf0\x9f\x94\xa5", 4);
		buf_finish(&out);
	}
}

// Bytes that can only continue a character: shortened, but some of them stay.
static void check_long_nonsense(void **state)
{
	char name[301];
	memset(name, 0x82, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	struct buf out;
	buf_init(&out, 1000);
	part_name(&out, name);
	assert_int_equal(out.failed, 0);
	size_t seen = 0;
	for (const char *c = out.data; (c = strstr(c, "\xef\xbf\xbd")) != NULL; c += 3)
		seen++;
	assert_true(seen > 100 && seen < 140);
	buf_finish(&out);
}

/* ---- cells ---- */

static const struct cell_row {
	const char *teaches;
	double energy_j, error_j;
	const char *unit, *html;
} cells[] = {
	{"energy with its error", 1234, 12, NULL,
		"<td data-value=\"1234\">1.23 kJ <span class=\"faint\">± 12 J</span></td>"},
	{"error larger than the energy: both, with the mark", 1, 3, NULL,
		"<td data-value=\"1\">1.00 J <span class=\"faint\">± 3.0 J ?</span></td>"},
	{"unknown: not 0, and without a sort value", NAN, NAN, NULL,
		"<td data-value=\"\"><span class=\"faint\">n/a</span></td>"},
	{"unknown error: none shown", 5, NAN, NULL, "<td data-value=\"5\">5.00 J</td>"},
	{"energy per unit of work", 0.5, 0.01, "token",
		"<td data-value=\"0.5\">500 mJ <span class=\"faint\">± 10 mJ</span> <span class=\"faint per\">per "
		"<bdi>token</bdi></span></td>"},
};

static void check_cell(void **state)
{
	const struct cell_row *row = *state;
	struct buf out;
	buf_init(&out, 1000);
	part_cell_energy_per(&out, row->energy_j, row->error_j, row->unit);
	assert_string_equal(out.data, row->html);
	buf_finish(&out);
}

/* ---- the data block ---- */

static const struct json_row {
	const char *teaches, *json, *html;
} blocks[] = {
	{"end tag in a name: escaped", "[\"</script>\"]", "[\"\\u003c/script\\u003e\"]"},
	{"start of a comment in a name: escaped", "[\"<!--\"]", "[\"\\u003c!--\"]"},
	{"ampersands", "[\"&lt;\"]", "[\"\\u0026lt;\"]"},
	{"line separators, line ends in old scripts: escaped", "[\"\xe2\x80\xa8\xe2\x80\xa9\"]",
		"[\"\\u2028\\u2029\"]"},
	{"neighbours of the line separators: kept", "[\"\xe2\x80\xa6\xe2\x82\xac\"]", "[\"\xe2\x80\xa6\xe2\x82\xac\"]"},
	{"nothing to escape: unchanged", "{\"a\": 1}", "{\"a\": 1}"},
};

static void check_json(void **state)
{
	const struct json_row *row = *state;
	struct buf out, wanted;
	buf_init(&out, 1000);
	buf_init(&wanted, 1000);
	html_json(&out, "charts", row->json, strlen(row->json));
	buf_printf(&wanted, "<script type=\"application/json\" id=\"charts\">%s</script>\n", row->html);
	assert_string_equal(out.data, wanted.data);
	buf_finish(&out);
	buf_finish(&wanted);
}

/* ---- the policy ---- */

static const struct frame_row {
	const char *teaches;
	enum page_script script;
	bool connect;
	const char *has, *has_not;
} frames[] = {
	{"policy: everything not listed is forbidden", PAGE_SCRIPT_REPORT, false,
		"default-src 'none'; script-src 'sha256-", "unsafe"},
	{"policy: nothing may be fetched", PAGE_SCRIPT_REPORT, false, "form-action 'none'", "connect-src"},
	{"policy of the live page: may fetch from its own origin", PAGE_SCRIPT_LIVE, true, "connect-src 'self'",
		"http"},
	{"policy of a page without scripts: none may run", PAGE_SCRIPT_NONE, false, "script-src 'none'",
		"script-src 'sha256-"},
};

static void check_policy(void **state)
{
	const struct frame_row *row = *state;
	struct buf out;
	buf_init(&out, 4000);
	page_policy(&out, row->script, row->connect);
	assert_non_null(strstr(out.data, row->has));
	assert_null(strstr(out.data, row->has_not));
	buf_finish(&out);
}

static void check_frame(void **state)
{
	struct buf out;
	buf_init(&out, 1 << 22);
	page_begin(&out, "<b>& \"name\"", PAGE_SCRIPT_REPORT, false);
	assert_non_null(strstr(out.data, "<title>&lt;b&gt;&amp; &quot;name&quot;</title>"));
	assert_null(strstr(out.data, "sourceMappingURL"));
	assert_non_null(strstr(out.data, "@license"));
	size_t begun = out.size;
	page_end(&out, PAGE_SCRIPT_REPORT);
	assert_non_null(strstr(out.data + begun, "</main>"));
	assert_int_equal(out.failed, 0);
	buf_finish(&out);
}

/* ---- a search in a run file ---- */

static const struct tune_row {
	const char *teaches, *json;
	int result;
	bool has_result;
	size_t n_limits;
} tunes[] = {
	{"no JSON", "caps", -EINVAL, false, 0},
	{"no document of a search", "[]", -EINVAL, false, 0},
	{"search without a result", "{\"device\": \"gpu-0\", \"objective\": null, \"caps\": []}", 0, false, 0},
	{"two limits",
		"{\"objective\": \"edp\", \"chosen_w\": 200, \"caps\": [{\"cap_w\": 300, \"objective\": 10}, "
		"{\"cap_w\": 200, \"objective\": 8}]}",
		0, true, 2},
	{"the reference is the highest limit, in any position",
		"{\"objective\": \"edp\", \"chosen_w\": 200, \"caps\": [{\"cap_w\": 200, \"objective\": 8}, "
		"{\"cap_w\": 300, \"objective\": 10}]}",
		0, true, 2},
	{"limits added near the best one: sorted among the others",
		"{\"objective\": \"ed2p\", \"chosen_w\": 250, \"caps\": [{\"cap_w\": 300, \"objective\": 10}], "
		"\"added_caps\": [{\"cap_w\": 250, \"objective\": 9}]}",
		0, true, 2},
	{"values outside the chart: left out",
		"{\"objective\": \"edp\", \"chosen_w\": 200, \"caps\": [{\"cap_w\": 300, \"objective\": 10}, "
		"{\"cap_w\": 200, \"objective\": 1e300}, {\"cap_w\": -5, \"objective\": 1}, {\"cap_w\": null}]}",
		0, true, 1},
	{"clocks: a key of their own",
		"{\"what\": \"clocks\", \"objective\": \"energy\", \"chosen_mhz\": 1200, \"caps\": "
		"[{\"cap_w\": null, \"clock_mhz\": 1980, \"objective\": 5}]}",
		0, true, 1},
	{"objective of a later version",
		"{\"objective\": \"ed9p\", \"caps\": [{\"cap_w\": 300, \"objective\": 1}]}", 0, false, 0},
};

static void check_tune(void **state)
{
	const struct tune_row *row = *state;
	struct arena *arena = arena_new();
	struct cap_tune_report *reports = NULL;
	size_t n = 0;
	assert_int_equal(cap_tune_read(row->json, arena, &reports, &n), row->result);
	if (row->result == 0) {
		assert_int_equal(n, 1);
		assert_int_equal(reports->has_result, row->has_result);
		assert_int_equal(reports->result.n_limits, row->n_limits);
		for (size_t i = 1; i < row->n_limits; i++)
			assert_true(reports->result.limits[i].limit < reports->result.limits[i - 1].limit);
		struct buf out; // whatever it contains, a page can be made of it
		buf_init(&out, 1 << 20);
		cap_tune_part(reports, &out, 0, "h3");
		assert_int_equal(out.failed, 0);
		buf_finish(&out);
	}
	arena_free(arena);
}

// Written values are read back unchanged.
static void check_tune_again(void **state)
{
	double curve_x[] = {200, 250, 300}, curve_y[] = {8.1, 8.4, 10};
	struct tune_limit_result limits[] = {
		{.limit = 300,
			.n_windows = 3,
			.steps = 9,
			.objective = {10, 9.5, 10.5},
			.energy_per_step_j = {50, 49, 51},
			.time_per_step_s = {0.2, 0.19, 0.21},
			.is_allowed = true},
		{.limit = 200,
			.n_windows = 3,
			.steps = 8,
			.objective = {8, 7.5, 8.5},
			.energy_per_step_j = {40, 39, 41},
			.time_per_step_s = {0.22, 0.21, 0.23},
			.is_allowed = false},
	};
	struct cap_tune_report report = {.device = "gpu-0",
		.label = "<NVIDIA>",
		.step = "step",
		.chosen = 200,
		.previous = 300,
		.is_whole = true,
		.has_result = true,
		.n_windows = 6,
		.seed = 7,
		.measured_s = 12,
		.elapsed_s = 15,
		.result = {.goal = TUNE_EDP,
			.limits = limits,
			.n_limits = 2,
			.chosen = 200,
			.saving_percent = {20, 18, 22},
			.slowdown = {10, 8, 12},
			.model = TUNE_CONVEX_MODEL,
			.residual_percent = 0.5,
			.noise_percent = 0.3,
			.drift_percent = 0.1,
			.curve_x = curve_x,
			.curve_y = curve_y,
			.n_curve = 3}};
	struct buf json, first, second;
	buf_init(&json, 1 << 16);
	buf_init(&first, 1 << 16);
	buf_init(&second, 1 << 16);
	cap_tune_json_line(&report, 1, &json);
	cap_tune_part(&report, &first, 0, "h3");
	struct arena *arena = arena_new();
	struct cap_tune_report *read;
	size_t n;
	assert_int_equal(cap_tune_read(json.data, arena, &read, &n), 0);
	cap_tune_part(read, &second, 0, "h3");
	assert_string_equal(first.data, second.data);
	arena_free(arena);
	buf_finish(&json);
	buf_finish(&first);
	buf_finish(&second);
}

// The limit that the model chose between two measured ones: 20 % less energy in 10 % more time.
static const struct goal_row {
	const char *teaches, *goal, *expected;
} goals[] = {
	{"energy alone", "energy", ">-20.0 %</td>"},
	{"energy × time", "edp", ">-12.0 %</td>"},
	{"energy × time²", "ed2p", ">-3.2 %</td>"},
};

static void check_goal(void **state)
{
	const struct goal_row *row = *state;
	struct arena *arena = arena_new();
	struct cap_tune_report *report;
	struct buf json, page;
	size_t n;
	buf_init(&json, 1 << 16);
	buf_init(&page, 1 << 20);
	buf_printf(&json,
		"{\"objective\": \"%s\", \"chosen_w\": 250, \"saving_percent\": 20, \"slowdown_percent\": 10, \"caps\": "
		"[{\"cap_w\": 300, \"objective\": 10}, {\"cap_w\": 200, \"objective\": 9.9}]}",
		row->goal);
	assert_int_equal(cap_tune_read(json.data, arena, &report, &n), 0);
	cap_tune_part(report, &page, 0, "h3");
	const char *chosen = strstr(page.data, "250 W (chosen)");
	assert_non_null(chosen);
	assert_non_null(strstr(chosen, row->expected));
	buf_finish(&json);
	buf_finish(&page);
	arena_free(arena);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, names, check_name);
	ROWS_ADD_ONE(&tests, "name: a long one of invalid bytes is shortened, not lost", check_long_nonsense);
	ROWS_ADD_ONE(&tests, "name: a long one keeps both ends and whole characters", check_long_name);
	ROWS_ADD(&tests, cells, check_cell);
	ROWS_ADD(&tests, blocks, check_json);
	ROWS_ADD(&tests, frames, check_policy);
	ROWS_ADD_ONE(&tests, "frame: a title is text; dygraphs keeps its licence and requests no source map",
		check_frame);
	ROWS_ADD(&tests, tunes, check_tune);
	ROWS_ADD(&tests, goals, check_goal);
	ROWS_ADD_ONE(&tests, "tune: written values are read back", check_tune_again);
	return rows_run(&tests, "page");
}
