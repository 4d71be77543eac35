/* Figures of whole runs in the comparison. */
#include "report/page/compare.h"

#include "base/util.h"
#include "report/phrases.h"
#include "report/report.h"

#include <string.h>

static const struct compare_figure unknown = {(double)NAN, (double)NAN};

/* ---- figures of whole runs ---- */

static const struct findings *findings_of(const struct compare_page *page, size_t run)
{
	const struct charts *charts = page->runs[run].charts;
	return charts != NULL ? charts->findings : NULL;
}

struct compare_figure compare_energy(const struct compare_page *page, size_t run)
{
	const struct comparison *c = page->comparison;
	return c->has_energy ? compare_figure_of(c, &c->energy, page->runs[run].name) : unknown;
}

static struct compare_figure energy(const struct findings *f)
{
	return (struct compare_figure){f->total_j, f->error_j};
}

static struct compare_figure duration(const struct findings *f)
{
	return (struct compare_figure){f->duration_s, (double)NAN};
}

struct compare_figure compare_time(const struct compare_page *page, size_t run)
{
	const struct findings *f = findings_of(page, run);
	return f != NULL ? duration(f) : unknown;
}

static struct compare_figure target_energy(const struct findings *f)
{
	return (struct compare_figure){f->ledger.target_j, f->target_error_j};
}

static struct compare_figure mean_power(const struct findings *f)
{
	if (!(f->duration_s > 0))
		return unknown;
	const struct mean_power power = findings_mean_power(f);
	return (struct compare_figure){power.total_w, power.error_w};
}

static struct compare_figure step_energy(const struct findings *f)
{
	const struct block_finding *step = step_block(f);
	if (step == NULL)
		return unknown;
	return (struct compare_figure){step->total_j / (double)step->calls, step->error_j / (double)step->calls};
}

static struct compare_figure step_time(const struct findings *f)
{
	const struct block_finding *step = step_block(f);
	return step != NULL ? (struct compare_figure){step->compute_time_s.mean, (double)NAN} : unknown;
}

static struct compare_figure cpu_time(const struct findings *f)
{
	return (struct compare_figure){f->target_cpu_s, (double)NAN};
}

static struct compare_figure peak_memory(const struct findings *f)
{
	return (struct compare_figure){f->usage.combined.total_bytes, (double)NAN};
}

static struct compare_figure gpu_memory(const struct findings *f)
{
	return (struct compare_figure){gpu_sums(f).target_bytes, (double)NAN};
}

static struct compare_figure gpu_busy(const struct findings *f)
{
	return (struct compare_figure){gpu_sums(f).busy_percent, (double)NAN};
}

static const struct {
	const char *title;
	struct compare_figure (*get)(const struct findings *f);
	void (*print)(struct buf *, double);
} rows[] = {
	{"Energy", energy, human_energy},
	{"Energy of the program", target_energy, human_energy},
	{"Time", duration, human_time},
	{"Mean power", mean_power, human_power},
	{"Energy per step", step_energy, human_energy},
	{"Time per step", step_time, human_time},
	{"CPU time", cpu_time, human_time},
	{"Peak memory", peak_memory, human_bytes},
	{"GPU memory, at most", gpu_memory, human_bytes},
	{"GPUs busy", gpu_busy, human_percent},
};

enum { ROW_ENERGY };

static struct compare_figure figure(const struct compare_page *page, size_t row, size_t run)
{
	const struct findings *f = findings_of(page, run);
	if (f != NULL)
		return rows[row].get(f);
	return row == ROW_ENERGY ? compare_energy(page, run) : unknown;
}

void compare_figures(const struct compare_page *page)
{
	struct compare_table table = {.id = "figures", .head = "Whole run"};
	for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
		struct compare_line *line = compare_line_add(page, &table, rows[row].title, rows[row].print);
		for (size_t i = 0; line != NULL && i < page->n_runs; i++)
			line->figures[i] = figure(page, row, i);
		compare_line_finish(page, &table);
	}
	compare_table_write(page, &table);
}
