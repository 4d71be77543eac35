/* What was run, the headline figures, and what a reader must know of them. */
#include "report/page/part.h"

#include "analysis/facts.h"
#include "base/util.h"
#include "report/html.h"
#include "report/parts.h"
#include "report/report.h"
#include "report/warnings.h"
#include "report/words.h"

#include <stdio.h>
#include <string.h>

enum { COMMAND_SHOWN = 240, COMMAND_CEILING = 1 << 22 };

/* ---- what was run ---- */

static void command_heading(const struct part *part)
{
	struct buf command;
	buf_init(&command, COMMAND_CEILING);
	command_text(&command, report_segment(part->run));
	const char *label = run_fact(part->run, FACT_LABEL);
	buf_str(part->out, "<h1>");
	if (label != NULL && label[0] != '\0')
		part_name(part->out, label);
	else if (command.size > 0 && command.size <= COMMAND_SHOWN) {
		buf_str(part->out, "<code><bdi>");
		html_text(part->out, command.data);
		buf_str(part->out, "</bdi></code>");
	} else if (command.size > 0) {
		buf_str(part->out, "<code>");
		part_name(part->out, command.data);
		buf_str(part->out, "</code>");
	} else {
		buf_str(part->out, "A run without a command");
	}
	buf_str(part->out, "</h1>\n");
	buf_finish(&command);
}

static void subtitle(const struct part *part)
{
	const struct run_segment *segment = report_segment(part->run);
	const char *host = run_fact(part->run, FACT_HOST);
	struct buf ended;
	buf_init(&ended, 64);
	words_ending(&ended, segment);
	buf_str(part->out, "<p class=\"faint\">");
	if (segment != NULL && value_ok(part->run->segments[0].wall_start_ns)) {
		buf_str(part->out, "Began ");
		start_time_text(part->out, part->run->segments[0].wall_start_ns);
	}
	if (host != NULL) {
		buf_str(part->out, " on ");
		part_name(part->out, host);
	}
	if (ended.size > 0)
		buf_printf(part->out, " · <span%s>%s</span>", segment->exit_code != 0 ? " class=\"warn\"" : "",
			ended.data);
	if (!part->f->complete)
		buf_str(part->out, " · <span class=\"warn\">not complete</span>");
	buf_str(part->out, "</p>\n");
	buf_finish(&ended);
}

/* ---- tiles ---- */

static void energy_tile(const struct part *part)
{
	const struct findings *f = part->f;
	struct part_tile tile;
	part_tile_begin(&tile, "Energy");
	part_figure_energy(&tile.figure, f->total_j, f->error_j, f->calibration_error_j);
	if (isnan(f->total_j)) {
		buf_str(&tile.remark, f->n_domains == 0 ? "no sensor could be read" : "no sensor gave a reading");
	} else {
		struct buf sources;
		buf_init(&sources, 512);
		words_sources(&sources, f);
		part_tag(&tile.remark, f->provenance);
		buf_char(&tile.remark, ' ');
		const char *by = strstr(sources.data, "by ");
		html_text(&tile.remark, by != NULL ? by : "");
		buf_finish(&sources);
	}
	part_tile_end(part, &tile);
}

static void target_tile(const struct part *part)
{
	const struct findings *f = part->f;
	if (!(f->total_j > 0))
		return;
	struct part_tile tile;
	part_tile_begin(&tile, "Of it, this program");
	part_figure_energy(&tile.figure, f->ledger.target_j, f->target_error_j, f->target_calibration_error_j);
	human_percent(&tile.remark, f->ledger.target_j / f->total_j * 100);
	struct mean_power power = findings_mean_power(f);
	if (f->duration_s > 0) {
		buf_str(&tile.remark, ", ");
		human_power(&tile.remark, power.target_w);
		buf_str(&tile.remark, power.of_part ? " while read" : " on average");
	}
	part_tile_end(part, &tile);
}

static void power_tile(const struct part *part)
{
	const struct findings *f = part->f;
	if (!(f->total_j >= 0) || !(f->duration_s > 0))
		return;
	struct part_tile tile;
	const struct chart *power = charts_find(part->charts, "power");
	double peak_w = NAN;
	for (size_t i = 0; power != NULL && i < power->n_series; i++)
		if (power->series[i].line == CHART_WHOLE)
			peak_w = power->series[i].highest;
	part_tile_begin(&tile, "Mean power");
	human_power(&tile.figure, findings_mean_power(f).total_w);
	if (isfinite(peak_w)) {
		buf_str(&tile.remark, "at most ");
		human_power(&tile.remark, peak_w);
	}
	part_tile_end(part, &tile);
}

static void time_tile(const struct part *part)
{
	const struct findings *f = part->f;
	double interval_s = run_fact_double(f->run, FACT_INTERVAL) / 1e9;
	struct part_tile tile;
	part_tile_begin(&tile, "Time");
	human_time(&tile.figure, f->duration_s);
	if (value_ok(f->samples))
		buf_printf(&tile.remark, "%lld sample%s", (long long)f->samples, f->samples == 1 ? "" : "s");
	if (interval_s > 0) {
		buf_str(&tile.remark, ", one every ");
		human_time(&tile.remark, interval_s);
	}
	if (f->run->n_segments > 1)
		buf_printf(&tile.remark, ", in %zu segments", f->run->n_segments);
	part_tile_end(part, &tile);
}

static void step_tile(const struct part *part)
{
	const struct findings *f = part->f;
	const char *name = run_fact(f->run, FACT_STEP);
	for (size_t i = 0; name != NULL && i < f->n_blocks; i++) {
		const struct block_finding *step = &f->blocks[i];
		if (strcmp(step->name, name) != 0 || step->calls == 0)
			continue;
		struct part_tile tile;
		double calls = (double)step->calls;
		part_tile_begin(&tile, "Each step");
		part_figure_energy(&tile.figure, step->resolved ? step->total_j / calls : (double)NAN,
			step->error_j / calls, findings_block_calibration_j(f, step) / calls);
		human_time(&tile.remark, step->compute_time_s.mean);
		buf_printf(&tile.remark, ", %lld × ", (long long)step->calls);
		part_name(&tile.remark, name);
		part_tile_end(part, &tile);
	}
}

static void cpu_tile(const struct part *part)
{
	const struct findings *f = part->f;
	double cores = f->target_cpu_s / f->duration_s;
	struct part_tile tile;
	part_tile_begin(&tile, "CPU time");
	human_time(&tile.figure, f->target_cpu_s);
	if (isfinite(cores)) {
		human_number(&tile.remark, cores, 3);
		if (value_ok(f->usage.system_core_count))
			buf_printf(&tile.remark, " of %lld", (long long)f->usage.system_core_count);
		buf_str(&tile.remark, " cores busy");
	}
	if (value_ok(f->processes_seen))
		buf_printf(&tile.remark, "%s%lld process%s", tile.remark.size > 0 ? ", " : "",
			(long long)f->processes_seen, f->processes_seen == 1 ? "" : "es");
	part_tile_end(part, &tile);
}

static void memory_tile(const struct part *part)
{
	const struct findings *f = part->f;
	struct part_tile tile;
	part_tile_begin(&tile, "Peak memory");
	if (isnan(f->usage.combined.total_bytes))
		buf_str(&tile.figure, "n/a");
	else
		human_bytes(&tile.figure, f->usage.combined.total_bytes);
	if (!isnan(f->usage.ram_capacity_bytes)) {
		buf_str(&tile.remark, "of ");
		human_bytes(&tile.remark, f->usage.ram_capacity_bytes);
	}
	part_tile_end(part, &tile);
}

static void gpus_tile(const struct part *part)
{
	const struct findings *f = part->f;
	double energy_j = 0, busy = 0, peak_bytes = 0;
	if (f->n_gpus == 0)
		return;
	for (size_t i = 0; i < f->n_gpus; i++) {
		energy_j += f->gpus[i].energy_j;
		busy += f->gpus[i].mean_utilization_percent / (double)f->n_gpus;
		peak_bytes += value_to_double(f->gpus[i].target_max_memory_bytes, 1);
	}
	struct part_tile tile;
	char title[32] = "GPU";
	if (f->n_gpus > 1)
		snprintf(title, sizeof(title), "%zu GPUs", f->n_gpus);
	part_tile_begin(&tile, title);
	human_energy(&tile.figure, energy_j);
	if (isfinite(busy)) {
		buf_str(&tile.remark, "busy ");
		human_percent(&tile.remark, busy);
	}
	if (isfinite(peak_bytes)) {
		buf_str(&tile.remark, tile.remark.size > 0 ? ", " : "");
		human_bytes(&tile.remark, peak_bytes);
		buf_str(&tile.remark, f->n_gpus == 1 ? " used" : " used at most, added up");
	}
	part_tile_end(part, &tile);
}

static void carbon_tile(const struct part *part)
{
	const struct findings *f = part->f;
	if (isnan(f->carbon_g))
		return;
	struct part_tile tile;
	part_tile_begin(&tile, "Emissions");
	human_grams(&tile.figure, f->carbon_g);
	buf_str(&tile.remark, "CO<sub>2</sub>e");
	if (isfinite(f->pue) && f->pue != 1) {
		buf_str(&tile.remark, ", of ");
		human_energy(&tile.remark, f->facility_j);
		buf_str(&tile.remark, " with a PUE of ");
		human_number(&tile.remark, f->pue, 3);
	}
	part_tile_end(part, &tile);
}

static void self_tile(const struct part *part)
{
	const struct findings *f = part->f;
	struct part_tile tile;
	part_tile_begin(&tile, "The meter itself");
	if (isfinite(f->self_energy_j))
		human_energy(&tile.figure, f->self_energy_j);
	else
		human_time(&tile.figure, f->self_cpu_s);
	if (isfinite(f->self_cpu_s)) {
		if (isfinite(f->self_energy_j)) // else the figure is this time
			human_time(&tile.remark, f->self_cpu_s);
		buf_str(&tile.remark, isfinite(f->self_energy_j) ? " CPU" : "of CPU time");
	}
	if (f->self_cpu_percent <= 100) { // else the run was shorter than getting ready for it
		buf_str(&tile.remark, ", ");
		human_number(&tile.remark, f->self_cpu_percent, 2);
		buf_str(&tile.remark, " % of a core");
	}
	part_tile_end(part, &tile);
}

void section_head(const struct part *part)
{
	static void (*const tiles[])(const struct part *) = {energy_tile, target_tile, power_tile, time_tile, step_tile,
		cpu_tile, memory_tile, gpus_tile, carbon_tile, self_tile};
	command_heading(part);
	subtitle(part);
	buf_str(part->out, "<dl class=\"tiles\">\n");
	for (size_t i = 0; i < ARRAY_SIZE(tiles); i++)
		tiles[i](part);
	buf_str(part->out, "</dl>\n");
	if (isfinite(part->f->error_j))
		buf_str(part->out,
			"<p class=\"faint small\">± is half of a 95 % interval. Energy is of the whole machine as far as it "
			"is metered; attribution to programs has an error of its own, which is in theirs.</p>\n");
	part_calibration(part->out, part->f);
	struct part_notes notes = {.out = part->out};
	report_warnings(part->f, part_note, &notes);
	part_notes_end(&notes);
}
