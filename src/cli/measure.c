#include "cli/measure.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/redact.h"
#include "base/util.h"
#include "cli/sensors.h"
#include "metric/carbon.h"
#include "process/machine.h"
#include "sensor/gpu_gain.h"
#include "sensor/gpu_roster.h"
#include "store/output_file.h"
#include "store/sub_tracking.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { UUID_SIZE = 37 };

/* ---- before ---- */

static int check_meta(const struct measure_options *options, struct wattle_error *reterr)
{
	for (size_t i = 0; i < options->meta.n; i++) {
		const char *equals = strchr(options->meta.items[i], '=');
		if (equals == NULL || equals == options->meta.items[i])
			return error_set(reterr, -EINVAL, "--meta: '%s' is not valid; give KEY=VALUE",
				options->meta.items[i]);
		if (options->label != NULL && strncmp(options->meta.items[i], "label=", strlen("label=")) == 0)
			return error_set(reterr, -EINVAL, "--meta: the key label is set by --label; give one of them");
	}
	return 0;
}

static int check_ending(const char *option, const char *path, struct wattle_error *reterr)
{
	if (path == NULL || sub_tracking_ending(path) != NULL) // sub-tracking files have the endings of tracking files
		return 0;
	return error_set(reterr, -EINVAL, "%s: %s does not end in .csv or .sqlite", option, path);
}

// Checks that the run file is a regular file, and that no other output is the same file.
static int check_run_file(const struct measure_options *options, struct wattle_error *reterr)
{
	const struct {
		const char *option, *path;
	} files[] = {{"--json", options->json}, {"--tracking-file", options->tracking_file}};
	if (options->output != NULL && strcmp(options->output, "-") == 0)
		return error_set(reterr, -EINVAL,
			"--output: a run file can't go to standard output; give FILE (--json - writes the report there)");
	if (options->no_file && (options->output != NULL || options->append || options->store != NULL))
		return error_set(reterr, -EINVAL, "--no-file: can't be combined with --output, --append or --store");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (options->output != NULL && files[i].path != NULL && strcmp(files[i].path, options->output) == 0)
			return error_set(reterr, -EINVAL, "%s: %s is the run file; choose another name",
				files[i].option, files[i].path);
	return 0;
}

static int check_profile(const struct measure_options *options, struct wattle_error *reterr)
{
	if (options->call_graph != NULL && options->profile_hz == 0)
		return error_set(reterr, -EINVAL, "--call-graph: needs --profile");
	if (options->cgroup != NULL && options->profile_hz != 0)
		return error_set(reterr, -EINVAL, "--profile: can't be combined with --cgroup; attach to a process of it");
	return 0;
}

static int check_gpu_gains(const struct measure_options *options, struct wattle_error *reterr)
{
	struct gpu_gain gain;
	for (size_t i = 0; i < options->gpu_gain.n; i++)
		if (gpu_gain_parse(options->gpu_gain.items[i], &gain, reterr) < 0)
			return -EINVAL;
	return 0;
}

static int check_carbon(const struct measure_options *options, struct wattle_error *reterr)
{
	const struct carbon_region *region;
	if (options->carbon_region == NULL)
		return 0;
	if (!isnan(options->carbon_intensity))
		return error_set(reterr, -EINVAL,
			"--carbon-region: can't be combined with --carbon-intensity; give one of them");
	return carbon_region_find("--carbon-region", options->carbon_region, &region, reterr);
}

// The carbon intensity, and where it comes from. measure_check found the region valid.
static void set_carbon(const struct measure_options *options, struct store_header *header)
{
	const struct carbon_region *region = NULL;
	header->carbon_intensity_g_per_kwh = options->carbon_intensity;
	if (options->carbon_region != NULL)
		(void)carbon_region_find("", options->carbon_region, &region, NULL);
	if (region == NULL)
		return;
	header->carbon_intensity_g_per_kwh = region->g_per_kwh;
	header->carbon_region = region->code;
	header->carbon_year = region->year;
	header->carbon_source = carbon_source;
}

// Mode of the files that store the run, in octal as for chmod.
static int read_mode(const char *text, mode_t *ret_mode, struct wattle_error *reterr)
{
	unsigned int mode = 0;
	size_t n = strspn(text, "01234567");
	for (size_t i = 0; i < n && n <= 4; i++)
		mode = mode * 8 + (unsigned int)(text[i] - '0');
	if (n < 3 || n > 4 || text[n] != '\0' || (mode & ~0666u) != 0 || (mode & 0600) != 0600)
		return error_set(reterr, -EINVAL,
			"--mode '%s': must be an octal mode from 600 to 666 with which the owner can read and write, such as 640",
			text);
	*ret_mode = mode;
	return 0;
}

int measure_check(const struct measure_options *options, struct wattle_error *reterr)
{
	if (options->overwrite && options->append)
		return error_set(reterr, -EINVAL, "--append: can't be combined with --overwrite; give one of them");
	int r = check_run_file(options, reterr);
	mode_t mode;
	if (r == 0)
		r = read_mode(options->mode, &mode, reterr);
	if (r == 0)
		r = check_ending("--tracking-file", options->tracking_file, reterr);
	if (r == 0)
		r = check_ending("--sub-tracking-file", options->sub_tracking_file, reterr);
	if (r == 0)
		r = check_profile(options, reterr);
	if (r == 0)
		r = check_gpu_gains(options, reterr);
	if (r == 0)
		r = check_carbon(options, reterr);
	return r < 0 ? r : check_meta(options, reterr);
}

// UUID version 4, from the kernel's random numbers.
static void make_uuid(char out[UUID_SIZE])
{
	unsigned char b[16];
	for (size_t at = 0; at < sizeof(b);) {
		ssize_t n = getrandom(b + at, sizeof(b) - at, 0);
		at += n > 0 ? (size_t)n : 0;
	}
	b[6] = (unsigned char)(0x40 | (b[6] & 0x0f));
	b[8] = (unsigned char)(0x80 | (b[8] & 0x3f));
	snprintf(out, UUID_SIZE, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
		b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

// GPUs of the machine, including unmeasured ones. A row that only reports a missing driver has no index and is no known GPU.
struct gpus_of_machine {
	int64_t n, memory_bytes; // memory: VALUE_MISSING if the memory of any GPU is unknown
};

// Counts unmeasured GPUs, too, as gpu_tracker does.
static struct gpus_of_machine find_gpus(const struct sensor_set *sensors)
{
	struct gpus_of_machine gpus = {0};
	for (size_t s = 0; s < sensors->n_slots; s++)
		for (size_t i = 0; i < sensors->slots[s].n_domains; i++) {
			const struct domain *domain = &sensors->slots[s].domains[i];
			if (domain->kind != DOMAIN_GPU || domain->index < 0)
				continue;
			gpus.n++;
			bool known = domain->memory_total_bytes > 0 && value_ok(gpus.memory_bytes);
			gpus.memory_bytes = known ? gpus.memory_bytes + (int64_t)domain->memory_total_bytes
						  : VALUE_MISSING;
		}
	return gpus;
}

static int read_idle_baseline(struct measure *measure, struct wattle_error *reterr)
{
	char note[200];
	measure->idle = calloc_array(measure->sensors.n_devices, sizeof(*measure->idle));
	if (measure->idle == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	idle_baseline_of(&measure->env, &measure->sensors, measure->idle, note, sizeof(note));
	if (note[0] != '\0' && !measure->options.disable_logs)
		cli_warn(note);
	return 0;
}

static int open_sensors(struct measure *measure, struct wattle_error *reterr)
{
	struct sensor_options options = {
		.gpus = measure->options.gpus,
		.gpu_brand = measure->options.gpu_brand,
		.wall_meter = measure->options.wall_meter,
		.gpu_gains = measure->options.gpu_gain.items,
		.calibrate_ns = 5 * NS_PER_MS,
	};
	gpu_environment(&options);
	int r = sensor_set_open(&measure->sensors, &measure->env, &options, reterr);
	measure->sensors_are_open = r == 0;
	if (r == 0 && measure->sensors.gain_message[0] != '\0' && !measure->options.disable_logs)
		cli_warn(measure->sensors.gain_message);
	if (r == 0 && strcmp(measure->options.attribution, "active") == 0)
		r = read_idle_baseline(measure, reterr);
	return r;
}

static int open_sink(struct measure *measure, const struct store_ops *ops, const char *path,
	const struct store_header *header, struct wattle_error *reterr)
{
	void *state = calloc(1, ops->state_size);
	if (state == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	measure->sinks[measure->n_sinks++] = (struct write_queue_sink){.ops = ops, .state = state};
	const struct store_open_options options = {
		.path = path,
		.overwrite = measure->options.overwrite,
		.append = measure->options.append,
		.mode = measure->file_mode,
	};
	return ops->open(state, &options, header, reterr);
}

static int refuse_collision(const struct measure *measure, struct wattle_error *reterr)
{
	return error_set(reterr, -EEXIST,
		"%s exists, and this is one of %lld ranks: give each rank its own file with %%r (the rank) "
		"in --output, as in -o run-%%r.sqlite",
		measure->path, (long long)measure->job.job_env.world_size);
}

static int refuse_step(const struct measure *measure, struct wattle_error *reterr)
{
	return error_set(reterr, -EEXIST,
		"%s exists, and this is step %s of a job: give each step its own files with %%s (the step) "
		"in --output, as in -o %%j.%%s-%%r.sqlite",
		measure->path, measure->job.job_env.step);
}

static int open_stores(struct measure *measure, pid_t pid, const char *const *command, bool attached,
	struct wattle_error *reterr)
{
	const struct measure_options *options = &measure->options;
	wattle_cleanup_free char **stored = redact_argv(command, options->hide_command && options->cgroup == NULL);
	if (stored == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	const struct wattle_env *env = &measure->env;
	char run_id[UUID_SIZE], boot_id[64] = "", host[256] = "";
	make_uuid(run_id);
	gethostname(host, sizeof(host) - 1);
	measure_job_metadata(&measure->job, env, host, options->alone, options->hide_command);
	if (file_read_line_in(env->procfs_fd, "sys/kernel/random/boot_id", boot_id, sizeof(boot_id)) < 0)
		boot_id[0] = '\0';
	struct machine machine;
	struct machine_reading reading;
	machine_open(&machine, env);
	machine_read(&machine, &reading);
	machine_close(&machine);
	int64_t n_cores = machine_cores(env);
	struct gpus_of_machine gpus = find_gpus(&measure->sensors);
	struct store_header header = {
		.run_id = run_id,
		.anchor_mono_ns = env_now_ns(env),
		.anchor_wall_ns = env_wall_ns(env),
		.anchor_boot_ns = env_boottime_ns(env),
		.boot_id = boot_id,
		.host = host,
		.pid = options->cgroup != NULL ? 0 : pid,
		.command = (const char *const *)stored,
		.interval_ns = options->interval_ns,
		.attached = attached,
		.cgroup = options->cgroup != NULL ? command[0] : NULL,
		.devices = measure->sensors.devices,
		.sources = measure->sensors.sources,
		.idle = measure->idle,
		.n_devices = measure->sensors.n_devices,
		.memory_total_bytes = reading.memory_total_bytes,
		.n_cores = n_cores,
		.expected_cores = value_ok(options->expected_cores) ? options->expected_cores : n_cores,
		.n_gpus_system = gpus.n,
		.gpu_memory_total_bytes = gpus.memory_bytes,
		.ram_unit = options->ram_unit,
		.gpu_ram_unit = options->gpu_ram_unit,
		.time_unit = options->time_unit,
		.attribution = options->attribution,
		.pue = options->pue,
		.meta = options->meta.items,
		.label = options->label,
		.step = options->step,
		.facts = measure->job.facts,
		.n_metadata = measure->job.n_metadata,
	};
	set_carbon(options, &header);
	int r = open_sink(measure, &store_run_file, measure->path, &header, reterr);
	bool is_taken = r == -EEXIST || r == -EBUSY; // busy: with --overwrite or --append, another rank is writing the file
	if (is_taken && output_may_collide(options->output, &measure->job.job_env))
		r = refuse_collision(measure, reterr);
	else if (r == -EEXIST && output_may_meet_step(options->output, &measure->job.job_env))
		r = refuse_step(measure, reterr);
	if (r == 0 && options->tracking_file != NULL)
		r = open_sink(measure, &store_tracking_file, options->tracking_file, &header, reterr);
	return r;
}

// --no-file: creates a temporary run file.
static int make_temporary(struct measure *measure, struct wattle_error *reterr)
{
	const char *top = getenv("TMPDIR");
	int length = snprintf(measure->folder, sizeof(measure->folder), "%s/wattle-run-XXXXXX",
		top != NULL ? top : "/tmp");
	bool fits = length > 0 && (size_t)length < sizeof(measure->folder);
	if (!fits || mkdtemp(measure->folder) == NULL) {
		int error = fits ? errno : ENAMETOOLONG;
		measure->folder[0] = '\0';
		return error_set(reterr, -error,
			"--no-file: can't create a folder in %s: %s; set TMPDIR to a writable folder",
			top != NULL ? top : "/tmp", strerror(error));
	}
	snprintf(measure->path, sizeof(measure->path), "%s/run.sqlite", measure->folder);
	return 0;
}

int measure_open(struct measure *measure, const struct measure_options *options, pid_t pid, const char *const *command,
	bool attached, struct wattle_error *reterr)
{
	// A quota or a closed pipe must produce an error, not kill the recorder. The command was forked before and keeps the
	// defaults.
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	*measure = (struct measure){.options = *options};
	if (read_mode(options->mode, &measure->file_mode, reterr) < 0)
		return -EINVAL;
	measure_job_env(&measure->job, options->job);
	measure->job.attached = attached;
	const struct output_naming naming = {
		.pattern = options->output,
		.pid = pid,
		.job_env = &measure->job.job_env,
		.append = options->append,
	};
	int r = cli_check_writable("--json", options->json, reterr);
	if (r == 0 && options->no_file)
		r = make_temporary(measure, reterr);
	else if (r == 0)
		r = output_path(&naming, measure->path, sizeof(measure->path), reterr);
	if (r == 0)
		r = measure_store_open(measure, reterr);
	if (r == 0)
		r = env_open(&measure->env, reterr);
	measure->env_is_open = r == 0;
	if (r == 0 && measure->uploader != NULL)
		measure->env.companion = uploader_companion(measure->uploader);
	if (r == 0)
		r = open_sensors(measure, reterr);
	if (r == 0 && measure->uploader != NULL)
		r = uploader_ready(measure->uploader, reterr);
	if (r == 0)
		r = open_stores(measure, pid, command, attached, reterr);
	if (r == 0 && options->progress)
		measure->progress = progress_new(&measure->options);
	if (r == 0 && value_ok(options->steps) && options->step == NULL && !options->disable_logs)
		cli_warn("--steps needs --step NAME, which defines a step");
	return r;
}

/* ---- during ---- */

static void on_warning(void *data, const char *text)
{
	const struct measure *measure = data;
	if (!measure->options.disable_logs)
		cli_warn(text);
}

static void on_progress(void *data, const struct recorder_progress *figures)
{
	const struct measure *measure = data;
	progress_show(measure->progress, figures);
}

void measure_send_file(const struct measure *measure)
{
	control_send(measure->options.control, "file", 0, measure->path, strlen(measure->path));
}

static void on_ready(void *data, const char *ring)
{
	const struct measure *measure = data;
	measure_send_file(measure);
	control_send(measure->options.control, "ready", 0, ring, strlen(ring));
}

static bool on_control(void *data)
{
	const struct measure *measure = data;
	return control_read(measure->options.control);
}

static struct timeval timeval_of(int64_t microseconds)
{
	return (struct timeval){.tv_sec = microseconds / 1000000, .tv_usec = microseconds % 1000000};
}

static bool on_outcome(void *data, struct recorder_outcome *ret_outcome)
{
	const struct measure *measure = data;
	const struct control *control = measure->options.control;
	const struct tracker_ended *ended = &control->ended;
	if (control->has_ended)
		*ret_outcome = (struct recorder_outcome){
			.wait_status = ended->wait_status,
			.usage =
				{
					.ru_utime = timeval_of(ended->user_us),
					.ru_stime = timeval_of(ended->system_us),
					.ru_minflt = ended->minor_faults,
					.ru_majflt = ended->major_faults,
					.ru_inblock = ended->blocks_in,
					.ru_oublock = ended->blocks_out,
					.ru_nvcsw = ended->voluntary_switches,
					.ru_nivcsw = ended->involuntary_switches,
				},
		};
	return control->has_ended;
}

void measure_recorder_options(struct measure *measure, struct recorder_options *ret_options)
{
	*ret_options = (struct recorder_options){
		.sampler =
			{
				.interval_ns = measure->options.interval_ns,
				.budget_percent = measure->options.budget_percent,
				.per_process = measure->options.per_process,
			},
		.shares_with = measure->job.group,
		.rank = measure->job.job_env.rank,
		.wait_all = measure->options.wait_all,
		.span_cpu = measure->options.span_cpu,
		.profile = {.hz = measure->options.profile_hz,
			.call_graph = measure->options.call_graph == NULL ||
				strcmp(measure->options.call_graph, "none") != 0},
		.flush_ns = measure->options.flush_ns,
		.step = measure->progress != NULL ? measure->options.step : NULL,
		.warn = on_warning,
		.progress = measure->progress != NULL ? on_progress : NULL,
		.maintain = measure->uploader != NULL ? measure_store_maintain : NULL,
		.data = measure,
	};
	if (measure->options.control == NULL)
		return;
	ret_options->ready = on_ready;
	ret_options->control = on_control;
	ret_options->outcome = on_outcome;
	ret_options->control_fd = measure->options.control->watch_fd;
}

/* ---- after ---- */

void measure_close_stores(struct measure *measure, bool discard)
{
	for (size_t i = 0; i < measure->n_sinks; i++) {
		measure->sinks[i].ops->close(measure->sinks[i].state, discard);
		free(measure->sinks[i].state);
	}
	measure->n_sinks = 0;
}

void measure_close(struct measure *measure, bool discard)
{
	progress_free(measure->progress);
	measure_close_stores(measure, discard);
	uploader_free(measure->uploader);
	if (measure->folder[0] != '\0') {
		output_file_remove(measure->path);
		rmdir(measure->folder);
	}
	if (measure->sensors_are_open)
		sensor_set_close(&measure->sensors);
	free(measure->idle);
	if (measure->env_is_open)
		env_close(&measure->env);
	*measure = (struct measure){0};
}
