/* The NVML sensor with the fake library, cards from a text and a clock that stands still. */
#pragma once

#include "sensor/sensor.h"

#include "base/util.h"
#include "rows.h"
#include "sensor/gpu_roster.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#define MODERN "libnvidia-ml-fake.so"
#define OLD "libnvidia-ml-fake-old.so"
#define R535 "libnvidia-ml-fake-r535.so"

struct nvml_fixture {
	char folder[64], cards[96], limits[112], library[600];
	void *fake; // keeps the library loaded around the sensor's open and close
	void (*freeze)(int64_t t_ns);
	unsigned long (*calls)(const char *function);
	int64_t (*wall_us)(int64_t t_ns);
	int64_t t_ns; // the fixed time of the fake and of wattle's clock
	struct wattle_env env;
	struct sensor_options options;
	struct gpu_roster roster;
	void *state;
	struct domain *domains;
	size_t n;
	struct wattle_error error;
	int64_t rows[16][DEVICE_COUNT];
};

static const pid_t fixture_target[] = {100, 200, 300}; // 100 is the root process

static inline int64_t fixture_now_ns(void *data)
{
	return ((struct nvml_fixture *)data)->t_ns;
}

static inline int64_t fixture_wall_ns(void *data)
{
	struct nvml_fixture *f = data;
	return f->wall_us(f->t_ns) * 1000;
}

static inline void fixture_write(const struct nvml_fixture *f, const char *cards)
{
	char fresh[112];
	snprintf(fresh, sizeof(fresh), "%s.new", f->cards);
	FILE *file = fopen(fresh, "we");
	assert_non_null(file);
	fputs(cards, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(fresh, f->cards), 0); // another inode, so that the library sees the change
}

static inline void *fixture_symbol(const struct nvml_fixture *f, const char *name)
{
	void *address = dlsym(f->fake, name);
	assert_non_null(address);
	return address;
}

// Everything but opening the sensor; a test may set options in between.
static inline void fixture_init(struct nvml_fixture *f, const char *library, const char *cards)
{
	*f = (struct nvml_fixture){.folder = "/tmp/wattle-nvml-XXXXXX"};
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->cards, sizeof(f->cards), "%s/cards", f->folder);
	snprintf(f->limits, sizeof(f->limits), "%s/cards.limits", f->folder);
	snprintf(f->library, sizeof(f->library), "%s/tests/fakes/nvml/%s", getenv("WATTLE_BUILD"), library);
	fixture_write(f, cards);
	setenv("WATTLE_FAKE_NVML", f->cards, 1);
	f->fake = dlopen(f->library, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(f->fake);
	void *freeze = fixture_symbol(f, "fake_nvml_freeze"), *calls = fixture_symbol(f, "fake_nvml_calls");
	memcpy(&f->freeze, &freeze, sizeof(freeze));
	memcpy(&f->calls, &calls, sizeof(calls));
	void *wall_us = fixture_symbol(f, "fake_wall_us");
	memcpy(&f->wall_us, &wall_us, sizeof(wall_us));
	f->freeze(0);
	f->env = (struct wattle_env){.sysfs_fd = -1, .procfs_fd = -1, .nvml = f->library};
	f->env.clock = (struct env_clock){fixture_now_ns, fixture_now_ns, fixture_wall_ns, f};
}

static inline int fixture_try_open(struct nvml_fixture *f)
{
	f->state = calloc(1, sensor_nvml.state_size);
	assert_non_null(f->state);
	int r = gpu_roster_open(&f->roster, f->options.gpus, &f->error);
	f->options.roster = &f->roster;
	if (r == 0)
		r = sensor_nvml.open(f->state, &f->env, &f->options, &f->error);
	if (r == 0)
		r = gpu_roster_check(&f->roster, &f->error);
	if (r == 0)
		f->domains = sensor_nvml.domains(f->state, &f->n);
	return r;
}

static inline void fixture_open(struct nvml_fixture *f, const char *library, const char *cards)
{
	fixture_init(f, library, cards);
	assert_int_equal(fixture_try_open(f), 0);
}

static inline void fixture_read_as(struct nvml_fixture *f, int64_t t_ms, struct sensor_context context)
{
	context.t_ns = t_ms * NS_PER_MS;
	f->t_ns = context.t_ns;
	f->freeze(context.t_ns);
	for (size_t i = 0; i < ARRAY_SIZE(f->rows); i++)
		for (size_t k = 0; k < DEVICE_COUNT; k++)
			f->rows[i][k] = VALUE_MISSING;
	sensor_nvml.read(f->state, &context, f->rows);
}

// One reading at t_ms for the target fixture_target.
static inline void fixture_read(struct nvml_fixture *f, int64_t t_ms)
{
	const struct sensor_context context = {
		.main_pid = fixture_target[0],
		.target_pids = fixture_target,
		.n_target_pids = ARRAY_SIZE(fixture_target),
	};
	fixture_read_as(f, t_ms, context);
}

static inline void fixture_close(struct nvml_fixture *f)
{
	if (f->state != NULL)
		sensor_nvml.close(f->state);
	free(f->state);
	gpu_roster_close(&f->roster);
	dlclose(f->fake);
	unlink(f->cards);
	unlink(f->limits);
	assert_int_equal(rmdir(f->folder), 0);
}
