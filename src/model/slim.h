/* A model file without its weights: the same protobuf message with the fields left out that onnx.proto does not name, and
 * the contents of tensors but for small ones (shapes, axes, scales). Only what is kept is read, in windows of a few KB, so
 * a file of many GB costs the pages of its graph. Lengths, depth and size are checked here, before anything is unpacked. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

enum {
	SLIM_CONTENTS_MAX = 8192, // bytes of a tensor's contents: 1024 numbers of 64 bits
	SLIM_TEXT_MAX = 65536,    // longer attributes are blobs of some runtime
	SLIM_DEPTH_MAX = 100,     // messages in messages; a graph inside a graph is three of them
	SLIM_CEILING = 256 << 20  // bytes that are kept
};

struct slim_source {
	int fd;              // borrowed; a regular file
	uint64_t size_bytes; // of the file
	const char *name;    // for messages
};

// Appends to `out`, which has its ceiling already. *ret_read_bytes: how much of the file was looked at.
int slim(const struct slim_source *source, const ProtobufCMessageDescriptor *what, struct buf *out,
	uint64_t *ret_read_bytes, struct wattle_error *reterr);
