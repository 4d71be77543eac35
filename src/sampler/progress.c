/* What `wattle run` shows while it runs. */
#include "sampler/recorder.h"

#include "base/util.h"

// Of the domains that add up: counters in the first, power readings of those without one in the second.
static void sum_devices(const struct recorder *recorder, int64_t *ret_energy_uj, int64_t *ret_power_mw)
{
	int64_t energy_uj = VALUE_MISSING, power_mw = VALUE_MISSING;
	for (size_t i = 0; i < recorder->sensors->n_devices; i++) {
		if (!domain_kind_adds_up(recorder->sensors->devices[i]->kind))
			continue;
		const int64_t *row = recorder->sampler.rows[i];
		if (value_ok(row[DEVICE_ENERGY]))
			energy_uj = (value_ok(energy_uj) ? energy_uj : 0) + row[DEVICE_ENERGY];
		else if (value_ok(row[DEVICE_POWER]))
			power_mw = (value_ok(power_mw) ? power_mw : 0) + row[DEVICE_POWER];
	}
	*ret_energy_uj = energy_uj;
	*ret_power_mw = power_mw;
}

void recorder_tell_progress(struct recorder *recorder)
{
	const struct sampler *sampler = &recorder->sampler;
	int64_t cpu_ns = recorder->tree.last_main_ns + recorder->tree.last_descendants_ns, energy_uj, power_mw;
	double dt_s = (double)(sampler->last_t_ns - recorder->progress_t_ns) / NS_PER_S;
	sum_devices(recorder, &energy_uj, &power_mw);
	double power_w = value_to_double(power_mw, 1e-3);
	if (value_ok(energy_uj) && value_ok(recorder->progress_energy_uj) && dt_s > 0) {
		double counted_w = (double)(energy_uj - recorder->progress_energy_uj) * 1e-6 / dt_s;
		power_w = isnan(power_w) ? counted_w : power_w + counted_w;
	}
	struct recorder_progress progress = {
		.elapsed_s = (double)(sampler->last_t_ns - recorder->start_ns) / NS_PER_S,
		.power_w = power_w,
		.cpu_cores = dt_s > 0 ? (double)(cpu_ns - recorder->progress_cpu_ns) / NS_PER_S / dt_s : NAN,
		.rss_bytes = sampler->last_rss_bytes,
		.processes = (int64_t)recorder->tree.n_pids,
		.steps = recorder->steps.n > 0 ? recorder->steps.n : VALUE_MISSING,
	};
	recorder->progress_t_ns = sampler->last_t_ns;
	recorder->progress_cpu_ns = cpu_ns;
	recorder->progress_energy_uj = energy_uj;
	recorder->options->progress(recorder->options->data, &progress);
}
