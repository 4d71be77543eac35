#include "sensor/gpu/nvml.h"

#include "base/util.h"
#include "metric/metric.h"

// High enough to exclude chance, low enough that a start-up of half a second suffices.
enum { REPEATS_WANTED = 3, CHANGES_WANTED = 3 };
// A stamp that is older is not that of a recent update; one further ahead is not on our clock.
static const int64_t stamp_max_age_ns = 10 * NS_PER_S, stamp_max_ahead_ns = NS_PER_MS;
// The sample buffer counts as working if it had a new sample within this time.
static const int64_t buffer_timeout_ns = 250 * NS_PER_MS;
// If the first sample is this much later than the last one seen, older samples were dropped from the ring.
static const uint64_t longest_over_next = 4;

bool nvml_value_u64(const union nvml_value *value, int value_type, uint64_t *ret_value)
{
	switch (value_type) {
	case NVML_VALUE_DOUBLE:
		if (!(value->real >= 0 && value->real < 1e18))
			return false;
		*ret_value = (uint64_t)llround(value->real);
		return true;
	case NVML_VALUE_UINT:
		*ret_value = value->u32;
		return true;
	case NVML_VALUE_ULONG:
	case NVML_VALUE_U64:
		*ret_value = value->u64;
		return true;
	case NVML_VALUE_I64:
		*ret_value = (uint64_t)value->i64;
		return value->i64 >= 0;
	case NVML_VALUE_INT:
		*ret_value = (uint64_t)value->i32;
		return value->i32 >= 0;
	case NVML_VALUE_U16:
		*ret_value = value->u16;
		return true;
	default:
		return false;
	}
}

bool nvml_field_time_feed(struct nvml_field_time *time, uint64_t energy_mj, int64_t timestamp_us)
{
	bool first = time->last_us == 0;
	bool same_value = energy_mj == time->last_mj, same_time = timestamp_us == time->last_us;
	time->last_mj = energy_mj;
	time->last_us = timestamp_us;
	if (timestamp_us <= 0)
		time->disproved = true;
	if (first || time->disproved)
		return false;
	time->disproved = same_value != same_time;
	if (same_value)
		time->n_repeats++;
	else
		time->n_changes++;
	return !time->disproved && time->n_repeats >= REPEATS_WANTED && time->n_changes >= CHANGES_WANTED;
}

/* ---- the energy counter ---- */

static void put_mj(uint64_t energy_mj, int64_t *row)
{
	if (energy_mj <= INT64_MAX / 1000)
		row[DEVICE_ENERGY_RAW] = (int64_t)energy_mj * 1000;
}

static int read_call(struct nvml_board *board, int64_t *row)
{
	uint64_t energy_mj;
	if (board->api->energy_mj == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = board->api->energy_mj(board->handle, &energy_mj);
	if (code == NVML_SUCCESS)
		put_mj(energy_mj, row);
	return code;
}

// The driver's time stamps are wall-clock times.
static int64_t to_monotonic_ns(const struct wattle_env *env, int64_t timestamp_us)
{
	int64_t now_ns = env_now_ns(env), wall_ns = env_wall_ns(env);
	if (timestamp_us > INT64_MAX / 1000)
		return VALUE_MISSING;
	int64_t t_ns = timestamp_us * 1000 - (wall_ns - now_ns);
	bool plausible = t_ns <= now_ns + stamp_max_ahead_ns && t_ns >= now_ns - stamp_max_age_ns;
	return plausible ? t_ns : VALUE_MISSING;
}

static void take_energy_field(struct nvml_energy *energy, const struct nvml_board *board,
	const struct nvml_field *field, int64_t *row)
{
	struct nvml_field_time *time = &energy->of[field->scope].time;
	uint64_t energy_mj;
	if (!nvml_value_u64(&field->value, field->value_type, &energy_mj) || energy_mj > INT64_MAX / 1000)
		return;
	if (!energy->by_call || field->scope != energy->scope)
		put_mj(energy_mj, row);
	bool own_time = nvml_field_time_feed(time, energy_mj, field->timestamp_us);
	// The counter may have changed between the two calls: then the stamp belongs to another value.
	if (own_time && row[DEVICE_ENERGY_RAW] == (int64_t)energy_mj * 1000)
		row[DEVICE_ENERGY_TIME] = to_monotonic_ns(board->env, field->timestamp_us);
}

/* ---- fields ---- */

static bool wants_energy_field(const struct nvml_energy *energy, enum nvml_scope scope)
{
	const struct nvml_fields *of = &energy->of[scope];
	bool by_call = energy->by_call && scope == energy->scope;
	return of->energy_field != 0 && (!by_call || !of->time.disproved);
}

static int list_fields(const struct nvml_energy *energy, enum nvml_scope scope, bool energy_only,
	struct nvml_field *ret_fields)
{
	int n = 0;
	const struct nvml_fields *of = &energy->of[scope];
	if (wants_energy_field(energy, scope))
		ret_fields[n++] = (struct nvml_field){.id = of->energy_field, .scope = scope};
	if (of->instant && !energy_only)
		ret_fields[n++] = (struct nvml_field){.id = NVML_FIELD_POWER_INSTANT, .scope = scope};
	if (of->average && !energy_only)
		ret_fields[n++] = (struct nvml_field){.id = NVML_FIELD_POWER_AVERAGE, .scope = scope};
	return n;
}

// Lists the fields of all scopes with a row. A quick energy-only read omits the scopes that are shown but not added.
static int list_all(const struct nvml_energy *energy, bool energy_only, int64_t *const rows[NVML_SCOPES],
	struct nvml_field *ret_fields)
{
	int n = rows[energy->scope] != NULL ? list_fields(energy, energy->scope, energy_only, ret_fields) : 0;
	if (energy_only && n == 0)
		return 0;
	for (unsigned int scope = 0; scope < NVML_SCOPES; scope++)
		if (scope != energy->scope && rows[scope] != NULL)
			n += list_fields(energy, scope, energy_only, &ret_fields[n]);
	return n;
}

static void take_field(struct nvml_energy *energy, const struct nvml_board *board, const struct nvml_field *field,
	int64_t *row)
{
	uint64_t value;
	if (field->code != NVML_SUCCESS)
		return;
	if (field->id == energy->of[field->scope].energy_field)
		take_energy_field(energy, board, field, row);
	else if (nvml_value_u64(&field->value, field->value_type, &value) && value <= INT32_MAX)
		row[field->id == NVML_FIELD_POWER_INSTANT ? DEVICE_POWER : DEVICE_POWER_AVERAGE] = (int64_t)value;
}

// An unavailable value has its own error code; only the whole call can be unsupported.
static void read_fields(struct nvml_energy *energy, struct nvml_board *board, bool energy_only,
	int64_t *const rows[NVML_SCOPES])
{
	struct nvml_field fields[NVML_FIELDS_MAX];
	uint32_t scopes[NVML_FIELDS_MAX];
	int n = nvml_queries_enabled(board, NVML_QUERY_FIELDS) ? list_all(energy, energy_only, rows, fields) : 0;
	if (n == 0)
		return;
	for (int i = 0; i < n; i++)
		scopes[i] = fields[i].scope;
	int code = board->api->fields(board->handle, n, fields);
	if (code == NVML_GPU_IS_LOST)
		board->lost = true;
	for (int i = 0; i < n && code == NVML_SUCCESS; i++) {
		fields[i].scope = scopes[i]; // the driver may have overwritten it
		take_field(energy, board, &fields[i], rows[scopes[i]]);
	}
}

// Returns the driver's current code for this field.
static int try_field(struct nvml_board *board, uint32_t id, enum nvml_scope scope)
{
	struct nvml_field field = {.id = id, .scope = scope};
	uint64_t value;
	if (!nvml_queries_enabled(board, NVML_QUERY_FIELDS))
		return NVML_NOT_SUPPORTED;
	if (board->api->fields == NULL)
		return nvml_note(board, NVML_QUERY_FIELDS, NVML_FUNCTION_NOT_FOUND);
	int code = board->api->fields(board->handle, 1, &field);
	if (code == NVML_GPU_IS_LOST)
		board->lost = true;
	if (field.code != NVML_SUCCESS)
		return field.code;
	if (code == NVML_SUCCESS && !nvml_value_u64(&field.value, field.value_type, &value))
		return NVML_NOT_SUPPORTED;
	// Powered devices never draw 0 W: a module or memory that reports 0 W has no meter.
	bool is_empty = code == NVML_SUCCESS && scope != NVML_SCOPE_GPU && id != NVML_FIELD_ENERGY_OF && value == 0;
	return is_empty ? NVML_NOT_SUPPORTED : code;
}

// Codes that mean "does not exist", not "can't be read".
static bool means_none(int code)
{
	return code == NVML_GPU_IS_LOST || code == NVML_NOT_SUPPORTED || code == NVML_INVALID_ARGUMENT ||
		code == NVML_NOT_FOUND || code == NVML_FUNCTION_NOT_FOUND || code == NVML_VERSION_ARGUMENT ||
		code == NVML_DEPRECATED;
}

bool nvml_fields_any(const struct nvml_fields *fields)
{
	return fields->energy_field != 0 || fields->instant || fields->average;
}

static bool has_field(struct nvml_fields *fields, struct nvml_board *board, uint32_t id, enum nvml_scope scope)
{
	int code = try_field(board, id, scope);
	if (code != NVML_SUCCESS && !means_none(code))
		fields->refusal = code;
	return code == NVML_SUCCESS;
}

static void find_fields(struct nvml_energy *energy, struct nvml_board *board, enum nvml_scope scope, bool power_only)
{
	static const uint32_t energy_fields[] = {NVML_FIELD_ENERGY_OF, NVML_FIELD_ENERGY};
	struct nvml_fields *of = &energy->of[scope];
	of->instant = has_field(of, board, NVML_FIELD_POWER_INSTANT, scope);
	of->average = has_field(of, board, NVML_FIELD_POWER_AVERAGE, scope);
	for (size_t i = 0; i < ARRAY_SIZE(energy_fields) && of->energy_field == 0 && !power_only; i++) {
		// The older field has no scopes and would return the GPU's value.
		bool fits = scope == NVML_SCOPE_GPU || energy_fields[i] == NVML_FIELD_ENERGY_OF;
		if (fits && has_field(of, board, energy_fields[i], scope))
			of->energy_field = energy_fields[i];
	}
	if (nvml_fields_any(of))
		of->refusal = NVML_SUCCESS;
}

/* ---- power ---- */

static int read_usage(struct nvml_board *board, int64_t *row)
{
	unsigned int power_mw;
	if (board->api->power_mw == NULL)
		return NVML_FUNCTION_NOT_FOUND;
	int code = board->api->power_mw(board->handle, &power_mw);
	if (code == NVML_SUCCESS)
		row[DEVICE_POWER] = power_mw;
	return code;
}

static uint64_t stands_for_us(const struct nvml_sample *samples, size_t n, size_t i, uint64_t before_us)
{
	uint64_t us = samples[i].timestamp_us - before_us;
	uint64_t next_us = i + 1 < n && samples[i + 1].timestamp_us > samples[i].timestamp_us
		? samples[i + 1].timestamp_us - samples[i].timestamp_us
		: 0;
	bool dropped = next_us > 0 && us / longest_over_next > next_us;
	return before_us == 0 || dropped ? (next_us > 0 ? next_us : 1) : us;
}

bool nvml_power_mean(const struct nvml_sample *samples, size_t n, int value_type, uint64_t *seen_us, double *ret_mw)
{
	double weighted = 0, weight = 0;
	uint64_t before_us = *seen_us, power_mw;
	for (size_t i = 0; i < n; i++) {
		bool is_new = samples[i].timestamp_us > before_us;
		if (!is_new || !nvml_value_u64(&samples[i].value, value_type, &power_mw) || power_mw > INT32_MAX)
			continue;
		double us = (double)stands_for_us(samples, n, i, before_us);
		weighted += us * (double)power_mw;
		weight += us;
		before_us = samples[i].timestamp_us;
	}
	if (!(weight > 0))
		return false;
	*seen_us = before_us;
	*ret_mw = weighted / weight;
	return true;
}

static int get_samples(const struct nvml_energy *energy, struct nvml_board *board,
	const struct nvml_power_buffer *buffer, int *ret_type, size_t *ret_n)
{
	unsigned int count = (unsigned int)buffer->n;
	*ret_n = 0;
	if (board->api->samples == NULL || buffer->n == 0)
		return NVML_FUNCTION_NOT_FOUND;
	int code = board->api->samples(board->handle, NVML_SAMPLES_POWER, energy->power_seen_us, ret_type, &count,
		buffer->samples);
	if (code == NVML_SUCCESS)
		*ret_n = count < buffer->n ? count : buffer->n;
	return code;
}

/* Mean power since the previous reading, from the driver's samples. Also returns true if no sample is due yet: a reading now
 * would only repeat the last sample. */
static bool read_buffer(struct nvml_energy *energy, struct nvml_board *board, const struct nvml_power_buffer *buffer,
	int64_t t_ns, int64_t *row)
{
	int type;
	size_t n;
	double power_mw;
	if (!nvml_queries_enabled(board, NVML_QUERY_POWER_SAMPLES))
		return false;
	nvml_note(board, NVML_QUERY_POWER_SAMPLES, get_samples(energy, board, buffer, &type, &n));
	if (n > 0 && nvml_power_mean(buffer->samples, n, type, &energy->power_seen_us, &power_mw)) {
		energy->power_fresh_ns = t_ns;
		row[DEVICE_POWER] = llround(power_mw);
		return true;
	}
	return energy->power_fresh_ns != 0 && t_ns - energy->power_fresh_ns < buffer_timeout_ns;
}

static void read_power(struct nvml_energy *energy, struct nvml_board *board, const struct nvml_power_buffer *buffer,
	int64_t t_ns, int64_t *row)
{
	int64_t instant_mw = row[DEVICE_POWER];
	row[DEVICE_POWER] = VALUE_MISSING;
	if (!energy->counts && read_buffer(energy, board, buffer, t_ns, row))
		return;
	row[DEVICE_POWER] = instant_mw;
	if (!value_ok(instant_mw) && nvml_queries_enabled(board, NVML_QUERY_POWER))
		nvml_note(board, NVML_QUERY_POWER, read_usage(board, row));
}

/* ---- opening and reading ---- */

static bool has_usage(struct nvml_board *board)
{
	int64_t row[DEVICE_COUNT];
	return nvml_queries_enabled(board, NVML_QUERY_POWER) &&
		nvml_note(board, NVML_QUERY_POWER, read_usage(board, row)) == NVML_SUCCESS;
}

/* Whether a board counts energy does not follow from its name: all since Volta should, some do not. Only a successful read
 * decides; a counter that fails for another reason is not used either. */
static bool has_call(struct nvml_board *board)
{
	int64_t row[DEVICE_COUNT];
	row[DEVICE_ENERGY_RAW] = VALUE_MISSING;
	nvml_note(board, NVML_QUERY_ENERGY, read_call(board, row));
	return value_ok(row[DEVICE_ENERGY_RAW]);
}

/* A driver older than a scope may ignore the scope and return the GPU's value: equal to the milliwatt, in the same call. */
static bool is_the_gpu(const struct nvml_energy *energy, struct nvml_board *board, enum nvml_scope scope)
{
	const struct nvml_fields *gpu = &energy->of[NVML_SCOPE_GPU], *of = &energy->of[scope];
	bool by_instant = gpu->instant && of->instant;
	uint32_t id = by_instant ? NVML_FIELD_POWER_INSTANT : NVML_FIELD_POWER_AVERAGE;
	struct nvml_field fields[] = {{.id = id, .scope = NVML_SCOPE_GPU}, {.id = id, .scope = scope}};
	uint64_t values[2];
	if (!(by_instant || (gpu->average && of->average)) ||
		board->api->fields(board->handle, 2, fields) != NVML_SUCCESS)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].code != NVML_SUCCESS ||
			!nvml_value_u64(&fields[i].value, fields[i].value_type, &values[i]))
			return false;
	return values[0] == values[1];
}

void nvml_energy_open(struct nvml_energy *energy, struct nvml_board *board, bool power_only)
{
	*energy = (struct nvml_energy){.by_call = !power_only && has_call(board)};
	for (unsigned int scope = 0; scope < NVML_SCOPES; scope++)
		find_fields(energy, board, scope, power_only);
	for (unsigned int scope = NVML_SCOPE_MODULE; scope < NVML_SCOPES; scope++)
		if (is_the_gpu(energy, board, scope))
			energy->of[scope] = (struct nvml_fields){0};
	const struct nvml_fields *gpu = &energy->of[NVML_SCOPE_GPU], *module = &energy->of[NVML_SCOPE_MODULE];
	energy->counts = energy->by_call || gpu->energy_field != 0;
	energy->has_source = energy->counts || gpu->instant || has_usage(board);
	if (energy->has_source || !(module->energy_field != 0 || module->instant))
		return;
	energy->scope = NVML_SCOPE_MODULE;
	energy->counts = module->energy_field != 0;
}

size_t nvml_energy_buffer_size(struct nvml_board *board)
{
	unsigned int count = 0;
	int type;
	if (board->api->samples == NULL || !nvml_queries_enabled(board, NVML_QUERY_POWER_SAMPLES))
		return 0;
	int code = board->api->samples(board->handle, NVML_SAMPLES_POWER, 0, &type, &count, NULL);
	nvml_note(board, NVML_QUERY_POWER_SAMPLES, code);
	return code == NVML_SUCCESS || code == NVML_INSUFFICIENT_SIZE ? count : 0;
}

// Median and half the spread of the time between samples; sorts by insertion into the values.
static struct nvml_spacing spacing_of(struct nvml_sample *samples, size_t n)
{
	enum { ENOUGH = 4, MOST = 64 };
	uint64_t us[MOST];
	size_t count = 0;
	for (size_t i = n > MOST ? n - MOST : 1; i < n; i++) {
		if (samples[i].timestamp_us <= samples[i - 1].timestamp_us)
			continue;
		uint64_t step = samples[i].timestamp_us - samples[i - 1].timestamp_us;
		size_t index = count++;
		for (; index > 0 && us[index - 1] > step; index--)
			us[index] = us[index - 1];
		us[index] = step;
	}
	if (count < ENOUGH)
		return (struct nvml_spacing){0};
	return (struct nvml_spacing){(int64_t)us[count / 2] * 1000, (int64_t)(us[count - 1] - us[0]) * 500};
}

struct nvml_spacing nvml_energy_prime(struct nvml_energy *energy, struct nvml_board *board,
	const struct nvml_power_buffer *buffer)
{
	int type;
	size_t n;
	double power_mw;
	if (energy->counts || energy->scope != NVML_SCOPE_GPU || !nvml_queries_enabled(board, NVML_QUERY_POWER_SAMPLES))
		return (struct nvml_spacing){0};
	nvml_note(board, NVML_QUERY_POWER_SAMPLES, get_samples(energy, board, buffer, &type, &n));
	nvml_power_mean(buffer->samples, n, type, &energy->power_seen_us, &power_mw);
	return spacing_of(buffer->samples, n);
}

/* For a module or memory whose driver reports only the one-second mean, that mean is the power. The calls without a scope,
 * which describe the GPU, do the same on boards without an instantaneous reading. */
static void put_average(const struct nvml_energy *energy, int64_t *const rows[NVML_SCOPES])
{
	for (unsigned int scope = NVML_SCOPE_MODULE; scope < NVML_SCOPES; scope++)
		if (rows[scope] != NULL && !energy->of[scope].instant)
			rows[scope][DEVICE_POWER] = rows[scope][DEVICE_POWER_AVERAGE];
}

void nvml_energy_read(struct nvml_energy *energy, struct nvml_board *board, const struct nvml_power_buffer *buffer,
	int64_t t_ns, bool energy_only, int64_t *const rows[NVML_SCOPES])
{
	if (energy->by_call && nvml_queries_enabled(board, NVML_QUERY_ENERGY))
		nvml_note(board, NVML_QUERY_ENERGY, read_call(board, rows[NVML_SCOPE_GPU]));
	read_fields(energy, board, energy_only, rows);
	if (energy_only)
		return;
	if (energy->scope == NVML_SCOPE_GPU)
		read_power(energy, board, buffer, t_ns, rows[NVML_SCOPE_GPU]);
	put_average(energy, rows);
}
