/* Energy by domain of each node, its GPUs, and what is known of the job itself. */
#include "report/page/job.h"

#include "analysis/facts.h"
#include "base/util.h"
#include "report/html.h"
#include "report/report.h"
#include "report/words.h"

#include <string.h>

enum { ROWS_MAX = 3000, FILES_MAX = 200 };

static void on_node(const struct job_page *page, size_t node)
{
	buf_str(page->part.out, "<td class=\"text\">");
	job_node_name(page->part.out, page, node);
	buf_str(page->part.out, "</td>");
}

static void name_cell(struct buf *out, const struct run_device *device)
{
	buf_str(out, "<th scope=\"row\" class=\"name\">");
	part_name(out, device->name);
	if (device->device[0] != '\0') {
		buf_str(out, " <span class=\"faint small\">");
		part_name(out, device->device);
		buf_str(out, "</span>");
	}
	buf_str(out, "</th>");
}

static void left_out(struct buf *out, size_t all, size_t shown)
{
	if (all > shown)
		buf_printf(out, "<p class=\"faint small\">… and %zu more, which the JSON report has.</p>\n",
			all - shown);
}

/* ---- domains ---- */

static void domain_row(const struct job_page *page, size_t number)
{
	struct buf *out = page->part.out;
	const struct domain_finding *d = &page->job->total.domains[number];
	struct buf words;
	buf_init(&words, 1 << 12);
	words_method(&words, d->attribution);
	buf_printf(out, "<tr%s>", d->in_total ? "" : " class=\"beside\"");
	name_cell(out, d->device);
	on_node(page, page->job->domain_node[number]);
	part_cell_energy(out, d->energy_j, d->error_j);
	if (words_has_calibration(&page->job->total))
		part_cell(out, d->calibration_error_j, human_error);
	part_cell_energy(out, d->ledger.target_j, d->target_error_j);
	part_cell(out, d->mean_w, human_power);
	part_cell(out, d->max_w, human_power);
	part_cell_count(out, d->wraps);
	part_cell_count(out, d->gaps);
	buf_str(out, "<td class=\"text\">");
	html_text(out, d->device->source);
	buf_char(out, ' ');
	part_tag(out, d->provenance);
	buf_str(out, "</td><td class=\"text\">");
	html_text(out, words.data);
	buf_str(out, "</td></tr>\n");
	buf_finish(&words);
}

static void domains(const struct job_page *page)
{
	static const struct part_column all[] = {{"domain", "name"}, {"node", "text"}, {"energy"}, {"calibration"},
		{"the job's ranks"}, {"mean"}, {"at most"}, {"wraps"}, {"gaps"}, {"source", "text"},
		{"divided by", "text"}};
	const struct findings *f = &page->job->total;
	struct part_column columns[ARRAY_SIZE(all)];
	size_t n = part_columns_but(all, ARRAY_SIZE(all), words_has_calibration(f) ? NULL : "calibration", columns);
	size_t shown = f->n_domains < ROWS_MAX ? f->n_domains : ROWS_MAX;
	bool any_beside = false;
	if (f->n_domains == 0)
		return;
	buf_str(page->part.out, "<section>\n");
	part_title(&page->part, "domains", "Energy by domain");
	part_table_begin(&page->part, "domains-table", NULL, columns, n, f->n_domains > 1);
	for (size_t i = 0; i < shown; i++) {
		domain_row(page, i);
		any_beside |= !f->domains[i].in_total;
	}
	part_table_end(&page->part);
	job_paper(page, shown, 14);
	left_out(page->part.out, f->n_domains, shown);
	if (any_beside)
		buf_str(page->part.out,
			"<p class=\"faint small\">Grey rows are shown, not added: they overlap the others.</p>\n");
	buf_str(page->part.out, "</section>\n");
}

/* ---- GPUs ---- */

static void gpu_row(const struct job_page *page, size_t number)
{
	struct buf *out = page->part.out;
	const struct gpu_finding *gpu = &page->job->total.gpus[number];
	buf_str(out, "<tr>");
	name_cell(out, gpu->device);
	on_node(page, page->job->gpu_node[number]);
	part_cell(out, gpu->energy_j, human_energy);
	part_cell(out, gpu->mean_w, human_power);
	part_cell(out, gpu->max_w, human_power);
	part_cell(out, gpu->mean_utilization_percent, human_percent);
	part_cell(out, gpu->target_mean_utilization_percent, human_percent);
	part_cell(out, value_to_double(gpu->target_max_memory_bytes, 1), human_bytes);
	part_cell(out, gpu->max_temperature_c, human_celsius);
	part_cell(out, gpu->throttled_s, human_short_time);
	buf_str(out, "</tr>\n");
}

static void gpus(const struct job_page *page)
{
	static const struct part_column columns[] = {{"GPU", "name"}, {"node", "text"}, {"energy"}, {"mean"},
		{"at most"}, {"busy"}, {"by the job"}, {"its memory"}, {"hottest"}, {"throttled"}};
	const struct findings *f = &page->job->total;
	size_t shown = f->n_gpus < ROWS_MAX ? f->n_gpus : ROWS_MAX;
	if (f->n_gpus == 0)
		return;
	buf_str(page->part.out, "<section>\n");
	part_title(&page->part, "gpus", "GPUs");
	part_table_begin(&page->part, "gpus-table", NULL, columns, ARRAY_SIZE(columns), f->n_gpus > 1);
	for (size_t i = 0; i < shown; i++)
		gpu_row(page, i);
	part_table_end(&page->part);
	job_paper(page, shown, 10);
	left_out(page->part.out, f->n_gpus, shown);
	buf_str(page->part.out, "</section>\n");
}

void job_domains(const struct job_page *page)
{
	domains(page);
	gpus(page);
}

/* ---- the job itself ---- */

static void fact(struct buf *out, const char *name, const char *value)
{
	if (value == NULL || value[0] == '\0')
		return;
	buf_printf(out, "<dt>%s</dt><dd>", name);
	part_name(out, value);
	buf_str(out, "</dd>\n");
}

static void count(struct buf *out, const char *name, int64_t value)
{
	if (value_ok(value))
		buf_printf(out, "<dt>%s</dt><dd>%lld</dd>\n", name, (long long)value);
}

static void recordings(const struct job_page *page)
{
	const struct job_runs *runs = page->job->runs;
	struct buf *out = page->part.out;
	buf_printf(out, "<dt>recordings</dt><dd class=\"long\">%zu: ", runs->n);
	for (size_t i = 0; i < runs->n && i < FILES_MAX; i++) {
		buf_str(out, i > 0 ? ", " : "");
		const char *where = runs->runs[i].where, *slash = where != NULL ? strrchr(where, '/') : NULL;
		part_name(out, slash != NULL ? slash + 1 : where); // they lie in one folder
	}
	buf_str(out, runs->n > FILES_MAX ? " …</dd>\n" : "</dd>\n");
}

void job_about(const struct job_page *page)
{
	const struct job_findings *job = page->job;
	struct buf *out = page->part.out;
	buf_str(out, "<section>\n");
	part_title(&page->part, "about", "About this job");
	buf_str(out, "<dl class=\"facts\">\n");
	fact(out, "id", job->id);
	fact(out, "name", job->name);
	fact(out, "user", job->user);
	fact(out, "cluster", job->cluster);
	fact(out, "started by", job->launcher);
	fact(out, "step", job->step);
	count(out, "world size", job->world_size);
	count(out, "nodes it asked for", job->n_nodes_said);
	recordings(page);
	if (job->runs->every_ns > 0) {
		buf_str(out, "<dt>read</dt><dd>one sample every ");
		human_time(out, (double)job->runs->every_ns / 1e9);
		buf_str(out, " of those that there are: energies keep their sums, their course is coarser</dd>\n");
	}
	for (size_t i = 0; i < job->runs->n_problems; i++)
		fact(out, "not read", job->runs->problems[i]);
	buf_str(out, "</dl>\n</section>\n");
}
