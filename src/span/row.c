#include "span/row.h"

#include "base/util.h"

const char *const span_close_names[] = {
	[SPAN_ENDED] = "ended",
	[SPAN_OPEN] = "open",
	[SPAN_UNWOUND] = "unwound",
	[SPAN_AT_THREAD_END] = "thread end",
	[SPAN_AT_EXEC] = "exec",
	[SPAN_AT_DEATH] = "death",
	[SPAN_CLOSES] = NULL,
};

const char *const span_kind_names[] = {
	[SPAN_NESTED] = "nested",
	[SPAN_RANGE] = "range",
	[SPAN_KINDS] = NULL,
};

static int find(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

const char *span_close_name(enum span_close close)
{
	return span_close_names[close];
}

int span_close_from_name(const char *name)
{
	return find(span_close_names, SPAN_CLOSES, name);
}

const char *span_kind_name(enum span_kind kind)
{
	return span_kind_names[kind];
}

int span_kind_from_name(const char *name)
{
	return find(span_kind_names, SPAN_KINDS, name);
}
