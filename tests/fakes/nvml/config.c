#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fake_within(const struct fake_window *when, int64_t t_ms)
{
	return t_ms >= when->from_ms && t_ms < when->until_ms;
}

// The rest of a line, word by word.
static const char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " \t");
	size_t length = strcspn(word, " \t");
	*rest = word[length] != '\0' ? word + length + 1 : word + length;
	word[length] = '\0';
	return word;
}

static bool take_double(char **rest, double *ret_value)
{
	const char *word = next_word(rest);
	char *end;
	if (word[0] == '\0')
		return false;
	*ret_value = strtod(word, &end);
	return *end == '\0';
}

static bool take_u64(char **rest, uint64_t *ret_value)
{
	const char *word = next_word(rest);
	char *end;
	errno = 0;
	unsigned long long value = strtoull(word, &end, 0);
	if (word[0] == '\0' || *end != '\0' || errno != 0)
		return false;
	*ret_value = value;
	return true;
}

static bool take_uint(char **rest, unsigned int *ret_value)
{
	uint64_t value;
	if (!take_u64(rest, &value) || value > UINT32_MAX)
		return false;
	*ret_value = (unsigned int)value;
	return true;
}

static bool take_text(char **rest, char *out, size_t size)
{
	const char *text = *rest + strspn(*rest, " \t");
	int length = snprintf(out, size, "%s", text);
	return length > 0 && (size_t)length < size;
}

static bool take_word(char **rest, char *out, size_t size)
{
	int length = snprintf(out, size, "%s", next_word(rest));
	return length > 0 && (size_t)length < size;
}

// [FROM_MS [UNTIL_MS]]
static bool take_window(char **rest, struct fake_window *ret_when)
{
	uint64_t value;
	*ret_when = (struct fake_window){0, FAKE_FOREVER_MS};
	if ((*rest)[strspn(*rest, " \t")] == '\0')
		return true;
	if (!take_u64(rest, &value))
		return false;
	ret_when->from_ms = (int64_t)value;
	if ((*rest)[strspn(*rest, " \t")] == '\0')
		return true;
	if (!take_u64(rest, &value))
		return false;
	ret_when->until_ms = (int64_t)value;
	return true;
}

// IDLE_MW FULL_MW EXPONENT MEMORY_SHARE
static bool take_speed(char **rest, struct fake_speed *speed)
{
	return take_double(rest, &speed->idle_mw) && take_double(rest, &speed->full_mw) &&
		take_double(rest, &speed->exponent) && take_double(rest, &speed->memory_share) &&
		speed->full_mw > speed->idle_mw && speed->exponent > 0 && speed->memory_share < 1;
}

static bool take_power(char **rest, struct fake_power *ret_power)
{
	struct fake_power power = {.duty = 0.5};
	const char *shape = next_word(rest);
	double ms, percent;
	bool good = false;
	if (strcmp(shape, "constant") == 0) {
		good = take_double(rest, &power.mean_mw);
	} else if (strcmp(shape, "step") == 0) {
		power.shape = SHAPE_STEP;
		good = take_double(rest, &power.low_mw) && take_double(rest, &power.high_mw) && take_double(rest, &ms);
		if (good && take_double(rest, &percent))
			power.duty = percent / 100;
	} else if (strcmp(shape, "sine") == 0) {
		power.shape = SHAPE_SINE;
		good = take_double(rest, &power.mean_mw) && take_double(rest, &power.amplitude_mw) &&
			take_double(rest, &ms);
	}
	if (!good && strcmp(shape, "speed") == 0) {
		power.shape = SHAPE_SPEED;
		good = take_speed(rest, &power.speed);
	}
	if (!good)
		return false;
	power.period_s = power.shape == SHAPE_STEP || power.shape == SHAPE_SINE ? ms / 1000 : 1;
	*ret_power = power;
	return power.period_s > 0;
}

static bool take_error(char **rest, struct fake_error *errors, unsigned int *n_errors)
{
	if (*n_errors == ERRORS_MAX)
		return false;
	struct fake_error *error = &errors[*n_errors];
	unsigned int code;
	if (!take_word(rest, error->function, sizeof(error->function)) || !take_uint(rest, &code) ||
		!take_window(rest, &error->when))
		return false;
	error->code = (int)code;
	(*n_errors)++;
	return true;
}

static bool take_process(char **rest, struct fake_gpu *gpu)
{
	if (gpu->n_processes == PROCESSES_MAX)
		return false;
	struct fake_process *process = &gpu->processes[gpu->n_processes];
	char memory[32];
	process->instance = -1;
	if (!take_word(rest, process->who, sizeof(process->who)) ||
		!take_word(rest, process->kinds, sizeof(process->kinds)) || !take_uint(rest, &process->sm_percent) ||
		!take_word(rest, memory, sizeof(memory)) || !take_window(rest, &process->when))
		return false;
	process->memory_bytes = strcmp(memory, "unknown") == 0 ? UINT64_MAX : strtoull(memory, NULL, 0);
	gpu->n_processes++;
	return true;
}

// MIN STEP, in MHz; with the word "stairs" the card has no clocks between.
static bool take_clocks(char **rest, struct fake_gpu *gpu)
{
	if (!take_uint(rest, &gpu->clock_min_mhz) || !take_uint(rest, &gpu->clock_step_mhz) || gpu->clock_step_mhz == 0)
		return false;
	const char *word = next_word(rest);
	gpu->clock_stairs = strcmp(word, "stairs") == 0;
	return gpu->clock_stairs || word[0] == '\0';
}

static bool at_end(const char *rest)
{
	return rest[strspn(rest, " \t")] == '\0';
}

// UUID [GPU_INSTANCE COMPUTE_INSTANCE SLICES MULTIPROCESSORS MEMORY_BYTES [NAME]]
static bool take_mig(char **rest, struct fake_gpu *gpu)
{
	if (gpu->n_mig == MIG_MAX)
		return false;
	struct fake_mig *mig = &gpu->mig[gpu->n_mig];
	*mig = (struct fake_mig){.gpu_instance = gpu->n_mig++, .name = "Fake GPU MIG"};
	if (!take_word(rest, mig->uuid, sizeof(mig->uuid)) || at_end(*rest))
		return mig->uuid[0] != '\0';
	if (!take_uint(rest, &mig->gpu_instance) || !take_uint(rest, &mig->compute_instance) ||
		!take_uint(rest, &mig->slices) || !take_uint(rest, &mig->multiprocessors) ||
		!take_u64(rest, &mig->memory_bytes))
		return false;
	return at_end(*rest) || take_text(rest, mig->name, sizeof(mig->name));
}

// INSTANCE, then as for `process`.
static bool take_mig_process(char **rest, struct fake_gpu *gpu)
{
	unsigned int instance;
	if (!take_uint(rest, &instance) || instance >= gpu->n_mig || !take_process(rest, gpu))
		return false;
	gpu->processes[gpu->n_processes - 1].instance = (int)instance;
	return true;
}

static bool take_field(char **rest, struct fake_gpu *gpu)
{
	unsigned int code;
	if (gpu->n_fields == FIELDS_MAX)
		return false;
	struct fake_field *field = &gpu->fields[gpu->n_fields++];
	bool good = take_uint(rest, &field->id) && take_uint(rest, &field->scope) && take_uint(rest, &code);
	field->code = good ? (int)code : 0;
	return good;
}

static bool take_limits(char **rest, struct fake_gpu *gpu)
{
	return take_uint(rest, &gpu->limit_min_mw) && take_uint(rest, &gpu->limit_max_mw) &&
		take_uint(rest, &gpu->limit_default_mw) && take_uint(rest, &gpu->limit_mw);
}

static bool take_scaled(char **rest, double scale, double *ret_value)
{
	if (!take_double(rest, ret_value))
		return false;
	*ret_value *= scale;
	return true;
}

static bool take_ms(char **rest, int64_t *ret_ms)
{
	uint64_t value;
	if (!take_u64(rest, &value) || value > INT64_MAX)
		return false;
	*ret_ms = (int64_t)value;
	return true;
}

static bool gpu_line(const char *key, char **rest, struct fake_gpu *gpu)
{
#define KEY(name, expression)                                                                                          \
	if (strcmp(key, name) == 0)                                                                                    \
		return expression;
	KEY("name", take_text(rest, gpu->name, sizeof(gpu->name)))
	KEY("uuid", take_word(rest, gpu->uuid, sizeof(gpu->uuid)))
	KEY("mig", take_mig(rest, gpu))
	KEY("memory_total_bytes", take_u64(rest, &gpu->memory_total_bytes))
	KEY("memory_reserved_bytes", take_u64(rest, &gpu->memory_reserved_bytes))
	KEY("memory_used_bytes", take_u64(rest, &gpu->memory_used_bytes))
	KEY("power_mw", take_power(rest, &gpu->power))
	KEY("power_average_ms", take_scaled(rest, 1e-3, &gpu->power_average_s))
	KEY("energy_start_mj", take_double(rest, &gpu->energy_start_mj))
	KEY("energy_period_ms", take_scaled(rest, 1e-3, &gpu->energy_period_s))
	KEY("energy_reset_ms", take_scaled(rest, 1e-3, &gpu->energy_reset_s))
	KEY("temperature_c", take_uint(rest, &gpu->temperature_c))
	KEY("memory_temperature_c", take_uint(rest, &gpu->memory_temperature_c))
	KEY("utilization_percent", take_uint(rest, &gpu->gpu_percent) && take_uint(rest, &gpu->memory_percent))
	KEY("sm_clock_mhz", take_uint(rest, &gpu->sm_clock_mhz))
	KEY("max_sm_clock_mhz", take_uint(rest, &gpu->max_sm_clock_mhz))
	KEY("memory_clock_mhz", take_uint(rest, &gpu->memory_clock_mhz))
	KEY("cores", take_uint(rest, &gpu->cores))
	KEY("throttle_bits", take_u64(rest, &gpu->throttle_bits))
	KEY("limits_mw", take_limits(rest, gpu))
	KEY("limit_step_mw", take_uint(rest, &gpu->limit_step_mw) && gpu->limit_step_mw > 0)
	KEY("limit_delay_ms", take_ms(rest, &gpu->limit_delay_ms))
	KEY("limit_approach_ms", take_scaled(rest, 1e-3, &gpu->limit_approach_s))
	KEY("rests", (gpu->rests = true))
	KEY("enforced_mw", take_uint(rest, &gpu->enforced_mw))
	KEY("set_delay_ms", take_ms(rest, &gpu->set_delay_ms))
	KEY("set_uid", take_ms(rest, &gpu->set_uid))
	KEY("clocks_mhz", take_clocks(rest, gpu))
	KEY("persistence_off", (gpu->persistence_off = true))
	KEY("lost_when_file", take_word(rest, gpu->lost_when_file, sizeof(gpu->lost_when_file)))
	KEY("lost_after_ms", take_window(rest, &gpu->lost))
	KEY("pci", take_word(rest, gpu->pci, sizeof(gpu->pci)))
	KEY("minor", take_uint(rest, &gpu->minor))
	KEY("mig_max", take_uint(rest, &gpu->mig_max))
	KEY("mig_off", (gpu->mig_off = true))
	KEY("mig_lists_by_part", (gpu->mig_lists_by_part = true))
	KEY("mig_process", take_mig_process(rest, gpu))
	KEY("field_error", take_field(rest, gpu))
	KEY("energy_by_field", (gpu->energy_by_field = true))
	KEY("field_times", (gpu->field_times = true))
	KEY("module_mw", take_double(rest, &gpu->module_mw))
	KEY("memory_mw", take_double(rest, &gpu->memory_mw))
	KEY("power_samples", take_ms(rest, &gpu->power_sample_ms) && take_uint(rest, &gpu->power_ring))
	KEY("accounting", (gpu->accounting = true))
	KEY("process", take_process(rest, gpu))
	KEY("sample_period_ms", take_ms(rest, &gpu->sample_period_ms) && gpu->sample_period_ms > 0)
	KEY("samples", take_uint(rest, &gpu->samples))
	KEY("garbage", (gpu->garbage = true))
	KEY("error", take_error(rest, gpu->errors, &gpu->n_errors))
#undef KEY
	return false;
}

static bool global_line(const char *key, char **rest, struct fake_config *config)
{
	uint64_t epoch_ns;
	if (strcmp(key, "driver") == 0)
		return take_text(rest, config->driver, sizeof(config->driver));
	if (strcmp(key, "error") == 0)
		return take_error(rest, config->errors, &config->n_errors);
	if (strcmp(key, "takes_signals") == 0)
		return config->takes_signals = true;
	if (strcmp(key, "epoch_ns") != 0 || !take_u64(rest, &epoch_ns))
		return false;
	config->epoch_ns = (int64_t)epoch_ns;
	return true;
}

static bool add_gpu(struct fake_config *config)
{
	if (config->n_gpus == GPUS_MAX)
		return false;
	struct fake_gpu *gpu = &config->gpus[config->n_gpus];
	*gpu = (struct fake_gpu){
		.memory_total_bytes = UINT64_C(16) << 30,
		.memory_reserved_bytes = UINT64_C(512) << 20,
		.power = {.mean_mw = 100000, .period_s = 1},
		.energy_period_s = 0.02,
		.energy_reset_s = -1,
		.temperature_c = 40,
		.sm_clock_mhz = 1410,
		.max_sm_clock_mhz = 1410,
		.memory_clock_mhz = 1215,
		.cores = 6912,
		.limit_min_mw = 100000,
		.limit_max_mw = 400000,
		.limit_default_mw = 400000,
		.limit_mw = 400000,
		.limit_step_mw = 1,
		.enforced_mw = UINT32_MAX,
		.set_uid = -1,
		.clock_min_mhz = 210,
		.clock_step_mhz = 15,
		.lost = {FAKE_FOREVER_MS, FAKE_FOREVER_MS},
		.minor = config->n_gpus,
		.mig_max = MIG_MAX,
		.module_mw = -1,
		.memory_mw = -1,
		.sample_period_ms = 100,
		.samples = 1,
	};
	snprintf(gpu->name, sizeof(gpu->name), "Fake GPU");
	snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%08x-0000-0000-0000-000000000000", config->n_gpus);
	snprintf(gpu->pci, sizeof(gpu->pci), "00000000:%02X:00.0", config->n_gpus + 1);
	config->n_gpus++;
	return true;
}

static bool config_line(char *line, struct fake_config *config)
{
	line[strcspn(line, "\n#")] = '\0';
	for (size_t length = strlen(line); length > 0 && strchr(" \t\r", line[length - 1]) != NULL; length--)
		line[length - 1] = '\0';
	char *rest = line;
	const char *key = next_word(&rest);
	if (key[0] == '\0')
		return true;
	if (strcmp(key, "gpu") == 0)
		return add_gpu(config);
	if (config->n_gpus > 0)
		return gpu_line(key, &rest, &config->gpus[config->n_gpus - 1]);
	return global_line(key, &rest, config);
}

bool fake_config_read(const char *path, int64_t default_epoch_ns, struct fake_config *config)
{
	FILE *file = fopen(path, "re");
	char line[1024];
	int number = 0;
	if (file == NULL)
		return false;
	*config = (struct fake_config){.driver = "550.54.15", .epoch_ns = default_epoch_ns};
	snprintf(config->path, sizeof(config->path), "%s", path);
	while (fgets(line, sizeof(line), file) != NULL) {
		number++;
		if (config_line(line, config))
			continue;
		fprintf(stderr, "fake nvml: %s:%d: not understood, see tests/fakes/nvml/README.md\n", path, number);
		fclose(file);
		return false;
	}
	fclose(file);
	return true;
}
