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
static const double AUTO_MOST_S = 10;
static const int64_t LEAST_WINDOW_NS = 200 * NS_PER_MS, MOST_WINDOW_NS = NS_PER_S;

int bench_settle_parse(const char *text, double *ret_limit_s, struct wattle_error *reterr)
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
static double look(struct bench_settle *settle, size_t mark)
{
	double hottest_c = (double)NAN;
	const struct sensor_context context = {
		.t_ns = env_now_ns(&settle->env),
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING,
		.self_pid = getpid(),
	};
	sensor_set_read(&settle->sensors, &context, settle->rows);
	for (size_t i = 0; i < settle->sensors.n_devices; i++) {
		hottest_c = fmax(hottest_c, value_to_double(settle->rows[i][DEVICE_TEMPERATURE], 1));
		energy_track_feed(&settle->tracks[i], context.t_ns, settle->rows[i], false);
		energy_track_mark(&settle->tracks[i], mark, context.t_ns);
	}
	return hottest_c;
}

// Measures mean power over a window, and the temperature at its end. False: a signal requests the end.
static bool look_for_a_while(struct bench_settle *settle, struct bench_signals *signals, double *ret_w, double *ret_c)
{
	look(settle, BEGIN);
	if (!bench_pause(signals, settle->window_ns))
		return false;
	*ret_c = look(settle, END);
	*ret_w = (double)NAN;
	for (size_t i = 0; i < settle->sensors.n_devices; i++) {
		struct energy_track *track = &settle->tracks[i];
		double seconds = seconds_between(track->marks[BEGIN].t_ns, track->marks[END].t_ns);
		if (counts(track->domain))
			*ret_w = add_known(*ret_w, energy_track_between(track, BEGIN, END).j / seconds);
	}
	return true;
}

static int prepare(struct bench_settle *settle, struct wattle_error *reterr)
{
	struct sensor_options options = {.calibrate_ns = 5 * NS_PER_MS};
	gpu_environment(&options);
	int r = env_open(&settle->env, reterr);
	if (r < 0)
		return r;
	settle->env_is_open = true;
	r = sensor_set_open(&settle->sensors, &settle->env, &options, reterr);
	if (r < 0)
		return r;
	settle->sensors_are_open = true;
	size_t n = settle->sensors.n_devices;
	settle->tracks = calloc_array(n, sizeof(*settle->tracks));
	settle->rows = calloc_array(n, sizeof(*settle->rows));
	if (settle->tracks == NULL || settle->rows == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	int64_t slowest_ns = 0;
	for (size_t i = 0; i < n; i++) {
		const struct domain *domain = settle->sensors.devices[i];
		energy_track_init(&settle->tracks[i], domain, settle->sensors.sources[i], false);
		if (counts(domain) && domain->update_period_ns > slowest_ns)
			slowest_ns = domain->update_period_ns;
	}
	settle->window_ns = 5 * slowest_ns; // with fewer updates the mean power would depend on chance
	settle->window_ns = settle->window_ns > LEAST_WINDOW_NS ? settle->window_ns : LEAST_WINDOW_NS;
	settle->window_ns = settle->window_ns < MOST_WINDOW_NS ? settle->window_ns : MOST_WINDOW_NS;
	return 0;
}

int bench_settle_open(struct bench_settle *settle, double limit_s, struct bench_signals *signals,
	struct wattle_error *reterr)
{
	*settle = (struct bench_settle){.figures = {
						.limit_s = limit_s,
						.reference_w = (double)NAN,
						.reference_c = (double)NAN,
					}};
	if (limit_s == 0)
		return 0;
	int r = prepare(settle, reterr);
	if (r < 0)
		return r;
	struct bench_settling *figures = &settle->figures;
	look_for_a_while(settle, signals, &figures->reference_w, &figures->reference_c);
	figures->possible = !isnan(figures->reference_w) || !isnan(figures->reference_c);
	return 0;
}

void bench_settle_close(struct bench_settle *settle)
{
	free(settle->tracks);
	free(settle->rows);
	if (settle->sensors_are_open)
		sensor_set_close(&settle->sensors);
	if (settle->env_is_open)
		env_close(&settle->env);
	*settle = (struct bench_settle){0};
}

// Unknown values do not delay a run.
static bool is_near(const struct bench_settling *figures, double power_w, double hottest_c)
{
	double most_w = figures->reference_w * (1 + NEAR_RELATIVE) + NEAR_W;
	return !(power_w > most_w) && !(hottest_c > figures->reference_c + NEAR_C);
}

void bench_settle_wait(struct bench_settle *settle, struct bench_signals *signals, double last_run_s)
{
	struct bench_settling *figures = &settle->figures;
	double limit_s = isnan(figures->limit_s) ? fmin(last_run_s, AUTO_MOST_S) : figures->limit_s;
	int64_t limit_ns = (int64_t)(limit_s * 1e9);
	if (!figures->possible || limit_ns < settle->window_ns)
		return; // a run this short has not heated the machine
	int64_t start_ns = env_now_ns(&settle->env);
	bool settled = false;
	for (int64_t spent_ns = 0; !settled && spent_ns + settle->window_ns <= limit_ns;
		spent_ns = env_now_ns(&settle->env) - start_ns) {
		double power_w, hottest_c;
		if (!look_for_a_while(settle, signals, &power_w, &hottest_c))
			return;
		settled = is_near(figures, power_w, hottest_c);
	}
	figures->waited_s += (double)(env_now_ns(&settle->env) - start_ns) * 1e-9;
	figures->unsettled += !settled;
}
