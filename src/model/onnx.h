/* The messages of onnx.proto, as protobuf-c makes them, and the numbers of the format. */
#pragma once

#include "onnx.pb-c.h"

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
