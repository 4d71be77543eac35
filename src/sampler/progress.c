/* What `wattle run` shows while it runs. */
#include "sampler/recorder.h"

#include "base/util.h"

void recorder_tell_progress(struct recorder *recorder)
{
	const struct sampler *sampler = &recorder->sampler;
	struct so_far *so_far = &recorder->so_far;
	int64_t cpu_ns = recorder->tree.last_main_ns + recorder->tree.last_descendants_ns;
	double dt_s = (double)(sampler->last_t_ns - recorder->progress_t_ns) / NS_PER_S;
	double energy_j = so_far_energy_j(so_far);
	double before_j = isnan(recorder->progress_energy_j)
		? 0
		: recorder->progress_energy_j; // nothing was read at the start
	const struct recorder_progress progress = {
		.start_ns = recorder->start_ns,
		.t_ns = sampler->last_t_ns,
		.energy_j = energy_j,
		.power_w = dt_s > 0 ? (energy_j - before_j) / dt_s : (double)NAN,
		.cpu_cores = dt_s > 0 ? (double)(cpu_ns - recorder->progress_cpu_ns) / NS_PER_S / dt_s : (double)NAN,
		.rss_bytes = sampler->last_rss_bytes,
		.processes = (int64_t)recorder->tree.n_pids,
		.steps = so_far->steps,
		.points = so_far->points,
		.n_points = so_far->n_points,
	};
	recorder->progress_t_ns = sampler->last_t_ns;
	recorder->progress_cpu_ns = cpu_ns;
	recorder->progress_energy_j = energy_j;
	recorder->options->progress(recorder->options->data, &progress);
	so_far_forget_points(so_far);
}
