/* Energy by node: by whom as a bar, by part of the machine as figures. */
#include "report/page/job.h"

#include "base/known.h"
#include "base/util.h"
#include "report/html.h"
#include "report/palette.h"
#include "report/report.h"

#include <string.h>

/* ---- a bar ---- */

static const struct owner {
	enum colour colour;
	const char *title;
	size_t offset;
} owners[] = {
	{COLOUR_TARGET, "the job's ranks", offsetof(struct ledger, target_j)},
	{COLOUR_OTHERS, "other programs", offsetof(struct ledger, others_j)},
	{COLOUR_WATTLE, "the meters", offsetof(struct ledger, wattle_j)},
	{COLOUR_IDLE, "idle", offsetof(struct ledger, idle_j)},
	{COLOUR_UNATTRIBUTED, "unattributed", offsetof(struct ledger, unattributed_j)},
};

static double owner_j(const struct ledger *ledger, size_t owner)
{
	double energy_j;
	memcpy(&energy_j, (const char *)ledger + owners[owner].offset, sizeof(energy_j));
	return energy_j;
}

static void bar(struct buf *out, const struct ledger *ledger, double largest_j)
{
	double from = 0;
	buf_str(out, "<svg class=\"node-bar\" role=\"img\" width=\"100%\"><title>");
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
		buf_printf(out, "%s%s ", i > 0 ? ", " : "", owners[i].title);
		human_energy(out, owner_j(ledger, i));
	}
	buf_str(out, "</title>");
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
		double share = owner_j(ledger, i) / largest_j;
		if (!(share > 0))
			continue;
		buf_str(out, "<rect height=\"100%\" x=\"");
		buf_fixed(out, 100 * from, 2);
		buf_str(out, "%\" width=\"");
		buf_fixed(out, 100 * share, 2);
		buf_printf(out, "%%\" class=\"c-%s\"/>", palette[owners[i].colour].css);
		from += share;
	}
	buf_str(out, "</svg>");
}

static void keys(const struct job_page *page)
{
	buf_str(page->part.out, "<ul class=\"keys small\">\n");
	for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
		double energy_j = owner_j(&page->job->total.ledger, i);
		if (!(energy_j > 0))
			continue;
		buf_printf(page->part.out, "<li><span class=\"swatch c-%s\"></span>%s ", palette[owners[i].colour].css,
			owners[i].title);
		human_energy(page->part.out, energy_j);
		buf_str(page->part.out, " <span class=\"faint\">");
		part_percent(page->part.out, 100 * energy_j / page->job->total.total_j);
		buf_str(page->part.out, "</span></li>\n");
	}
	buf_str(page->part.out, "</ul>\n");
}

/* ---- parts of the machine ---- */

enum { PART_PACKAGES, PART_DRAM, PART_GPUS, PART_OTHERS, PARTS };

static int part_of(const struct domain_finding *domain)
{
	enum domain_kind kind = domain->device->kind;
	return kind == DOMAIN_PACKAGE ? PART_PACKAGES
		: kind == DOMAIN_DRAM ? PART_DRAM
		: kind == DOMAIN_GPU  ? PART_GPUS
				      : PART_OTHERS;
}

static void sums_of(const struct job_node *node, double sums_j[PARTS])
{
	for (size_t p = 0; p < PARTS; p++)
		sums_j[p] = (double)NAN;
	for (size_t d = 0; d < node->n_domains; d++)
		if (node->domains[d].in_total)
			sums_j[part_of(&node->domains[d])] = add_known(sums_j[part_of(&node->domains[d])],
				node->domains[d].energy_j);
}

struct shown { // columns that any node has a figure for
	bool parts[PARTS], unmeasured;
	double largest_j;
	size_t n_ranks_most;
};

static struct shown shown_of(const struct job_findings *job)
{
	struct shown shown = {0};
	for (size_t i = 0; i < job->n_nodes; i++) {
		double sums_j[PARTS];
		sums_of(&job->nodes[i], sums_j);
		for (size_t p = 0; p < PARTS; p++)
			shown.parts[p] |= !isnan(sums_j[p]);
		shown.unmeasured |= job->nodes[i].unmeasured_s > 0;
		shown.largest_j = fmax(shown.largest_j, job->nodes[i].energy_j);
	}
	return shown;
}

/* ---- rows ---- */

static void name_cell(const struct job_page *page, size_t number)
{
	struct buf *out = page->part.out;
	const struct job_node *node = &page->job->nodes[number];
	buf_str(out, "<th scope=\"row\" class=\"name\">");
	job_node_name(out, page, number);
	if (node->host != NULL && node->name != NULL && strcmp(node->host, node->name) != 0) {
		buf_str(out, " <span class=\"faint small\">");
		part_name(out, node->host);
		buf_str(out, "</span>");
	}
	buf_str(out, "</th>");
}

static void row(const struct job_page *page, size_t number, const struct shown *shown)
{
	struct buf *out = page->part.out;
	const struct job_node *node = &page->job->nodes[number];
	double sums_j[PARTS];
	bool counts = node->same_machine_as < 0;
	sums_of(node, sums_j);
	buf_str(out, "<tr>");
	name_cell(page, number);
	part_cell_count(out, (int64_t)node->n_ranks);
	part_cell_energy(out, counts ? node->energy_j : (double)NAN, node->error_j);
	buf_str(out, "<td class=\"bar-cell\">");
	if (!counts) {
		buf_str(out, "<span class=\"faint small\">one machine with ");
		job_node_name(out, page, (size_t)node->same_machine_as);
		buf_str(out, ", counted there</span>");
	} else if (node->energy_j > 0 && shown->largest_j > 0) {
		bar(out, &node->ledger, shown->largest_j);
	}
	buf_str(out, "</td>");
	part_cell(out, counts ? node->mean_w : (double)NAN, human_power);
	for (size_t p = 0; p < PARTS; p++)
		if (shown->parts[p])
			part_cell(out, counts ? sums_j[p] : (double)NAN, human_energy);
	part_cell(out, node->cpu_s, human_short_time);
	if (shown->unmeasured)
		part_cell(out, node->unmeasured_s, human_short_time);
	buf_str(out, "<td class=\"text\">");
	if (counts && isfinite(node->energy_j))
		part_tag(out, node->provenance);
	buf_str(out, "</td></tr>\n");
}

void job_nodes(const struct job_page *page)
{
	static const char *const parts[PARTS] = {"packages", "DRAM", "GPUs", "others"};
	const struct shown shown = shown_of(page->job);
	struct part_column columns[8 + PARTS] = {{"node", "name"}, {"ranks"}, {"energy"}, {"by whom", "text"},
		{"mean"}};
	size_t n = 5;
	for (size_t p = 0; p < PARTS; p++)
		if (shown.parts[p])
			columns[n++] = (struct part_column){.title = parts[p]};
	columns[n++] = (struct part_column){.title = "ranks' CPU"};
	if (shown.unmeasured)
		columns[n++] = (struct part_column){.title = "not measured"};
	columns[n++] = (struct part_column){.title = "", .class = "text"};
	buf_str(page->part.out, "<section>\n");
	part_title(&page->part, "nodes", "Energy by node");
	if (page->job->total.total_j > 0)
		keys(page);
	part_table_begin(&page->part, "nodes-table", NULL, columns, n, page->job->n_nodes > 1);
	for (size_t i = 0; i < page->job->n_nodes; i++)
		row(page, i, &shown);
	part_table_end(&page->part);
	job_paper(page, page->job->n_nodes, 17);
	if (shown.unmeasured)
		buf_str(page->part.out,
			"<p class=\"faint small\">Not measured is time in which ranks ran on the node and none of them read its "
			"sensors; what was used then is not in these figures.</p>\n");
	buf_str(page->part.out, "</section>\n");
}
