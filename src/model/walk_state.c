/* Allocation, warnings and the error of a walk. */
#include "model/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

// Names come from the file: control characters must not break lines or reach the terminal.
static void make_printable(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

struct sentence {
	char text[512];
};

static __attribute__((format(printf, 1, 0))) struct sentence sentence_of(const char *format, va_list arguments)
{
	struct sentence sentence;
	vsnprintf(sentence.text, sizeof(sentence.text), format, arguments);
	make_printable(sentence.text);
	return sentence;
}

void walk_fail(struct walk *walk, int code, const char *format, ...)
{
	if (walk->failed < 0)
		return;
	va_list arguments;
	va_start(arguments, format);
	const struct sentence sentence = sentence_of(format, arguments);
	va_end(arguments);
	walk->failed = error_set(walk->reterr, code, "%s", sentence.text);
}

void walk_warn(struct walk *walk, const char *format, ...)
{
	if (walk->n_warnings == WALK_WARNINGS_MAX || walk->silent > 0)
		return;
	va_list arguments;
	va_start(arguments, format);
	const struct sentence sentence = sentence_of(format, arguments);
	va_end(arguments);
	const char *copy = arena_text(walk->arena, sentence.text);
	if (copy != NULL)
		walk->warnings[walk->n_warnings++] = copy;
}

void *walk_alloc(struct walk *walk, size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n > 0 ? n : 1, size, &bytes) || bytes > WALK_MEMORY_MAX - walk->taken_bytes) {
		walk_fail(walk, -EFBIG, "%s: following its graph takes more than %d MB", walk->path,
			WALK_MEMORY_MAX >> 20);
		return NULL;
	}
	walk->taken_bytes += bytes;
	void *start = arena_alloc(walk->arena, 1, bytes);
	if (start == NULL)
		walk_fail(walk, -ENOMEM, "out of memory for the graph of %s", walk->path);
	return start;
}

const char *node_name(const Onnx__NodeProto *node)
{
	if (node->name != NULL && node->name[0] != '\0')
		return node->name;
	for (size_t i = 0; i < node->n_output; i++)
		if (node->output[i][0] != '\0')
			return node->output[i];
	return node->op_type != NULL ? node->op_type : "";
}
