/* Tables of the live page. Row ids let the script match rows between updates. */
#include "serve/view.h"

#include "base/util.h"
#include "metric/metric.h"
#include "report/html.h"
#include "report/report.h"
#include "report/section/grid.h"
#include "report/section/html_section.h"

#include <stdlib.h>

// Columns without any known value are omitted: most machines have no GPU, most domains no clock.
#define IF_KNOWN .is_optional = true, .keeps_zero = true

/* ---- domains ---- */

static const struct monitor_domain *domain_of(const struct object_at *row)
{
	return row->data;
}

static unsigned int depth_of(const struct object_at *row)
{
	const struct monitor_sample *now = ((const struct view_document *)object_document(row))->now;
	unsigned int depth = 0;
	const char *inside = domain_of(row)->domain->inside;
	for (size_t i = 0; i < now->n_domains && inside[0] != '\0' && depth < 3; i++) {
		if (strcmp(now->domains[i].domain->name, inside) != 0)
			continue;
		depth++;
		inside = now->domains[i].domain->inside;
		i = (size_t)-1; // restart: the parent may be anywhere in the list
	}
	return depth;
}

static void domain_name(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct domain *domain = domain_of(row)->domain;
	char words[THROTTLE_PHRASE_SIZE];
	buf_str(out, "<bdi>");
	html_text(out, domain->name);
	buf_str(out, "</bdi> <span class=\"faint\"><bdi>");
	if (strcmp(domain->device, domain->name) != 0)
		html_text(out, domain->device);
	buf_str(out, "</bdi></span>");
	throttle_phrase(domain_of(row)->throttle_bits, words);
	if (words[0] != '\0')
		buf_printf(out, " <span class=\"tag warn\">throttled: %s</span>", words);
}

static void domain_source(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct monitor_domain *domain = domain_of(row);
	part_tag(out, domain->domain->provenance);
	buf_printf(out, " <span class=\"faint\">%s%s</span>", domain->source,
		domain->in_total ? "" : ", not in the total");
}

static void domain_attributes(struct buf *out, const struct object_at *row)
{
	buf_str(out, " id=\"domain-");
	html_text(out, domain_of(row)->domain->name);
	buf_printf(out, "\" class=\"inside-%u%s\"", depth_of(row), domain_of(row)->in_total ? "" : " beside");
}

static const struct column domain_columns[] = {
	{NULL, "Domain", COLUMN_NAME, .write = domain_name},
	{"power_w"},
	{"target_w", IF_KNOWN},
	{"cap_w", IF_KNOWN},
	{"energy_j", IF_KNOWN},
#define DEVICE_LIVE(id, member, ...) {#member, IF_KNOWN},
#include "metric/metrics.def"
	{NULL, "Source", COLUMN_TEXT, .write = domain_source},
};
static const struct grid domain_grid = GRID("domains-table", domain_columns, .attributes = domain_attributes,
	.is_fixed = true);

void page_domains(const struct view *view, struct buf *out)
{
	const struct view_document document = {.view = view, .now = view->now};
	if (view->now->n_domains == 0)
		return;
	buf_str(out, "<h2 id=\"domains\">Domains</h2>\n");
	grid_list(&domain_grid, &(struct object_at){.type = &now_type, .data = &document}, "domains", out, NULL);
}

/* ---- processes ---- */

enum { ROWS_MAX = 50 };

static void cores(struct buf *out, double value)
{
	human_percent(out, value * 100);
}

static void process_name(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct monitor_process *process = row->data;
	part_name(out, process->command);
	if (process->is_own)
		buf_str(out, " <span class=\"tag\">this server</span>");
	else if (process->is_target)
		buf_str(out, " <span class=\"tag\">target</span>");
	if (process->is_gone)
		buf_str(out, " <span class=\"tag\">ended</span>");
}

static void process_attributes(struct buf *out, const struct object_at *row)
{
	const struct monitor_process *process = row->data;
	// pids are reused; pid and start time are unique.
	buf_printf(out, " id=\"process-%d-%lld\"", (int)process->pid, (long long)process->start_ns);
}

static const struct column process_columns[] = {
	{NULL, "Process", COLUMN_NAME, .write = process_name},
	{"pid", .print = human_whole},
	{"power_w", .is_sorted = true, IF_KNOWN},
	{"cpu_cores", .print = cores, IF_KNOWN},
	{"rss_bytes", IF_KNOWN},
	{"threads", .print = human_whole, IF_KNOWN},
	{"gpu_percent", IF_KNOWN},
	{"gpu_memory_bytes", IF_KNOWN},
	{"energy_j", IF_KNOWN},
};
static const struct grid process_grid = GRID("processes-table", process_columns, .attributes = process_attributes);

void page_processes(const struct view *view, struct buf *out)
{
	struct view_document document = {.view = view, .now = view->now};
	const struct monitor_process **ranked = view_ranked(view->now, &document.n_ranked);
	if (ranked == NULL || document.n_ranked == 0) {
		free(ranked);
		return;
	}
	document.ranked = ranked;
	document.n_ranked = document.n_ranked < ROWS_MAX ? document.n_ranked : ROWS_MAX;
	buf_str(out, "<h2 id=\"processes\">Processes</h2>\n<p class=\"faint small\">");
	buf_printf(out,
		"%zu of %lld processes, ordered by power, then by CPU time. Power and energy of a process "
		"are attributed, not measured; 100 %% is one core, or one GPU.</p>\n",
		document.n_ranked, (long long)view->now->processes_seen);
	grid_list(&process_grid, &(struct object_at){.type = &now_type, .data = &document}, "processes", out, NULL);
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
