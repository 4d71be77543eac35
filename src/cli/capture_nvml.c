#include "cli/sensors.h"

#include "base/util.h"
#include "sensor/sensor.h"

#include <unistd.h>

/* Queries NVML through the sensor, which knows which GPUs must not be woken and which calls are safe on which driver. */

static void put_text(const char *key, const char *text, struct buf *out)
{
	if (text[0] != '\0')
		buf_printf(out, "%s %s\n", key, text);
}

static void put_number(const char *key, int64_t value, struct buf *out)
{
	if (value_ok(value))
		buf_printf(out, "%s %lld\n", key, (long long)value);
}

// NOT_SUPPORTED: without this line the fake library would return a number.
static void put_missing(const char *function, int64_t value, struct buf *out)
{
	if (!value_ok(value))
		buf_printf(out, "error %s 3\n", function);
}

static void put_readings(const struct domain *domain, const int64_t *values, struct buf *out)
{
	put_number("memory_used_bytes", values[DEVICE_MEMORY_USED], out);
	if (value_ok(values[DEVICE_POWER]))
		buf_printf(out, "power_mw constant %lld\n", (long long)values[DEVICE_POWER]);
	if (value_ok(values[DEVICE_ENERGY_RAW]))
		buf_printf(out, "energy_start_mj %lld\n", (long long)(values[DEVICE_ENERGY_RAW] / 1000));
	if (domain->update_period_ns >= NS_PER_MS)
		buf_printf(out, "energy_period_ms %lld\n", (long long)(domain->update_period_ns / NS_PER_MS));
	put_number("temperature_c", values[DEVICE_TEMPERATURE], out);
	put_number("memory_temperature_c", values[DEVICE_MEMORY_TEMPERATURE], out);
	if (value_ok(values[DEVICE_UTILIZATION]) && value_ok(values[DEVICE_MEMORY_UTILIZATION]))
		buf_printf(out, "utilization_percent %lld %lld\n", (long long)values[DEVICE_UTILIZATION],
			(long long)values[DEVICE_MEMORY_UTILIZATION]);
	put_number("sm_clock_mhz", values[DEVICE_SM_CLOCK], out);
	put_number("memory_clock_mhz", values[DEVICE_MEMORY_CLOCK], out);
	put_number("throttle_bits", values[DEVICE_THROTTLE_REASONS], out);
	int64_t cap_mw = values[DEVICE_POWER_CAP];
	if (value_ok(cap_mw)) // the range is not queried; a fixture only needs one that contains the limit
		buf_printf(out, "limits_mw 1000 %lld %lld %lld\n", (long long)cap_mw, (long long)cap_mw,
			(long long)cap_mw);
	put_missing("nvmlDeviceGetTotalEnergyConsumption", values[DEVICE_ENERGY_RAW], out);
	put_missing("nvmlDeviceGetPowerUsage", values[DEVICE_POWER], out);
	if (!value_ok(values[DEVICE_POWER])) // not available by field values either
		buf_str(out, "field_error 185 0 3\nfield_error 186 0 3\n");
	put_missing("nvmlDeviceGetUtilizationRates", values[DEVICE_UTILIZATION], out);
	put_missing("nvmlDeviceGetTemperature", values[DEVICE_TEMPERATURE], out);
}

// Power of the module and of the memory. A domain with both energy and power is written as power only.
static void put_beside(const struct sensor_slot *slot, const int64_t (*rows)[DEVICE_COUNT], const struct domain *gpu,
	struct buf *out)
{
	for (size_t i = 0; i < slot->n_domains; i++) {
		const struct domain *domain = &slot->domains[i];
		bool is_module = domain->kind == DOMAIN_MODULE && strcmp(domain->name, gpu->inside) == 0;
		bool is_memory = domain->kind == DOMAIN_GPU_MEMORY && strcmp(domain->inside, gpu->name) == 0;
		if ((is_module || is_memory) && value_ok(rows[i][DEVICE_POWER]))
			buf_printf(out, "%s %lld\n", is_module ? "module_mw" : "memory_mw",
				(long long)rows[i][DEVICE_POWER]);
	}
}

// A domain without energy and power may have other readings.
static bool is_there(const struct domain *domain)
{
	return domain->readable || (domain->index >= 0 && domain->memory_total_bytes > 0);
}

static void put_gpu(const struct domain *domain, const int64_t *values, struct anonymizer *anonymizer, struct buf *out)
{
	buf_str(out, "\ngpu\n");
	put_text("name", domain->device, out);
	if (domain->uuid[0] != '\0') {
		buf_str(out, "uuid ");
		anonymize_scrub(anonymizer, domain->uuid, strlen(domain->uuid), false, out);
		buf_char(out, '\n');
	}
	if (domain->note[0] != '\0') { // MIG instances have a text description only
		buf_str(out, "# ");
		anonymize_scrub(anonymizer, domain->note, strlen(domain->note), true, out);
		buf_char(out, '\n');
	}
	if (domain->memory_total_bytes > 0)
		buf_printf(out, "memory_total_bytes %llu\nmemory_reserved_bytes 0\n",
			(unsigned long long)domain->memory_total_bytes);
	if (is_there(domain))
		put_readings(domain, values, out);
	else
		buf_printf(out, "# %s\nerror nvmlDeviceGetHandleByIndex 4\n", domain->why);
}

// A single unreadable row without UUID only indicates a missing library or driver.
static bool is_gpu(const struct sensor_slot *slot, const struct domain *domain)
{
	return strcmp(slot->ops->name, "nvml") == 0 && domain->kind == DOMAIN_GPU &&
		(domain->readable || domain->uuid[0] != '\0' || slot->n_domains > 1);
}

size_t capture_nvml(const struct wattle_env *env, struct anonymizer *anonymizer, struct buf *out)
{
	const struct sensor_options options = {.describe_only = true};
	struct sensor_set set;
	if (sensor_set_open(&set, env, &options, NULL) < 0)
		return 0;
	const struct sensor_context context = {
		.t_ns = env_now_ns(env),
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING,
		.self_pid = getpid(),
	};
	int64_t(*values)[DEVICE_COUNT] = calloc_array(set.n_devices, sizeof(*values));
	if (values != NULL)
		sensor_set_read(&set, &context, values);
	free(values);
	buf_str(out,
		"# Values reported by NVML, for the fake library of wattle's tests (tests/fakes/nvml/README.md).\n");
	size_t n = 0;
	const int64_t(*rows)[DEVICE_COUNT] = (const int64_t(*)[DEVICE_COUNT])set.rows;
	for (size_t s = 0; s < set.n_slots; rows += set.slots[s++].n_domains)
		for (size_t i = 0; i < set.slots[s].n_domains; i++) {
			if (!is_gpu(&set.slots[s], &set.slots[s].domains[i]))
				continue;
			put_gpu(&set.slots[s].domains[i], rows[i], anonymizer, out);
			put_beside(&set.slots[s], rows, &set.slots[s].domains[i], out);
			n++;
		}
	sensor_set_close(&set);
	return n;
}
