#include "report/report.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/utf8.h"
#include "fixture.h"
#include "report/phrases.h"

#include <fcntl.h>
#include <stdio.h>

static void small_build(struct run *run)
{
	story_poor(run);
}

// A laptop without permission for RAPL: the model is used; a recorder with errors.
static void estimated_build(struct run *run)
{
	build_simple(run, 101);
	build_cpu(run, 0.8, 0, 0.001, 1);
	run->segments[0].command_json = "[\"make\", \"-j4\"]";
	run->segments[0].exit_code = 2;
	run->segments[0].samples = 101;
	run->segments[0].lost_samples = 3;
	struct run_device *device = build_powered(run, "package-0", DOMAIN_PACKAGE, 12.3);
	device->provenance = PROVENANCE_ESTIMATED;
	device->relative_error = 0.5;
	text_copy(device->source, sizeof(device->source), "model");
	for (size_t i = 40; i < 70; i++)
		device->values[DEVICE_POWER][i] = VALUE_MISSING;
	build_event(run, 4, "gap", "package-0: the power can't be read");
	build_event(run, 5, "suspend", "the machine was suspended for 12000 ms");
}

/* Two cards: the counter of one reports half of its power, that of the other stops after 4 s. And a counter that
 * never changes. */
static void doubtful_build(struct run *run)
{
	build_simple(run, 101);
	build_cpu(run, 1, 0, 0, 1);
	run->segments[0].command_json = "[\"train\"]";
	struct run_device *half = build_metered(run, "gpu-0", DOMAIN_GPU, 100);
	struct run_device *stuck = build_metered(run, "gpu-1", DOMAIN_GPU, 100);
	struct run_device *dead = build_metered(run, "package-0", DOMAIN_PACKAGE, 100);
	text_copy(dead->source, sizeof(dead->source), "powercap");
	half->update_period_s = stuck->update_period_s = 0.1;
	dead->update_period_s = 0.001;
	for (size_t i = 0; i < run->n; i++) {
		half->values[DEVICE_POWER][i] = stuck->values[DEVICE_POWER][i] = 200000;
		stuck->values[DEVICE_ENERGY][i] = stuck->values[DEVICE_ENERGY][i > 40 ? 40 : i];
		dead->values[DEVICE_ENERGY][i] = 1000;
	}
	for (int i = 0; i < 3; i++)
		build_event(run, i, "note", "gpu-0: processes were matched by their cgroup");
	build_event(run, 3, "note", "gpu-1: the card is asleep");
}

enum { LARGE_GPUS = 10, LARGE_PACKAGES = 50, LARGE_BLOCKS = 500, LARGE_WARNINGS = 20 };

// More of everything than a terminal has lines: GPUs, domains, blocks with long and wide names, warnings of several lines.
static void large_build(struct run *run)
{
	static const char long_text[] =
		"could not be read for a while because the driver was busy with a reset that another program asked "
		"for, which happens when a card falls off the bus; its error is wider for it";
	build_simple(run, 101);
	build_cpu(run, 3, 0.5, 0.1, 3.9);
	run->devices = arena_alloc(run->arena, LARGE_GPUS + LARGE_PACKAGES, sizeof(*run->devices));
	run->events = arena_alloc(run->arena, LARGE_WARNINGS, sizeof(*run->events));
	run->segments[0].command_json =
		"[\"\u6771\u4eac\u6771\u4eac\u6771\u4eac\u6771\u4eac\u6771\u4eac\u6771\u4eac\u6771\u4eac\u6771"
		"\u4eac\u6771\u4eac\u6771\u4eac\u6771\u4eac\u6771\u4eac\u6771\u4eac\u6771\u4eac\u6771\u4eac\u6771\u4eac\"]";
	run->segments[0].exit_code = 139;
	build_fact(run, "carbon_intensity_g_per_kwh", "380");
	build_fact(run, "step", "a block 000 with a very long name, which a program made of its templates <double, 3>");
	for (int i = 0; i < LARGE_GPUS + LARGE_PACKAGES; i++) {
		char *name = arena_printf(run->arena, "%s-%d", i < LARGE_GPUS ? "gpu" : "package",
			i < LARGE_GPUS ? i : i - LARGE_GPUS);
		struct run_device *device = build_metered(run, name, i < LARGE_GPUS ? DOMAIN_GPU : DOMAIN_PACKAGE,
			100 + i);
		snprintf(device->source, sizeof(device->source), "a sensor %d", i % 9);
		device->index = i;
		device->relative_error = 0.8;
	}
	struct run_span *spans = arena_alloc(run->arena, LARGE_BLOCKS, sizeof(*spans));
	for (int i = 0; i < LARGE_BLOCKS; i++)
		spans[i] = (struct run_span){.id = i + 1,
			.pid = 1,
			.begin_ns = at_s(i * 0.02),
			.end_ns = at_s(i * 0.02 + 0.02),
			.cpu_ns = VALUE_MISSING,
			.name = arena_printf(run->arena,
				i % 2 == 0
					? "a block %03d with a very long name, which a program made of its templates <double, 3>"
					: "東京東京東京東京東京東京東京 %03d 東京東京東京東京",
				i)};
	run->spans = spans;
	run->n_spans = LARGE_BLOCKS;
	for (int i = 0; i < LARGE_WARNINGS; i++)
		build_event(run, i * 0.1, "note", arena_printf(run->arena, "gpu-%d %s", i, long_text));
}

static const struct row {
	const char *teaches;
	void (*build)(struct run *run);
	void (*report)(const struct findings *findings, struct buf *out, bool colour);
	bool colour;
	const char *file; // in golden/
} rows[] = {
	{"complete run", story_build, report_text, false, "full.txt"},
	{"complete run in colour: only escape sequences are added", story_build, report_text, true, "full-colour.txt"},
	{"without --all: fewer rows, and the names of the other sections", story_build, report_text_brief, false,
		"brief.txt"},
	{"summary after a run", story_build, report_summary, false, "summary.txt"},
	{"after a large run: 19 lines at most", large_build, report_summary, false, "summary-large.txt"},
	{"after a large run in colour: the same lines", large_build, report_summary, true, "summary-large-colour.txt"},
	{"a large run without --all: no table longer than eight rows", large_build, report_text_brief, false,
		"brief-large.txt"},
	{"summary after a run of which nothing is known", small_build, report_summary, false, "summary-poor.txt"},
	{"nothing known: reported, no zeros", small_build, report_text, false, "poor.txt"},
	{"contradictory figures, counters that stop: each note once", doubtful_build, report_text, false,
		"doubtful.txt"},
	{"estimate, gap, lost samples and suspend: reported", estimated_build, report_text, false, "estimated.txt"},
};

static void render(const struct row *row, struct buf *out)
{
	struct run run;
	struct findings findings;
	row->build(&run);
	assert_int_equal(findings_make(&run, &findings), 0);
	row->report(&findings, out, row->colour);
	findings_finish(&findings);
	build_finish(&run);
	assert_int_equal(out->failed, 0);
}

// With WATTLE_GOLDEN=write the files are written anew; check the difference.
static void check_golden(void **state)
{
	const struct row *row = *state;
	char path[4096];
	struct buf out;
	buf_init(&out, 1 << 20);
	render(row, &out);
	snprintf(path, sizeof(path), "%s/unit/report/golden/%s", getenv("WATTLE_TESTS"), row->file);
	if (getenv("WATTLE_GOLDEN") != NULL)
		assert_int_equal(buf_write_file(&out, path), 0);
	char *expected = NULL;
	size_t size;
	wattle_cleanup_close int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(file_read_all_in(root_fd, path, 1 << 20, &expected, &size), 0);
	assert_string_equal(out.data, expected);
	free(expected);
	buf_finish(&out);
}

static size_t visible_columns(const char *line, size_t size)
{
	size_t columns = 0, width;
	for (size_t i = 0; i < size; i++) {
		if (line[i] == '\033') {
			while (line[i] != 'm')
				i++;
			continue;
		}
		size_t length = utf8_character(line + i, &width);
		columns += width;
		i += length - 1;
	}
	return columns;
}

static void check_width(void **state)
{
	const struct row *row = *state;
	struct buf out;
	buf_init(&out, 1 << 20);
	render(row, &out);
	size_t lines = 0;
	for (const char *line = out.data; *line != '\0'; lines++) {
		size_t size = strcspn(line, "\n");
		if (visible_columns(line, size) > 80)
			fail_msg("too wide: %.*s", (int)size, line);
		if (!row->colour && size > 0)
			assert_true(line[size - 1] != ' ');
		line += size + (line[size] == '\n');
	}
	assert_true(row->report != report_summary || lines <= 19); // and one of the command, with the run file
	buf_finish(&out);
}

static void note_name(void *data, const struct domain_finding *domain, int depth)
{
	buf_printf(data, "%d:%s ", depth, domain->device->device);
}

// A damaged file has two domains of one name, one of them inside "itself", and two inside each other.
static void each_domain_once(void **state)
{
	static const struct {
		const char *name, *inside, *device;
	} domains[] = {{"a", "", "1"}, {"a", "a", "2"}, {"b", "a", "3"}, {"c", "d", "4"}, {"d", "c", "5"}};
	struct run_device devices[ARRAY_SIZE(domains)] = {0};
	struct domain_finding found[ARRAY_SIZE(domains)] = {0};
	for (size_t i = 0; i < ARRAY_SIZE(domains); i++) {
		text_copy(devices[i].name, sizeof(devices[i].name), domains[i].name);
		text_copy(devices[i].inside, sizeof(devices[i].inside), domains[i].inside);
		text_copy(devices[i].device, sizeof(devices[i].device), domains[i].device);
		found[i].device = &devices[i];
	}
	const struct findings findings = {.domains = found, .n_domains = ARRAY_SIZE(domains)};
	struct buf out;
	buf_init(&out, 4096);
	domain_tree(&findings, note_name, &out);
	assert_string_equal(out.data, "0:1 1:2 1:3 ");
	buf_finish(&out);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "each domain once, under the first domain with its parent's name", each_domain_once);
	ROWS_ADD(&tests, rows, check_golden);
	ROWS_ADD(&tests, rows, check_width);
	return rows_run(&tests, "text");
}
