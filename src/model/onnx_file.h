/* Opens an ONNX file: its graph in memory, without its weights. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "model/onnx.h"

#include <stdint.h>

enum { ONNX_MEMORY_MAX = 1 << 30 }; // bytes that the unpacked graph may take

// *ret_model lives in the arena. *ret_read_bytes: how much of the file was read.
int onnx_file_read(const char *path, struct arena *arena, const Onnx__ModelProto **ret_model, uint64_t *ret_read_bytes,
	struct wattle_error *reterr);
