#include "model/onnx.h"

#include "base/cleanup.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { OPSETS_MAX = 1000 };

struct memory { // protobuf-c's allocator: an arena, freed as a whole
	struct arena *arena;
	size_t left_bytes;
	bool exhausted;
};

static void *memory_alloc(void *data, size_t size)
{
	struct memory *memory = data;
	void *start = size <= memory->left_bytes ? arena_alloc(memory->arena, 1, size) : NULL;
	if (start == NULL)
		memory->exhausted = true;
	else
		memory->left_bytes -= size;
	return start;
}

static void memory_free(void *data, void *start)
{
	(void)data;
	(void)start;
}

static int unpack(const struct buf *bytes, const char *path, struct arena *arena, const Onnx__ModelProto **ret_model,
	struct wattle_error *reterr)
{
	struct memory memory = {arena, ONNX_MEMORY_MAX, false};
	ProtobufCAllocator allocator = {memory_alloc, memory_free, &memory};
	const Onnx__ModelProto *model = onnx__model_proto__unpack(&allocator, bytes->size,
		(const uint8_t *)bytes->data);
	if (model == NULL && memory.exhausted)
		return error_set(reterr, -EFBIG, "%s: its graph without the weights takes more than %d MB", path,
			ONNX_MEMORY_MAX >> 20);
	if (model == NULL)
		return error_set(reterr, -EBADMSG,
			"%s is damaged or not an ONNX model: its fields do not have ONNX's types", path);
	*ret_model = model;
	return 0;
}

// Each node searches this list linearly: a list as long as the graph would take quadratic time.
static bool has_many_sets(const Onnx__ModelProto *model)
{
	bool many = model->n_opset_import > OPSETS_MAX;
	for (size_t i = 0; i < model->n_functions; i++)
		many = many || model->functions[i]->n_opset_import > OPSETS_MAX;
	return many;
}

// A file cut between two fields, or bytes that happen to parse as fields, lack some of these.
static int check(const Onnx__ModelProto *model, const char *path, struct wattle_error *reterr)
{
	const char *lacks = model->graph == NULL ? "graph"
		: model->n_opset_import == 0     ? "operator set"
		: !model->has_ir_version         ? "IR version"
						 : NULL;
	if (lacks != NULL)
		return error_set(reterr, -EBADMSG, "%s is damaged or not an ONNX model: it has no %s", path, lacks);
	if (has_many_sets(model))
		return error_set(reterr, -EFBIG, "%s imports more than %d operator sets", path, OPSETS_MAX);
	return 0;
}

static int open_regular(const char *path, struct stat *ret_stat, struct wattle_error *reterr)
{
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return error_set(reterr, -errno, "can't open %s: %s", path, strerror(errno));
	if (!S_ISREG(ret_stat->st_mode))
		return error_set(reterr, -EINVAL, "%s is not a regular file; wattle model reads an ONNX file", path);
	if (ret_stat->st_size == 0)
		return error_set(reterr, -EBADMSG, "%s is empty", path);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); // no read-ahead of skipped data
	return take_fd(&fd);
}

int onnx_file_read(const char *path, struct arena *arena, const Onnx__ModelProto **ret_model, uint64_t *ret_read_bytes,
	struct wattle_error *reterr)
{
	struct stat stat;
	wattle_cleanup_close int fd = open_regular(path, &stat, reterr);
	if (fd < 0)
		return fd;
	const struct skip_weights_source source = {fd, (uint64_t)stat.st_size, path};
	struct buf bytes;
	buf_init(&bytes, SKIP_WEIGHTS_CEILING);
	int r = skip_weights(&source, &onnx__model_proto__descriptor, &bytes, ret_read_bytes, reterr);
	if (r == 0)
		r = unpack(&bytes, path, arena, ret_model, reterr);
	buf_finish(&bytes);
	return r < 0 ? r : check(*ret_model, path, reterr);
}
