#include "sensor/gpu/drm.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* power1_average is a mean computed by the firmware; newer chips have power1_input, an instantaneous value, instead. The
 * temperature is that of the edge, which all cooling control uses; MI300 lacks it, so the junction is used there. Clocks:
 * freq1 is the shader clock, freq2 the memory clock. */
static const struct gauge gauges[AMDGPU_GAUGES] = {
	{DEVICE_POWER, true, 1000, {"power1_average", "power1_input"}},
	{DEVICE_POWER_CAP, true, 1000, {"power1_cap"}},
	{DEVICE_UTILIZATION, false, 1, {"gpu_busy_percent"}},
	{DEVICE_MEMORY_UTILIZATION, false, 1, {"mem_busy_percent"}},
	{DEVICE_MEMORY_USED, false, 1, {"mem_info_vram_used"}},
	{DEVICE_TEMPERATURE, true, 1000, {"temp1_input", "temp2_input"}},
	{DEVICE_MEMORY_TEMPERATURE, true, 1000, {"temp3_input"}}, // labelled mem
	{DEVICE_SM_CLOCK, true, 1000000, {"freq1_input"}},
	{DEVICE_MEMORY_CLOCK, true, 1000000, {"freq2_input"}},
};

// A 300 W limit does not prevent peaks of a few milliseconds above 300 W.
static const double peak_over_limit = 1.2;
// 2^-16 J, rounded up to whole µJ.
static const uint64_t accumulator_step_uj = 16;
// Accelerators with CPU cores in the package whose metrics table has the accelerator layout: MI300A.
static const uint32_t apu_products[] = {0x74a0};

static const char *path_in(const char *folder, const char *name, char *out, size_t size)
{
	snprintf(out, size, "%s/%s", folder, name);
	return out;
}

/* ---- description ---- */

static void open_nothing(struct amdgpu_card *card)
{
	card->power.status = card->metrics = (struct file_kept){.fd = -1};
	gauges_open(card->gauges, gauges, AMDGPU_GAUGES, -1, "", "", true);
}

static void open_files(struct amdgpu_card *card, bool *ret_sleeps)
{
	const char *device = card->found.device;
	char path[sizeof(card->metrics.path)];
	drm_power_open(&card->power, card->env, device);
	*ret_sleeps = drm_power_sleeps(&card->power);
	file_kept_open(&card->metrics, card->env->sysfs_fd, path_in(device, "gpu_metrics", path, sizeof(path)));
	gauges_open(card->gauges, gauges, AMDGPU_GAUGES, card->env->sysfs_fd, device, card->found.hwmon, *ret_sleeps);
}

static int read_metrics(struct amdgpu_card *card, struct gpu_metrics *ret_metrics)
{
	char bytes[GPU_METRICS_SIZE_MAX];
	ssize_t size = file_kept_read(&card->metrics, bytes, sizeof(bytes));
	return size < 0 ? (int)size : gpu_metrics_parse(bytes, (size_t)size, ret_metrics);
}

static bool is_apu_product(const struct drm_card *card)
{
	for (size_t i = 0; i < ARRAY_SIZE(apu_products); i++)
		if (card->product == apu_products[i])
			return true;
	return false;
}

// In the format of rocminfo and ROCR_VISIBLE_DEVICES.
static void set_uuid(const struct amdgpu_card *card, struct domain *domain)
{
	char path[128], id[64];
	ssize_t length = file_read_line_in(card->env->sysfs_fd,
		path_in(card->found.device, "unique_id", path, sizeof(path)), id, sizeof(id));
	if (length > 0 && strspn(id, "0123456789abcdefABCDEF") == (size_t)length)
		snprintf(domain->uuid, sizeof(domain->uuid), "GPU-%s", id);
}

// An APU's power is that of its socket, including the CPU cores. It is placed inside the package so that totals count it
// once.
static void put_inside(const struct amdgpu_card *card, struct domain *domain)
{
	int64_t node = gauge_read_once(card->env->sysfs_fd, card->found.device, "numa_node");
	if (card->is_apu)
		snprintf(domain->inside, sizeof(domain->inside), "package-%d", node > 0 && node < 64 ? (int)node : 0);
}

static double limit_w(const struct amdgpu_card *card)
{
	int64_t limit_uw = VALUE_MISSING;
	if (card->found.hwmon[0] != '\0')
		limit_uw = gauge_read_once(card->env->sysfs_fd, card->found.hwmon, "power1_cap_max");
	return limit_uw > 0 ? (double)limit_uw / 1e6 * peak_over_limit : 0;
}

static uint64_t memory_bytes(const struct amdgpu_card *card)
{
	int64_t total = gauge_read_once(card->env->sysfs_fd, card->found.device, "mem_info_vram_total");
	return total > 0 ? (uint64_t)total : 0;
}

// Reports what is known of a sleeping card without waking it: it may have an accumulator.
static void check_metrics(struct amdgpu_card *card, bool sleeps)
{
	struct gpu_metrics metrics;
	const struct gauge_file *power = gauges_find(card->gauges, AMDGPU_GAUGES, DEVICE_POWER);
	card->has_power = power != NULL && power->file.fd >= 0;
	if (sleeps) {
		card->counts_energy = card->metrics.fd >= 0;
		return;
	}
	if (read_metrics(card, &metrics) < 0)
		return;
	card->is_apu = card->is_apu || metrics.is_apu;
	card->counts_energy = value_ok(metrics.energy_units);
	card->has_power = card->has_power || value_ok(metrics.power_mw);
}

static void set_counter(const struct amdgpu_card *card, struct domain *domain)
{
	domain->has_energy = card->counts_energy;
	domain->provenance = card->counts_energy ? PROVENANCE_MEASURED : PROVENANCE_DERIVED;
	domain->resolution_uj = card->counts_energy ? accumulator_step_uj : 0;
}

static void describe(struct amdgpu_card *card, struct domain *domain, bool sleeps)
{
	drm_card_describe(card->env, &card->found, domain->device, sizeof(domain->device));
	set_uuid(card, domain);
	put_inside(card, domain);
	if (!sleeps) {
		domain->max_power_w = limit_w(card);
		domain->memory_total_bytes = memory_bytes(card);
	}
	set_counter(card, domain);
	domain->readable = domain->used = true;
	const struct gauge_file *power = gauges_find(card->gauges, AMDGPU_GAUGES, DEVICE_POWER);
	bool refused = power != NULL && power->file.fd < 0;
	if (refused && !card->counts_energy && !card->has_power)
		domain_set_unreadable(domain, card->env, power->file.path, -EACCES);
}

void amdgpu_card_open(struct amdgpu_card *card, const struct wattle_env *env, const struct drm_card *found,
	struct domain *domain)
{
	bool sleeps = false;
	*card = (struct amdgpu_card){.found = *found, .env = env, .is_open = true, .is_apu = is_apu_product(found)};
	if (found->device[0] != '\0') {
		open_files(card, &sleeps);
		check_metrics(card, sleeps);
		describe(card, domain, sleeps);
	} else {
		open_nothing(card);
		drm_card_describe(card->env, &card->found, domain->device, sizeof(domain->device));
	}
	gpu_accumulator_init(&card->accumulator,
		domain->max_power_w > 0 ? domain->max_power_w : domain_kind_max_power_w(DOMAIN_GPU));
}

bool amdgpu_card_lacks_figures(const struct amdgpu_card *card)
{
	return !card->counts_energy || !card->has_power;
}

void amdgpu_card_assist(struct amdgpu_card *card, const struct rocm_smi *smi, size_t gpu, struct domain *domain)
{
	int64_t total = rocm_smi_read(smi, gpu, ROCM_MEMORY_TOTAL), id = rocm_smi_read(smi, gpu, ROCM_UNIQUE_ID);
	card->smi = smi;
	card->smi_gpu = gpu;
	card->counts_energy = card->counts_energy || value_ok(rocm_smi_read(smi, gpu, ROCM_ENERGY));
	card->has_power = card->has_power || value_ok(rocm_smi_read(smi, gpu, ROCM_POWER));
	set_counter(card, domain);
	if (card->counts_energy || card->has_power) {
		domain->readable = domain->used = true;
		domain->why[0] = domain->remedy[0] = '\0';
	}
	if (domain->memory_total_bytes == 0 && total > 0)
		domain->memory_total_bytes = (uint64_t)total;
	if (domain->uuid[0] == '\0' && id > 0)
		snprintf(domain->uuid, sizeof(domain->uuid), "GPU-%016llx", (unsigned long long)id);
	if (card->found.device[0] == '\0')
		rocm_smi_name(smi, gpu, domain->device, sizeof(domain->device));
}

void amdgpu_card_close(struct amdgpu_card *card)
{
	if (!card->is_open)
		return;
	drm_power_close(&card->power);
	file_kept_close(&card->metrics);
	gauges_close(card->gauges, AMDGPU_GAUGES);
	card->is_open = false;
}

void amdgpu_card_find_again(struct amdgpu_card *card)
{
	bool sleeps;
	if (!drm_cards_find_again(card->env, &card->found))
		return;
	amdgpu_card_close(card);
	card->is_open = true;
	open_files(card, &sleeps);
}

/* ---- reading ---- */

static void fill(int64_t *row, enum device_metric metric, int64_t value)
{
	if (!value_ok(row[metric]))
		row[metric] = value;
}

// hwmon and the small files come first because their units are documented. The table fills the gaps.
static void fill_from_metrics(const struct gpu_metrics *metrics, int64_t *row)
{
	fill(row, DEVICE_POWER, metrics->power_mw);
	fill(row, DEVICE_TEMPERATURE, metrics->temperature_c);
	fill(row, DEVICE_UTILIZATION, metrics->gfx_percent);
	fill(row, DEVICE_MEMORY_UTILIZATION, metrics->memory_percent);
}

// Fills the values that the driver's files lack.
static void fill_from_library(const struct amdgpu_card *card, int64_t *row)
{
	static const struct {
		enum device_metric metric;
		enum rocm_figure figure;
	} figures[] = {
		{DEVICE_POWER, ROCM_POWER},
		{DEVICE_POWER_CAP, ROCM_POWER_CAP},
		{DEVICE_UTILIZATION, ROCM_BUSY},
		{DEVICE_MEMORY_USED, ROCM_MEMORY_USED},
		{DEVICE_TEMPERATURE, ROCM_TEMPERATURE},
		{DEVICE_MEMORY_TEMPERATURE, ROCM_MEMORY_TEMPERATURE},
	};
	for (size_t i = 0; card->smi != NULL && i < ARRAY_SIZE(figures); i++)
		if (!value_ok(row[figures[i].metric]))
			row[figures[i].metric] = rocm_smi_read(card->smi, card->smi_gpu, figures[i].figure);
}

// Reads the accumulator from the metrics table; with metrics NULL (not readable), from the library.
static int64_t units_of(const struct amdgpu_card *card, const struct gpu_metrics *metrics)
{
	if (!card->counts_energy)
		return VALUE_MISSING;
	if (metrics != NULL && value_ok(metrics->energy_units))
		return metrics->energy_units;
	return card->smi != NULL ? rocm_smi_read(card->smi, card->smi_gpu, ROCM_ENERGY) : VALUE_MISSING;
}

int64_t amdgpu_card_units(struct amdgpu_card *card)
{
	struct gpu_metrics metrics;
	return units_of(card, read_metrics(card, &metrics) == 0 ? &metrics : NULL);
}

int amdgpu_card_read(struct amdgpu_card *card, const struct sensor_context *context, int64_t *row)
{
	struct gpu_metrics metrics;
	int failure = 0;
	if (drm_power_sleeps(&card->power))
		return -EAGAIN;
	int r = read_metrics(card, &metrics);
	if (!context->energy_only)
		failure = gauges_read(card->gauges, AMDGPU_GAUGES, row);
	if (!context->energy_only && r == 0)
		fill_from_metrics(&metrics, row);
	if (!context->energy_only)
		fill_from_library(card, row);
	int64_t units = units_of(card, r == 0 ? &metrics : NULL);
	if (value_ok(units))
		row[DEVICE_ENERGY_RAW] = gpu_accumulator_feed(&card->accumulator, context->t_ns, (uint64_t)units,
			row[DEVICE_POWER]);
	bool nothing_read = r < 0 && (context->energy_only || failure < 0) && !value_ok(row[DEVICE_POWER]) &&
		!value_ok(row[DEVICE_ENERGY_RAW]);
	return nothing_read && (drm_is_gone(r) || drm_is_gone(failure)) ? -ENODEV : 0;
}
