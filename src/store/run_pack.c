#include "store/run_read.h"

#include "base/util.h"

#include <errno.h>

int64_t *value_packer_row(struct value_packer *packer, size_t n_values, size_t n)
{
	if (packer->rows == NULL) {
		packer->rows = calloc_array(n_values * VALUE_CHUNK, sizeof(*packer->rows));
		packer->n_values = n_values;
	}
	return packer->rows != NULL ? packer->rows + n % VALUE_CHUNK * n_values : NULL;
}

// Slope from the first to the last value; 0 if the difference is out of range. All arithmetic wraps, so the values are restored
// exactly.
static uint64_t slope_of(const int64_t *values, size_t n)
{
	size_t first = 0, last = n - 1;
	int64_t rise;
	while (first < last && !value_ok(values[first]))
		first++;
	while (last > first && !value_ok(values[last]))
		last--;
	if (first == last || __builtin_sub_overflow(values[last], values[first], &rise))
		return 0;
	return (uint64_t)(rise / (int64_t)(last - first));
}

static void find_range(const int64_t *values, size_t n, uint64_t slope, int64_t *ret_min, int64_t *ret_max,
	bool *ret_any_missing)
{
	int64_t least = INT64_MAX, most = INT64_MIN;
	bool any_missing = false;
	for (size_t i = 0; i < n; i++) {
		int64_t rest = (int64_t)((uint64_t)values[i] - slope * i);
		bool is_known = value_ok(values[i]);
		any_missing |= !is_known;
		least = is_known && rest < least ? rest : least;
		most = is_known && rest > most ? rest : most;
	}
	*ret_min = least;
	*ret_max = most;
	*ret_any_missing = any_missing;
}

// At least one of the values is known. NULL: out of memory.
static const struct value_chunk *pack(struct arena *arena, const int64_t *values, size_t n)
{
	struct value_chunk head = {.slope = (int64_t)slope_of(values, n), .missing = UINT64_MAX};
	int64_t least, most;
	bool any_missing;
	find_range(values, n, (uint64_t)head.slope, &least, &most, &any_missing);
	head.base = least;
	uint64_t codes = (uint64_t)most - (uint64_t)least;
	if (any_missing)
		head.missing = codes = codes < UINT64_MAX ? codes + 1 : codes;
	while (head.width < sizeof(codes) && codes >> (8 * head.width) > 0)
		head.width++;
	head.mask = head.width < sizeof(codes) ? (UINT64_C(1) << (8 * head.width)) - 1 : UINT64_MAX;
	if (head.width == sizeof(codes)) // stored unpacked
		head = (struct value_chunk){.mask = UINT64_MAX,
			.missing = (uint64_t)VALUE_MISSING,
			.width = head.width};
	struct value_chunk *chunk = arena_alloc(arena, 1, sizeof(head) + n * head.width + sizeof(uint64_t));
	if (chunk == NULL)
		return NULL;
	memcpy(chunk, &head, sizeof(head));
	for (size_t i = 0; i < n && head.width > 0; i++) { // each write overwrites the slack bytes of the previous code
		uint64_t code = value_ok(values[i])
			? (uint64_t)values[i] - (uint64_t)head.slope * i - (uint64_t)head.base
			: head.missing;
		code = htole64(code);
		memcpy(chunk->codes + i * head.width, &code, sizeof(code));
	}
	return chunk;
}

bool value_packer_flush(struct value_packer *packer, const size_t *columns, const struct value_chunk ***packed,
	size_t n)
{
	int64_t values[VALUE_CHUNK];
	size_t at = (n - 1) / VALUE_CHUNK, n_rows = n - at * VALUE_CHUNK;
	for (size_t i = 0; i < packer->n_values; i++) {
		const struct value_chunk ***column = &packed[columns[i]];
		bool any = false;
		for (size_t row = 0; row < n_rows; row++) {
			values[row] = packer->rows[row * packer->n_values + i];
			any |= value_ok(values[row]);
		}
		if (!any)
			continue;
		if (*column == NULL)
			*column = arena_alloc(packer->arena, packer->capacity / VALUE_CHUNK + 1, sizeof(**column));
		if (*column == NULL || ((*column)[at] = pack(packer->arena, values, n_rows)) == NULL)
			return false;
	}
	return true;
}

// All columns without any value share one array.
static bool unpack(struct arena *arena, int64_t **values, const struct value_chunk **const *packed, size_t n_columns,
	size_t n)
{
	int64_t *missing = NULL;
	for (size_t c = 0; c < n_columns; c++) {
		struct run_values column = {.chunks = packed[c]};
		bool is_missing = !values_any(column);
		values[c] = is_missing && missing != NULL ? missing : arena_alloc(arena, n, sizeof(*values[c]));
		if (values[c] == NULL)
			return false;
		if (is_missing)
			missing = values[c];
		for (size_t i = 0; i < n; i++)
			values[c][i] = values_at(column, i);
	}
	return true;
}

int run_unpack(struct run *run)
{
	struct run_process_samples *samples = &run->process_samples;
	bool ok = unpack(run->arena, run->values, run->packed, RUN_COUNT, run->n) &&
		unpack(run->arena, samples->values, samples->packed, PROCESS_COUNT, samples->n);
	for (size_t d = 0; ok && d < run->n_devices; d++) {
		struct run_device *device = &run->devices[d];
		ok = unpack(run->arena, device->values, device->packed, DEVICE_COUNT, device->n);
	}
	return ok ? 0 : -ENOMEM;
}
