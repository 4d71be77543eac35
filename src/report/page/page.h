/* Self-contained HTML pages: `report --format html` of a run or a job, `compare --format html`. Each is one file that
 * contains its script, style and data; its Content-Security-Policy blocks everything else. Pure.
 *
 * page_frame.c writes head, style, script (embedded at build time, assets.h) and their hashes. One file per section writes
 * plain HTML that is readable without the script. The charts' data are one JSON block. The script draws and sorts; it
 * computes no figures. */
#pragma once

#include "analysis/chart/chart.h"
#include "analysis/compare/compare.h"
#include "base/buf.h"

void page_report(const struct charts *charts, struct buf *out);

struct page_run { // a run to compare
	const char *name;
	const struct charts *charts; // NULL: saved results instead of a run file
};
void page_compare(const struct comparison *comparison, const struct page_run *runs, size_t n_runs,
	const char *statistic, struct buf *out);

struct job_findings;
void page_job(const struct job_findings *job, struct buf *out); // `report DIR --format html`

/* ---- frame for other pages of the same design: wattle serve ---- */
enum page_script { PAGE_SCRIPT_NONE, PAGE_SCRIPT_REPORT, PAGE_SCRIPT_COMPARE, PAGE_SCRIPT_JOB, PAGE_SCRIPT_LIVE };
// Writes everything up to and including <main>. connect: allows fetches from the page's own origin ('self'), for the live
// page.
void page_begin(struct buf *out, const char *title, enum page_script script, bool connect);
void page_end(struct buf *out, enum page_script script);
// Writes the page's Content-Security-Policy; serve also sends it as a header.
void page_policy(struct buf *out, enum page_script script, bool connect);
