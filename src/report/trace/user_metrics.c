// Custom metrics of the program: one counter per name and process.
#include "report/trace/internal.h"

#include "analysis/names.h"
#include "base/util.h"

#include <errno.h>

struct row {
	size_t process, metric;
	uint32_t name;
};

static int by_counter(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return (x->metric > y->metric) - (x->metric < y->metric); // stored in time order
}

static void put_rows(struct trace *trace, const struct row *rows, size_t n)
{
	struct trace_counter counter = {0};
	for (size_t i = 0; i < n; i++) {
		const struct run_user_metric *metric = &trace->run->user_metrics[rows[i].metric];
		if (i == 0 || rows[i].process != rows[i - 1].process || rows[i].name != rows[i - 1].name)
			counter = (struct trace_counter){
				.trace = trace,
				.about = {.name = metric->name[0] != '\0' ? metric->name : "\"\"",
					.parent = trace_process_track(trace, rows[i].process)},
			};
		trace_counter_put(&counter, metric->t_ns, metric->value);
	}
}

int trace_user_metrics(struct trace *trace)
{
	const struct run *run = trace->run;
	const struct run_user_metric *metrics = run->user_metrics;
	struct names names;
	if (run->n_user_metrics == 0)
		return 0;
	if (names_make(&metrics[0].name, sizeof(metrics[0]), run->n_user_metrics, trace->arena, &names) < 0)
		return -ENOMEM;
	struct row *rows = arena_alloc(trace->arena, run->n_user_metrics, sizeof(*rows));
	if (rows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_user_metrics; i++)
		rows[i] = (struct row){trace_process_at(trace, metrics[i].pid, metrics[i].t_ns), i, names.of[i]};
	qsort(rows, run->n_user_metrics, sizeof(*rows), by_counter);
	put_rows(trace, rows, run->n_user_metrics);
	return 0;
}
