/* What ran, the headline figures, and what a reader must know of them. */
#include "report/page/job.h"

#include "base/known.h"
#include "base/util.h"
#include "report/parts.h"
#include "report/report.h"
#include "report/warnings.h"

/* ---- what ran ---- */

static void heading(const struct job_page *page)
{
	struct buf *out = page->part.out;
	const struct job_findings *job = page->job;
	buf_str(out, "<h1>");
	if (job->id != NULL) {
		buf_str(out, "Job ");
		part_name(out, job->id);
	} else {
		buf_str(out, "A job");
	}
	if (job->step != NULL) {
		buf_str(out, ", step ");
		part_name(out, job->step);
	}
	if (job->name != NULL && job->name[0] != '\0') {
		buf_str(out, " <span class=\"faint\">");
		part_name(out, job->name);
		buf_str(out, "</span>");
	}
	buf_str(out, "</h1>\n");
}

static void named(struct buf *out, const char *before, const char *name)
{
	if (name == NULL || name[0] == '\0')
		return;
	buf_str(out, before);
	part_name(out, name);
}

static size_t n_incomplete(const struct job_findings *job)
{
	size_t n = 0;
	for (size_t i = 0; i < job->n_ranks; i++)
		n += !job->ranks[i].complete;
	return n;
}

static void subtitle(const struct job_page *page)
{
	struct buf *out = page->part.out;
	const struct job_findings *job = page->job;
	size_t incomplete = n_incomplete(job);
	buf_str(out, "<p class=\"faint\">");
	if (value_ok(job->start_wall_ns)) {
		buf_str(out, "Began ");
		start_time_text(out, job->start_wall_ns);
	}
	named(out, " by ", job->user);
	named(out, " on ", job->cluster);
	named(out, " · started by ", job->launcher);
	if (incomplete > 0)
		buf_printf(out, " · <span class=\"warn\">%zu rank%s not complete</span>", incomplete,
			incomplete == 1 ? "" : "s");
	if (value_ok(job->missing_ranks) && job->missing_ranks > 0)
		buf_printf(out, " · <span class=\"warn\">%lld rank%s missing</span>", (long long)job->missing_ranks,
			job->missing_ranks == 1 ? "" : "s");
	buf_str(out, "</p>\n");
}

/* ---- tiles ---- */

static void energy_tile(const struct job_page *page)
{
	const struct findings *f = &page->job->total;
	struct part_tile tile;
	part_tile_begin(&tile, "Energy");
	part_figure_energy(&tile.figure, f->total_j, f->error_j, f->calibration_error_j);
	if (isnan(f->total_j)) {
		buf_str(&tile.remark, "no rank read a sensor");
	} else {
		part_tag(&tile.remark, f->provenance);
		buf_str(&tile.remark, " each machine once");
		if (page->job->n_nodes_unknown > 0)
			buf_printf(&tile.remark, ", <span class=\"warn\">%zu not known</span>",
				page->job->n_nodes_unknown);
	}
	part_tile_end(&page->part, &tile);
}

static void ranks_energy_tile(const struct job_page *page)
{
	const struct findings *f = &page->job->total;
	if (!(f->total_j > 0))
		return;
	struct part_tile tile;
	part_tile_begin(&tile, "Of it, the job's ranks");
	part_figure_energy(&tile.figure, f->ledger.target_j, f->target_error_j, f->target_calibration_error_j);
	human_percent(&tile.remark, f->ledger.target_j / f->total_j * 100);
	part_tile_end(&page->part, &tile);
}

static double length_s(const struct job_page *page)
{
	return page->time->charts.axis.length_s;
}

static void time_tile(const struct job_page *page)
{
	struct part_tile tile;
	part_tile_begin(&tile, "Time");
	human_time(&tile.figure, length_s(page) > 0 ? length_s(page) : (double)NAN);
	buf_str(&tile.remark, "from the first rank's start to the last one's end");
	job_words_clocks(&tile.remark, page->job);
	part_tile_end(&page->part, &tile);
}

static void ranks_tile(const struct job_page *page)
{
	const struct job_findings *job = page->job;
	struct part_tile tile;
	part_tile_begin(&tile, "Ranks");
	buf_printf(&tile.figure, "%zu", job_sums(job).n);
	if (value_ok(job->missing_ranks) && job->missing_ranks > 0 && job->n_steps < 2)
		buf_printf(&tile.remark, "of %lld, ", (long long)job->world_size);
	if (job->n_steps > 1)
		buf_printf(&tile.remark, "in %zu steps together, ", job->n_steps);
	buf_printf(&tile.remark, "on %zu node%s", job->n_nodes, job->n_nodes == 1 ? "" : "s");
	part_tile_end(&page->part, &tile);
}

static void power_tile(const struct job_page *page)
{
	double sum_w = (double)NAN;
	for (size_t i = 0; i < page->job->n_nodes; i++)
		if (page->job->nodes[i].same_machine_as < 0)
			sum_w = add_known(sum_w, page->job->nodes[i].mean_w);
	if (isnan(sum_w))
		return;
	struct part_tile tile;
	part_tile_begin(&tile, "Mean power");
	human_power(&tile.figure, sum_w);
	buf_str(&tile.remark, "the nodes' means added up, each while it was measured");
	part_tile_end(&page->part, &tile);
}

static void waiting_tile(const struct job_page *page)
{
	const struct job_findings *job = page->job;
	const struct job_sums sums = job_sums(job);
	if (isnan(sums.waiting_s) || !(sums.duration_s > 0))
		return;
	struct part_tile tile;
	part_tile_begin(&tile, "Lost waiting");
	human_percent(&tile.figure, sums.waiting_s / sums.duration_s * 100);
	buf_str(&tile.remark, "of the ranks' time");
	if (isfinite(job->waiting_j)) {
		buf_str(&tile.remark, ", ");
		human_energy(&tile.remark, job->waiting_j);
	}
	part_tile_end(&page->part, &tile);
}

static void cpu_tile(const struct job_page *page)
{
	double cpu_s = page->job->total.target_cpu_s, ran_s = job_sums(page->job).duration_s;
	struct part_tile tile;
	part_tile_begin(&tile, "CPU time");
	human_time(&tile.figure, cpu_s);
	if (ran_s > 0 && isfinite(cpu_s)) {
		human_number(&tile.remark, cpu_s / ran_s, 3);
		buf_str(&tile.remark, " cores busy a rank");
	}
	part_tile_end(&page->part, &tile);
}

static void gpus_tile(const struct job_page *page)
{
	const struct findings *f = &page->job->total;
	double energy_j = 0, busy = 0;
	if (f->n_gpus == 0)
		return;
	for (size_t i = 0; i < f->n_gpus; i++) {
		energy_j += f->gpus[i].energy_j;
		busy += f->gpus[i].mean_utilization_percent / (double)f->n_gpus;
	}
	struct part_tile tile;
	part_tile_begin(&tile, "GPUs");
	human_energy(&tile.figure, energy_j);
	buf_printf(&tile.remark, "%zu of them", f->n_gpus);
	if (isfinite(busy)) {
		buf_str(&tile.remark, ", busy ");
		human_percent(&tile.remark, busy);
	}
	part_tile_end(&page->part, &tile);
}

static void carbon_tile(const struct job_page *page)
{
	const struct findings *f = &page->job->total;
	if (!isfinite(f->carbon_g))
		return;
	struct part_tile tile;
	part_tile_begin(&tile, "Emissions");
	human_grams(&tile.figure, f->carbon_g);
	buf_str(&tile.remark, "CO<sub>2</sub>e");
	part_tile_end(&page->part, &tile);
}

static void self_tile(const struct job_page *page)
{
	const struct findings *f = &page->job->total;
	if (!isfinite(f->self_cpu_s))
		return;
	struct part_tile tile;
	part_tile_begin(&tile, "The meters themselves");
	if (isfinite(f->self_energy_j))
		human_energy(&tile.figure, f->self_energy_j);
	else
		human_time(&tile.figure, f->self_cpu_s);
	human_time(&tile.remark, f->self_cpu_s);
	buf_str(&tile.remark, " CPU, of all ranks");
	part_tile_end(&page->part, &tile);
}

void job_head(const struct job_page *page)
{
	static void (*const tiles[])(const struct job_page *) = {energy_tile, ranks_energy_tile, power_tile, time_tile,
		ranks_tile, waiting_tile, cpu_tile, gpus_tile, carbon_tile, self_tile};
	heading(page);
	subtitle(page);
	buf_str(page->part.out, "<dl class=\"tiles\">\n");
	for (size_t i = 0; i < ARRAY_SIZE(tiles); i++)
		tiles[i](page);
	buf_str(page->part.out, "</dl>\n");
	if (isfinite(page->job->total.error_j))
		buf_str(page->part.out,
			"<p class=\"faint small\">± is half of a 95 % interval. A machine's energy counts once, whichever of its "
			"ranks has read it; what a rank took is its share of that.</p>\n");
	part_calibration(page->part.out, &page->job->total);
	struct part_notes notes = {.out = page->part.out};
	for (size_t i = 0; i < page->job->n_warnings; i++)
		part_note(&notes, page->job->warnings[i]);
	report_warnings_of_sums(&page->job->total, part_note, &notes);
	part_notes_end(&notes);
}
