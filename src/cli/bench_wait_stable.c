/* A run heats the machine for the next one, and a warmer chip has more leakage and lower clocks. So before each measured run
 * the bench waits until the hottest sensor and the power are near their values before the first run. */
#include "cli/bench.h"

#include "base/nan_sum.h"
#include "base/num.h"
#include "base/util.h"
#include "sensor/gpu_roster.h"

#include <errno.h>
#include <unistd.h>

// Warm-up and other users change an idle machine's values by this much.
static const double NEAR_C = 3, NEAR_RELATIVE = 0.2, NEAR_W = 1;
static const double AUTO_MAX_S = 10;
static const int64_t MIN_WINDOW_NS = 200 * NS_PER_MS, MAX_WINDOW_NS = NS_PER_S;

int bench_stable_parse(const char *text, double *ret_limit_s, struct wattle_error *reterr)
{
	int64_t limit_ns = 0;
	*ret_limit_s = (double)NAN;
	if (strcmp(text, "auto") == 0)
		return 0;
	if (strcmp(text, "0") != 0 && (num_parse_duration(text, &limit_ns) < 0 || limit_ns < 0))
		return error_set(reterr, -EINVAL, "--settle: '%s' is not valid; give auto, 0 or a duration such as 5s",
			text);
	*ret_limit_s = (double)limit_ns * 1e-9;
	return 0;
}

enum { BEGIN, END }; // marks of the energy tracks

// An estimate from the CPU load shows no effect of heat.
static bool counts(const struct domain *domain)
{
	return domain_kind_adds_up(domain->kind) && domain->provenance != PROVENANCE_ESTIMATED;
}

// Reads all sensors and marks the energy tracks. Returns the highest temperature; NaN: unknown.
static double poll_once(struct bench_stable_wait *stable_wait, size_t mark)
{
	double hottest_c = (double)NAN;
	const struct sensor_context context = {
		.t_ns = env_now_ns(&stable_wait->env),
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING,
		.self_pid = getpid(),
	};
	sensor_set_read(&stable_wait->sensors, &context, stable_wait->rows);
	for (size_t i = 0; i < stable_wait->sensors.n_devices; i++) {
		hottest_c = fmax(hottest_c, value_to_double(stable_wait->rows[i][DEVICE_TEMPERATURE], 1));
		energy_track_feed(&stable_wait->tracks[i], context.t_ns, stable_wait->rows[i], false);
		energy_track_mark(&stable_wait->tracks[i], mark, context.t_ns);
	}
	return hottest_c;
}

// Measures mean power over a window, and the temperature at its end. False: a signal requests the end.
static bool poll_window(struct bench_stable_wait *stable_wait, struct bench_signals *signals, double *ret_w,
	double *ret_c)
{
	poll_once(stable_wait, BEGIN);
	if (!bench_pause(signals, stable_wait->window_ns))
		return false;
	*ret_c = poll_once(stable_wait, END);
	*ret_w = (double)NAN;
	for (size_t i = 0; i < stable_wait->sensors.n_devices; i++) {
		struct energy_track *track = &stable_wait->tracks[i];
		double seconds = seconds_between(track->marks[BEGIN].t_ns, track->marks[END].t_ns);
		if (counts(track->domain))
			*ret_w = nan_sum(*ret_w, energy_track_between(track, BEGIN, END).j / seconds);
	}
	return true;
}

static int prepare(struct bench_stable_wait *stable_wait, struct wattle_error *reterr)
{
	struct sensor_options options = {.calibrate_ns = 5 * NS_PER_MS};
	gpu_environment(&options);
	int r = env_open(&stable_wait->env, reterr);
	if (r < 0)
		return r;
	stable_wait->env_is_open = true;
	r = sensor_set_open(&stable_wait->sensors, &stable_wait->env, &options, reterr);
	if (r < 0)
		return r;
	stable_wait->sensors_are_open = true;
	size_t n = stable_wait->sensors.n_devices;
	stable_wait->tracks = calloc_array(n, sizeof(*stable_wait->tracks));
	stable_wait->rows = calloc_array(n, sizeof(*stable_wait->rows));
	if (stable_wait->tracks == NULL || stable_wait->rows == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	int64_t slowest_ns = 0;
	for (size_t i = 0; i < n; i++) {
		const struct domain *domain = stable_wait->sensors.devices[i];
		energy_track_init(&stable_wait->tracks[i], domain, stable_wait->sensors.sources[i], false);
		if (counts(domain) && domain->update_period_ns > slowest_ns)
			slowest_ns = domain->update_period_ns;
	}
	stable_wait->window_ns = 5 * slowest_ns; // with fewer updates the mean power would depend on chance
	stable_wait->window_ns = stable_wait->window_ns > MIN_WINDOW_NS ? stable_wait->window_ns : MIN_WINDOW_NS;
	stable_wait->window_ns = stable_wait->window_ns < MAX_WINDOW_NS ? stable_wait->window_ns : MAX_WINDOW_NS;
	return 0;
}

int bench_stable_open(struct bench_stable_wait *stable_wait, double limit_s, struct bench_signals *signals,
	struct wattle_error *reterr)
{
	*stable_wait = (struct bench_stable_wait){.figures = {
							  .limit_s = limit_s,
							  .reference_w = (double)NAN,
							  .reference_c = (double)NAN,
						  }};
	if (limit_s == 0)
		return 0;
	int r = prepare(stable_wait, reterr);
	if (r < 0)
		return r;
	struct bench_stability *figures = &stable_wait->figures;
	poll_window(stable_wait, signals, &figures->reference_w, &figures->reference_c);
	figures->possible = !isnan(figures->reference_w) || !isnan(figures->reference_c);
	return 0;
}

void bench_stable_close(struct bench_stable_wait *stable_wait)
{
	free(stable_wait->tracks);
	free(stable_wait->rows);
	if (stable_wait->sensors_are_open)
		sensor_set_close(&stable_wait->sensors);
	if (stable_wait->env_is_open)
		env_close(&stable_wait->env);
	*stable_wait = (struct bench_stable_wait){0};
}

// Unknown values do not delay a run.
static bool is_near(const struct bench_stability *figures, double power_w, double hottest_c)
{
	double max_w = figures->reference_w * (1 + NEAR_RELATIVE) + NEAR_W;
	return !(power_w > max_w) && !(hottest_c > figures->reference_c + NEAR_C);
}

void bench_wait_until_stable(struct bench_stable_wait *stable_wait, struct bench_signals *signals, double last_run_s)
{
	struct bench_stability *figures = &stable_wait->figures;
	double limit_s = isnan(figures->limit_s) ? fmin(last_run_s, AUTO_MAX_S) : figures->limit_s;
	int64_t limit_ns = (int64_t)(limit_s * 1e9);
	if (!figures->possible || limit_ns < stable_wait->window_ns)
		return; // a run this short has not heated the machine
	int64_t start_ns = env_now_ns(&stable_wait->env);
	bool is_stable = false;
	for (int64_t spent_ns = 0; !is_stable && spent_ns + stable_wait->window_ns <= limit_ns;
		spent_ns = env_now_ns(&stable_wait->env) - start_ns) {
		double power_w, hottest_c;
		if (!poll_window(stable_wait, signals, &power_w, &hottest_c))
			return;
		is_stable = is_near(figures, power_w, hottest_c);
	}
	figures->waited_s += (double)(env_now_ns(&stable_wait->env) - start_ns) * 1e-9;
	figures->unsettled += !is_stable;
}
