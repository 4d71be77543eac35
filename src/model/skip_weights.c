#include "model/onnx.h"

#include "base/util.h"
#include "onnx.pb-c.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

enum { WINDOW_SIZE = 16384, LENGTH_BYTES = 5, VARINT_BYTES_MAX = 10 };
enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { FIELD_RAW_DATA = 9, FIELD_RAW_BYTES = 1000 };

struct reader {
	const struct skip_weights_source *source;
	struct buf *out;
	struct wattle_error *reterr;
	uint64_t at;           // offset in the file of the next byte
	uint64_t window_start; // offset of the window in the file
	size_t window_size;
	uint64_t read_bytes;
	unsigned char window[WINDOW_SIZE];
};

struct tensor { // contents of one tensor while its message is read
	size_t kept_bytes;
	uint64_t raw_bytes;
	bool has_raw;
};

static int damaged(struct reader *r, const char *what)
{
	return error_set(r->reterr, -EBADMSG, "%s is damaged or not an ONNX model: %s at byte %" PRIu64,
		r->source->name, what, r->at);
}

static int fill(struct reader *r)
{
	ssize_t n;
	do
		n = pread(r->source->fd, r->window, sizeof(r->window), (off_t)r->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(r->reterr, -errno, "can't read %s: %s", r->source->name, strerror(errno));
	if (n == 0)
		return damaged(r, "the file ends");
	r->window_start = r->at;
	r->window_size = (size_t)n;
	r->read_bytes += (uint64_t)n;
	return 0;
}

static bool in_window(const struct reader *r)
{
	return r->at >= r->window_start && r->at - r->window_start < r->window_size;
}

static int byte(struct reader *r, uint64_t end, unsigned char *ret_byte)
{
	if (r->at >= end)
		return damaged(r, "a field extends beyond the end of its message");
	int failed = in_window(r) ? 0 : fill(r);
	if (failed < 0)
		return failed;
	*ret_byte = r->window[r->at - r->window_start];
	r->at++;
	return 0;
}

static int varint(struct reader *r, uint64_t end, uint64_t *ret_value)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < VARINT_BYTES_MAX; i++) {
		unsigned char b = 0;
		int failed = byte(r, end, &b);
		if (failed < 0)
			return failed;
		value |= (uint64_t)(b & 0x7f) << (7 * i);
		if ((b & 0x80) == 0) {
			*ret_value = value;
			return 0;
		}
	}
	return damaged(r, "a number has more than 10 bytes");
}

static void put_varint(struct buf *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		buf_char(out, (char)(value | 0x80));
	buf_char(out, (char)value);
}

// The length of a message is known only after writing it, so it has a fixed-size placeholder of maximum length.
static void set_length(struct buf *out, size_t where)
{
	size_t length = out->size - where - LENGTH_BYTES;
	for (int i = 0; i < LENGTH_BYTES; i++, length >>= 7)
		out->data[where + (size_t)i] = (char)((length & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
}

static int copy(struct reader *r, uint64_t n)
{
	while (n > 0) {
		int failed = in_window(r) ? 0 : fill(r);
		if (failed < 0)
			return failed;
		size_t start = (size_t)(r->at - r->window_start), there = r->window_size - start;
		size_t part = n < there ? (size_t)n : there;
		buf_add(r->out, r->window + start, part);
		r->at += part;
		n -= part;
	}
	return 0;
}

static bool is_contents(const ProtobufCMessageDescriptor *what, const ProtobufCFieldDescriptor *field)
{
	if (what != &onnx__tensor_proto__descriptor || field == NULL)
		return false;
	static const uint32_t contents[] = {4, 5, 7, FIELD_RAW_DATA, 10, 11};
	for (size_t i = 0; i < ARRAY_SIZE(contents); i++)
		if (field->id == contents[i])
			return true;
	return false;
}

static bool is_kept(struct tensor *tensor, const ProtobufCMessageDescriptor *what,
	const ProtobufCFieldDescriptor *field, uint64_t length)
{
	if (!is_contents(what, field))
		return length <= SKIP_WEIGHTS_TEXT_MAX ||
			(field->type != PROTOBUF_C_TYPE_BYTES && field->type != PROTOBUF_C_TYPE_STRING);
	if (length > SKIP_WEIGHTS_CONTENTS_MAX - tensor->kept_bytes)
		return false;
	tensor->kept_bytes += (size_t)length;
	return true;
}

static int message(struct reader *r, const ProtobufCMessageDescriptor *what, uint64_t end, int depth);

static int delimited(struct reader *r, const ProtobufCMessageDescriptor *what, const ProtobufCFieldDescriptor *field,
	uint64_t tag, uint64_t end, int depth, struct tensor *tensor)
{
	uint64_t length;
	int failed = varint(r, end, &length);
	if (failed < 0)
		return failed;
	if (length > end - r->at)
		return damaged(r,
			r->at + length > r->source->size_bytes || length > r->source->size_bytes
				? "the file ends inside a field"
				: "a field extends beyond the end of its message");
	if (what == &onnx__tensor_proto__descriptor && field != NULL && field->id == FIELD_RAW_DATA) {
		tensor->has_raw = true;
		tensor->raw_bytes = length;
	}
	if (field == NULL || (field->type != PROTOBUF_C_TYPE_MESSAGE && !is_kept(tensor, what, field, length))) {
		r->at += length;
		return 0;
	}
	put_varint(r->out, tag);
	if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
		put_varint(r->out, length);
		return copy(r, length);
	}
	size_t where = r->out->size;
	buf_add(r->out, "\0\0\0\0", LENGTH_BYTES);
	failed = message(r, field->descriptor, r->at + length, depth + 1);
	if (failed == 0 && r->out->failed == 0)
		set_length(r->out, where);
	return failed;
}

static int number(struct reader *r, const ProtobufCMessageDescriptor *what, const ProtobufCFieldDescriptor *field,
	uint64_t tag, uint64_t end, struct tensor *tensor)
{
	uint64_t start = r->at, ignored, size = (tag & 7) == WIRE_64 ? 8 : 4;
	int failed = 0;
	if ((tag & 7) == WIRE_VARINT)
		failed = varint(r, end, &ignored);
	else if (size > end - r->at)
		failed = damaged(r, "a field extends beyond the end of its message");
	else
		r->at += size;
	if (failed < 0 || field == NULL || !is_kept(tensor, what, field, r->at - start))
		return failed;
	size = r->at - start;
	r->at = start;
	put_varint(r->out, tag);
	return copy(r, size);
}

static int one_field(struct reader *r, const ProtobufCMessageDescriptor *what, uint64_t end, int depth,
	struct tensor *tensor)
{
	uint64_t tag;
	int failed = varint(r, end, &tag);
	if (failed < 0)
		return failed;
	if (tag >> 3 == 0 || tag >> 3 > (1 << 29) - 1)
		return damaged(r, "a field has no valid number");
	const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(what, (unsigned)(tag >> 3));
	if (field != NULL && field->id == FIELD_RAW_BYTES)
		field = NULL;
	switch (tag & 7) {
	case WIRE_BYTES:
		return delimited(r, what, field, tag, end, depth, tensor);
	case WIRE_VARINT:
	case WIRE_64:
	case WIRE_32:
		return number(r, what, field, tag, end, tensor);
	default:
		return damaged(r, "a field has no valid type");
	}
}

static int message(struct reader *r, const ProtobufCMessageDescriptor *what, uint64_t end, int depth)
{
	if (depth > SKIP_WEIGHTS_DEPTH_MAX)
		return error_set(r->reterr, -EBADMSG, "%s nests graphs in graphs deeper than %d messages",
			r->source->name, SKIP_WEIGHTS_DEPTH_MAX);
	struct tensor tensor = {0};
	while (r->at < end) {
		int failed = one_field(r, what, end, depth, &tensor);
		if (failed < 0)
			return failed;
		if (r->out->failed != 0)
			return error_set(r->reterr, r->out->failed,
				"%s: its graph without the weights takes more than %zu MB", r->source->name,
				r->out->ceiling >> 20);
	}
	if (tensor.has_raw) {
		put_varint(r->out, FIELD_RAW_BYTES << 3 | WIRE_VARINT);
		put_varint(r->out, tensor.raw_bytes);
	}
	return 0;
}

int skip_weights(const struct skip_weights_source *source, const ProtobufCMessageDescriptor *what, struct buf *out,
	uint64_t *ret_read_bytes, struct wattle_error *reterr)
{
	struct reader *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return error_set(reterr, -ENOMEM, "out of memory reading %s", source->name);
	r->source = source;
	r->out = out;
	r->reterr = reterr;
	int failed = message(r, what, source->size_bytes, 0);
	if (failed == 0)
		*ret_read_bytes = r->read_bytes;
	free(r);
	return failed;
}
