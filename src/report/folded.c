#include "report/report.h"

#include "base/util.h"

enum { DECIMALS = 9 };

static void escaped(struct buf *out, const char *name)
{
	if (name[0] == '\0')
		buf_str(out, "\"\"");
	for (const char *c = name; *c != '\0'; c++) {
		if (*c == '\n')
			buf_str(out, "\\n");
		else if (*c == '\\')
			buf_str(out, "\\\\");
		else if (*c == ';' || (unsigned char)*c < 0x20 || *c == 0x7f)
			buf_printf(out, "\\x%02x", (unsigned)(unsigned char)*c);
		else
			buf_char(out, *c);
	}
}

static void stack(struct buf *out, const struct findings *f, uint32_t innermost)
{
	uint32_t frames[STACK_DEPTH_MAX + 1];
	size_t n = 0;
	for (uint32_t i = innermost; i != STACK_NONE && n < ARRAY_SIZE(frames); i = f->stacks[i].parent)
		frames[n++] = i;
	while (n > 0) {
		escaped(out, f->stacks[frames[--n]].name);
		if (n > 0)
			buf_char(out, ';');
	}
}

static void write_weight(struct buf *out, double weight)
{
	buf_char(out, ' ');
	buf_fixed(out, weight, DECIMALS); // no exponents: flame graph tools read decimals only
	buf_char(out, '\n');
}

static bool has_weight(double weight)
{
	return weight >= 0.5e-9; // smaller weights would be written as 0
}

void folded_text(const struct findings *f, enum folded_weight weight, struct buf *out, void (*more)(void *data),
	void *data)
{
	for (uint32_t i = 0; i < f->n_stacks; i++) {
		double own = weight == FOLDED_ENERGY ? f->stacks[i].self_j : f->stacks[i].self_time_s;
		if (!has_weight(own))
			continue;
		stack(out, f, i);
		write_weight(out, own);
		more(data);
	}
	if (weight != FOLDED_ENERGY || !has_weight(f->outside_j))
		return;
	buf_str(out, "[outside]");
	write_weight(out, f->outside_j);
	more(data);
}
