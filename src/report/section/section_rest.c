/* Custom metrics, processes and events of the run. */
#include "report/section/sections.h"

#include "base/util.h"
#include "report/html.h"
#include "report/report.h"

enum { METRICS_MAX = 500, TEXT_PROCESSES_MAX = 6, PROCESSES_MAX = 200, EVENTS_MAX = 200, COMMAND_COLUMNS = 40 };

static const struct column metric_columns[] = {
	{"name", "", COLUMN_NAME}, {"last"}, {"min"}, {"max"}, {"mean"}, {"count"},
};
static const struct grid metric_grid = GRID("metrics-table", metric_columns);

void section_metrics(const struct part *part)
{
	struct rows rows = part_rows(part, "metrics");
	struct part half = *part;
	if (rows.n == 0 || part->f->n_user_metrics == 0)
		return;
	rows.n = part->f->n_user_metrics; // custom metrics precede the recording's metrics
	half.half = true;
	section_begin(&half, "metrics", title_of_section(SECTION_METRICS));
	part_grid(part, &metric_grid, &rows, (struct limits){TEXT_ROWS_MAX, METRICS_MAX, PRINT_HALF});
	section_end(part);
}

/* ---- processes ---- */

static const struct run_process *process_of(const struct object_at *at)
{
	return at->data;
}

static double elapsed_s(const struct object_at *at)
{
	const struct run_process *process = process_of(at);
	return value_ok(process->start_ns) && value_ok(process->end_ns)
		? (double)(process->end_ns - process->start_ns) / 1e9
		: (double)NAN;
}

#define P struct run_process
static const struct field process_fields[] = {
	FIELD(P, command, NULL, "command"),
	FIELD(P, pid, NULL, "process id", .title = "pid"),
	FIELD_AS(P, "cpu_s", cpu_ns, "s", "CPU time", .title = "CPU", .scale = 1e-9),
	FIELD(P, max_rss_bytes, "bytes", "peak resident memory", .title = "peak memory"),
	FIELD_NUMBER("elapsed_s", elapsed_s, "s", "time from start to end", .title = "elapsed time"),
};
#undef P
static const struct object_type process_type = OBJECT_TYPE("process", "A process of the program.", process_fields);
static const struct field run_lists[] = {
	FIELD_ITEMS(struct run, "processes", processes, n_processes, &process_type, "processes of the program"),
};
static const struct object_type run_lists_type = OBJECT_TYPE("run_lists", "Processes of a run.", run_lists);

static void command(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct run_process *process = process_of(row);
	if (!is_page) {
		text_fit(out, process->command != NULL ? process->command : "?", COMMAND_COLUMNS, false);
		return;
	}
	part_name(out, process->command);
	buf_str(out, process->is_main ? " <span class=\"tag\">main</span>" : "");
}

static const struct column process_columns[] = {
	{NULL, "", COLUMN_NAME, .write = command}, {"pid", .print = human_whole}, {"cpu_s", .is_sorted = true},
	{"max_rss_bytes"}, {"elapsed_s", .only = ON_PAGE},
};
static const struct grid process_grid = GRID("processes-table", process_columns);

void section_processes(const struct part *part)
{
	const struct object_at run = {&run_lists_type, part->run, NULL, 0, NULL};
	struct rows rows;
	struct part half = *part;
	int r = rows_of(&run, "processes", part->document->arena, &rows);
	if (r < 0)
		part->out->failed = r;
	if (rows.n < 2) // a single process is already covered by the headline figures
		return;
	half.half = true;
	rows_sort(&rows, "cpu_s", NULL);
	section_begin(&half, "processes", title_of_section(SECTION_PROCESSES));
	part_grid(part, &process_grid, &rows, (struct limits){TEXT_PROCESSES_MAX, PROCESSES_MAX, PRINT_HALF});
	section_end(part);
}

/* ---- events ---- */

static const struct column event_columns[] = {
	{"t_s"},
	{"kind", NULL, COLUMN_TEXT},
	{"text", "", COLUMN_LONG},
};
static const struct grid event_grid = GRID("events-table", event_columns);

void section_events(const struct part *part)
{
	struct rows rows = part_rows(part, "events");
	if (rows.n == 0)
		return;
	buf_printf(part->out,
		"<p class=\"faint small on-paper\">%zu event%s; the page lists them.</p>\n<section "
		"class=\"no-print\">\n"
		"<h2 id=\"events\">Events</h2>\n",
		rows.n, rows.n == 1 ? "" : "s");
	part_grid(part, &event_grid, &rows, (struct limits){0, EVENTS_MAX, PRINT_NONE});
	section_end(part);
}
