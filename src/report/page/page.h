/* Pages of HTML that need nothing from anywhere: `report --format html` of a run and of a job, `compare --format html`. One file, its script, its style and
 * its data inside, under a Content-Security-Policy that lets nothing else run or load. Pure.
 *
 * What is inside: page_frame.c has head, style, script (embedded at build, assets.h) and their hashes; a file each makes a part of the body as
 * plain HTML that is readable without the script; the charts' data is one JSON block; the script draws and sorts, it computes nothing. */
#pragma once

#include "analysis/chart/chart.h"
#include "analysis/compare/compare.h"
#include "base/buf.h"

void page_report(const struct charts *charts, struct buf *out);

struct page_run { // one of those that are compared
	const char *name;
	const struct charts *charts; // NULL: it is no run file but saved results
};
void page_compare(const struct comparison *comparison, const struct page_run *runs, size_t n_runs,
	const char *statistic, struct buf *out);

struct job_findings;
void page_job(const struct job_findings *job, struct buf *out); // `report DIR --format html`

/* ---- for whoever makes a page in the same look: wattle serve ---- */
enum page_script { PAGE_SCRIPT_NONE, PAGE_SCRIPT_REPORT, PAGE_SCRIPT_COMPARE, PAGE_SCRIPT_JOB, PAGE_SCRIPT_LIVE };
// Doctype up to and including <main>; `connect`: the page may fetch from where it came from ('self'), for the live page.
void page_begin(struct buf *out, const char *title, enum page_script script, bool connect);
void page_end(struct buf *out, enum page_script script);
// The Content-Security-Policy of such a page; serve sends it as a header as well.
void page_policy(struct buf *out, enum page_script script, bool connect);
