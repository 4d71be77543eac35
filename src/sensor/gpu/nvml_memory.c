#include "sensor/gpu/nvml_memory.h"

static int get_memory_v2(const struct nvml_board *board, struct nvml_memory *ret_memory)
{
	struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2_VERSION};
	if (board->api->memory_v2 == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = board->api->memory_v2(board->handle, &memory);
	if (code != NVML_SUCCESS)
		return code;
	bool split = memory.reserved_bytes <= memory.total_bytes;
	ret_memory->total_bytes = memory.total_bytes - (split ? memory.reserved_bytes : 0);
	ret_memory->used_bytes = memory.used_bytes;
	return code;
}

static int get_memory_v1(const struct nvml_board *board, struct nvml_memory *ret_memory)
{
	struct nvml_memory_v1 memory;
	if (board->api->memory_v1 == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = board->api->memory_v1(board->handle, &memory);
	if (code != NVML_SUCCESS)
		return code;
	*ret_memory = (struct nvml_memory){memory.total_bytes, memory.used_bytes};
	return code;
}

/* Since R510 the first call counts the driver's own memory among the used, so the second, which came with that driver,
 * is preferred; before R510 the reserved part was hidden in a smaller total. */
int nvml_memory_read(struct nvml_board *board, struct nvml_memory *ret_memory)
{
	if (nvml_asks(board, NVML_QUERY_MEMORY_V2)) {
		int code = nvml_note(board, NVML_QUERY_MEMORY_V2, get_memory_v2(board, ret_memory));
		if (nvml_asks(board, NVML_QUERY_MEMORY_V2))
			return code;
	}
	if (!nvml_asks(board, NVML_QUERY_MEMORY_V1))
		return NVML_NOT_SUPPORTED;
	return nvml_note(board, NVML_QUERY_MEMORY_V1, get_memory_v1(board, ret_memory));
}
