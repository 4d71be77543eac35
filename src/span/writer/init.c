#include "span/writer/internal.h"
#include "span/writer/thread.h"
#include "span/writer/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct {
	bool is_initialised, is_disabled;
} writer;

/* secure_getenv: a set-uid program must neither write files nor connect to sockets named by its caller. */
void span_writer_init(void)
{
	if (writer.is_initialised)
		return;
	writer.is_initialised = true;
	int saved_errno = errno;
	const char *disable = secure_getenv("WATTLE_DISABLE");
	const char *path = secure_getenv("WATTLE_SPANS");
	const char *ring = secure_getenv("WATTLE_RING");
	writer.is_disabled = disable != NULL && strcmp(disable, "1") == 0;
	span_threads_init();
	if (!writer.is_disabled && path != NULL && path[0] != '\0')
		span_source_set_file(path);
	if ((ring == NULL || span_writer_connect(ring) < 0) && span_source_path()[0] != '\0')
		span_writer_disconnect();
	errno = saved_errno;
}

int span_writer_connect(const char *ring)
{
	span_writer_init();
	struct ring_address address;
	int r = ring_address_parse(ring, &address);
	if (r < 0)
		return r;
	return writer.is_disabled ? 0 : span_source_begin(&address);
}

void span_writer_disconnect(void)
{
	(void)span_source_begin(NULL);
}
