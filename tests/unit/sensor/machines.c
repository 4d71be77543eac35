#include "sensor/sensor.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "rows.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

// tests/machines/NAME/{sys,proc} and, in `expected`, what there is to see on it.
static const struct row {
	const char *teaches, *machine;
} rows[] = {
	{"a desktop: core, uncore, dram take their package's number, psys is a zone among others, the MMIO twin is out",
		"desktop-intel"},
	{"two sockets, registered in reverse: names count, indices mean nothing; dtpm holds no energy", "xeon-2s"},
	{"two dies with counters of their own: both count", "xeon-dies"},
	{"a platform domain per socket, in steps of whole joules", "xeon-psys"},
	{"AMD: package and core, through the driver that is called intel-rapl", "epyc"},
	{"AMD before the kernel knew better: four dies show one counter, so one is used", "epyc-dies"},
	{"a virtual machine has no zone: the model is used", "vm"},
	{"one zone that can't be read costs that zone, not its memory and not the other socket", "one-unreadable"},
	{"no zone can be read: the model is used, and the zone is listed", "none-readable"},
};

static const char *yes_no(bool value)
{
	return value ? "yes" : "no";
}

static void print_domain(struct buf *out, const char *sensor, const struct domain *d)
{
	buf_printf(out, "%s %s %s %s %s %s %llu %llu %s", sensor, d->name, domain_kind_name(d->kind),
		d->inside[0] != '\0' ? d->inside : "-", yes_no(d->readable), yes_no(d->used),
		(unsigned long long)d->energy_range_uj, (unsigned long long)d->resolution_uj, d->device);
	if (!d->used)
		buf_printf(out, " (%s)", d->why);
	buf_char(out, '\n');
}

static void print_set(struct buf *out, const struct sensor_set *set)
{
	buf_str(out, "# sensor domain kind inside readable used range_uj resolution_uj device\n");
	for (size_t s = 0; s < set->n_slots; s++)
		for (size_t i = 0; i < set->slots[s].n_domains; i++)
			if (strcmp(set->slots[s].ops->name, "nvml") != 0) // its machines are libraries
				print_domain(out, set->slots[s].ops->name, &set->slots[s].domains[i]);
}

static void point_at(const char *variable, const char *folder, const char *machine, const char *part)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/machines/%s/%s", folder, machine, part);
	setenv(variable, path, 1);
}

static char *read_expected(const char *folder, const char *machine)
{
	char path[512];
	char *text;
	size_t size;
	snprintf(path, sizeof(path), "%s/machines/%s", folder, machine);
	wattle_cleanup_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(file_read_all_in(fd, "expected", 1 << 16, &text, &size), 0);
	return text;
}

static void look_at_machine(void **state)
{
	const struct row *row = *state;
	const char *folder = getenv("WATTLE_TESTS");
	assert_non_null(folder);
	point_at("WATTLE_SYSFS", folder, row->machine, "sys");
	point_at("WATTLE_PROCFS", folder, row->machine, "proc");
	setenv("WATTLE_NVML", "/nonexistent/libnvidia-ml.so.1", 1);

	struct wattle_env env;
	struct wattle_error error = {0};
	struct sensor_set set;
	assert_int_equal(env_open(&env, &error), 0);
	assert_int_equal(sensor_set_open(&set, &env, &(struct sensor_options){0}, &error), 0);

	struct buf seen;
	buf_init(&seen, 1 << 20);
	print_set(&seen, &set);
	char *expected = read_expected(folder, row->machine);
	assert_string_equal(seen.data, expected);

	free(expected);
	buf_finish(&seen);
	sensor_set_close(&set);
	env_close(&env);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, look_at_machine);
	return rows_run(&tests, "machines");
}
