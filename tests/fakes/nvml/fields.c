/* Values by number (R535 and later), the buffer of power samples, and accounting data of ended processes. */
#include "fake.h"

#include "export.h"

#include <math.h>

enum { MEMORY_TEMPERATURE = 82, ENERGY = 83, POWER_AVERAGE = 185, POWER_INSTANT = 186, ENERGY_SCOPED = 191 };
enum { SCOPE_GPU, SCOPE_MODULE, SCOPE_MEMORY };
enum { TYPE_UINT = 1, TYPE_ULL = 3 };

#if FAKE_GENERATION >= 470

static double power_mw(const struct fake_view *view, double t_s)
{
	return fake_power_mw(view->gpu, fake_bound_at(view, t_s), t_s);
}

#endif

#if FAKE_GENERATION >= 535

static double seconds(const struct fake_view *view)
{
	return (double)view->t_ns * 1e-9;
}

static double mean_mw(const struct fake_view *view)
{
	double now_s = seconds(view), since_s = fmax(0, now_s - 1);
	if (now_s <= since_s)
		return power_mw(view, now_s);
	return (fake_limited_energy_mj(view, now_s) - fake_limited_energy_mj(view, since_s)) / (now_s - since_s);
}

static double updated_s(const struct fake_view *view)
{
	double period_s = view->gpu->energy_period_s;
	return period_s > 0 ? floor(seconds(view) / period_s + 1e-9) * period_s : seconds(view);
}

// Power of the scopes other than the GPU; negative: not supported.
static double beside_mw(const struct fake_gpu *gpu, unsigned int scope)
{
	if (scope == SCOPE_MODULE)
		return gpu->module_mw;
	return scope == SCOPE_MEMORY ? gpu->memory_mw : -1;
}

static int refusal(const struct fake_gpu *gpu, const struct wire_field *field)
{
	for (unsigned int i = 0; i < gpu->n_fields; i++) {
		if (gpu->fields[i].id == field->id && gpu->fields[i].scope == field->scope)
			return gpu->fields[i].code;
	}
	if (beside_mw(gpu, field->scope) >= 0)
		return SUCCESS;
	return field->scope == SCOPE_GPU ? SUCCESS : NOT_SUPPORTED;
}

// A board without an energy counter has no field for it either.
static int put_energy(const struct fake_view *view, struct wire_field *field)
{
	int code = field->scope == SCOPE_GPU ? fake_energy_error(view) : SUCCESS;
	if (code != SUCCESS)
		return code;
	field->type = TYPE_ULL;
	double mj = field->scope == SCOPE_GPU ? fake_counter_mj(view)
					      : beside_mw(view->gpu, field->scope) * updated_s(view);
	field->value.ull = (unsigned long long)mj;
	if (view->gpu->field_times)
		field->timestamp_us = fake_wall_us((int64_t)llround(updated_s(view) * 1e9));
	return SUCCESS;
}

static int put_power(const struct fake_view *view, struct wire_field *field)
{
	double mw = field->id == POWER_AVERAGE ? mean_mw(view) : power_mw(view, seconds(view));
	field->type = TYPE_UINT;
	field->value.u = (unsigned int)llround(field->scope == SCOPE_GPU ? mw : beside_mw(view->gpu, field->scope));
	return SUCCESS;
}

static int put_field(const struct fake_view *view, struct wire_field *field)
{
	field->timestamp_us = fake_wall_us(view->t_ns);
	field->latency_us = 1;
	int code = refusal(view->gpu, field);
	if (code != SUCCESS)
		return code;
	if (field->id == ENERGY || field->id == ENERGY_SCOPED)
		return put_energy(view, field);
	if (field->id == POWER_AVERAGE || field->id == POWER_INSTANT)
		return put_power(view, field);
	if (field->id != MEMORY_TEMPERATURE || view->gpu->memory_temperature_c == 0)
		return NOT_SUPPORTED;
	field->type = TYPE_UINT;
	field->value.u = view->gpu->memory_temperature_c;
	return SUCCESS;
}

// As in the real library: success if any value is available; each has a code of its own.
API(nvmlDeviceGetFieldValues, const void *device, int n, struct wire_field *fields)
{
	GPU(device);
	int code = n > 0 ? NOT_SUPPORTED : INVALID_ARGUMENT;
	for (int i = 0; i < n; i++) {
		fields[i].code = put_field(&view, &fields[i]);
		if (fields[i].code == SUCCESS)
			code = SUCCESS;
	}
	return code;
}

#endif

#if FAKE_GENERATION >= 470

API(nvmlDeviceGetSamples, const void *device, int type, unsigned long long last_seen_us, int *ret_type,
	unsigned int *count, struct wire_power_sample *samples)
{
	GPU(device);
	const struct fake_gpu *gpu = view.gpu;
	if (type != 0 || gpu->power_sample_ms == 0)
		return NOT_SUPPORTED;
	*ret_type = 1;
	if (samples == NULL) {
		*count = gpu->power_ring;
		return SUCCESS;
	}
	unsigned int n = 0;
	int64_t period_ns = gpu->power_sample_ms * 1000000, newest = view.t_ns / period_ns;
	int64_t first = newest - (int64_t)gpu->power_ring + 1;
	for (int64_t tick = first > 0 ? first : 0; tick <= newest; tick++) {
		unsigned long long timestamp_us = (unsigned long long)fake_wall_us(tick * period_ns);
		if (timestamp_us <= last_seen_us || n == *count)
			continue;
		samples[n++] = (struct wire_power_sample){.timestamp_us = timestamp_us,
			.value.u = (unsigned int)llround(power_mw(&view, (double)(tick * period_ns) * 1e-9))};
	}
	*count = n;
	return n > 0 ? SUCCESS : NOT_FOUND;
}

API(nvmlDeviceGetAccountingMode, const void *device, int *ret_mode)
{
	GPU(device);
	*ret_mode = view.gpu->accounting;
	return SUCCESS;
}

// An ended process leaves its accounting data; the timestamp is its begin.
static bool account(const struct fake_view *view, const struct fake_process *process, struct wire_accounting *ret)
{
	int64_t now_ms = view->t_ns / 1000000, until_ms = process->when.until_ms;
	if (now_ms < process->when.from_ms)
		return false;
	*ret = (struct wire_accounting){.gpu_percent = process->sm_percent,
		.max_bytes = process->memory_bytes,
		.time_ms = (unsigned long long)((now_ms < until_ms ? now_ms : until_ms) - process->when.from_ms),
		.start_us = (unsigned long long)fake_wall_us(process->when.from_ms * 1000000),
		.is_running = now_ms < until_ms};
	return true;
}

API(nvmlDeviceGetAccountingPids, const void *device, unsigned int *count, unsigned int *ret_pids)
{
	GPU(device);
	struct wire_accounting unused;
	unsigned int n = 0, room = *count;
	pid_t pids[PIDS_MAX];
	for (unsigned int i = 0; i < view.gpu->n_processes; i++) {
		const struct fake_process *process = &view.gpu->processes[i];
		if (!account(&view, process, &unused))
			continue;
		size_t n_pids = fake_pids(process->who, view.config->path, pids, PIDS_MAX);
		for (size_t k = 0; k < n_pids; k++, n++) {
			if (n < room && ret_pids != NULL)
				ret_pids[n] = (unsigned int)pids[k];
		}
	}
	*count = n;
	return n <= room ? SUCCESS : INSUFFICIENT_SIZE;
}

API(nvmlDeviceGetAccountingStats, const void *device, unsigned int pid, struct wire_accounting *ret)
{
	GPU(device);
	pid_t pids[PIDS_MAX];
	for (unsigned int i = 0; i < view.gpu->n_processes; i++) {
		const struct fake_process *process = &view.gpu->processes[i];
		size_t n_pids = fake_pids(process->who, view.config->path, pids, PIDS_MAX);
		for (size_t k = 0; k < n_pids; k++) {
			if ((unsigned int)pids[k] == pid && account(&view, process, ret))
				return SUCCESS;
		}
	}
	return NOT_FOUND;
}

#endif
