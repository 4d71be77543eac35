/* Whole pages of synthetic runs: their sections, and nothing in them that the policy would have to block. */
#include "report/page/page.h"

#include "fixture.h"

#include <string.h>

static void small_build(struct run *run)
{
	story_poor(run);
}

// A model description, a search for a limit, and names that contain markup.
static void rich_build(struct run *run)
{
	story_build(run);
	build_fact(run, "label", "</title><script>alert(1)</script>");
	build_fact(run, "meta.\"><img src=x onerror=alert(1)>", "' onclick='alert(1)");
	build_fact(run, "meta.model_summary",
		"{\"model\": \"ResNet\", \"parameters\": 25557032, \"layers\": [{\"name\": \"<conv1>\", \"type\": \"Conv2d\", "
		"\"parameters\": 9408, \"multiply_adds\": 118013952, \"output_shape\": [1, 64, null]}, {\"name\": 7}, null]}");
	build_fact(run, "cap_tune",
		"{\"device\": \"gpu-0\", \"objective\": \"edp\", \"chosen_w\": 200, \"complete\": true, \"caps\": [{\"cap_w\": 300, "
		"\"objective\": 10}, {\"cap_w\": 200, \"objective\": 8}]}");
}

// Rows of wattle.torch.layers: a layer called twice in each of 5 passes, a container, and the rest.
static void measured_build(struct run *run)
{
	story_build(run);
	build_fact(run, "meta.model_summary",
		"{\"model\": \"Net\", \"layers\": [{\"name\": \"twice\", \"type\": \"Linear\", \"parameters\": 6, "
		"\"multiply_adds\": 2000000000, \"calls\": 2}]}");
	build_fact(run, "torch_layers",
		"[{\"name\": \"\", \"type\": \"Net\", \"calls\": 5, \"parameters\": 0, \"time_s\": 0.125, \"energy_j\": null, "
		"\"error_j\": null, \"is_outside\": false}, {\"name\": \"twice\", \"type\": \"Linear\", \"calls\": 10, "
		"\"parameters\": 6, \"time_s\": 1.25, \"energy_j\": 35.5, \"error_j\": 0.5, \"is_outside\": false}, "
		"{\"name\": \"outside layers\", \"type\": \"\", \"calls\": 0, \"parameters\": 0, \"time_s\": 0.5, "
		"\"energy_j\": 7.25, \"error_j\": 0.25, \"is_outside\": true}, 4]");
}

// Metadata written by programs, some of it invalid.
static void broken_build(struct run *run)
{
	story_poor(run);
	build_fact(run, "meta.model_summary", "{\"layers\": 3, \"unknown\": [], \"parameters\": \"many\"}");
	build_fact(run, "cap_tune", "[{\"caps\": {}}, 4]");
	build_fact(run, "torch_layers", "[3, {\"name\": 4, \"is_outside\": true}, {}]");
	build_fact(run, "wattle_version", "");
}

static void estimated_build(struct run *run)
{
	build_simple(run, 101);
	build_cpu(run, 0.8, 0, 0.001, 1);
	struct run_device *device = build_powered(run, "package-0", DOMAIN_PACKAGE, 12.3);
	device->provenance = PROVENANCE_ESTIMATED;
	text_copy(device->source, sizeof(device->source), "model");
}

static const struct row {
	const char *teaches;
	void (*build)(struct run *run);
	const char *has[14], *has_not[8];
} rows[] = {
	{"complete run: all sections", rich_build,
		{"id=\"ledger\"", "id=\"time\"", "id=\"blocks\"", "id=\"flame\"", "id=\"layers\"", "id=\"tune\"",
			"id=\"domains\"", "id=\"gpus\"", "id=\"metrics\"", "id=\"processes\"", "id=\"about\"",
			"wattle wakeups", "&lt;conv1&gt;"},
		{"<img", "<script>alert", "onclick='", "<conv1>"}},
	{"rows of wattle.torch.layers: shown unchanged; joules per multiply-add count each pass once", measured_build,
		{"(model)", "35.5 J", "3.55 J", "7.25 J", "outside layers", "1.25 s"}, {NULL}},
	{"minimal run: no empty sections", small_build, {"id=\"about\""},
		{"id=\"layers\"", "id=\"tune\"", "id=\"gpus\"", "id=\"metrics\"", "id=\"flame\""}},
	{"estimated values: marked", estimated_build,
		{"tag-estimated\">estimated", "Energy is estimated, not measured"}, {NULL}},
	{"invalid metadata: ignored", broken_build, {"id=\"about\""}, {">nan", "inf J"}},
};

static size_t count(const char *text, const char *what)
{
	size_t n = 0;
	for (const char *at = strstr(text, what); at != NULL; at = strstr(at + 1, what))
		n++;
	return n;
}

// Only the body: the scripts' own code mentions styles and handlers.
static void check_harmless(const char *page)
{
	static const char *const never[] = {" style=", " src=", " onload=", " onerror=", "javascript:", "http-equiv",
		"<link", "<iframe"};
	const char *body = strstr(page, "<body>");
	assert_non_null(body);
	for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
		const char *found = strstr(body, never[i]);
		// In a name it is text: an attribute would be inside a tag.
		for (; found != NULL; found = strstr(found + 1, never[i])) {
			const char *tag = found;
			while (tag > body && *tag != '<' && *tag != '>')
				tag--;
			assert_true(*tag == '>');
		}
	}
	assert_int_equal(count(body, "<script"), count(body, "type=\"application/json\""));
	assert_int_equal(count(body, "<section"), count(body, "</section>"));
	assert_int_equal(count(body, "<table"), count(body, "</table>"));
	assert_int_equal(count(body, "<div"), count(body, "</div>"));
	assert_int_equal(count(body, "<dl"), count(body, "</dl>"));
}

static struct buf page_of(const struct run *run, int (*make)(const struct run *run, struct findings *ret_findings))
{
	struct findings findings;
	struct charts charts;
	struct buf out;
	assert_int_equal(make(run, &findings), 0);
	assert_int_equal(charts_make(&findings, NULL, &charts), 0);
	buf_init(&out, 1 << 26);
	page_report(&charts, &out);
	assert_int_equal(out.failed, 0);
	charts_finish(&charts);
	findings_finish(&findings);
	return out;
}

static void check(void **state)
{
	const struct row *row = *state;
	struct run run;
	row->build(&run);
	struct buf out = page_of(&run, findings_make), from_kept = page_of(&run, findings_make_for_charts);
	assert_string_equal(from_kept.data, out.data); // kept shares change no figure
	buf_finish(&from_kept);
	for (size_t i = 0; i < ARRAY_SIZE(row->has) && row->has[i] != NULL; i++)
		if (strstr(out.data, row->has[i]) == NULL)
			fail_msg("not on the page: %s", row->has[i]);
	const char *body = strstr(out.data, "<body>");
	for (size_t i = 0; i < ARRAY_SIZE(row->has_not) && row->has_not[i] != NULL; i++)
		if (strstr(body, row->has_not[i]) != NULL)
			fail_msg("on the page: %s", row->has_not[i]);
	check_harmless(out.data);
	buf_finish(&out);
	build_finish(&run);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "page_whole");
}
