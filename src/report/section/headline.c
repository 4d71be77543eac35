/* Command and headline figures: lines on a terminal, tiles on a page. */
#include "report/section/sections.h"

#include "analysis/metadata_keys.h"
#include "base/util.h"
#include "energy/slice.h"
#include "report/format_helpers.h"
#include "report/html.h"
#include "report/phrases.h"
#include "report/report.h"

#include <stdio.h>
#include <string.h>

enum { BRIEF_GPUS_MAX = 2, BRIEF_NAME_COLUMNS = 20, COMMAND_CEILING = 1 << 22, COMMAND_SHOWN = 240 };

/* ---- command ---- */

static void text_command(const struct part *part, const char *command, const char *ended)
{
	size_t line_start = part->out->size, ended_size = strlen(ended);
	size_t capacity = TEXT_WIDTH - 2 - ended_size - (ended_size > 0 ? 2 : 0);
	buf_str(part->out, part->style->title);
	size_t escape = part->out->size - line_start;
	buf_str(part->out, "  ");
	text_fit(part->out, command, capacity - 2, false);
	buf_str(part->out, part->style->off);
	escape += strlen(part->style->off);
	if (ended_size > 0) {
		bool failed = report_segment(part->run)->exit_code != 0;
		buf_pad_to(part->out, line_start, TEXT_WIDTH - 2 + escape - ended_size);
		buf_printf(part->out, "%s%s%s", failed ? part->style->bad : part->style->good, ended, part->style->off);
	}
	buf_str(part->out, "\n\n");
}

static void page_command(const struct part *part, const char *command)
{
	const char *label = run_metadata(part->run, META_KEY_LABEL);
	buf_str(part->out, "<h1>");
	if (label != NULL && label[0] != '\0') {
		part_name(part->out, label);
	} else if (command[0] == '\0') {
		buf_str(part->out, "A run without a command");
	} else if (strlen(command) <= COMMAND_SHOWN) {
		buf_str(part->out, "<code><bdi>");
		html_text(part->out, command);
		buf_str(part->out, "</bdi></code>");
	} else {
		buf_str(part->out, "<code>");
		part_name(part->out, command);
		buf_str(part->out, "</code>");
	}
	buf_str(part->out, "</h1>\n");
}

static void page_subtitle(const struct part *part, const char *ended)
{
	const char *host = run_metadata(part->run, META_KEY_HOST);
	buf_str(part->out, "<p class=\"faint\">");
	if (value_ok(part->document->start_wall_ns)) {
		buf_str(part->out, "Began ");
		start_time_text(part->out, part->document->start_wall_ns);
	}
	if (host != NULL) {
		buf_str(part->out, " on ");
		part_name(part->out, host);
	}
	if (ended[0] != '\0')
		buf_printf(part->out, " · <span%s>%s</span>",
			report_segment(part->run)->exit_code != 0 ? " class=\"warn\"" : "", ended);
	if (!part->f->complete)
		buf_str(part->out, " · <span class=\"warn\">not complete</span>");
	buf_str(part->out, "</p>\n");
}

static void run_heading(const struct part *part)
{
	struct buf command, ended;
	buf_init(&command, COMMAND_CEILING);
	buf_init(&ended, 64);
	buf_str(&command, "");
	buf_str(&ended, "");
	command_text(&command, report_segment(part->run));
	phrase_ending(&ended, report_segment(part->run));
	if (is_page(part)) {
		page_command(part, command.failed == 0 ? command.data : "");
		page_subtitle(part, ended.data);
	} else if (command.size > 0 && command.failed == 0) {
		text_command(part, command.data, ended.data);
	}
	buf_finish(&command);
	buf_finish(&ended);
}

// Writes problems of the ranks in the warning colour.
static void page_missing(const struct part *part)
{
	const struct job_findings *job = part->job;
	size_t incomplete = 0;
	for (size_t i = 0; i < job->n_ranks; i++)
		incomplete += !job->ranks[i].complete;
	if (incomplete > 0)
		buf_printf(part->out, " · <span class=\"warn\">%zu rank%s not complete</span>", incomplete,
			incomplete == 1 ? "" : "s");
	if (value_ok(job->missing_ranks) && job->missing_ranks > 0)
		buf_printf(part->out, " · <span class=\"warn\">%lld rank%s missing</span>",
			(long long)job->missing_ranks, job->missing_ranks == 1 ? "" : "s");
}

static void job_line(const struct part *part, const struct buf *words, const char *style, const char *element)
{
	if (words->failed != 0 || words->size == 0)
		return;
	if (!is_page(part)) {
		buf_printf(part->out, "%s  ", style);
		text_fit(part->out, words->data, TEXT_WIDTH - 4, false);
		buf_printf(part->out, "%s\n", part->style->off);
		return;
	}
	buf_printf(part->out, "<%s>", element);
	html_text(part->out, words->data);
}

static void job_heading(const struct part *part)
{
	struct buf words;
	buf_init(&words, LINE_CEILING);
	job_phrase_title(&words, part->job);
	job_line(part, &words, is_page(part) ? "" : part->style->title, "h1");
	buf_str(part->out, is_page(part) ? "</h1>\n" : "");
	buf_clear(&words);
	job_phrase_node(&words, part->job);
	if (is_page(part) && words.size == 0)
		buf_char(&words, ' ');
	job_line(part, &words, is_page(part) ? "" : part->style->faint, "p class=\"faint\"");
	if (is_page(part))
		page_missing(part);
	buf_str(part->out, is_page(part) ? "</p>\n" : "\n");
	buf_finish(&words);
}

void part_heading(const struct part *part)
{
	(part->job != NULL ? job_heading : run_heading)(part);
}

/* ---- the figures ---- */

static void job_of_rank(const struct part *part, const char *label)
{
	if (!rank_in_job(part->run))
		return;
	const char *id = run_metadata(part->run, META_KEY_JOB_ID), *name = run_metadata(part->run, META_KEY_JOB_NAME);
	struct figure_line line;
	struct buf words;
	line_begin(&line, part, label);
	buf_init(&words, LINE_CEILING);
	rank_phrase(&words, part->run);
	text_fit_middle(&line.value, id != NULL ? id : "n/a", REMARK_COLUMN - VALUE_COLUMN - 2);
	if (words.failed == 0 && words.size > 0)
		text_fit(line_also(&line), words.data, LINE_CEILING / 16, false);
	if (name != NULL)
		text_fit(line_also(&line), name, REMARK_COLUMN, false);
	buf_finish(&words);
	line_end(&line);
}

static void samples_text(struct figure_line *line, const struct findings *f)
{
	double interval_s = run_metadata_double(f->run, META_KEY_INTERVAL) / 1e9;
	if (value_ok(f->samples)) {
		line_count(line_also(line), f->samples, "sample", "s");
		if (interval_s > 0) {
			buf_str(line_also(line), "one every ");
			human_time(&line->note, interval_s);
		}
	}
	if (f->run->n_segments > 1)
		buf_printf(line_also(line), "in %zu segments", f->run->n_segments);
}

static void time_line(const struct part *part, const char *label)
{
	const struct job_findings *job = part->job;
	struct figure_line line;
	line_begin(&line, part, label);
	human_time(&line.value, part->f->duration_s);
	if (job == NULL) {
		samples_text(&line, part->f);
	} else {
		job_phrase_ranks(&line.note, job);
		job_phrase_pauses(&line.note, job);
		job_phrase_clocks(&line.note, job);
		if (job->runs->every_ns > 0) {
			buf_str(line_also(&line), "samples read every ");
			human_time(&line.note, (double)job->runs->every_ns / 1e9);
		}
	}
	line_end(&line);
}

static const char *why_no_energy(const struct part *part)
{
	const struct findings *f = part->f;
	for (size_t i = 0; i < f->n_domains && part->job == NULL; i++)
		if (sensor_owner_first_other(f->run, f->domains[i].device) != NULL)
			return "another rank of this job read the sensors";
	return f->n_domains == 0 ? "no sensor could be read" : "no sensor reported a value";
}

// " (DE 2023)": the country and the year of the carbon intensity.
static void carbon_region_note(struct buf *note, const struct run *run)
{
	const char *region = run_metadata(run, META_KEY_CARBON_REGION), *year = run_metadata(run, META_KEY_CARBON_YEAR);
	if (region != NULL)
		buf_printf(note, " (%s%s%s)", region, year != NULL ? " " : "", year != NULL ? year : "");
}

static void energy_line(const struct part *part, const char *label)
{
	const struct findings *f = part->f;
	struct figure_line line;
	line_begin(&line, part, label);
	human_energy(&line.value, f->total_j);
	if (isnan(f->total_j)) {
		buf_str(line_also(&line), why_no_energy(part));
	} else {
		(is_page(part) ? phrase_part_error : phrase_energy_error)(&line.error, f->total_j, f->error_j,
			f->calibration_error_j);
		phrase_sources(line_also(&line), f);
	}
	if (!is_page(part) && !isnan(f->carbon_g)) {
		human_grams(line_also(&line), f->carbon_g);
		buf_str(&line.note, " CO2e");
		carbon_region_note(&line.note, part->document->run);
	}
	if (is_page(part) && part->job != NULL && part->job->n_nodes_unknown > 0)
		buf_printf(line_also(&line), "%zu unknown", part->job->n_nodes_unknown);
	line_end(&line);
}

static void target_line(const struct part *part, const char *label)
{
	const struct findings *f = part->f;
	struct figure_line line;
	if (!(f->total_j > 0))
		return;
	line_begin(&line, part, label);
	human_energy(&line.value, f->ledger.target_j);
	phrase_part_error(&line.error, f->ledger.target_j, f->target_error_j, f->target_calibration_error_j);
	buf_printf(line_also(&line), "by this %s: ", part->job != NULL ? "job's ranks" : "program");
	human_percent(&line.note, f->ledger.target_j / f->total_j * 100);
	if (part->job == NULL && f->target_cpu_s > 0 && f->duration_s > 0) {
		struct mean_power power = findings_mean_power(f);
		human_power(line_also(&line), power.target_w);
		buf_str(&line.note, power.of_part ? " while measured" : " on average");
	}
	line_end(&line);
}

// In a job, the sum of the nodes' mean powers, each over its measured time.
static double mean_w(const struct part *part)
{
	if (part->job != NULL)
		return job_mean_w(part->job);
	return part->f->total_j >= 0 && part->f->duration_s > 0 ? findings_mean_power(part->f).total_w : (double)NAN;
}

static void power_line(const struct part *part, const char *label)
{
	const struct chart *power = charts_find(part->charts, "power");
	struct figure_line line;
	double peak_w = NAN;
	if (isnan(mean_w(part)))
		return;
	for (size_t i = 0; power != NULL && i < power->n_series; i++)
		if (power->series[i].line == CHART_WHOLE)
			peak_w = power->series[i].highest;
	line_begin(&line, part, label);
	human_power(&line.value, mean_w(part));
	if (part->job == NULL)
		buf_str(&line.value, unresolved_mark(mean_w(part), findings_mean_power(part->f).error_w));
	if (isfinite(peak_w)) {
		buf_str(line_also(&line), "at most ");
		human_power(&line.note, peak_w);
	}
	if (part->job != NULL)
		buf_str(line_also(&line), "sum of the nodes' means, each over its measured time");
	line_end(&line);
}

/* ---- lines of the summary after a run ---- */

static void add_busy_cores(struct figure_line *line, const struct findings *f)
{
	double cores = f->target_cpu_s / f->duration_s;
	if (!isfinite(cores) || !value_ok(f->usage.system_core_count))
		return;
	human_number(line_also(line), cores, 3);
	buf_printf(&line->note, " of %lld cores busy", (long long)f->usage.system_core_count);
}

static void time_and_power_line(const struct part *part, const char *label)
{
	struct figure_line line;
	const struct mean_power power = findings_mean_power(part->f);
	line_begin(&line, part, label);
	human_time(&line.value, part->f->duration_s);
	if (isfinite(power.total_w)) {
		human_power(line_also(&line), power.total_w);
		buf_str(&line.note, unresolved_mark(power.total_w, power.error_w));
		buf_str(&line.note, power.of_part ? " while measured" : " on average");
	}
	line_end(&line);
}

// The ledger in one line; parts that round to 0.0 % are left out, an unknown idle part is not.
static void ledger_line(const struct part *part, const char *label)
{
	const struct findings *f = part->f;
	struct figure_line line;
	if (!(f->total_j > 0))
		return;
	line_begin(&line, part, label);
	human_energy(&line.value, f->ledger.target_j);
	human_error_of(&line.error, f->ledger.target_j, f->target_error_j);
	for (size_t i = 0; i < OWNERS; i++) {
		double percent = owner_j(&f->ledger, i) / f->total_j * 100;
		bool is_idle = owners[i].offset == offsetof(struct ledger, idle_j);
		if (i > 0 && !(fabs(percent) >= 0.05) && !(is_idle && isnan(percent)))
			continue;
		buf_printf(line_also(&line), "%s%s", i > 0 ? owners[i].css : "", i > 0 ? " " : "");
		human_percent(&line.note, percent);
	}
	line_end(&line);
}

static void cpu_and_memory_line(const struct part *part, const char *label)
{
	const struct findings *f = part->f;
	struct figure_line line;
	line_begin(&line, part, label);
	human_time(&line.value, f->target_cpu_s);
	add_busy_cores(&line, f);
	if (!isnan(f->usage.combined.total_bytes)) {
		human_bytes(line_also(&line), f->usage.combined.total_bytes);
		buf_str(&line.note, " peak memory");
	}
	line_end(&line);
}

/* ---- further figures ---- */

// --step: use per call of the block that defines a step.
static void step_line(const struct part *part, const char *label)
{
	const struct findings *f = part->f;
	const struct block_finding *step = step_block(f);
	if (step == NULL)
		return;
	struct figure_line line;
	double calls = (double)step->calls;
	line_begin(&line, part, label);
	human_energy(&line.value, step->total_j / calls);
	if (part->is_summary && !isnan(step->total_j))
		human_error_of(&line.error, step->total_j / calls, step->error_j / calls);
	else if (!isnan(step->total_j))
		phrase_part_error(&line.error, step->total_j / calls, step->error_j / calls,
			findings_block_calibration_j(f, step) / calls);
	buf_str(line_also(&line), "each of ");
	line_count(&line.note, step->calls, "call", "s");
	buf_str(&line.note, " of ");
	text_fit_middle(&line.note, step->name, part->is_summary ? BRIEF_NAME_COLUMNS : REMARK_COLUMN);
	if (!part->is_summary) {
		human_time(line_also(&line), step->compute_time_s.mean);
		buf_str(&line.note, " on average");
	}
	line_end(&line);
}

static void cpu_line(const struct part *part, const char *label)
{
	const struct findings *f = part->f;
	struct figure_line line;
	line_begin(&line, part, label);
	human_time(&line.value, f->target_cpu_s);
	add_busy_cores(&line, f);
	if (value_ok(f->processes_seen) && part->job == NULL)
		line_count(line_also(&line), f->processes_seen, "process", "es");
	if (value_ok(f->usage.combined_threads) && part->job == NULL)
		line_count(line_also(&line), f->usage.combined_threads, "thread", "s");
	line_end(&line);
}

static void memory_line(const struct part *part, const char *label)
{
	const struct findings *f = part->f;
	struct figure_line line;
	line_begin(&line, part, label);
	human_bytes(&line.value, f->usage.combined.total_bytes);
	buf_str(&line.value, isnan(f->usage.combined.total_bytes) || is_page(part) ? "" : " peak");
	if (!isnan(f->usage.ram_capacity_bytes)) {
		buf_str(line_also(&line), "of ");
		human_bytes(&line.note, f->usage.ram_capacity_bytes);
	}
	// PSS is sampled rarely; shown only if it was read near the peak.
	bool near_peak = (double)f->rss_at_max_pss_bytes * 1.25 >= (double)f->peak_rss_bytes;
	if (value_ok(f->max_pss_bytes) && near_peak) {
		human_bytes(line_also(&line), (double)f->max_pss_bytes);
		buf_str(&line.note, " as PSS");
	}
	line_end(&line);
}

static void waiting_line(const struct part *part, const char *label)
{
	const struct job_sums sums = job_sums(part->job);
	if (isnan(sums.waiting_s))
		return;
	struct figure_line line;
	line_begin(&line, part, label);
	human_time(&line.value, sums.waiting_s);
	buf_str(line_also(&line), "of all ranks' time in ");
	job_phrase_waiting_blocks(&line.note, part->job);
	buf_str(&line.note, ": ");
	human_percent(&line.note, sums.waiting_s / sums.duration_s * 100);
	if (!isnan(part->job->waiting_j))
		human_energy(line_also(&line), part->job->waiting_j);
	line_end(&line);
}

static void io_line(const struct part *part, const char *label)
{
	const struct findings *f = part->f;
	if (!(f->read_bytes > 0) && !(f->written_bytes > 0))
		return;
	struct figure_line line;
	line_begin(&line, part, label);
	human_bytes(&line.value, value_to_double(f->read_bytes, 1));
	buf_str(&line.value, " read");
	human_bytes(line_also(&line), value_to_double(f->written_bytes, 1));
	buf_str(&line.note, " written");
	line_end(&line);
}

static void gpu_line(const struct part *part, const struct gpu_finding *gpu)
{
	struct figure_line line;
	char label[24];
	snprintf(label, sizeof(label), "GPU %d", gpu->device->index);
	line_begin(&line, part, label);
	human_energy(&line.value, gpu->energy_j);
	if (!isnan(gpu->mean_utilization_percent)) {
		buf_str(line_also(&line), "busy ");
		human_percent(&line.note, gpu->mean_utilization_percent);
	}
	if (value_ok(gpu->target_max_memory_bytes)) {
		human_bytes(line_also(&line), (double)gpu->target_max_memory_bytes);
		buf_str(&line.note, " used by this program");
	}
	if (gpu->device->device[0] != '\0')
		buf_str(line_also(&line), gpu->device->device);
	line_end(&line);
}

static void gpus_line(const struct part *part, const char *label);

static void gpu_lines(const struct part *part, const char *label)
{
	if (part->is_brief && part->f->n_gpus > BRIEF_GPUS_MAX) {
		gpus_line(part, label);
		return;
	}
	for (size_t i = 0; i < part->f->n_gpus; i++)
		gpu_line(part, &part->f->gpus[i]);
}

// All GPUs in one tile.
static void gpus_line(const struct part *part, const char *label)
{
	const struct findings *f = part->f;
	const struct gpu_sums sums = gpu_sums(f);
	if (f->n_gpus == 0)
		return;
	struct figure_line line;
	char title[32];
	snprintf(title, sizeof(title), f->n_gpus > 1 ? "%zu GPUs" : "GPU", f->n_gpus);
	line_begin(&line, part, title);
	human_energy(&line.value, sums.energy_j);
	if (isfinite(sums.busy_percent)) {
		buf_str(line_also(&line), "busy ");
		human_percent(&line.note, sums.busy_percent);
	}
	if (isfinite(sums.target_bytes)) {
		human_bytes(line_also(&line), sums.target_bytes);
		buf_str(&line.note, f->n_gpus == 1 ? " used" : " peak use, sum of all GPUs");
	}
	line_end(&line);
}

static void carbon_line(const struct part *part, const char *label)
{
	const struct findings *f = part->f;
	if (isnan(f->carbon_g))
		return;
	struct figure_line line;
	line_begin(&line, part, label);
	human_grams(&line.value, f->carbon_g);
	buf_str(line_also(&line), "CO2e");
	carbon_region_note(&line.note, part->document->run);
	if (isfinite(f->pue) && f->pue != 1) {
		buf_str(line_also(&line), "of ");
		human_energy(&line.note, f->facility_j);
		buf_str(&line.note, " with a PUE of ");
		human_number(&line.note, f->pue, 3);
	}
	line_end(&line);
}

static void self_line(const struct part *part, const char *label)
{
	const struct findings *f = part->f;
	struct figure_line line;
	line_begin(&line, part, label);
	human_time(&line.value, f->self_cpu_s);
	if (part->job != NULL) {
		buf_str(line_also(&line), "CPU time of ");
		line_count(&line.note, (int64_t)part->job->runs->n, "recording", "s");
	} else {
		buf_str(&line.value, " CPU");
		if (f->self_cpu_percent <= 100) { // otherwise the run was shorter than its preparation
			human_number(line_also(&line), f->self_cpu_percent, 2);
			buf_str(&line.note, " % of one core");
		}
		if (value_ok(f->self_max_rss_bytes))
			human_bytes(line_also(&line), (double)f->self_max_rss_bytes);
	}
	if (!isnan(f->self_energy_j))
		human_energy(line_also(&line), f->self_energy_j);
	line_end(&line);
}

bool headline_is_marked(const struct part *part)
{
	const struct findings *f = part->f;
	const struct block_finding *step = part->job == NULL ? step_block(f) : NULL;
	return unresolved_mark(f->total_j, f->error_j)[0] != '\0' ||
		(f->total_j > 0 && unresolved_mark(f->ledger.target_j, f->target_error_j)[0] != '\0') ||
		(step != NULL && unresolved_mark(step->total_j, step->error_j)[0] != '\0');
}

void part_headline(const struct part *part)
{
	static const struct {
		const char *label;
		void (*write)(const struct part *part, const char *label);
		unsigned int only;
	} lines[] = {
		{"Job", job_of_rank, ON_TEXT | OF_RUN},
		{"Time", time_line, ON_TEXT},
		{"Time", time_and_power_line, ON_SUMMARY},
		{"Energy", energy_line, 0},
		{"Program", target_line, ON_TEXT},
		{"Program", ledger_line, ON_SUMMARY},
		{"This program", target_line, ON_PAGE},
		{"Mean power", power_line, ON_PAGE},
		{"Time", time_line, ON_PAGE},
		{"Step", step_line, OF_RUN},
		{"CPU", cpu_line, ON_TEXT},
		{"CPU", cpu_and_memory_line, ON_SUMMARY},
		{"CPU time", cpu_line, ON_PAGE},
		{"Waiting", waiting_line, OF_JOB},
		{"Memory", memory_line, ON_TEXT | OF_RUN},
		{"Peak memory", memory_line, ON_PAGE | OF_RUN},
		{"Storage", io_line, ON_TEXT | OF_RUN},
		{NULL, gpu_lines, ON_TEXT | OF_RUN},
		{NULL, gpus_line, ON_PAGE},
		{"Emissions", carbon_line, ON_PAGE},
		{"wattle", self_line, ON_TEXT},
		{"wattle itself", self_line, ON_PAGE},
	};
	const unsigned int surface = is_page(part) ? ON_PAGE : part->is_summary ? ON_SUMMARY : ON_TEXT;
	buf_str(part->out, is_page(part) ? "<dl class=\"tiles\">\n" : "");
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (is_wanted(lines[i].only, surface, part->job != NULL ? OF_JOB : OF_RUN))
			lines[i].write(part, lines[i].label);
	buf_str(part->out, is_page(part) ? "</dl>\n" : "");
	if (!part->is_summary && headline_is_marked(part))
		html_section_note(part, unresolved_note);
}
