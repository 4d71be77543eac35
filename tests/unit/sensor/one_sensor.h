/* One sensor on a simulated tree, with a clock that the test sets. */
#pragma once

#include "base/buf.h"
#include "base/util.h"
#include "sensor/sensor.h"
#include "tree.h"

enum { ONE_FILES_MAX = 40, ONE_DOMAINS_MAX = 16 };

// text "DIR": a folder; "@TARGET": a link; NULL: remove it.
struct one_file {
	const char *path, *text;
};

struct one_sensor {
	struct tree tree;
	struct wattle_env env;
	const struct sensor_ops *ops;
	void *state;
	struct domain *domains;
	size_t n;
	int64_t rows[ONE_DOMAINS_MAX][DEVICE_COUNT];
	int64_t now_ns, wall_ns; // wall_ns: at now_ns 0
};

static inline int64_t one_monotonic_ns(void *data)
{
	return ((struct one_sensor *)data)->now_ns;
}

static inline int64_t one_wall_ns(void *data)
{
	const struct one_sensor *one = data;
	return one->wall_ns + one->now_ns;
}

static inline void one_write(const struct one_sensor *one, const struct one_file *file)
{
	char path[512];
	tree_path(&one->tree, path, "%s", file->path);
	if (file->text == NULL) {
		remove(path);
	} else if (strcmp(file->text, "DIR") == 0) {
		tree_make_parents(&one->tree, file->path);
		assert_int_equal(mkdir(path, 0755), 0);
	} else if (file->text[0] == '@') {
		tree_link(&one->tree, file->path, file->text + 1);
	} else {
		tree_write(&one->tree, file->path, file->text);
	}
}

static inline void one_make(struct one_sensor *one, const struct one_file *files)
{
	*one = (struct one_sensor){.now_ns = 1000 * NS_PER_S, .wall_ns = INT64_C(1700000000) * NS_PER_S};
	tree_make(&one->tree);
	for (size_t i = 0; i < ONE_FILES_MAX && files != NULL && files[i].path != NULL; i++)
		one_write(one, &files[i]);
	setenv("WATTLE_SYSFS", one->tree.root, 1);
	setenv("WATTLE_PROCFS", one->tree.root, 1);
	assert_int_equal(env_open(&one->env, NULL), 0);
	one->env.clock = (struct env_clock){one_monotonic_ns, one_monotonic_ns, one_wall_ns, one};
}

static inline int one_open(struct one_sensor *one, const struct sensor_ops *ops, const struct sensor_options *options,
	struct wattle_error *reterr)
{
	one->ops = ops;
	one->state = calloc(1, ops->state_size);
	int r = ops->open(one->state, &one->env, options != NULL ? options : &(struct sensor_options){0}, reterr);
	if (r == 0)
		one->domains = ops->domains(one->state, &one->n);
	assert_true(one->n <= ONE_DOMAINS_MAX);
	for (size_t i = 0; i < one->n; i++) // as sensor_set_open does
		if (!(one->domains[i].max_power_w > 0))
			one->domains[i].max_power_w = domain_kind_max_power_w(one->domains[i].kind);
	return r;
}

static inline void one_read(struct one_sensor *one)
{
	for (size_t i = 0; i < one->n; i++)
		for (size_t m = 0; m < DEVICE_COUNT; m++)
			one->rows[i][m] = VALUE_MISSING;
	one->ops->read(one->state, &(struct sensor_context){.t_ns = one->now_ns}, one->rows);
}

static inline void one_finish(struct one_sensor *one)
{
	one->ops->close(one->state);
	free(one->state);
	env_close(&one->env);
	tree_finish(&one->tree);
}

static inline void one_put(struct buf *out, int64_t value)
{
	buf_char(out, ' ');
	if (value_ok(value))
		buf_i64(out, value);
	else
		buf_char(out, '-');
}

// "name inside used energy_uj power_mw" for each domain, and for unused ones "name inside no (why)".
static inline void one_print(const struct one_sensor *one, struct buf *out)
{
	buf_init(out, 1 << 16);
	buf_str(out, "");
	for (size_t i = 0; i < one->n; i++) {
		const struct domain *d = &one->domains[i];
		buf_printf(out, "%s %s %s", d->name, d->inside[0] != '\0' ? d->inside : "-", d->used ? "yes" : "no");
		if (d->used) {
			one_put(out, one->rows[i][DEVICE_ENERGY_RAW]);
			one_put(out, one->rows[i][DEVICE_POWER]);
			buf_char(out, '\n');
		} else {
			buf_printf(out, " (%s)\n", d->why);
		}
	}
}

// Opens the sensor on the files, reads it once and compares.
static inline void one_compare(const struct sensor_ops *ops, const struct one_file *files, const char *expected)
{
	struct one_sensor one;
	struct buf seen;
	one_make(&one, files);
	assert_int_equal(one_open(&one, ops, NULL, NULL), 0);
	one_read(&one);
	one_print(&one, &seen);
	assert_string_equal(seen.data != NULL ? seen.data : "", expected);
	buf_finish(&seen);
	one_finish(&one);
}
