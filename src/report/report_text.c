#include "report/report.h"

#include "base/util.h"
#include "report/text.h"
#include "report/warnings.h"

enum { PROCESSES_MAX = 6 };

void text_title(const struct text *text, const char *title)
{
	buf_printf(text->out, "\n  %s%s%s\n", text->style->title, title, text->style->off);
}

void text_and_more(const struct text *text, size_t n)
{
	if (n > 0)
		buf_printf(text->out, "  %s… and %zu more%s\n", text->style->faint, n, text->style->off);
}

void text_metrics(const struct text *text)
{
	static const struct table_column columns[] = {{"", false}, {"last", true}, {"min", true}, {"max", true},
		{"mean", true}, {"count", true}};
	const struct findings *f = text->findings;
	if (f->n_user_metrics == 0)
		return;
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	size_t shown = f->n_user_metrics < TEXT_ROWS_MAX ? f->n_user_metrics : TEXT_ROWS_MAX;
	for (size_t i = 0; i < shown; i++) {
		const struct stats *stats = &f->user_metrics[i].stats;
		buf_str(table_cell(&table, false), f->user_metrics[i].name);
		human_number(table_cell(&table, false), stats->last, 4);
		human_number(table_cell(&table, false), stats->min, 4);
		human_number(table_cell(&table, false), stats->max, 4);
		human_number(table_cell(&table, false), stats->mean, 4);
		buf_i64(table_cell(&table, false), stats->count);
	}
	text_title(text, "What the program told");
	table_print(&table, text->out, text->style);
	text_and_more(text, f->n_user_metrics - shown);
	table_finish(&table);
}

static int by_cpu(const void *a, const void *b)
{
	const struct run_process *x = *(const struct run_process *const *)a;
	const struct run_process *y = *(const struct run_process *const *)b;
	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns > y->cpu_ns ? -1 : 1; // unknown is the least of all
	return (x->pid > y->pid) - (x->pid < y->pid);
}

void text_processes(const struct text *text)
{
	static const struct table_column columns[] = {{"", false}, {"pid", true}, {"CPU", true}, {"peak memory", true}};
	const struct run *run = text->findings->run;
	const struct run_process **order = calloc_array(run->n_processes, sizeof(const struct run_process *));
	if (run->n_processes < 2 || order == NULL) { // one process is what stands above already
		free(order);
		return;
	}
	for (size_t i = 0; i < run->n_processes; i++)
		order[i] = &run->processes[i];
	qsort(order, run->n_processes, sizeof(const struct run_process *), by_cpu);
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	size_t shown = run->n_processes < PROCESSES_MAX ? run->n_processes : PROCESSES_MAX;
	for (size_t i = 0; i < shown; i++) {
		struct buf *name = table_cell(&table, false);
		text_fit(name, order[i]->command != NULL ? order[i]->command : "?", 40, false);
		buf_i64(table_cell(&table, false), order[i]->pid);
		human_time(table_cell(&table, false), value_to_double(order[i]->cpu_ns, 1e-9));
		human_bytes(table_cell(&table, false), value_to_double(order[i]->max_rss_bytes, 1));
	}
	text_title(text, "Processes with most CPU time");
	table_print(&table, text->out, text->style);
	text_and_more(text, run->n_processes - shown);
	table_finish(&table);
	free(order);
}

void text_warning(void *data, const char *warning)
{
	struct warning_writer *writer = data;
	const struct text *text = writer->text;
	struct buf plain;
	buf_init(&plain, 1 << 14);
	buf_str(&plain, "  ! ");
	text_wrap(&plain, 0, 4, warning);
	if (!writer->any)
		buf_char(text->out, '\n');
	writer->any = true;
	if (plain.failed == 0)
		buf_printf(text->out, "%s%s%s\n", text->style->warning, plain.data, text->style->off);
	buf_finish(&plain);
}

void text_warnings(const struct text *text)
{
	struct warning_writer writer = {.text = text};
	report_warnings(text->findings, text_warning, &writer);
}

void report_text(const struct findings *findings, struct buf *out, bool colour)
{
	struct text text = {.findings = findings, .out = out, .style = style_for(colour)};
	text_headline(&text);
	text_first(&text);
	text_ledger(&text);
	text_domains(&text);
	text_gpus(&text);
	text_blocks(&text, TEXT_ROWS_MAX);
	text_metrics(&text);
	text_processes(&text);
	text_warnings(&text);
}

void report_summary(const struct findings *findings, struct buf *out, bool colour)
{
	struct text text = {.findings = findings, .out = out, .style = style_for(colour)};
	text_headline(&text);
	text_first(&text);
	text_warnings(&text);
}
