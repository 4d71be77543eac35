/* Models built in memory with the reader's message definitions, and read by their path in /proc. */
#pragma once

#include "rows.h"

#include "base/util.h"
#include "model/model.h"
#include "model/onnx.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct made_file {
	int fd;
	char path[40];
};

static inline struct made_file made_open(void)
{
	struct made_file file = {.fd = memfd_create("model", MFD_CLOEXEC)};
	assert_true(file.fd >= 0);
	snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
	return file;
}

static inline void made_write(const struct made_file *file, const void *bytes, size_t size)
{
	assert_int_equal(ftruncate(file->fd, 0), 0);
	assert_int_equal(pwrite(file->fd, bytes, size, 0), (ssize_t)size);
}

// Reads the model; an error is one line that names the file.
static inline int made_read(const struct made_file *file, struct arena *arena, struct model_figures *ret_figures)
{
	const struct model_options options = {.batch = VALUE_MISSING};
	struct wattle_error error = {0};
	int r = model_read(file->path, &options, arena, ret_figures, &error);
	if (r < 0) {
		assert_int_equal(error.code, r);
		assert_true(error.text[0] != '\0' && strchr(error.text, '\n') == NULL);
	}
	return r;
}
