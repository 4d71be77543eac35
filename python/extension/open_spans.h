/* The open spans of this thread, so that each `with` ends its own span. The `with` blocks of a thread usually nest, but
 * those in generators and coroutines that one thread runs alternately can cross. An end therefore ends the innermost open
 * span of its object. Spans of an earlier recording are dropped with it.
 *
 * The list is thread-local; it needs neither the GIL nor a lock. */
#pragma once

// `span`: address that identifies a Span object; it is not dereferenced.
void open_spans_begin(const void *span, const char *name);
void open_spans_end(const void *span);
