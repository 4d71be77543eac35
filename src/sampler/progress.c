/* Data for the progress output of `wattle run`. */
#include "sampler/recorder.h"

#include "base/util.h"

/* Power since the last call. A device that became readable meanwhile adds its energy since the start: over the first
 * interval that is its mean power, later it would be a false peak. The same holds for a counter's second change, the
 * first that shows its period. */
static double power_since_w(const struct recorder *recorder, double energy_j, double dt_s)
{
	bool is_first = recorder->progress_t_ns == recorder->start_ns;
	bool is_short = dt_s * NS_PER_S < (double)recorder->options->sampler.interval_ns;
	bool had_pace = is_first || recorder->progress_had_pace;
	bool is_joined = !is_first && recorder->running.n_known != recorder->progress_n_known;
	if (is_short || is_joined || !had_pace || !recorder->running.has_pace)
		return (double)NAN;
	double before_j = isnan(recorder->progress_energy_j)
		? 0
		: recorder->progress_energy_j; // nothing was read at the start
	return (energy_j - before_j) / dt_s;
}

void recorder_report_progress(struct recorder *recorder)
{
	const struct sampler *sampler = &recorder->sampler;
	struct running_energy *running = &recorder->running;
	running_energy_add_up(running, sampler);
	int64_t cpu_ns = recorder->tree.last_main_ns + recorder->tree.last_descendants_ns;
	double dt_s = (double)(sampler->last_t_ns - recorder->progress_t_ns) / NS_PER_S;
	double energy_j = running_energy_j(running);
	const struct recorder_progress progress = {
		.start_ns = recorder->start_ns,
		.t_ns = sampler->last_t_ns,
		.energy_j = energy_j,
		.provenance = running->provenance,
		.power_w = power_since_w(recorder, energy_j, dt_s),
		.cpu_cores = dt_s > 0 ? (double)(cpu_ns - recorder->progress_cpu_ns) / NS_PER_S / dt_s : (double)NAN,
		.rss_bytes = sampler->last_rss_bytes,
		.processes = (int64_t)recorder->tree.n_pids,
		.steps = running->steps,
		.points = running->points,
		.n_points = running->n_points,
	};
	recorder->progress_t_ns = sampler->last_t_ns;
	recorder->progress_cpu_ns = cpu_ns;
	recorder->progress_energy_j = energy_j;
	recorder->progress_n_known = running->n_known;
	recorder->progress_had_pace = running->has_pace;
	recorder->options->progress(recorder->options->data, &progress);
	running_energy_clear_points(running);
}
