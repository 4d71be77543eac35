/* Reading a file without its weights: what is kept, left out and refused. */
#include "model/onnx.h"

#include "model_builder.h"

#include <errno.h>

#define BYTES(...) (const unsigned char[]){__VA_ARGS__}, sizeof((const unsigned char[]){__VA_ARGS__})

static const struct row {
	const char *teaches;
	const unsigned char *bytes;
	size_t size;
	int result;
} rows[] = {
	{"unknown fields of every type: skipped",
		BYTES(0x98, 0x06, 7, 0x91, 0x06, 1, 2, 3, 4, 5, 6, 7, 8, 0x9d, 0x06, 1, 2, 3, 4, 0x9a, 0x06, 2, 9, 9),
		0},
	{"groups, which the format does not have: refused", BYTES(0x0b, 0x0c), -EBADMSG},
	{"field number 0: refused", BYTES(0x00, 0x01), -EBADMSG},
	{"number of more than 10 bytes: refused",
		BYTES(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), -EBADMSG},
	{"length beyond the end of the file: refused", BYTES(0x3a, 0x7f, 0x0a), -EBADMSG},
	{"length beyond the end of the enclosing message: refused", BYTES(0x3a, 0x02, 0x0a, 0x05, 0, 0, 0, 0, 0),
		-EBADMSG},
	{"length of 64 bits: refused", BYTES(0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
		-EBADMSG},
	{"file that ends within a number: refused", BYTES(0x08, 0x80), -EBADMSG},
};

static int stripped_bytes(const void *bytes, size_t size, struct buf *out, uint64_t *ret_read_bytes)
{
	struct made_file file = made_open();
	made_write(&file, bytes, size);
	const struct skip_weights_source source = {file.fd, size, "made"};
	struct wattle_error error = {0};
	buf_init(out, 1 << 20);
	int r = skip_weights(&source, &onnx__model_proto__descriptor, out, ret_read_bytes, &error);
	assert_true((r < 0) == (error.text[0] != '\0'));
	close(file.fd);
	return r;
}

static void check(void **state)
{
	const struct row *row = *state;
	struct buf out;
	uint64_t read_bytes;
	assert_int_equal(stripped_bytes(row->bytes, row->size, &out, &read_bytes), row->result);
	if (row->result == 0)
		assert_int_equal(out.size, 0);
	buf_finish(&out);
}

enum { LARGE = 100000 };

static void weights_are_left_out(void **state)
{
	static char name[] = "w";
	static uint8_t zeros[LARGE];
	Onnx__TensorProto small = ONNX__TENSOR_PROTO__INIT, large = ONNX__TENSOR_PROTO__INIT;
	small.has_raw_data = large.has_raw_data = true;
	small.raw_data = (ProtobufCBinaryData){24, zeros};
	large.raw_data = (ProtobufCBinaryData){LARGE, zeros};
	large.name = name;
	Onnx__TensorProto *both[] = {&small, &large};
	Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
	graph.initializer = both;
	graph.n_initializer = 2;
	Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
	model.graph = &graph;
	size_t size = onnx__model_proto__get_packed_size(&model);
	uint8_t *bytes = malloc(size);
	onnx__model_proto__pack(&model, bytes);
	struct buf out;
	uint64_t read_bytes;
	assert_int_equal(stripped_bytes(bytes, size, &out, &read_bytes), 0);
	assert_true(out.size < 100 && read_bytes < LARGE / 2);
	Onnx__ModelProto *read = onnx__model_proto__unpack(NULL, out.size, (const uint8_t *)out.data);
	assert_non_null(read);
	assert_int_equal(read->graph->n_initializer, 2);
	assert_int_equal(read->graph->initializer[0]->raw_data.len, 24);
	assert_int_equal(read->graph->initializer[1]->raw_data.len, 0);
	assert_int_equal(read->graph->initializer[1]->raw_bytes, LARGE);
	assert_string_equal(read->graph->initializer[1]->name, "w");
	onnx__model_proto__free_unpacked(read, NULL);
	buf_finish(&out);
	free(bytes);
}

// Graph > node > attribute > graph …: 0x3a, then 0x0a, 0x2a, 0x32 repeated, written from the innermost one outwards.
static void deep_graphs_are_refused(void **state)
{
	static const unsigned char tags[] = {0x0a, 0x2a, 0x32};
	unsigned char bytes[4000];
	size_t at = sizeof(bytes);
	for (int i = 0; i < 600; i++) {
		size_t length = sizeof(bytes) - at;
		bytes[--at] = (unsigned char)(length >> 7 & 0x7f);
		bytes[--at] = (unsigned char)(length & 0x7f) | 0x80;
		bytes[--at] = i == 599 ? 0x3a : tags[(598 - i) % 3];
	}
	struct buf out;
	uint64_t read_bytes;
	assert_int_equal(stripped_bytes(bytes + at, sizeof(bytes) - at, &out, &read_bytes), -EBADMSG);
	buf_finish(&out);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "large contents are skipped and their length recorded, small ones are kept",
		weights_are_left_out);
	ROWS_ADD_ONE(&tests, "graphs nested too deep: refused", deep_graphs_are_refused);
	return rows_run(&tests, "a file without its weights");
}
