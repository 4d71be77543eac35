/* HTML reports of a run and of a job. */
#include "report/page/page.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "report/section/sections.h"

#include <errno.h>

enum { TITLE_CEILING = 1 << 22, TITLE_SHOWN = 80 };

typedef void section(const struct part *part);

// Page title: the label, else the command.
static void run_title(const struct part *part, struct buf *out)
{
	const char *label = run_metadata(part->run, META_KEY_LABEL);
	struct buf command;
	buf_init(&command, TITLE_CEILING);
	command_text(&command, report_segment(part->run));
	const char *text = label != NULL && label[0] != '\0' ? label : command.size > 0 ? command.data : "a run";
	size_t size = strlen(text), cut = size < TITLE_SHOWN ? size : TITLE_SHOWN;
	while (cut < size && cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80)
		cut--;
	buf_add(out, text, cut);
	buf_str(out, cut < size ? "…" : "");
	buf_finish(&command);
}

static void job_title(const struct job_findings *job, struct buf *out)
{
	if (job->id != NULL)
		buf_printf(out, "job %.100s", job->id);
	else
		buf_str(out, "a job");
	if (job->name != NULL && job->name[0] != '\0')
		buf_printf(out, ", %.100s", job->name);
}

// Remark that explains the errors and the attribution.
static void error_remark(const struct part *part)
{
	if (isfinite(part->f->error_j))
		html_section_note(part,
			part->job != NULL
				? "± is half of a 95 % interval. A machine's energy counts once, whichever rank read "
				  "its sensors; a rank's energy is its share of that."
				: "± is half of a 95 % interval. Energy covers all measured domains of the machine. The error of a "
				  "program includes that of attribution.");
	html_section_text(part, phrase_calibration);
}

static void write_page(const struct findings *findings, const struct job_findings *job, const struct charts *charts,
	const struct job_charts *time, struct buf *out)
{
	static section *const of_run[] = {part_heading, part_headline, error_remark, part_warnings, section_ledger,
		section_time, section_blocks, section_flame, section_layers, section_tune, section_domains,
		section_gpus, section_metrics, section_processes, section_about, section_events};
	static section *const of_job[] = {part_heading, part_headline, error_remark, part_warnings, section_balance,
		section_time, section_heat, section_nodes, section_ranks, section_blocks, section_domains, section_gpus,
		section_about};
	enum page_script script = job != NULL ? PAGE_SCRIPT_JOB : PAGE_SCRIPT_REPORT;
	struct document document;
	struct buf title;
	int r = document_make(findings, job, &document);
	if (r < 0) {
		out->failed = r;
		return;
	}
	document.charts = charts;
	const struct part part = {.out = out,
		.document = &document,
		.f = document.findings,
		.run = document.run,
		.job = job,
		.charts = charts,
		.time = time};
	buf_init(&title, TITLE_CEILING);
	if (job != NULL)
		job_title(job, &title);
	else
		run_title(&part, &title);
	buf_str(&title, " · wattle");
	page_begin(out, title.data, script, false);
	for (size_t i = 0; i < (job != NULL ? ARRAY_SIZE(of_job) : ARRAY_SIZE(of_run)); i++)
		(job != NULL ? of_job : of_run)[i](&part);
	page_end(out, script);
	buf_finish(&title);
	document_finish(&document);
}

void page_report(const struct charts *charts, struct buf *out)
{
	write_page(charts->findings, NULL, charts, NULL, out);
}

void page_job(const struct job_findings *job, struct buf *out)
{
	struct job_charts time;
	if (charts_of_job(job, &time) < 0) {
		out->failed = -ENOMEM;
		return;
	}
	write_page(NULL, job, &time.charts, &time, out);
	charts_of_job_finish(&time);
}
