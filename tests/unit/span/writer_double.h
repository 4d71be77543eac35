/* Replaces the writer of spans: the calls of a capture are logged as text, "begin a; end; " and so on. Spans nest as
 * they do there; range numbers count from 1. */
#pragma once

#include "span/writer/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SPAN_ON = 1 };
_Atomic int span_writer_state = SPAN_ON;
static char told[1 << 16];
static uint64_t last_range;

static int say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int say(const char *format, ...)
{
	size_t at = strlen(told);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(told + at, sizeof(told) - at, format, arguments);
	va_end(arguments);
	return 0;
}

static void forget(void)
{
	told[0] = '\0';
	last_range = 0;
	span_writer_state = SPAN_ON;
}

static int say_named(const char *what, const char *name, const char *category)
{
	return say("%s %s%s%s%s; ", what, name, category != NULL ? " [" : "", category != NULL ? category : "",
		category != NULL ? "]" : "");
}

void span_writer_init(void)
{
}

void span_writer_disconnect(void)
{
	span_writer_state = SPAN_OFF;
	say("disconnect; ");
}

int span_begin(const char *name, const char *category, uint32_t *ret_depth)
{
	return say_named("begin", name, category);
}

int span_end(void)
{
	return say("end; ");
}

int span_end_below(uint32_t n_inner)
{
	return say("end below %u; ", n_inner);
}

int span_range_begin(const char *name, const char *category, uint64_t *ret_range)
{
	*ret_range = ++last_range;
	say_named("range", name, category);
	return say("(%llu); ", (unsigned long long)*ret_range);
}

int span_range_end(uint64_t range)
{
	return say("end (%llu); ", (unsigned long long)range);
}

int span_mark(const char *name, const char *category)
{
	return say_named("mark", name, category);
}

int span_metric(const char *name, double value)
{
	return say("%s = %.17g; ", name, value);
}
