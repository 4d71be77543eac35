#include "report/documents.h"

#include "base/util.h"
#include "report/report.h"
#include "report/section/grid.h"

enum { INDENT_MAX = 30, TREE_DEPTH_MAX = 128 };
static const double tree_min_share = 0.005; // of the whole, below which a call is not printed

struct page {                               // the document, and what its shares are of
	struct functions_finding functions; // first: the data of functions_type
	bool by_time;
	double whole;
};

static double own(const struct page *page, const struct function_finding *function)
{
	return page->by_time ? function->self_cpu_s : function->self_j;
}

static void share(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct page *page = object_document(row);
	if (page->whole > 0)
		human_percent(out, 100 * own(page, row->data) / page->whole);
}

static const struct column columns[] = {
	{"name", .kind = COLUMN_NAME, .is_middle = true},
	{NULL, "share", .write = share},
	{"self_j", .error = "self_error_j", .error_title = "error"},
	{"total_j"},
	{"self_cpu_s"},
	{"total_cpu_s"},
};
static const struct grid functions_grid = GRID(NULL, columns, .heading = "Functions by own energy");
static const struct grid functions_grid_time = GRID(NULL, columns, .heading = "Functions by own CPU time");

static void head(const struct functions_finding *f, struct buf *out, const struct style *style)
{
	buf_printf(out, "\n  %s%lld samples%s   %s, %lld Hz", style->title, (long long)f->samples, style->off, f->event,
		(long long)f->hz);
	if (f->lost > 0)
		buf_printf(out, "   %s%lld records lost%s", style->warning, (long long)f->lost, style->off);
	buf_str(out, "\n\n  Energy   ");
	human_energy(out, f->total_j);
	buf_str(out, ", program ");
	human_energy(out, f->target_j);
	buf_str(out, ", others ");
	human_energy(out, f->others_j);
	buf_str(out, ", idle ");
	human_energy(out, f->idle_j);
	buf_char(out, '\n');
	if (f->samples == 0)
		buf_printf(out, "  %sNo samples: the program used too little CPU time; give a higher --profile=HZ%s\n",
			style->warning, style->off);
}

void functions_text(const struct functions_finding *functions, size_t top, bool by_time, struct buf *out, bool colour)
{
	const struct style *style = style_for(colour);
	struct page page = {*functions, by_time, 0};
	const struct object_at document = {.type = &functions_type, .data = &page};
	for (size_t i = 0; i < functions->n_functions; i++)
		page.whole += own(&page, &functions->functions[i]) > 0 ? own(&page, &functions->functions[i]) : 0;
	size_t n = page.functions.n_functions = top < functions->n_functions ? top : functions->n_functions;
	const struct grid *grid = by_time ? &functions_grid_time : &functions_grid;
	head(functions, out, style);
	grid_list(grid, &document, "functions", out, style);
	if (n < functions->n_functions)
		buf_printf(out, "  %zu more functions: --top N\n", functions->n_functions - n);
	for (size_t i = 0; i < n; i++)
		if (unresolved_mark(functions->functions[i].self_j, functions->functions[i].self_error_j)[0] != '\0') {
			buf_printf(out, "  %s\n", unresolved_note);
			return;
		}
}

/* ---- the call tree ---- */

struct tree {
	const struct functions_finding *functions;
	const char *const *names; // of the functions by number
	bool by_time;
	double whole;
	struct buf *out;
};

static double weight_of(const struct tree *tree, const struct call_finding *call)
{
	return tree->by_time || isnan(call->total_j) ? call->total_cpu_s : call->total_j;
}

static void call_line(const struct tree *tree, const struct call_finding *call, size_t depth)
{
	size_t start = tree->out->size;
	buf_str(tree->out, "  ");
	human_percent(tree->out, 100 * weight_of(tree, call) / tree->whole);
	buf_pad_to(tree->out, start, 11);
	if (tree->by_time || isnan(call->total_j))
		human_short_time(tree->out, call->total_cpu_s);
	else
		human_energy(tree->out, call->total_j);
	buf_pad_to(tree->out, start, 21);
	size_t indent = 2 * depth < INDENT_MAX ? 2 * depth : INDENT_MAX;
	for (size_t i = 0; i < indent; i++)
		buf_char(tree->out, ' ');
	text_fit_middle(tree->out, tree->names[call->function], TEXT_WIDTH - 22 - indent);
	buf_char(tree->out, '\n');
}

struct children { // the calls by caller, the heaviest first
	const uint32_t *order;
	const uint32_t *first; // n_calls + 2: of the calls without a caller, then of each call
};

static void print_calls(const struct tree *tree, const struct children *children, uint32_t list, size_t depth)
{
	for (uint32_t i = children->first[list]; i < children->first[list + 1] && depth < TREE_DEPTH_MAX; i++) {
		const struct call_finding *call = &tree->functions->calls[children->order[i]];
		if (!(weight_of(tree, call) >= tree_min_share * tree->whole))
			continue;
		call_line(tree, call, depth);
		print_calls(tree, children, children->order[i] + 1, depth + 1);
	}
}

static uint32_t list_of(const struct call_finding *call)
{
	return call->parent == STACK_NONE ? 0 : call->parent + 1;
}

static int by_weight(const void *a, const void *b, void *data)
{
	const struct tree *tree = data;
	const struct call_finding *calls = tree->functions->calls;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (list_of(&calls[x]) != list_of(&calls[y]))
		return list_of(&calls[x]) > list_of(&calls[y]) ? 1 : -1;
	double left = weight_of(tree, &calls[x]), right = weight_of(tree, &calls[y]);
	if (left != right)
		return left < right ? 1 : -1;
	return (x > y) - (x < y);
}

void functions_tree_text(const struct functions_finding *functions, const char *const *names, bool by_time,
	struct buf *out, bool colour)
{
	const struct style *style = style_for(colour);
	size_t n = functions->n_calls;
	struct tree tree = {functions, names, by_time, 0, out};
	uint32_t *order = calloc_array(n, sizeof(*order)), *first = calloc_array(n + 2, sizeof(*first));
	head(functions, out, style);
	for (size_t i = 0; order != NULL && i < n; i++) {
		order[i] = (uint32_t)i;
		tree.whole += functions->calls[i].parent == STACK_NONE ? weight_of(&tree, &functions->calls[i]) : 0;
	}
	buf_printf(out, "\n  %sCall tree%s   calls below %s are not printed\n", style->title, style->off, "0.5 %");
	if (order != NULL && first != NULL && n > 0) {
		qsort_r(order, n, sizeof(*order), by_weight, &tree);
		for (size_t i = 0; i < n; i++)
			first[list_of(&functions->calls[i]) + 1]++;
		for (size_t i = 0; i <= n; i++)
			first[i + 1] += first[i];
		print_calls(&tree, &(struct children){order, first}, 0, 0);
	}
	free(order);
	free(first);
}

/* ---- folded stacks ---- */

static void add_frame(struct buf *out, const char *name)
{
	for (const char *c = name; *c != '\0'; c++)
		buf_char(out, *c == ';' ? ':' : (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
}

static void folded_line(const char *const *frames, size_t n, double weight, struct buf *out)
{
	enum { DECIMALS = 9 };
	if (!(weight >= 0.5e-9)) // would be written as 0
		return;
	for (size_t i = 0; i < n; i++) {
		buf_str(out, i > 0 ? ";" : "");
		add_frame(out, frames[i]);
	}
	buf_char(out, ' ');
	buf_fixed(out, weight, DECIMALS); // no exponents: flame graph tools read decimals only
	buf_char(out, '\n');
}

void functions_folded(const struct functions_finding *functions, const char *const *names, bool by_time,
	struct buf *out)
{
	const char *frames[TREE_DEPTH_MAX + 1];
	for (size_t i = 0; i < functions->n_calls; i++) {
		const struct call_finding *call = &functions->calls[i];
		size_t at = ARRAY_SIZE(frames);
		for (uint32_t k = (uint32_t)i; k != STACK_NONE && at > 0; k = functions->calls[k].parent)
			frames[--at] = names[functions->calls[k].function];
		folded_line(frames + at, ARRAY_SIZE(frames) - at, by_time ? call->self_cpu_s : call->self_j, out);
	}
	for (size_t i = 0; i < functions->n_functions; i++) { // rows without code
		const struct function_finding *function = &functions->functions[i];
		if (function->module == NULL)
			folded_line(&function->name, 1, by_time ? function->self_cpu_s : function->self_j, out);
	}
}
