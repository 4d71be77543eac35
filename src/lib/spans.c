#include "wattle.h"

#include "span/writer/common.h"

__attribute__((constructor)) static void find_recorder(void)
{
	span_writer_init();
}

SPAN_HOT int wattle_span_begin(const char *name)
{
	return span_writer_is_on() ? span_begin_common(name, NULL) : 0;
}

SPAN_HOT int wattle_span_end(void)
{
	return span_writer_is_on() ? span_end_common() : 0;
}

int wattle_span_enter(const char *name, uint32_t *ret_depth)
{
	if (ret_depth == NULL)
		return wattle_span_begin(name);
	*ret_depth = UINT32_MAX; // spans are never open
	return span_writer_is_on() ? span_begin(name, NULL, ret_depth) : 0;
}

int wattle_span_leave(uint32_t depth)
{
	return span_writer_is_on() ? span_leave(depth) : 0;
}

int wattle_range_begin(const char *name, uint64_t *ret_range)
{
	uint64_t unwanted;
	uint64_t *ret = ret_range != NULL ? ret_range : &unwanted;
	*ret = 0;
	return span_writer_is_on() ? span_range_begin(name, NULL, ret) : 0;
}

int wattle_range_end(uint64_t range)
{
	return span_writer_is_on() ? span_range_end(range) : 0;
}

int wattle_mark(const char *name)
{
	return span_writer_is_on() ? span_mark(name, NULL) : 0;
}

int wattle_metric(const char *name, double value)
{
	return span_writer_is_on() ? span_metric(name, value) : 0;
}

int wattle_is_recording(void)
{
	return span_writer_is_on() && span_writer_is_recording();
}
