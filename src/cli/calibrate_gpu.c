#include "cli/sensors.h"

#include "base/num.h"
#include "base/util.h"
#include "cli/command.h"
#include "process/machine.h"
#include "report/report.h"
#include "sensor/gpu_gain.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first seconds after each load change are ignored: GPUs report a mean over one second, updated up to 0.1 s later; power
 * supplies and wall meters lag slightly. */
static const int64_t IGNORED_NS = 2 * NS_PER_S;
static const useconds_t POLL_PAUSE_US = 25000;
static const int64_t STOP_NS = 5 * NS_PER_S; // from SIGTERM to SIGKILL
static const int64_t CALIBRATE_NS = 250 * NS_PER_MS;
enum { POLLS_PER_POWER = 4, WINDOWS = 4 };
static const double COUNTED_ERROR = 0.1; // relative error of the additional power that package counters and other GPUs report
static const double STEADY_SHARE = 0.1;  // limit of the spread of the windows of a phase, relative to the difference
static const double EFFICIENCY = 0.91, EFFICIENCY_ERROR = 0.05; // for 80 PLUS supplies from Bronze to Titanium

struct session {
	const struct wattle_env *env;
	const struct calibrate_gpu *how;
	struct sensor_set set;
	struct machine machine;
	struct idle_monitor *watches;    // owned; one per device of the set
	int64_t (*values)[DEVICE_COUNT]; // owned
	size_t wall, gpu;                // indexes of devices in the set
	struct gpu_phase phases[GPU_FIT_PHASES];
	double min_w[GPU_FIT_PHASES], max_w[GPU_FIT_PHASES];    // over the wall meter's windows
	pid_t pid;                                              // pid of the command; 0: not running
};

/* ---- options ---- */

int calibrate_gpu_supply(const char *text, struct gpu_supply *ret_supply, struct wattle_error *reterr)
{
	struct gpu_supply supply = {EFFICIENCY, EFFICIENCY_ERROR};
	double percent, error = 0;
	bool valid = true;
	if (text != NULL) {
		valid = gpu_gain_split(text, &percent, &error);
		supply = (struct gpu_supply){percent / 100, error / 100};
		bool on_card = percent == 100 && !(error > 0);
		valid = valid && (on_card || (percent >= 50 && percent < 100 && error >= 0.1 && error <= 20));
	}
	if (!valid)
		return error_set(reterr, -EINVAL,
			"--supply-efficiency: '%.40s' is not valid; give PERCENT±ERROR, such as 92±2, or 100 "
			"for a meter in the card's own supply lines",
			text);
	*ret_supply = supply;
	return 0;
}

/* ---- the command ---- */

static int start_command(struct session *s, struct wattle_error *reterr)
{
	fflush(NULL);
	s->pid = fork();
	if (s->pid < 0) {
		s->pid = 0;
		return error_set(reterr, -errno, "cannot start %s: %s", s->how->argv[0], strerror(errno));
	}
	setpgid(s->pid, 0); // in parent and child, whichever runs first
	if (s->pid > 0)
		return 0;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	execvp(s->how->argv[0], s->how->argv);
	fprintf(stderr, "wattle: cannot start %s: %s\n", s->how->argv[0], strerror(errno));
	_exit(EXIT_FAILED);
}

static bool command_has_ended(struct session *s)
{
	if (s->pid == 0 || waitpid(s->pid, NULL, WNOHANG) == 0)
		return s->pid == 0;
	kill(-s->pid, SIGKILL); // descendants that are still running
	s->pid = 0;
	return true;
}

static void stop_command(struct session *s)
{
	int64_t until_ns = env_now_ns(s->env) + STOP_NS;
	if (s->pid == 0)
		return;
	kill(-s->pid, SIGTERM);
	while (!command_has_ended(s)) {
		usleep(POLL_PAUSE_US);
		if (env_now_ns(s->env) > until_ns)
			kill(-s->pid, SIGKILL);
	}
}

/* ---- a phase ---- */

static void poll_once(struct session *s, bool energy_only, bool counts)
{
	struct machine_reading load = {.cpu_busy_ns = VALUE_MISSING, .cpu_idle_ns = VALUE_MISSING};
	if (!energy_only)
		machine_read(&s->machine, &load);
	const struct sensor_context context = {
		.t_ns = env_now_ns(s->env),
		.system_busy_ns = load.cpu_busy_ns,
		.system_idle_ns = load.cpu_idle_ns,
		.self_pid = getpid(),
		.energy_only = energy_only,
	};
	sensor_set_read(&s->set, &context, s->values);
	for (size_t i = 0; counts && i < s->set.n_devices; i++) {
		int64_t updated_ns = s->values[i][DEVICE_ENERGY_TIME]; // a wall meter's frames may arrive late
		idle_monitor_feed(&s->watches[i], value_ok(updated_ns) ? updated_ns : context.t_ns, s->values[i]);
	}
}

// Returns false if the command ended before end_ns.
static bool poll_until(struct session *s, int64_t end_ns, bool counts)
{
	for (unsigned n_polls = 1; env_now_ns(s->env) < end_ns; n_polls++) {
		poll_once(s, n_polls % POLLS_PER_POWER != 0, counts);
		usleep(POLL_PAUSE_US);
		if (s->pid != 0 && command_has_ended(s))
			return false;
	}
	return true;
}

static bool measure_phase(struct session *s)
{
	int64_t begin_ns = env_now_ns(s->env), window_ns = (int64_t)(s->how->seconds * 1e9 / WINDOWS);
	for (size_t i = 0; i < s->set.n_devices; i++)
		idle_monitor_init(&s->watches[i], s->set.devices[i], begin_ns);
	for (int64_t w = 1; w <= WINDOWS; w++) {
		if (!poll_until(s, begin_ns + w * window_ns, true))
			return false;
		for (size_t i = 0; i < s->set.n_devices; i++)
			idle_monitor_end_window(&s->watches[i]);
	}
	return true;
}

// Adds the domains of the total that draw from the same supply.
static void add_others(const struct session *s, size_t device, struct gpu_phase *phase)
{
	const struct domain *domain = s->set.devices[device];
	struct idle_result result;
	if (device == s->gpu || !sensor_set_adds_up(&s->set, domain) ||
		!idle_monitor_result(&s->watches[device], &result))
		return;
	bool counted = domain->provenance != PROVENANCE_ESTIMATED;
	phase->others_w += result.idle_w;
	phase->others_error = fmax(phase->others_error, counted ? COUNTED_ERROR : domain->relative_error);
}

static int measure_load_phase(struct session *s, size_t number, struct wattle_error *reterr)
{
	struct gpu_phase *phase = &s->phases[number];
	struct idle_result wall, gpu;
	*phase = (struct gpu_phase){0};
	if (!idle_monitor_result(&s->watches[s->wall], &wall))
		return error_set(reterr, -ENODATA,
			"--wall-meter %s: no new readings for %.0f s; check that the meter's reader is running",
			s->how->wall_meter, s->how->seconds);
	if (!idle_monitor_result(&s->watches[s->gpu], &gpu))
		return error_set(reterr, -ENODATA, "gpu-%d reports neither power nor energy", s->how->index);
	phase->wall_w = wall.idle_w;
	phase->gpu_w = gpu.idle_w;
	s->min_w[number] = wall.lowest_w;
	s->max_w[number] = wall.highest_w;
	for (size_t i = 0; i < s->set.n_devices; i++)
		add_others(s, i, phase);
	return 0;
}

static int run_phase(struct session *s, size_t number, struct wattle_error *reterr)
{
	bool loaded = number % 2 == 1;
	fprintf(stderr, "wattle: phase %zu of %d, %s\n", number + 1, GPU_FIT_PHASES, loaded ? "loaded" : "idle");
	int r = loaded ? start_command(s, reterr) : 0;
	if (r < 0)
		return r;
	bool whole = poll_until(s, env_now_ns(s->env) + IGNORED_NS, false) && measure_phase(s);
	stop_command(s);
	if (!whole)
		return error_set(reterr, -ENODATA, "%s ended too early: it must load the GPU for %.0f s or more",
			s->how->argv[0], s->how->seconds + 3);
	return measure_load_phase(s, number, reterr);
}

/* ---- the result ---- */

// Rejects unsteady phases: with a lagging wall meter or a varying load, the means of the phases cannot be compared.
static int check_steady(const struct session *s, struct wattle_error *reterr)
{
	double delta_w = s->phases[1].wall_w - s->phases[0].wall_w;
	for (size_t i = 0; i < GPU_FIT_PHASES; i++)
		if (s->max_w[i] - s->min_w[i] > STEADY_SHARE * fmax(delta_w, 20))
			return error_set(reterr, -ERANGE,
				"the wall meter read %.0f to %.0f W within one phase: the load is unsteady, "
				"other processes use the machine, or the meter lags by more than 2 s",
				s->min_w[i], s->max_w[i]);
	return 0;
}

static int keep(const struct session *s, const struct gpu_fit *fit, struct wattle_error *reterr)
{
	const struct domain *domain = s->set.devices[s->gpu];
	struct gpu_gain gain = {.index = -1, .factor = fit->factor, .error = fit->error};
	char path[600] = "";
	text_copy(gain.uuid, sizeof(gain.uuid), domain->uuid);
	idle_baseline_date(env_wall_ns(s->env), gain.date, sizeof(gain.date));
	int r = idle_baseline_folder(s->env, reterr);
	if (r == 0)
		r = gpu_gain_store(s->env, &gain, reterr);
	if (r < 0)
		return r;
	gpu_gain_path(s->env, path, sizeof(path));
	printf("%s (%s): factor %.4f ± %.1f %%\n", domain->name, domain->device, fit->factor, 100 * fit->error);
	printf("  from %d changes of %.0f W; scatter %.1f %%, supply %.1f %%, rest of the machine %.1f %%, meter %.1f %%, "
	       "offset %.1f %%\n",
		GPU_FIT_CYCLES, fit->delta_w, 100 * fit->scatter, 100 * fit->efficiency, 100 * fit->others,
		100 * fit->meter, 100 * fit->offset);
	printf("Stored in %s; later runs use it.\n", path);
	return 0;
}

static int measure(struct session *s, struct wattle_error *reterr)
{
	struct gpu_fit fit;
	int r = 0;
	for (size_t i = 0; r == 0 && i < GPU_FIT_PHASES; i++)
		r = run_phase(s, i, reterr);
	if (r == 0)
		r = check_steady(s, reterr);
	if (r == 0)
		r = gpu_fit_make(s->phases, &s->how->supply, &fit, reterr);
	return r == 0 ? keep(s, &fit, reterr) : r;
}

static bool has_package(const struct sensor_set *set)
{
	for (size_t i = 0; i < set->n_devices; i++)
		if (set->devices[i]->kind == DOMAIN_PACKAGE)
			return true;
	return false;
}

static int find_devices(struct session *s, struct wattle_error *reterr)
{
	bool has_gpu = false, has_wall = false;
	for (size_t i = 0; i < s->set.n_devices; i++) {
		const struct domain *domain = s->set.devices[i];
		if (domain->kind == DOMAIN_GPU && domain->index == s->how->index) {
			s->gpu = i;
			has_gpu = true;
		} else if (domain->kind == DOMAIN_WALL && !has_wall) {
			s->wall = i;
			has_wall = true;
		}
	}
	if (!has_gpu)
		return error_set(reterr, -ENODEV,
			"--calibrate-gpu %d: no measured GPU has this index; `wattle sensors` lists the GPUs",
			s->how->index);
	if (s->set.devices[s->gpu]->uuid[0] == '\0')
		return error_set(reterr, -ENODEV,
			"--calibrate-gpu %d: this GPU has no UUID, so its calibration can't be stored; use "
			"--gpu-gain", s->how->index);
	if (!has_wall)
		return error_set(reterr, -ENODEV, "--calibrate-gpu: no wall meter is read; give --wall-meter FILE");
	if (s->how->supply.error > 0 && !has_package(&s->set))
		return error_set(reterr, -ENODEV,
			"--calibrate-gpu: CPU power is unknown, but the wall meter includes it; `wattle "
			"sensors` shows how to enable a CPU sensor");
	return 0;
}

int calibrate_gpu(const struct wattle_env *env, const struct calibrate_gpu *how)
{
	struct wattle_error error = {0};
	const struct sensor_options options = {.calibrate_ns = CALIBRATE_NS, .wall_meter = how->wall_meter};
	struct session s = {.env = env, .how = how};
	if (sensor_set_open(&s.set, env, &options, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	machine_open(&s.machine, env);
	s.watches = calloc_array(s.set.n_devices, sizeof(*s.watches));
	s.values = calloc_array(s.set.n_devices, sizeof(*s.values));
	int r = s.watches != NULL && s.values != NULL ? find_devices(&s, &error)
						      : error_set(&error, -ENOMEM, "out of memory");
	if (r == 0)
		r = measure(&s, &error);
	stop_command(&s);
	free(s.watches);
	free(s.values);
	machine_close(&s.machine);
	sensor_set_close(&s.set);
	if (r == 0)
		return EXIT_DONE;
	fprintf(stderr, "wattle: can't calibrate GPU %d, nothing was stored: %s\n", how->index, error.text);
	return EXIT_FAILED;
}
