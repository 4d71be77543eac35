/* Tables of the live page. Row ids let the script match rows between updates. */
#include "serve/view.h"

#include "base/util.h"
#include "metric/metric.h"
#include "report/html.h"
#include "report/report.h"
#include "report/section/html_section.h"

#include <stdlib.h>

enum { COLUMNS_MAX = 16 };

// A numeric column. Columns without any known value are omitted: most machines have no GPU, most domains no clock.
struct figure {
	const char *title, *sort;
	double (*value)(const void *row);
	void (*print)(struct buf *out, double value);
};

struct figures {
	const struct figure *columns;
	size_t n_columns;
	bool shown[COLUMNS_MAX];
};

static void show_if_known(struct figures *table, const void *row)
{
	for (size_t i = 0; i < table->n_columns; i++)
		table->shown[i] |= isfinite(table->columns[i].value(row));
}

static size_t heads(const struct figures *table, struct part_column *ret_heads)
{
	size_t n = 0;
	for (size_t i = 0; i < table->n_columns; i++)
		if (table->shown[i])
			ret_heads[n++] = (struct part_column){table->columns[i].title, NULL, table->columns[i].sort};
	return n;
}

static void cells(const struct figures *table, const void *row, struct buf *out)
{
	for (size_t i = 0; i < table->n_columns; i++)
		if (table->shown[i])
			part_cell(out, table->columns[i].value(row), table->columns[i].print);
}

/* ---- domains ---- */

#define DOMAIN_VALUE(name, expression)                                                                                 \
	static double name(const void *row)                                                                            \
	{                                                                                                              \
		const struct monitor_domain *d = row;                                                                  \
		return expression;                                                                                     \
	}
DOMAIN_VALUE(domain_power, d->power_w)
DOMAIN_VALUE(domain_target, d->target_w)
DOMAIN_VALUE(domain_cap, d->cap_w)
DOMAIN_VALUE(domain_energy, value_to_double(d->energy_uj, 1e-6))
#define DEVICE_LIVE(id, member, ...) DOMAIN_VALUE(domain_##member, d->member)
#include "metric/metrics.def"
#undef DOMAIN_VALUE

static const struct figure domain_columns[] = {
	{"Power", NULL, domain_power, human_power},
	{"Target", NULL, domain_target, human_power},
	{"Limit", NULL, domain_cap, human_power},
	{"Energy", NULL, domain_energy, human_energy},
#define DEVICE_LIVE(id, member, unit, format, tag, title, meaning) {title, NULL, domain_##member, human_##format},
#include "metric/metrics.def"
};

static unsigned int depth_of(const struct monitor_sample *now, const struct monitor_domain *domain)
{
	unsigned int depth = 0;
	const char *inside = domain->domain->inside;
	for (size_t i = 0; i < now->n_domains && inside[0] != '\0' && depth < 3; i++) {
		if (strcmp(now->domains[i].domain->name, inside) != 0)
			continue;
		depth++;
		inside = now->domains[i].domain->inside;
		i = (size_t)-1; // restart: the parent may be anywhere in the list
	}
	return depth;
}

static void domain_name(const struct monitor_domain *domain, struct buf *out)
{
	char words[THROTTLE_PHRASE_SIZE];
	buf_str(out, "<th scope=\"row\" class=\"name\"><bdi>");
	html_text(out, domain->domain->name);
	buf_str(out, "</bdi> <span class=\"faint\"><bdi>");
	if (strcmp(domain->domain->device, domain->domain->name) != 0)
		html_text(out, domain->domain->device);
	buf_str(out, "</bdi></span>");
	throttle_phrase(domain->throttle_bits, words);
	if (words[0] != '\0')
		buf_printf(out, " <span class=\"tag warn\">throttled: %s</span>", words);
	buf_str(out, "</th>");
}

static void domain_row(const struct figures *table, const struct monitor_sample *now,
	const struct monitor_domain *domain, struct buf *out)
{
	buf_str(out, "<tr id=\"domain-");
	html_text(out, domain->domain->name);
	buf_printf(out, "\" class=\"inside-%u%s\">", depth_of(now, domain), domain->in_total ? "" : " beside");
	domain_name(domain, out);
	cells(table, domain, out);
	buf_str(out, "<td class=\"text\">");
	part_tag(out, domain->domain->provenance);
	buf_printf(out, " <span class=\"faint\">%s%s</span></td></tr>\n", domain->source,
		domain->in_total ? "" : ", not in the total");
}

void page_domains(const struct view *view, struct buf *out)
{
	const struct monitor_sample *now = view->now;
	struct part part = {.out = out};
	struct figures table = {.columns = domain_columns, .n_columns = ARRAY_SIZE(domain_columns), .shown = {true}};
	struct part_column titles[COLUMNS_MAX + 2] = {{"Domain", "name", NULL}};
	if (now->n_domains == 0)
		return;
	for (size_t i = 0; i < now->n_domains; i++)
		show_if_known(&table, &now->domains[i]);
	size_t n = 1 + heads(&table, titles + 1);
	titles[n++] = (struct part_column){"Source", "text", NULL};
	buf_str(out, "<h2 id=\"domains\">Domains</h2>\n");
	part_table_begin(&part, "domain-table", NULL, titles, n, false);
	for (size_t i = 0; i < now->n_domains; i++)
		domain_row(&table, now, &now->domains[i], out);
	part_table_end(&part);
}

/* ---- processes ---- */

enum { ROWS_MAX = 50 };

static void cores(struct buf *out, double value)
{
	human_percent(out, value * 100);
}

#define PROCESS_VALUE(name, expression)                                                                                \
	static double name(const void *row)                                                                            \
	{                                                                                                              \
		const struct monitor_process *p = row;                                                                 \
		return expression;                                                                                     \
	}
PROCESS_VALUE(process_pid, p->pid)
PROCESS_VALUE(process_power, p->power_w)
PROCESS_VALUE(process_cpu, p->cpu_cores)
PROCESS_VALUE(process_memory, value_to_double(p->rss_bytes, 1))
PROCESS_VALUE(process_threads, value_to_double(p->threads, 1))
PROCESS_VALUE(process_gpu, p->gpu_percent)
PROCESS_VALUE(process_gpu_memory, value_to_double(p->gpu_memory_bytes, 1))
PROCESS_VALUE(process_energy, p->energy_j)
#undef PROCESS_VALUE

static const struct figure process_columns[] = {
	{"PID", NULL, process_pid, human_whole},
	{"Power", "descending", process_power, human_power},
	{"CPU", NULL, process_cpu, cores},
	{"Memory", NULL, process_memory, human_bytes},
	{"Threads", NULL, process_threads, human_whole},
	{"GPU", NULL, process_gpu, human_percent},
	{"GPU memory", NULL, process_gpu_memory, human_bytes},
	{"Energy", NULL, process_energy, human_energy},
};

static void process_name(const struct monitor_process *process, struct buf *out)
{
	buf_str(out, "<th scope=\"row\" class=\"name\">");
	part_name(out, process->command);
	if (process->is_own)
		buf_str(out, " <span class=\"tag\">this server</span>");
	else if (process->is_target)
		buf_str(out, " <span class=\"tag\">target</span>");
	if (process->is_gone)
		buf_str(out, " <span class=\"tag\">ended</span>");
	buf_str(out, "</th>");
}

static void process_row(const struct figures *table, const struct monitor_process *process, struct buf *out)
{
	// pids are reused; pid and start time are unique.
	buf_printf(out, "<tr id=\"process-%d-%lld\">", (int)process->pid, (long long)process->start_ns);
	process_name(process, out);
	cells(table, process, out);
	buf_str(out, "</tr>\n");
}

static void process_table(const struct monitor_process *const *ranked, size_t n, struct buf *out)
{
	struct part part = {.out = out};
	struct figures table = {.columns = process_columns, .n_columns = ARRAY_SIZE(process_columns)};
	struct part_column titles[COLUMNS_MAX + 1] = {{"Process", "name", NULL}};
	for (size_t i = 0; i < n; i++)
		show_if_known(&table, ranked[i]);
	part_table_begin(&part, "process-table", NULL, titles, 1 + heads(&table, titles + 1), true);
	for (size_t i = 0; i < n; i++)
		process_row(&table, ranked[i], out);
	part_table_end(&part);
}

void page_processes(const struct view *view, struct buf *out)
{
	size_t n = 0;
	const struct monitor_process **ranked = view_ranked(view->now, &n);
	if (ranked == NULL || n == 0) {
		free(ranked);
		return;
	}
	n = n < ROWS_MAX ? n : ROWS_MAX;
	buf_str(out, "<h2 id=\"processes\">Processes</h2>\n<p class=\"faint small\">");
	buf_printf(out,
		"%zu of %lld processes, ordered by power, then by CPU time. Power and energy of a process "
		"are attributed, not measured; 100 %% is one core, or one GPU.</p>\n",
		n, (long long)view->now->processes_seen);
	process_table(ranked, n, out);
	free(ranked);
}

/* ---- about this page ---- */

void page_about(const struct view *view, struct buf *out)
{
	const struct monitor_sample *now = view->now;
	buf_str(out, "<p class=\"faint small\">Measurement overhead: ");
	if (isfinite(now->own_cpu_percent))
		human_percent(out, now->own_cpu_percent);
	else
		buf_str(out, "an unknown fraction");
	buf_str(out, " of one core and ");
	human_bytes(out, value_to_double(now->own_rss_bytes, 1));
	buf_str(out,
		" of memory. The same data for programs: <a href=\"metrics\">/metrics</a>, "
		"<a href=\"now.json\">/now.json</a>.</p>\n");
}
