#include "model/internal.h"

#include <ctype.h>

struct term {
	const char *at, *end;
};

static int letter_of(char c)
{
	return c >= 'a' ? c - 'a' : c - 'A' + 26;
}

// The letters of one term; "..." becomes `dots` letters. -1: a character that is no letter, or too many.
static int letters(struct term term, int dots, unsigned char *ret_letters)
{
	int n = 0;
	for (const char *c = term.at; c < term.end; c++) {
		if (*c == ' ')
			continue;
		bool is_dots = term.end - c >= 3 && memcmp(c, "...", 3) == 0;
		if ((!is_dots && !isalpha((unsigned char)*c)) || n + (is_dots ? dots : 1) > VALUE_RANK_MAX)
			return -1;
		for (int i = 0; is_dots && i < dots; i++)
			ret_letters[n++] = (unsigned char)(EINSUM_LETTERS - dots + i);
		if (is_dots)
			c += 2;
		else
			ret_letters[n++] = (unsigned char)letter_of(*c);
	}
	return n;
}

static bool has_dots(struct term term)
{
	return memmem(term.at, (size_t)(term.end - term.at), "...", 3) != NULL;
}

static bool read_input(const struct op *op, struct einsum *sum, struct term term, const struct value *value, int *dots)
{
	unsigned char names[VALUE_RANK_MAX];
	int own = letters(term, 0, names);
	if (own < 0 || own > value->rank)
		return false;
	int hidden = has_dots(term) ? value->rank - own : 0;
	if (letters(term, hidden, names) != value->rank)
		return op_contradiction(op, "a term has %d letters for %d dimensions", own, value->rank);
	*dots = hidden > *dots ? hidden : *dots;
	for (int i = 0; i < value->rank; i++) {
		int64_t *size = &sum->sizes[names[i]], dim = value->dims[i];
		bool seen = (sum->used >> names[i] & 1) != 0;
		sum->used |= UINT64_C(1) << names[i];
		if (!seen || *size == 1)
			*size = dim;
		else if (dim != 1 && !dims_unify(*size, dim, size))
			return op_contradiction(op, "sizes %lld and %lld for one letter", (long long)*size,
				(long long)dim);
	}
	return true;
}

// Without "->" the output has the letters that occur once, in alphabetical order.
static int usual_output(const char *left, const char *end, int dots, unsigned char *ret_letters)
{
	unsigned char count[256] = {0};
	int n = 0;
	for (const char *c = left; c < end; c++)
		count[(unsigned char)*c] = count[(unsigned char)*c] < 2 ? count[(unsigned char)*c] + 1 : 2;
	for (int i = 0; i < dots; i++)
		ret_letters[n++] = (unsigned char)(EINSUM_LETTERS - dots + i);
	for (int c = 'A'; c <= 'z'; c++)
		if (isalpha(c) && count[c] == 1) {
			if (n == VALUE_RANK_MAX)
				return -1;
			ret_letters[n++] = (unsigned char)letter_of((char)c);
		}
	return n;
}

bool einsum_read(const struct op *op, struct einsum *ret_sum)
{
	const Onnx__AttributeProto *equation = op_attribute(op, "equation");
	if (equation == NULL || !equation->has_s || equation->s.len == 0)
		return op_contradiction(op, "no equation");
	const char *text = (const char *)equation->s.data, *end = text + equation->s.len;
	const char *arrow = memmem(text, equation->s.len, "->", 2), *left_end = arrow != NULL ? arrow : end;
	*ret_sum = (struct einsum){0};
	int dots = 0;
	const char *at = text;
	for (size_t i = 0; i < op->n_in; i++) {
		const char *comma = memchr(at, ',', (size_t)(left_end - at));
		if (!op_ranked(op, i))
			return false;
		struct term term = {at, comma != NULL ? comma : left_end};
		if ((comma == NULL) != (i + 1 == op->n_in))
			return op_contradiction(op, "the equation is for another number of inputs");
		if (!read_input(op, ret_sum, term, op->in[i], &dots))
			return false;
		at = comma != NULL ? comma + 1 : left_end;
	}
	ret_sum->out_rank = arrow != NULL ? letters((struct term){arrow + 2, end}, dots, ret_sum->out)
					  : usual_output(text, left_end, dots, ret_sum->out);
	for (int i = 0; i < ret_sum->out_rank; i++) {
		ret_sum->kept |= UINT64_C(1) << ret_sum->out[i];
		if ((ret_sum->used >> ret_sum->out[i] & 1) == 0)
			return op_contradiction(op, "the output has a letter that no input has");
	}
	return ret_sum->out_rank >= 0;
}
