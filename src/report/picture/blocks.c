// Bar chart of code block energy with error bars: the blocks with the most energy.
#include "report/picture/internal.h"

#include "base/util.h"
#include "report/report.h"

enum { ROWS_MAX = 16, TOP = 26, ROW = 20, BAR = 12, NAME_WIDTH = 190, FIGURE_WIDTH = 130, BOTTOM = 6 };

struct best {
	const struct block_finding *blocks[ROWS_MAX];
	size_t n, n_known;
};

static struct best find_best(const struct findings *f)
{
	struct best best = {0};
	for (size_t i = 0; i < f->n_blocks; i++) {
		const struct block_finding *block = &f->blocks[i];
		if (isnan(block->total_j))
			continue;
		best.n_known++;
		size_t at = best.n < ROWS_MAX ? best.n : ROWS_MAX;
		while (at > 0 && best.blocks[at - 1]->total_j < block->total_j) {
			if (at < ROWS_MAX)
				best.blocks[at] = best.blocks[at - 1];
			at--;
		}
		if (at < ROWS_MAX)
			best.blocks[at] = block;
		best.n += best.n < ROWS_MAX;
	}
	return best;
}

bool blocks_has(const struct charts *charts)
{
	return find_best(charts->findings).n > 0;
}

double blocks_height(const struct picture *p)
{
	struct best best = find_best(p->f);
	return TOP + ROW * (double)(best.n + (best.n_known > best.n)) + BOTTOM;
}

static void whisker(struct picture *p, double x0, double x1, double y)
{
	const struct draw_style line = {.colour = COLOUR_INK, .is_line = true};
	draw_line(p, &line, x0, y, x1, y);
	draw_line(p, &line, x0, y - 3, x0, y + 3);
	draw_line(p, &line, x1, y - 3, x1, y + 3);
}

static void row(struct picture *p, const struct block_finding *block, double y, double scale)
{
	double middle = y + ROW / 2.0, width = fmax(block->total_j, 0) * scale;
	enum colour colour = colour_of_block(p->charts, (uint32_t)(block - p->f->blocks));
	draw_text_begin(p,
		&(struct draw_text){.x = NAME_WIDTH - 8, .y = middle + 4, .anchor = ANCHOR_END, .colour = COLOUR_INK});
	draw_name(p->out, block->name, NAME_WIDTH - 10);
	draw_text_end(p);
	// Pale if the energy is not resolved.
	draw_rect(p, &(struct draw_style){.colour = colour, .opacity = block->resolved ? 0.85 : 0.3}, NAME_WIDTH,
		middle - BAR / 2.0, width, BAR);
	if (p->f->provenance == PROVENANCE_ESTIMATED)
		draw_hatched(p, false, NAME_WIDTH, middle - BAR / 2.0, width, BAR);
	double low = fmax(block->total_j - block->error_j, 0) * scale, high = (block->total_j + block->error_j) * scale;
	double right = p->width - FIGURE_WIDTH;
	if (block->error_j >= 0)
		whisker(p, NAME_WIDTH + low, fmin(NAME_WIDTH + high, right + 8), middle);
	draw_text_begin(p,
		&(struct draw_text){.x = p->width, .y = middle + 4, .anchor = ANCHOR_END, .colour = COLOUR_INK});
	human_energy(p->out, block->total_j);
	buf_char(p->out, ' ');
	human_error_of(p->out, block->total_j, block->error_j);
	draw_text_end(p);
}

void blocks_draw(struct picture *p)
{
	struct best best = find_best(p->f);
	double max_j = 0;
	for (size_t i = 0; i < best.n; i++) // limits error bars: an extreme error would shrink all bars to nothing
		max_j = fmax(max_j, best.blocks[i]->total_j + fmin(best.blocks[i]->error_j, best.blocks[0]->total_j));
	double capacity = p->width - NAME_WIDTH - FIGURE_WIDTH, scale = max_j > 0 ? capacity / max_j : 0;
	bool is_marked = false;
	for (size_t i = 0; i < best.n; i++)
		is_marked |= unresolved_mark(best.blocks[i]->total_j, best.blocks[i]->error_j)[0] != '\0';
	picture_heading(p,
		is_marked ? "Energy of code blocks, inner blocks included (?: the error is as large as the value)"
			  : "Energy of code blocks, inner blocks included");
	for (size_t i = 0; i < best.n; i++)
		row(p, best.blocks[i], TOP + ROW * (double)i, scale);
	if (best.n_known == best.n)
		return;
	draw_text_begin(p,
		&(struct draw_text){.x = NAME_WIDTH,
			.y = TOP + ROW * (double)best.n + 14,
			.colour = COLOUR_FAINT,
			.size = SMALL_TEXT_SIZE});
	buf_printf(p->out, "and %zu more", best.n_known - best.n);
	draw_text_end(p);
}

void blocks_description(const struct charts *charts, struct buf *out)
{
	enum { TOLD_MAX = 8 };
	struct best best = find_best(charts->findings);
	buf_printf(out, "%zu blocks, those with the most energy:", best.n_known);
	for (size_t i = 0; i < best.n && i < TOLD_MAX; i++) {
		buf_char(out, ' ');
		draw_name(out, best.blocks[i]->name, 0);
		buf_char(out, ' ');
		human_energy(out, best.blocks[i]->total_j);
		buf_char(out, ' ');
		human_error_of(out, best.blocks[i]->total_j, best.blocks[i]->error_j);
		buf_char(out, ';');
	}
}
