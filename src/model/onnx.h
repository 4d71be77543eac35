/* ONNX files. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "onnx.pb-c.h"

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

/* The messages of onnx.proto, as protobuf-c makes them, and the numbers of the format. */

enum onnx_type {
	ONNX_UNDEFINED = 0,
	ONNX_FLOAT = 1,
	ONNX_UINT8 = 2,
	ONNX_INT8 = 3,
	ONNX_UINT16 = 4,
	ONNX_INT16 = 5,
	ONNX_INT32 = 6,
	ONNX_INT64 = 7,
	ONNX_STRING = 8,
	ONNX_BOOL = 9,
	ONNX_FLOAT16 = 10,
	ONNX_DOUBLE = 11,
	ONNX_UINT32 = 12,
	ONNX_UINT64 = 13,
	ONNX_COMPLEX64 = 14,
	ONNX_COMPLEX128 = 15,
	ONNX_BFLOAT16 = 16,
	ONNX_FLOAT8_FIRST = 17, // four forms of 8 bits
	ONNX_FLOAT8_LAST = 20,
	ONNX_UINT4 = 21,
	ONNX_INT4 = 22,
	ONNX_FLOAT4 = 23,
	ONNX_FLOAT8_SCALE = 24,
	ONNX_UINT2 = 25,
	ONNX_INT2 = 26,
};

enum { ONNX_LOCATION_EXTERNAL = 1 };

/* A model file without its weights: the same protobuf message with the fields left out that onnx.proto does not name, and
 * the contents of tensors but for small ones (shapes, axes, scales). Only what is kept is read, in windows of a few KB, so
 * a file of many GB costs the pages of its graph. Lengths, depth and size are checked here, before anything is unpacked. */

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

/* Opens an ONNX file: its graph in memory, without its weights. */

enum { ONNX_MEMORY_MAX = 1 << 30 }; // bytes that the unpacked graph may take

// *ret_model lives in the arena. *ret_read_bytes: how much of the file was read.
int onnx_file_read(const char *path, struct arena *arena, const Onnx__ModelProto **ret_model, uint64_t *ret_read_bytes,
	struct wattle_error *reterr);
