/* wattle sensors: every sensor and domain of this machine, readable or not, and what would mend it. */
#include "cli/command.h"

#include "base/env.h"
#include "base/jsonw.h"
#include "base/util.h"
#include "process/machine.h"
#include "sensor/sensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALIBRATE_MS = 250, TEXT_CEILING = 1 << 22 };

struct values {
	bool json;
};

static const struct option options[] = {
	{"json", 0, NULL, "as JSON", OPTION_FLAG, .offset = offsetof(struct values, json)},
};

struct row { // one domain with its last reading
	const char *sensor;
	const struct domain *domain;
	double last;           // NaN: none
	const char *last_unit; // "J" or "W"; NULL: none
};

static void last_reading(const int64_t *values, struct row *row)
{
	bool energy = value_ok(values[DEVICE_ENERGY]), power = value_ok(values[DEVICE_POWER]);
	row->last = energy ? (double)values[DEVICE_ENERGY] * 1e-6 : value_to_double(values[DEVICE_POWER], 1e-3);
	row->last_unit = energy ? "J" : power ? "W" : NULL;
}

static void print_json_row(struct jsonw *j, const struct row *row)
{
	const struct domain *domain = row->domain;
	jsonw_begin_object(j);
	jsonw_key_string(j, "sensor", row->sensor);
	jsonw_key_string(j, "domain", domain->name);
	jsonw_key_string(j, "kind", domain_kind_name(domain->kind));
	jsonw_key_string(j, "device", domain->device[0] != '\0' ? domain->device : NULL);
	jsonw_key_string(j, "uuid", domain->uuid[0] != '\0' ? domain->uuid : NULL);
	jsonw_key_string(j, "inside", domain->inside[0] != '\0' ? domain->inside : NULL);
	jsonw_key_string(j, "provenance", provenance_name(domain->provenance));
	jsonw_key_bool(j, "readable", domain->readable);
	jsonw_key_bool(j, "used", domain->used);
	jsonw_key_string(j, "why", domain->why[0] != '\0' ? domain->why : NULL);
	jsonw_key_string(j, "remedy", domain->remedy[0] != '\0' ? domain->remedy : NULL);
	jsonw_key_double(j, "update_period_s",
		domain->update_period_ns > 0 ? (double)domain->update_period_ns * 1e-9 : (double)NAN);
	jsonw_key_double(j, "resolution_j",
		domain->resolution_uj > 0 ? (double)domain->resolution_uj * 1e-6 : (double)NAN);
	jsonw_key_double(j, "last", row->last);
	jsonw_key_string(j, "last_unit", row->last_unit);
	jsonw_end_object(j);
}

static void print_json(const struct row *rows, size_t n_rows, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, true);
	jsonw_begin_object(&j);
	jsonw_key(&j, "sensors");
	jsonw_begin_array(&j);
	for (size_t i = 0; i < n_rows; i++)
		print_json_row(&j, &rows[i]);
	jsonw_end_array(&j);
	jsonw_end_object(&j);
}

static void print_period(const struct domain *domain, struct buf *out)
{
	if (domain->update_period_ns <= 0)
		buf_str(out, "-");
	else if (domain->update_period_ns < NS_PER_MS)
		buf_printf(out, "%lld us", (long long)(domain->update_period_ns / 1000));
	else
		buf_printf(out, "%lld ms", (long long)(domain->update_period_ns / NS_PER_MS));
}

static void print_text_row(const struct row *row, struct buf *out)
{
	static const size_t columns[] = {11, 24, 36, 46};
	const struct domain *domain = row->domain;
	size_t start = out->size;
	buf_str(out, row->sensor);
	buf_pad_to(out, start, columns[0]);
	buf_str(out, domain->name);
	buf_pad_to(out, start, columns[1]);
	buf_str(out, domain->used ? provenance_name(domain->provenance) : domain->readable ? "not used" : "unreadable");
	buf_pad_to(out, start, columns[2]);
	print_period(domain, out);
	buf_pad_to(out, start, columns[3]);
	if (row->last_unit != NULL) {
		buf_fixed(out, row->last, 2);
		buf_printf(out, " %s  ", row->last_unit);
	}
	buf_str(out, domain->device);
	buf_char(out, '\n');
	if (domain->why[0] != '\0')
		buf_printf(out, "%*s%s\n", (int)columns[0], "", domain->why);
	if (domain->remedy[0] != '\0')
		buf_printf(out, "%*sremedy: %s\n", (int)columns[0], "", domain->remedy);
}

static void print_text(const struct row *rows, size_t n_rows, struct buf *out)
{
	bool measured = false;
	buf_str(out, "sensor     domain       state       period    last, device\n");
	for (size_t i = 0; i < n_rows; i++) {
		print_text_row(&rows[i], out);
		measured = measured || (rows[i].domain->used && rows[i].domain->provenance != PROVENANCE_ESTIMATED);
	}
	if (!measured)
		buf_str(out, "\nNothing on this machine measures energy; runs are estimated from load, and say so.\n");
}

// Two readings, a little apart: the model and some drivers need a first one to speak of the second.
static void read_twice(struct sensor_set *set, const struct wattle_env *env)
{
	struct machine machine;
	machine_open(&machine, env);
	int64_t(*values)[DEVICE_COUNT] = calloc_array(set->n_devices, sizeof(*values));
	for (int i = 0; i < 2 && values != NULL; i++) {
		struct machine_reading reading;
		machine_read(&machine, &reading);
		const struct sensor_context context = {
			.t_ns = env_now_ns(env),
			.system_busy_ns = reading.cpu_busy_ns,
			.system_idle_ns = reading.cpu_idle_ns,
			.self_pid = getpid(),
		};
		sensor_set_read(set, &context, values);
		if (i == 0)
			usleep(100000);
	}
	free(values);
	machine_close(&machine);
}

static int print_sensors(struct sensor_set *set, bool as_json)
{
	struct row *rows = calloc_array(set->n_rows, sizeof(*rows));
	if (rows == NULL)
		return EXIT_FAILED;
	size_t n = 0;
	for (size_t s = 0; s < set->n_slots; s++) {
		for (size_t i = 0; i < set->slots[s].n_domains; i++, n++) {
			rows[n] = (struct row){.sensor = set->slots[s].ops->name, .domain = &set->slots[s].domains[i]};
			last_reading(set->rows[n], &rows[n]);
		}
	}
	struct buf out;
	buf_init(&out, TEXT_CEILING);
	if (as_json)
		print_json(rows, n, &out);
	else
		print_text(rows, n, &out);
	int status = cli_write(&out, "-");
	buf_finish(&out);
	free(rows);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct option_list words;
	int status;
	if (!cli_parse_words(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n > 0)
		return cli_usage(command, EXIT_USAGE, "'%s' is not expected", words.items[0]);
	struct wattle_error error = {0};
	struct wattle_env env;
	if (env_open(&env, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	const struct sensor_options sensor_options = {.describe_only = true, .calibrate_ns = CALIBRATE_MS * NS_PER_MS};
	struct sensor_set set;
	if (sensor_set_open(&set, &env, &sensor_options, &error) == 0) {
		read_twice(&set, &env);
		status = print_sensors(&set, values.json);
		sensor_set_close(&set);
	} else {
		status = cli_fail(EXIT_FAILED, &error);
	}
	env_close(&env);
	return status;
}

const struct command command_sensors = {
	.name = "sensors",
	.usage = "[--json]",
	.summary = "what this machine can measure, and what would mend the rest",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
