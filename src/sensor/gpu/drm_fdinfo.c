#include "sensor/gpu/drm.h"

#include "base/num.h"
#include "base/util.h"

#include <ctype.h>

// amdgpu, i915 and xe use different names for the same engines.
static const struct {
	const char *name;
	enum drm_engine engine;
} engine_names[] = {
	{"gfx", DRM_RENDER},
	{"render", DRM_RENDER},
	{"rcs", DRM_RENDER},
	{"compute", DRM_COMPUTE},
	{"ccs", DRM_COMPUTE},
};

static const struct {
	const char *name;
	int64_t bytes;
} sizes[] = {{"", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};

/* Which memory key counts. "Resident" is memory that lies there now; drm-memory-, used by older kernels, means the same.
 * drm-total- also counts evicted memory and is used only as a fallback. */
enum amount { AMOUNT_TOTAL, AMOUNT_MEMORY, AMOUNT_RESIDENT, AMOUNTS };
static const char *const amount_keys[AMOUNTS] = {"drm-total-", "drm-memory-", "drm-resident-"};

// "123 KiB", "123 ns", "123": the number and what follows it.
static bool read_number(const char *value, int64_t *ret_number, const char **ret_unit)
{
	uint64_t number;
	char digits[24];
	size_t length = strspn(value, "0123456789");
	if (length == 0 || length >= sizeof(digits))
		return false;
	memcpy(digits, value, length);
	digits[length] = '\0';
	if (num_parse_u64(digits, &number) < 0 || number > INT64_MAX)
		return false;
	*ret_number = (int64_t)number;
	*ret_unit = value + length + strspn(value + length, " \t");
	return true;
}

static int64_t read_bytes(const char *value)
{
	int64_t number, bytes;
	const char *unit;
	if (!read_number(value, &number, &unit))
		return VALUE_MISSING;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (strcmp(unit, sizes[i].name) == 0 && !__builtin_mul_overflow(number, sizes[i].bytes, &bytes))
			return bytes;
	return VALUE_MISSING;
}

static const char *after(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);
	return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static struct drm_engine_use *find_engine(struct drm_fdinfo *info, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(engine_names); i++)
		if (strcmp(engine_names[i].name, name) == 0)
			return &info->engines[engine_names[i].engine];
	return NULL;
}

// Parses the four kinds of engine lines. Capacity comes first because its key is an extension of another key.
static void read_engine(struct drm_fdinfo *info, const char *key, const char *value)
{
	static const struct {
		const char *prefix;
		size_t offset;
	} kinds[] = {
		{"drm-engine-capacity-", offsetof(struct drm_engine_use, capacity)},
		{"drm-engine-", offsetof(struct drm_engine_use, busy)},
		{"drm-cycles-", offsetof(struct drm_engine_use, busy)},
		{"drm-total-cycles-", offsetof(struct drm_engine_use, cycles)},
	};
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *name = after(key, kinds[i].prefix), *unit;
		if (name == NULL)
			continue;
		struct drm_engine_use *use = find_engine(info, name);
		int64_t number;
		if (use != NULL && read_number(value, &number, &unit))
			memcpy((char *)use + kinds[i].offset, &number, sizeof(number));
		return;
	}
}

// Regions on the card: vram, vram0 (amdgpu, xe), local0 (i915). Other regions are system memory.
static void read_memory(const char *key, const char *value, int64_t amounts[AMOUNTS])
{
	for (size_t i = 0; i < AMOUNTS; i++) {
		const char *region = after(key, amount_keys[i]);
		if (region == NULL || (after(region, "vram") == NULL && after(region, "local") == NULL))
			continue;
		int64_t bytes = read_bytes(value);
		if (value_ok(bytes))
			amounts[i] = value_ok(amounts[i]) ? amounts[i] + bytes : bytes;
	}
}

static void read_line(struct drm_fdinfo *info, const char *key, const char *value, int64_t amounts[AMOUNTS])
{
	if (strcmp(key, "drm-pdev") == 0)
		text_copy(info->pdev, sizeof(info->pdev), value);
	else if (strcmp(key, "drm-client-id") == 0)
		info->has_client = num_parse_u64(value, &info->client) == 0;
	else if (strncmp(key, "drm-", 4) == 0) {
		read_engine(info, key, value);
		read_memory(key, value, amounts);
	}
}

// Splits "key: value" in place and trims blanks around the value.
static char *split(char *line)
{
	char *colon = strchr(line, ':');
	if (colon == NULL)
		return NULL;
	*colon = '\0';
	char *value = colon + 1 + strspn(colon + 1, " \t");
	for (char *end = value + strlen(value); end > value && isspace((unsigned char)end[-1]);)
		*--end = '\0';
	return value;
}

bool drm_fdinfo_parse(char *text, struct drm_fdinfo *ret_info)
{
	struct drm_fdinfo info = {.memory_bytes = VALUE_MISSING};
	int64_t amounts[AMOUNTS] = {VALUE_MISSING, VALUE_MISSING, VALUE_MISSING};
	for (size_t i = 0; i < DRM_ENGINES; i++)
		info.engines[i] = (struct drm_engine_use){VALUE_MISSING, VALUE_MISSING, 1};
	char *rest = text;
	for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
		char *value = split(line);
		if (value != NULL)
			read_line(&info, line, value, amounts);
	}
	for (size_t i = 0; i < AMOUNTS; i++)
		if (value_ok(amounts[i]))
			info.memory_bytes = amounts[i];
	for (size_t i = 0; i < DRM_ENGINES; i++)
		if (info.engines[i].capacity < 1)
			info.engines[i].capacity = 1;
	*ret_info = info;
	return info.pdev[0] != '\0' && info.has_client;
}
