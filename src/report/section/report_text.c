/* Text reports for terminals of 80 columns. */
#include "report/report.h"

#include "base/util.h"
#include "report/parts.h"
#include "report/section/sections.h"

#include <errno.h>

typedef void section(const struct part *part);

static void write_sections(const struct findings *findings, const struct job_findings *job, section *const sections[],
	size_t n, struct buf *out, bool colour)
{
	struct document document;
	int r = document_make(findings, job, &document);
	if (r < 0) {
		out->failed = r;
		return;
	}
	const struct part part = {.out = out, .style = style_for(colour), .document = &document, .f = document.findings,
		.run = document.run, .job = job};
	for (size_t i = 0; i < n; i++)
		sections[i](&part);
	document_finish(&document);
}

void report_text(const struct findings *findings, struct buf *out, bool colour)
{
	static section *const sections[] = {part_heading, part_headline, section_ledger, section_domains, section_gpus,
		section_blocks, section_metrics, section_processes, part_warnings};
	write_sections(findings, NULL, sections, ARRAY_SIZE(sections), out, colour);
}

void report_summary(const struct findings *findings, struct buf *out, bool colour)
{
	static section *const sections[] = {part_heading, part_headline, part_warnings};
	write_sections(findings, NULL, sections, ARRAY_SIZE(sections), out, colour);
}

void job_report_text(const struct job_findings *job, struct buf *out, bool colour)
{
	static section *const sections[] = {part_heading, part_headline, section_ledger, section_nodes, section_kinds,
		section_ranks, section_balance, section_blocks, section_metrics, part_warnings};
	write_sections(NULL, job, sections, ARRAY_SIZE(sections), out, colour);
}

void blocks_text(const struct findings *findings, struct buf *out, bool colour)
{
	static section *const sections[] = {section_all_blocks};
	if (findings->n_blocks == 0)
		buf_str(out, "  no code blocks were marked\n");
	write_sections(findings, NULL, sections, ARRAY_SIZE(sections), out, colour);
}
