/* Energy by domain, GPU and node. */
#include "report/section/sections.h"

#include "base/nan_sum.h"
#include "base/util.h"
#include "report/html.h"
#include "report/phrases.h"
#include "report/report.h"

#include <string.h>

enum { PAGE_ROWS_MAX = 3000, NODE_COLUMNS = 20 };

/* ---- names of devices ---- */

static const struct run_device *device_of(const struct object_at *row)
{
	return row->type == &gpu_type ? ((const struct gpu_finding *)row->data)->device
				      : ((const struct domain_finding *)row->data)->device;
}

static void device_name(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct run_device *device = device_of(row);
	if (!is_page) {
		buf_str(out, device->name);
		return;
	}
	part_name(out, device->name);
	if (device->device[0] == '\0')
		return;
	buf_str(out, " <span class=\"faint small\">");
	part_name(out, device->device);
	buf_str(out, "</span>");
}

/* ---- domains ---- */

static const struct domain_finding *domain_of(const struct object_at *row)
{
	return row->data;
}

static int depth_of(const struct object_at *row)
{
	return is_of_job(row) ? 0 : domain_depth(findings_of(row), domain_of(row));
}

static void domain_name(struct buf *out, const struct object_at *row, bool is_page)
{
	for (int i = is_page ? 0 : depth_of(row); i > 0; i--)
		buf_str(out, "  ");
	device_name(out, row, is_page);
}

static void source(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct domain_finding *d = domain_of(row);
	if (is_page) {
		html_text(out, d->device->source);
		buf_char(out, ' ');
		part_tag(out, d->provenance);
		return;
	}
	buf_str(out, d->provenance == PROVENANCE_ESTIMATED ? "estimated" : d->device->source);
	buf_str(out, d->provenance == PROVENANCE_DERIVED ? ", derived" : "");
}

static void divided_by(struct buf *out, const struct object_at *row, bool is_page)
{
	struct buf words;
	buf_init(&words, 1 << 12);
	phrase_method(&words, domain_of(row)->attribution);
	html_text(out, words.data);
	buf_finish(&words);
}

static void domain_attributes(struct buf *out, const struct object_at *row)
{
	buf_printf(out, " class=\"inside-%d%s\"", depth_of(row), domain_of(row)->in_total ? "" : " beside");
}

static bool is_beside(const struct object_at *row)
{
	return !domain_of(row)->in_total;
}

static const struct column domain_columns[] = {
	{NULL, "", COLUMN_NAME, .write = domain_name},
	{"node", NULL, COLUMN_TEXT, ON_PAGE | OF_JOB},
	{"energy_j", .error = "error_j", .error_title = "error"},
	{"calibration_error_j", .only = ON_PAGE, .print = human_error, .is_optional = true},
	{"mean_w"},
	{"max_w"},
	{"target_j", .only = ON_TEXT},
	{"target_j", .only = ON_PAGE, .error = "target_error_j"},
	{"update_period_s", .only = ON_PAGE},
	{"wraps", .only = ON_PAGE | OF_JOB},
	{"gaps", .only = ON_PAGE},
	{NULL, "source", COLUMN_TEXT, .write = source},
	{NULL, "divided by", COLUMN_TEXT, ON_PAGE, .write = divided_by},
};
static const struct grid domain_grid =
	GRID("domains-table", domain_columns, .attributes = domain_attributes, .is_faint = is_beside);

struct tree {
	const struct findings *findings;
	struct rows *rows;
	const struct object_at *from;
};

static void tree_row(void *data, const struct domain_finding *domain, int depth)
{
	struct tree *tree = data;
	if (tree->rows->at != NULL)
		tree->rows->at[tree->rows->n] = tree->from[domain - tree->findings->domains];
	tree->rows->n++;
}

void section_domains(const struct part *part)
{
	struct rows rows = part_rows(part, "energy.domains"), other = part_rows(part, "energy.domains");
	struct grid grid = domain_grid;
	bool any_beside = false;
	if (rows.n == 0 || other.n == 0)
		return;
	if (part->job == NULL) { // domains are below the domain that contains them
		rows.n = 0;
		grid.is_fixed = true;
		domain_tree(part->f, tree_row, &(struct tree){part->f, &rows, other.at});
	}
	section_begin(part, "domains", title_of_section(SECTION_DOMAINS));
	part_grid(part, &grid, &rows, (struct limits){SIZE_MAX, PAGE_ROWS_MAX, PRINT_DOMAINS});
	for (size_t i = 0; i < rows.n; i++)
		any_beside |= is_beside(&rows.at[i]);
	if (any_beside)
		html_section_note(part,
			is_page(part) ? "Grey rows are not included in the total: they overlap the others."
				      : "core, uncore, psys etc. are not in the total: they overlap other domains.");
	if (!is_page(part))
		html_section_text(part, phrase_calibration);
	section_end(part);
}

/* ---- GPUs ---- */

static const struct column gpu_columns[] = {
	{NULL, "", COLUMN_NAME, .write = device_name},
	{"node", NULL, COLUMN_TEXT, ON_PAGE | OF_JOB},
	{"energy_j", .only = ON_PAGE},
	{"mean_w", .only = ON_PAGE},
	{"max_w", .only = ON_PAGE},
	{"mean_utilization_percent"},
	{"target_mean_utilization_percent"},
	{"max_memory_bytes"},
	{"target_max_memory_bytes"},
	{"memory_total_bytes", .only = ON_PAGE},
#define DEVICE_MAX(id, member, ...) {#member, .is_optional = true},
#include "metric/metrics.def"
	{"throttled_s"},
	{"cap_w"},
};
static const struct grid gpu_grid = GRID("gpus-table", gpu_columns);

void section_gpus(const struct part *part)
{
	struct rows rows = part_rows(part, "gpus");
	if (rows.n == 0)
		return;
	section_begin(part, "gpus", title_of_section(SECTION_GPUS));
	part_grid(part, &gpu_grid, &rows, (struct limits){SIZE_MAX, PAGE_ROWS_MAX, PRINT_GPUS});
	section_end(part);
}

/* ---- kinds of domains: a job has many domains of each ---- */

struct kind {
	const char *name;
	size_t n;
	double energy_j, target_j, mean_w;
	bool in_total;
	enum provenance provenance;
	const char *source;
};

static const char *kind_source(const struct object_at *at, struct buf *scratch)
{
	const struct kind *kind = at->data;
	return kind->provenance == PROVENANCE_ESTIMATED ? "estimated" : kind->source;
}

#define K struct kind
static const struct field kind_fields[] = {
	FIELD(K, name, NULL, "kind of the domains"),
	FIELD(K, n, NULL, "number of domains", .title = "number"),
	FIELD(K, energy_j, "J", "energy of the domains", .title = "energy"),
	FIELD(K, mean_w, "W", "sum of their mean powers", .title = "mean"),
	FIELD(K, target_j, "J", "energy attributed to the ranks", .title = "job"),
	FIELD_TEXT("source", kind_source, NULL, "the sensors", .title = "source"),
};
#undef K
static const struct object_type kind_type = OBJECT_TYPE("kind", "Domains of one kind.", kind_fields);

static bool is_kind_beside(const struct object_at *row)
{
	return !((const struct kind *)row->data)->in_total;
}

static const struct column kind_columns[] = {
	{"name", "", COLUMN_NAME},
	{"n"},
	{"energy_j"},
	{"mean_w"},
	{"target_j"},
	{"source", NULL, COLUMN_TEXT},
};
static const struct grid kind_grid = GRID("kinds-table", kind_columns, .is_faint = is_kind_beside);

static void add_domain(struct kind *kind, const struct domain_finding *d)
{
	kind->n++;
	kind->in_total |= d->in_total;
	if (isnan(d->energy_j))
		return;
	kind->energy_j = nan_sum(kind->energy_j, d->energy_j);
	kind->target_j = isnan(kind->target_j) ? d->ledger.target_j : kind->target_j + d->ledger.target_j;
	kind->mean_w = isnan(kind->mean_w) ? d->mean_w : kind->mean_w + d->mean_w;
	kind->provenance = d->provenance > kind->provenance ? d->provenance : kind->provenance;
	bool is_one = kind->source == NULL || strcmp(kind->source, d->device->source) == 0;
	kind->source = is_one ? d->device->source : "several";
}

void section_kinds(const struct part *part)
{
	const double none = (double)NAN;
	struct kind kinds[DOMAIN_KINDS];
	struct object_at at[DOMAIN_KINDS];
	struct rows rows = {.at = at};
	for (size_t k = 0; k < DOMAIN_KINDS; k++)
		kinds[k] = (struct kind){domain_kind_name((enum domain_kind)k), 0, none, none, none, false,
			PROVENANCE_MEASURED, NULL};
	for (size_t i = 0; i < part->f->n_domains; i++)
		add_domain(&kinds[part->f->domains[i].device->kind], &part->f->domains[i]);
	for (size_t k = 0; k < DOMAIN_KINDS; k++)
		if (kinds[k].n > 0)
			at[rows.n++] = (struct object_at){.type = &kind_type, .data = &kinds[k]};
	if (rows.n == 0)
		return;
	section_begin(part, "kinds", title_of_section(SECTION_KINDS));
	part_grid(part, &kind_grid, &rows, (struct limits){SIZE_MAX, SIZE_MAX, PRINT_NONE});
	section_end(part);
}

/* ---- nodes ---- */

static const struct job_node *node_of(const struct object_at *row)
{
	return row->data;
}

static const struct job_node *counted_on(const struct object_at *row)
{
	int64_t same = node_of(row)->same_machine_as;
	return same >= 0 ? &document_of(row)->job->nodes[same] : NULL;
}

static void node_name(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct job_node *node = node_of(row);
	const char *name = node->name != NULL ? node->name : "a node";
	if (!is_page) {
		buf_str(out, name);
		return;
	}
	part_name(out, name);
	if (node->host != NULL && strcmp(node->host, name) != 0) {
		buf_str(out, " <span class=\"faint small\">");
		part_name(out, node->host);
		buf_str(out, "</span>");
	}
}

static void node_bar(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct job_findings *job = document_of(row)->job;
	double largest_j = 0;
	for (size_t i = 0; i < job->n_nodes; i++)
		largest_j = fmax(largest_j, job->nodes[i].energy_j);
	if (counted_on(row) == NULL && node_of(row)->energy_j > 0)
		ledger_bar(out, "node-bar", &node_of(row)->ledger, largest_j, true);
}

static void node_remark(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct job_node *node = node_of(row), *other = counted_on(row);
	if (other != NULL) {
		const char *name = other->name != NULL ? other->name : "a node";
		buf_str(out, is_page ? "<span class=\"faint small\">same machine as " : "as ");
		if (is_page)
			part_name(out, name);
		else
			text_fit_middle(out, name, NODE_COLUMNS / 2);
		buf_str(out, is_page ? ", counted there</span>" : "");
	} else if (is_page && isfinite(node->energy_j)) {
		part_tag(out, node->provenance);
	}
}

// Energy of the domain kinds named by the field's argument; "": all others.
static double kinds_j(const struct object_at *at)
{
	static const char *const named[] = {"package", "dram", "gpu"};
	const struct job_node *node = node_of(at);
	double sum_j = (double)NAN;
	for (size_t d = 0; d < node->n_domains && node->same_machine_as < 0; d++) {
		const char *kind = domain_kind_name(node->domains[d].device->kind);
		bool is_named = false;
		for (size_t i = 0; i < ARRAY_SIZE(named); i++)
			is_named |= strcmp(named[i], kind) == 0;
		if (node->domains[d].in_total && strcmp(is_named ? kind : "", at->field->argument) == 0)
			sum_j = nan_sum(sum_j, node->domains[d].energy_j);
	}
	return sum_j;
}

static double unmeasured_s(const struct object_at *at)
{
	const struct job_node *node = node_of(at);
	return node->findings != NULL && node->unmeasured_s >= 0.05 ? node->unmeasured_s : (double)NAN;
}

// Empty for a node whose machine is counted in another node's row.
static double counted_j(const struct object_at *at)
{
	return counted_on(at) == NULL ? node_of(at)->energy_j : (double)NAN;
}

static double counted_target_j(const struct object_at *at)
{
	return counted_on(at) == NULL ? node_of(at)->ledger.target_j : (double)NAN;
}

static double counted_w(const struct object_at *at)
{
	return counted_on(at) == NULL ? node_of(at)->mean_w : (double)NAN;
}

static const struct field node_fields[] = {
	FIELD_NUMBER("counted_j", counted_j, "J", "energy of the machine", .title = "energy"),
	FIELD_NUMBER("counted_target_j", counted_target_j, "J", "energy attributed to the ranks", .title = "job"),
	FIELD_NUMBER("counted_w", counted_w, "W", "mean power of the machine", .title = "mean"),
	FIELD_NUMBER("packages_j", kinds_j, "J", "energy of its CPUs", .title = "packages", .argument = "package"),
	FIELD_NUMBER("dram_j", kinds_j, "J", "energy of its memory", .title = "DRAM", .argument = "dram"),
	FIELD_NUMBER("gpus_j", kinds_j, "J", "energy of its GPUs", .title = "GPUs", .argument = "gpu"),
	FIELD_NUMBER("others_j", kinds_j, "J", "energy of its other domains", .title = "others", .argument = ""),
	FIELD_NUMBER("not_read_s", unmeasured_s, "s", "time in which no rank read the sensors", .title = "not read"),
};
static const struct object_type node_more = OBJECT_TYPE("node_more", "A row of the nodes.", node_fields);

static const struct column node_columns[] = {
	{NULL, "", COLUMN_NAME, .write = node_name, .width = NODE_COLUMNS, .is_middle = true},
	{"n_ranks"},
	{"counted_j", .error = "error_j", .error_title = "error"},
	{NULL, "by owner", COLUMN_BAR, ON_PAGE, .write = node_bar},
	{"counted_w"},
	{"counted_target_j"},
	{"packages_j", .only = ON_PAGE, .is_optional = true},
	{"dram_j", .only = ON_PAGE, .is_optional = true},
	{"gpus_j", .only = ON_PAGE, .is_optional = true},
	{"others_j", .only = ON_PAGE, .is_optional = true},
	{"cpu_s"},
	{"not_read_s", .is_optional = true},
	{NULL, "", COLUMN_TEXT, .write = node_remark, .is_optional = true},
};
static const struct grid node_grid = GRID("nodes-table", node_columns, .more = &node_more);

void section_nodes(const struct part *part)
{
	struct rows rows = part_rows(part, "nodes");
	double largest_s = 0;
	section_begin(part, "nodes", title_of_section(SECTION_NODES));
	if (is_page(part) && part->f->total_j > 0)
		ledger_keys(part);
	part_grid(part, &node_grid, &rows, (struct limits){TEXT_ROWS_MAX, PAGE_ROWS_MAX, PRINT_NODES});
	for (size_t i = 0; i < part->job->n_nodes; i++)
		largest_s = fmax(largest_s, part->job->nodes[i].unmeasured_s);
	if (is_page(part) && largest_s >= 0.05)
		html_section_note(part,
			"Not read: time in which ranks ran on the node but none of them read its sensors; "
			"the energy of that time is not included.");
	section_end(part);
}
