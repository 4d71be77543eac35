#include "report/text.h"

#include "analysis/facts.h"
#include "base/util.h"
#include "energy/slice.h"
#include "report/parts.h"
#include "report/rank.h"
#include "report/words.h"

#include <stdio.h>

enum { LABEL_COLUMN = 2, VALUE_COLUMN = 11, REMARK_COLUMN = 34, LINE_CEILING = 4096 };

/* A line of the first part: label, value, remark. */
struct line {
	const struct text *text;
	const char *label;
	struct buf value, remark;
	const char *separator; // before the next piece of the remark
};

static void begin(struct line *line, const struct text *text, const char *label)
{
	*line = (struct line){.text = text, .label = label, .separator = ""};
	buf_init(&line->value, LINE_CEILING);
	buf_init(&line->remark, LINE_CEILING);
}

// The remark's buffer, after a separator where something stands there already.
static struct buf *also(struct line *line)
{
	buf_str(&line->remark, line->separator);
	line->separator = ", ";
	return &line->remark;
}

static void end(struct line *line)
{
	struct buf plain;
	buf_init(&plain, LINE_CEILING);
	buf_pad_to(&plain, 0, LABEL_COLUMN);
	buf_str(&plain, line->label);
	buf_pad_to(&plain, 0, VALUE_COLUMN);
	if (line->value.data != NULL)
		buf_str(&plain, line->value.data);
	size_t remark_at = plain.size;
	if (line->remark.data != NULL && line->remark.size > 0) {
		buf_str(&plain, "  "); // where the value is too wide for its column
		text_wrap(&plain, 0, REMARK_COLUMN, line->remark.data);
	}
	const struct style *style = line->text->style;
	struct buf *out = line->text->out;
	if (plain.failed == 0) { // escape sequences take no columns, so they come in last
		buf_str(out, style->title);
		buf_add(out, plain.data, VALUE_COLUMN);
		buf_str(out, style->off);
		buf_add(out, plain.data + VALUE_COLUMN, remark_at - VALUE_COLUMN);
		buf_str(out, style->faint);
		buf_add(out, plain.data + remark_at, plain.size - remark_at);
		buf_str(out, style->off);
		buf_char(out, '\n');
	}
	buf_finish(&plain);
	buf_finish(&line->value);
	buf_finish(&line->remark);
}

void text_headline(const struct text *text)
{
	const struct run_segment *segment = report_segment(text->findings->run);
	struct buf command, ended;
	buf_init(&command, 1 << 22);
	buf_init(&ended, 64);
	command_text(&command, segment);
	words_ending(&ended, segment);
	if (command.size > 0 && command.failed == 0) {
		size_t line_start = text->out->size, room = TEXT_WIDTH - 2 - ended.size - (ended.size > 0 ? 2 : 0);
		buf_str(text->out, text->style->title);
		size_t escape = text->out->size - line_start;
		buf_str(text->out, "  ");
		text_fit(text->out, command.data, room - 2, false);
		buf_str(text->out, text->style->off);
		escape += strlen(text->style->off);
		if (ended.size > 0) {
			buf_pad_to(text->out, line_start, TEXT_WIDTH - 2 + escape - ended.size);
			buf_str(text->out, segment->exit_code == 0 ? text->style->good : text->style->bad);
			buf_str(text->out, ended.data);
			buf_str(text->out, text->style->off);
		}
		buf_str(text->out, "\n\n");
	}
	buf_finish(&command);
	buf_finish(&ended);
}

static void job_line(const struct text *text)
{
	const struct run *run = text->findings->run;
	if (!rank_in_job(run))
		return;
	const char *id = run_fact(run, FACT_JOB_ID), *name = run_fact(run, FACT_JOB_NAME);
	struct line line;
	struct buf words;
	begin(&line, text, "Job");
	buf_init(&words, LINE_CEILING);
	rank_words(&words, run);
	text_fit_middle(&line.value, id != NULL ? id : "n/a", REMARK_COLUMN - VALUE_COLUMN - 2);
	if (words.failed == 0 && words.size > 0)
		text_fit(also(&line), words.data, LINE_CEILING / 4, false);
	if (name != NULL)
		text_fit(also(&line), name, REMARK_COLUMN, false);
	buf_finish(&words);
	end(&line);
}

static void time_line(const struct text *text)
{
	const struct findings *f = text->findings;
	struct line line;
	begin(&line, text, "Time");
	human_time(&line.value, f->duration_s);
	if (value_ok(f->samples)) {
		buf_printf(also(&line), "%lld sample%s", (long long)f->samples, f->samples == 1 ? "" : "s");
		double interval_s = run_fact_double(f->run, FACT_INTERVAL) / 1e9;
		if (interval_s > 0) {
			buf_str(&line.remark, ", one every ");
			human_time(&line.remark, interval_s);
		}
	}
	if (f->run->n_segments > 1)
		buf_printf(also(&line), "in %zu segments", f->run->n_segments);
	end(&line);
}

static const char *why_no_energy(const struct findings *f)
{
	for (size_t i = 0; i < f->n_domains; i++)
		if (readers_elsewhere(f->run, f->domains[i].device) != NULL)
			return "another rank of this job read the sensors";
	return f->n_domains == 0 ? "no sensor could be read" : "no sensor gave a reading";
}

static void energy_line(const struct text *text)
{
	const struct findings *f = text->findings;
	struct line line;
	begin(&line, text, "Energy");
	human_energy(&line.value, f->total_j);
	if (isnan(f->total_j)) {
		buf_str(also(&line), why_no_energy(f));
	} else {
		buf_char(&line.value, ' ');
		words_energy_error(&line.value, f->error_j, f->calibration_error_j);
		words_sources(also(&line), f);
	}
	if (!isnan(f->carbon_g)) {
		human_grams(also(&line), f->carbon_g);
		buf_str(&line.remark, " CO2e");
	}
	end(&line);
	if (!(f->total_j > 0))
		return;
	begin(&line, text, "of it");
	human_energy(&line.value, f->ledger.target_j);
	buf_char(&line.value, ' ');
	words_part_error(&line.value, f->target_error_j, f->target_calibration_error_j);
	buf_str(also(&line), "by this program: ");
	human_percent(&line.remark, f->ledger.target_j / f->total_j * 100);
	struct mean_power power = findings_mean_power(f);
	if (f->target_cpu_s > 0 && f->duration_s > 0) {
		human_power(also(&line), power.target_w);
		buf_str(&line.remark, power.of_part ? " while read" : " on average");
	}
	end(&line);
}

// --step: what one call of the block that counts as a step takes.
static void step_line(const struct text *text)
{
	const struct findings *f = text->findings;
	const char *name = run_fact(f->run, FACT_STEP);
	const struct block_finding *step = NULL;
	for (size_t i = 0; name != NULL && i < f->n_blocks; i++)
		if (strcmp(f->blocks[i].name, name) == 0)
			step = &f->blocks[i];
	if (step == NULL || step->calls == 0)
		return;
	struct line line;
	double calls = (double)step->calls;
	begin(&line, text, "Step");
	human_energy(&line.value, step->resolved ? step->total_j / calls : (double)NAN);
	if (step->resolved) {
		buf_char(&line.value, ' ');
		human_error(&line.value, step->error_j / calls);
	}
	buf_printf(also(&line), "each of %lld call%s of ", (long long)step->calls, step->calls == 1 ? "" : "s");
	text_fit_middle(&line.remark, name, REMARK_COLUMN);
	human_time(also(&line), step->compute_time_s.mean);
	buf_str(&line.remark, " on average");
	end(&line);
}

static void cpu_line(const struct text *text)
{
	const struct findings *f = text->findings;
	struct line line;
	begin(&line, text, "CPU");
	human_time(&line.value, f->target_cpu_s);
	double cores = f->target_cpu_s / f->duration_s;
	if (isfinite(cores)) {
		human_number(also(&line), cores, 3);
		buf_printf(&line.remark, " of %lld cores busy", (long long)f->usage.system_core_count);
	}
	if (value_ok(f->processes_seen))
		buf_printf(also(&line), "%lld process%s", (long long)f->processes_seen,
			f->processes_seen == 1 ? "" : "es");
	if (value_ok(f->usage.combined_threads))
		buf_printf(also(&line), "%lld thread%s", (long long)f->usage.combined_threads,
			f->usage.combined_threads == 1 ? "" : "s");
	end(&line);
}

static void memory_line(const struct text *text)
{
	const struct findings *f = text->findings;
	struct line line;
	begin(&line, text, "Memory");
	human_bytes(&line.value, f->usage.combined.total_bytes);
	buf_str(&line.value, isnan(f->usage.combined.total_bytes) ? "" : " peak");
	if (!isnan(f->usage.ram_capacity_bytes)) {
		buf_str(also(&line), "of ");
		human_bytes(&line.remark, f->usage.ram_capacity_bytes);
	}
	// PSS is read now and then: far from the peak it would say nothing of it.
	bool near_peak = (double)f->rss_at_max_pss_bytes * 1.25 >= (double)f->peak_rss_bytes;
	if (value_ok(f->max_pss_bytes) && near_peak) {
		human_bytes(also(&line), (double)f->max_pss_bytes);
		buf_str(&line.remark, " as PSS");
	}
	end(&line);
}

static void io_line(const struct text *text)
{
	const struct findings *f = text->findings;
	if (!(f->read_bytes > 0) && !(f->written_bytes > 0))
		return;
	struct line line;
	begin(&line, text, "Storage");
	human_bytes(&line.value, value_to_double(f->read_bytes, 1));
	buf_str(&line.value, " read");
	human_bytes(also(&line), value_to_double(f->written_bytes, 1));
	buf_str(&line.remark, " written");
	end(&line);
}

static void gpu_line(const struct text *text, const struct gpu_finding *gpu)
{
	struct line line;
	char label[24];
	snprintf(label, sizeof(label), "GPU %d", gpu->device->index);
	begin(&line, text, label);
	human_energy(&line.value, gpu->energy_j);
	if (!isnan(gpu->mean_utilization_percent)) {
		buf_str(also(&line), "busy ");
		human_percent(&line.remark, gpu->mean_utilization_percent);
	}
	if (value_ok(gpu->target_max_memory_bytes)) {
		human_bytes(also(&line), (double)gpu->target_max_memory_bytes);
		buf_str(&line.remark, " used by this program");
	}
	if (gpu->device->device[0] != '\0')
		buf_str(also(&line), gpu->device->device);
	end(&line);
}

static void self_line(const struct text *text)
{
	const struct findings *f = text->findings;
	struct line line;
	begin(&line, text, "wattle");
	human_time(&line.value, f->self_cpu_s);
	buf_str(&line.value, " CPU");
	if (f->self_cpu_percent <= 100) { // else the run was shorter than getting ready for it
		human_number(also(&line), f->self_cpu_percent, 2);
		buf_str(&line.remark, " % of one core");
	}
	if (value_ok(f->self_max_rss_bytes))
		human_bytes(also(&line), (double)f->self_max_rss_bytes);
	if (!isnan(f->self_energy_j))
		human_energy(also(&line), f->self_energy_j);
	end(&line);
}

void text_first(const struct text *text)
{
	job_line(text);
	time_line(text);
	energy_line(text);
	step_line(text);
	cpu_line(text);
	memory_line(text);
	io_line(text);
	for (size_t i = 0; i < text->findings->n_gpus; i++)
		gpu_line(text, &text->findings->gpus[i]);
	self_line(text);
}
