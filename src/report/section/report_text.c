/* Text reports for terminals of 80 columns. */
#include "report/report.h"

#include "base/util.h"
#include "report/format_helpers.h"
#include "report/section/sections.h"

#include <assert.h>
#include <string.h>

enum { SCRATCH_CEILING = 1 << 28 };

static void section_summary(const struct part *part)
{
	part_heading(part);
	part_headline(part);
}

static const struct report_section {
	const char *name;
	void (*write)(const struct part *part);
	unsigned int of;
	bool is_brief;
} report_sections[] = {
#define SECTION(id, name, title, write, of, is_brief) [SECTION_##id] = {name, write, of, is_brief},
#include "report/section/sections.def"
};
static_assert(ARRAY_SIZE(report_sections) == SECTIONS, "one row per section");

static void write_part(const struct findings *findings, const struct job_findings *job,
	void (*write)(const struct part *, const void *), const void *data, struct buf *out, bool colour)
{
	struct document document;
	int r = document_make(findings, job, &document);
	if (r < 0) {
		out->failed = r;
		return;
	}
	const struct part part = {.out = out, .style = style_for(colour), .document = &document, .f = document.findings,
		.run = document.run, .job = job};
	write(&part, data);
	document_finish(&document);
}

/* ---- chosen sections ---- */

static bool is_named(const struct section_choice *choice, const char *name)
{
	for (size_t i = 0; i < choice->n; i++)
		if (strcmp(choice->names[i], name) == 0)
			return true;
	return false;
}

static bool has_data(const struct part *part, const struct report_section *section)
{
	struct buf scratch;
	struct part unseen = *part;
	buf_init(&scratch, SCRATCH_CEILING);
	unseen.out = &scratch;
	section->write(&unseen);
	bool any = scratch.size > 0;
	buf_finish(&scratch);
	return any;
}

static void named_sections(const struct part *part, const struct section_choice *choice, unsigned int of)
{
	for (size_t i = 0; i < SECTIONS; i++) {
		size_t begin = part->out->size;
		if (!is_named(choice, report_sections[i].name))
			continue;
		if (is_wanted(report_sections[i].of, 0, of))
			report_sections[i].write(part);
		if (part->out->size == begin)
			html_section_notef(part, "%s: no data in this %s", report_sections[i].name,
				part->job != NULL ? "job" : "run");
	}
}

static void chosen_sections(const struct part *part, const void *data)
{
	const struct section_choice *choice = data;
	const unsigned int of = part->job != NULL ? OF_JOB : OF_RUN;
	struct part brief = *part;
	struct buf others;
	if (choice->n > 0) {
		struct part whole = *part;
		whole.is_whole = true;
		named_sections(&whole, choice, of);
		return;
	}
	brief.is_brief = !choice->all;
	buf_init(&others, 1 << 12);
	for (size_t i = 0; i < SECTIONS; i++) {
		if (!is_wanted(report_sections[i].of, 0, of))
			continue;
		if (choice->all || report_sections[i].is_brief)
			report_sections[i].write(&brief);
		else if (has_data(part, &report_sections[i]))
			buf_printf(&others, "%s%s", others.size > 0 ? ", " : "\nNot shown: ", report_sections[i].name);
	}
	if (others.size > 0 && others.failed == 0) {
		buf_str(&others, ". Use --section NAME or --all.");
		buf_char(part->out, '\n');
		html_section_note(part, others.data + 1);
	}
	buf_finish(&others);
}

void report_text_sections(const struct findings *findings, const struct job_findings *job,
	const struct section_choice *choice, struct buf *out, bool colour)
{
	write_part(findings, job, chosen_sections, choice, out, colour);
}

void report_text(const struct findings *findings, struct buf *out, bool colour)
{
	report_text_sections(findings, NULL, &(struct section_choice){.all = true}, out, colour);
}

void report_text_brief(const struct findings *findings, struct buf *out, bool colour)
{
	report_text_sections(findings, NULL, &(struct section_choice){.all = false}, out, colour);
}

/* ---- code blocks alone ---- */

static void all_blocks(const struct part *part, const void *data)
{
	section_all_blocks(part);
}

void blocks_text(const struct findings *findings, struct buf *out, bool colour)
{
	if (findings->n_blocks == 0)
		buf_str(out, "  no code blocks were marked\n");
	write_part(findings, NULL, all_blocks, NULL, out, colour);
}

/* ---- summary after a run ---- */

/* At most this many lines, whatever the run has; the caller adds one with the run file. The figures come first, then the warnings
 * have WARNING_LINES, then the code blocks BLOCKS_MAX rows; the warnings get the remaining lines. */
enum { SUMMARY_LINES = 19, WARNING_LINES = 2, BLOCKS_MAX = 5, AROUND_BLOCKS = 3 }; // blank line, head and note of the table

static size_t lines_of(const struct buf *out, size_t begin)
{
	size_t n = 0;
	for (size_t i = begin; i < out->size; i++)
		n += out->data[i] == '\n';
	return n;
}

static void summary(const struct part *part, const void *data)
{
	struct part brief = *part;
	const size_t begin = part->out->size;
	brief.is_brief = brief.is_summary = true;
	section_summary(&brief);
	size_t left = SUMMARY_LINES - lines_of(part->out, begin), warnings = warning_lines(part);
	size_t kept = AROUND_BLOCKS + (warnings < WARNING_LINES ? warnings : WARNING_LINES);
	size_t rows = left > kept ? left - kept : 0;
	bool is_marked = headline_is_marked(part);
	is_marked |= section_largest_blocks(&brief, rows < BLOCKS_MAX ? rows : BLOCKS_MAX);
	if (is_marked)
		html_section_note(part, unresolved_note);
	left = SUMMARY_LINES - lines_of(part->out, begin);
	if (warnings > 0 && left > warnings) {
		buf_char(part->out, '\n');
		left--;
	}
	warnings_within(part, left);
}

void report_summary(const struct findings *findings, struct buf *out, bool colour)
{
	write_part(findings, NULL, summary, NULL, out, colour);
}
