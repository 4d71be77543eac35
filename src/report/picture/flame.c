/* Flame graph of the target's energy: widths are joules, outermost blocks on top. Boxes too narrow to see are omitted;
 * their energy is included in the enclosing box. */
#include "report/picture/internal.h"

#include "base/util.h"
#include "report/report.h"

enum { TOP = 22, ROW = 18, ROWS_MAX = 24, BOXES_MAX = 3000 };
static const double narrowest = 0.7; // pixels

struct flame {
	struct picture *p;
	const struct findings *f;
	double *total_j;        // by stack, including inner blocks
	uint32_t *first, *next; // first child and next sibling; by energy, descending
	uint32_t first_root;
	double whole_j, scale; // pixels per joule
	size_t n_boxes;
};

static double own_j(const struct stack_finding *stack)
{
	return stack->self_j > 0 ? stack->self_j : 0;
}

static double outside_j(const struct findings *f)
{
	return f->outside_j > 0 ? f->outside_j : 0;
}

bool flame_has(const struct charts *charts)
{
	const struct findings *f = charts->findings;
	for (size_t i = 0; i < f->n_stacks; i++)
		if (f->stacks[i].self_j > 0)
			return true;
	return false;
}

// Depth of the graph, including the row of the total.
static size_t depth_of(const struct findings *f)
{
	size_t deepest = 0;
	for (size_t i = 0; i < f->n_stacks; i++) {
		if (!(f->stacks[i].self_j > 0))
			continue;
		size_t depth = 1;
		for (uint32_t at = (uint32_t)i; at != STACK_NONE && depth < ROWS_MAX; at = f->stacks[at].parent)
			depth++;
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest;
}

double flame_height(const struct picture *p)
{
	return TOP + ROW * (double)depth_of(p->f) + 4;
}

/* Children of one parent form a linked list. It is sorted by inserting stacks in ascending order of energy, each at the
 * head of its parent's list. */
struct ranked {
	double j;
	uint32_t stack;
};

static int least_first(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->j != y->j)
		return x->j > y->j ? 1 : -1;
	return (x->stack < y->stack) - (x->stack > y->stack);
}

static bool prepare(struct flame *flame, struct arena *arena)
{
	const struct findings *f = flame->f;
	size_t n = f->n_stacks;
	flame->total_j = arena_alloc(arena, n, sizeof(double));
	flame->first = arena_alloc(arena, n, sizeof(uint32_t));
	flame->next = arena_alloc(arena, n, sizeof(uint32_t));
	struct ranked *ranked = arena_alloc(arena, n, sizeof(*ranked));
	if (flame->total_j == NULL || flame->first == NULL || flame->next == NULL || ranked == NULL)
		return false;
	flame->first_root = STACK_NONE;
	flame->whole_j = outside_j(f);
	for (size_t i = n; i > 0; i--) { // parents precede their children
		const struct stack_finding *stack = &f->stacks[i - 1];
		flame->first[i - 1] = STACK_NONE;
		flame->total_j[i - 1] += own_j(stack);
		if (stack->parent != STACK_NONE)
			flame->total_j[stack->parent] += flame->total_j[i - 1];
		else
			flame->whole_j += flame->total_j[i - 1];
		ranked[i - 1] = (struct ranked){flame->total_j[i - 1], (uint32_t)i - 1};
	}
	qsort(ranked, n, sizeof(*ranked), least_first);
	for (size_t i = 0; i < n; i++) {
		uint32_t stack = ranked[i].stack, parent = f->stacks[stack].parent;
		uint32_t *list = parent != STACK_NONE ? &flame->first[parent] : &flame->first_root;
		flame->next[stack] = *list;
		*list = stack;
	}
	flame->scale = flame->whole_j > 0 ? flame->p->width / flame->whole_j : 0;
	return flame->whole_j > 0;
}

static void box(struct flame *flame, const char *name, enum colour colour, double x, size_t row, double energy_j)
{
	struct picture *p = flame->p;
	double width = energy_j * flame->scale, y = TOP + ROW * (double)row;
	buf_str(p->out, "<g>");
	draw_tip_begin(p);
	draw_name(p->out, name, 0);
	buf_str(p->out, ": ");
	human_energy(p->out, energy_j);
	buf_str(p->out, ", ");
	human_percent(p->out, 100 * energy_j / flame->whole_j);
	draw_tip_end(p);
	draw_rect(p, &(struct draw_style){.colour = colour, .opacity = 0.42}, x, y, fmax(width - 0.6, 0.4), ROW - 1);
	if (width > 28) {
		draw_text_begin(p,
			&(struct draw_text){.x = x + 4, .y = y + 13, .colour = COLOUR_INK, .size = SMALL_TEXT_SIZE});
		draw_name(p->out, name, (width - 8) * TEXT_SIZE / SMALL_TEXT_SIZE);
		draw_text_end(p);
	}
	buf_str(p->out, "</g>\n");
	flame->n_boxes++;
}

static void children(struct flame *flame, uint32_t first, double x, size_t row)
{
	const struct findings *f = flame->f;
	for (uint32_t i = first; i != STACK_NONE; i = flame->next[i]) {
		double width = flame->total_j[i] * flame->scale;
		if (width < narrowest || row >= ROWS_MAX || flame->n_boxes >= BOXES_MAX)
			return; // all following siblings are narrower
		bool is_process = f->stacks[i].parent == STACK_NONE;
		box(flame, f->stacks[i].name,
			is_process ? COLOUR_IDLE
				   : colour_of_block(flame->p->charts, findings_block(f, f->stacks[i].name)),
			x, row, flame->total_j[i]);
		children(flame, flame->first[i], x, row + 1);
		x += width;
	}
}

void flame_draw(struct picture *p)
{
	struct flame flame = {.p = p, .f = p->f};
	if (!prepare(&flame, p->charts->arena))
		return;
	picture_heading(p, "Energy of this program by nested blocks");
	box(&flame, "this program", COLOUR_TARGET, 0, 0, flame.whole_j);
	children(&flame, flame.first_root, 0, 1);
	double outside = outside_j(p->f);
	if (outside * flame.scale >= narrowest)
		box(&flame, "outside blocks", COLOUR_UNATTRIBUTED, p->width - outside * flame.scale, 1, outside);
}

void flame_description(const struct charts *charts, struct buf *out)
{
	const struct findings *f = charts->findings;
	human_energy(out, f->ledger.target_j);
	buf_printf(out, " of this program in %zu nested blocks.", f->n_blocks);
	if (f->outside_j > 0) {
		buf_str(out, " Outside blocks: ");
		human_energy(out, f->outside_j);
		buf_char(out, '.');
	}
}
