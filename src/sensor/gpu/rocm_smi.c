#include "sensor/gpu/drm.h"

#include "base/dl.h"
#include "base/util.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

enum {
	NOT_THERE = -1,
	RSMI_SUCCESS = 0,
	RSMI_VRAM = 0,
	RSMI_EDGE = 0,
	RSMI_JUNCTION = 1,
	RSMI_MEMORY = 2,
	RSMI_CURRENT = 0,
	GPUS_MAX = 256
};

/* SYMBOL(member, need, (arguments), names…) */
// clang-format off
#define ROCM_SYMBOLS(SYMBOL) \
	SYMBOL(init, DL_REQUIRED, (uint64_t), "rsmi_init") \
	SYMBOL(shut_down, DL_REQUIRED, (void), "rsmi_shut_down") \
	SYMBOL(count, DL_REQUIRED, (uint32_t *), "rsmi_num_monitor_devices") \
	SYMBOL(pci_id, DL_OPTIONAL, (uint32_t, uint64_t *), "rsmi_dev_pci_id_get") \
	SYMBOL(name, DL_OPTIONAL, (uint32_t, char *, size_t), "rsmi_dev_name_get") \
	SYMBOL(unique_id, DL_OPTIONAL, (uint32_t, uint64_t *), "rsmi_dev_unique_id_get") \
	SYMBOL(energy, DL_OPTIONAL, (uint32_t, uint64_t *, float *, uint64_t *), "rsmi_dev_energy_count_get") \
	SYMBOL(power, DL_OPTIONAL, (uint32_t, uint64_t *, int *), "rsmi_dev_power_get") \
	SYMBOL(power_average, DL_OPTIONAL, (uint32_t, uint32_t, uint64_t *), "rsmi_dev_power_ave_get") \
	SYMBOL(power_cap, DL_OPTIONAL, (uint32_t, uint32_t, uint64_t *), "rsmi_dev_power_cap_get") \
	SYMBOL(busy_percent, DL_OPTIONAL, (uint32_t, uint32_t *), "rsmi_dev_busy_percent_get") \
	SYMBOL(memory_used, DL_OPTIONAL, (uint32_t, int, uint64_t *), "rsmi_dev_memory_usage_get") \
	SYMBOL(memory_total, DL_OPTIONAL, (uint32_t, int, uint64_t *), "rsmi_dev_memory_total_get") \
	SYMBOL(temperature, DL_OPTIONAL, (uint32_t, uint32_t, int, int64_t *), "rsmi_dev_temp_metric_get")
// clang-format on

struct rocm_smi {
#define ROCM_MEMBER(member, need, arguments, ...) int(*member) arguments;
	ROCM_SYMBOLS(ROCM_MEMBER)
#undef ROCM_MEMBER
	void *handle; // owned
	size_t n;
};

#define ROCM_ROW(member, need_, arguments, ...)                                                                        \
	{.names = {__VA_ARGS__}, .offset = offsetof(struct rocm_smi, member), .need = need_},
static const struct dl_symbol symbols[] = {ROCM_SYMBOLS(ROCM_ROW)};
#undef ROCM_ROW

// The unversioned name belongs to the development files.
static const char *const libraries[] = {"librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5",
	"librocm_smi64.so.1", NULL};

struct rocm_smi *rocm_smi_open(const struct wattle_env *env)
{
	const char *const given[] = {env->rocm_smi, NULL};
	struct rocm_smi *smi = calloc(1, sizeof(*smi));
	uint32_t count = 0;
	if (smi == NULL)
		return NULL;
	if (dl_open(env->rocm_smi != NULL ? given : libraries, symbols, ARRAY_SIZE(symbols), smi, &smi->handle, NULL) <
		0) {
		free(smi);
		return NULL;
	}
	if (smi->init(0) != RSMI_SUCCESS) {
		dlclose(smi->handle);
		free(smi);
		return NULL;
	}
	if (smi->count(&count) == RSMI_SUCCESS)
		smi->n = count < GPUS_MAX ? count : GPUS_MAX;
	return smi;
}

void rocm_smi_close(struct rocm_smi *smi)
{
	if (smi == NULL)
		return;
	smi->shut_down();
	dlclose(smi->handle);
	free(smi);
}

size_t rocm_smi_count(const struct rocm_smi *smi)
{
	return smi->n;
}

void rocm_smi_address(const struct rocm_smi *smi, size_t gpu, char *out, size_t size)
{
	uint64_t id;
	out[0] = '\0';
	if (smi->pci_id != NULL && smi->pci_id((uint32_t)gpu, &id) == RSMI_SUCCESS)
		snprintf(out, size, "%04x:%02x:%02x.%x", (unsigned int)(id >> 32), (unsigned int)(id >> 8 & 0xff),
			(unsigned int)(id >> 3 & 0x1f), (unsigned int)(id & 7));
}

void rocm_smi_name(const struct rocm_smi *smi, size_t gpu, char *out, size_t size)
{
	if (smi->name == NULL || smi->name((uint32_t)gpu, out, size) != RSMI_SUCCESS)
		out[0] = '\0';
	out[size - 1] = '\0';
}

static int64_t figure_of(int code, uint64_t value, uint64_t divisor)
{
	return code == RSMI_SUCCESS && value / divisor <= INT64_MAX ? (int64_t)(value / divisor) : VALUE_MISSING;
}

/* The library reports 15.3 µJ per count, but the firmware counts 2^-16 J (15.259 µJ): 0.27 % too much. A resolution that
 * differs by more is used as reported. */
static int64_t read_energy(const struct rocm_smi *smi, uint32_t gpu)
{
	static const double unit_uj = 15.2587890625, rounding = 0.01;
	uint64_t counter, time_ns;
	float resolution_uj = 0;
	if (smi->energy == NULL || smi->energy(gpu, &counter, &resolution_uj, &time_ns) != RSMI_SUCCESS)
		return VALUE_MISSING;
	double units = (double)resolution_uj / unit_uj;
	if (!(units > 0) || fabs(units - 1) < rounding)
		return figure_of(RSMI_SUCCESS, counter, 1);
	double scaled = (double)counter * units;
	return scaled < 9e18 ? (int64_t)scaled : VALUE_MISSING;
}

static int64_t read_power(const struct rocm_smi *smi, uint32_t gpu)
{
	uint64_t power_uw = 0;
	int type, code = NOT_THERE;
	if (smi->power != NULL)
		code = smi->power(gpu, &power_uw, &type);
	if (code != RSMI_SUCCESS && smi->power_average != NULL)
		code = smi->power_average(gpu, 0, &power_uw);
	return figure_of(code, power_uw, 1000);
}

static int64_t read_temperature(const struct rocm_smi *smi, uint32_t gpu, uint32_t sensor)
{
	int64_t millidegrees;
	bool is_read = smi->temperature != NULL &&
		smi->temperature(gpu, sensor, RSMI_CURRENT, &millidegrees) == RSMI_SUCCESS;
	return is_read ? millidegrees / 1000 : VALUE_MISSING;
}

static int64_t read_core_temperature(const struct rocm_smi *smi, uint32_t gpu)
{
	int64_t edge_c = read_temperature(smi, gpu, RSMI_EDGE);
	return value_ok(edge_c) ? edge_c : read_temperature(smi, gpu, RSMI_JUNCTION);
}

static int64_t read_memory(int (*get)(uint32_t, int, uint64_t *), uint32_t gpu)
{
	uint64_t bytes = 0;
	int code = get != NULL ? get(gpu, RSMI_VRAM, &bytes) : NOT_THERE;
	return figure_of(code, bytes, 1);
}

static int64_t read_power_cap(const struct rocm_smi *smi, uint32_t gpu)
{
	uint64_t limit_uw = 0;
	int code = smi->power_cap != NULL ? smi->power_cap(gpu, 0, &limit_uw) : NOT_THERE;
	return figure_of(code, limit_uw, 1000);
}

static int64_t read_busy(const struct rocm_smi *smi, uint32_t gpu)
{
	uint32_t percent = 0;
	int code = smi->busy_percent != NULL ? smi->busy_percent(gpu, &percent) : NOT_THERE;
	return figure_of(code, percent, 1);
}

static int64_t read_unique_id(const struct rocm_smi *smi, uint32_t gpu)
{
	uint64_t id = 0;
	int code = smi->unique_id != NULL ? smi->unique_id(gpu, &id) : NOT_THERE;
	return figure_of(code, id, 1);
}

int64_t rocm_smi_read(const struct rocm_smi *smi, size_t index, enum rocm_figure figure)
{
	uint32_t gpu = (uint32_t)index;
	switch (figure) {
	case ROCM_ENERGY:
		return read_energy(smi, gpu);
	case ROCM_POWER:
		return read_power(smi, gpu);
	case ROCM_POWER_CAP:
		return read_power_cap(smi, gpu);
	case ROCM_BUSY:
		return read_busy(smi, gpu);
	case ROCM_MEMORY_USED:
		return read_memory(smi->memory_used, gpu);
	case ROCM_MEMORY_TOTAL:
		return read_memory(smi->memory_total, gpu);
	case ROCM_TEMPERATURE:
		return read_core_temperature(smi, gpu);
	case ROCM_MEMORY_TEMPERATURE:
		return read_temperature(smi, gpu, RSMI_MEMORY);
	case ROCM_UNIQUE_ID:
		return read_unique_id(smi, gpu);
	case ROCM_FIGURES:
		break;
	}
	return VALUE_MISSING;
}
