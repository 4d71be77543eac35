/* The spans that this thread has open, so that each `with` ends its own.
 *
 * A thread's `with` blocks mostly nest, but those in generators and coroutines that one thread runs in turns cross. So an end
 * names its span: the innermost open one of that object. Spans of an earlier recording are forgotten with it. The list is
 * the thread's own; neither the GIL nor a lock is needed. */
#pragma once

// `span` is an address that tells one Span object from another; nothing is read from it.
void open_spans_begin(const void *span, const char *name);
void open_spans_end(const void *span);
