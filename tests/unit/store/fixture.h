/* A small run, written through the store's own interface: shared by the tests of this folder. */
#pragma once

#include "base/util.h"
#include "metric/metric.h"
#include "sensor/sensor.h"
#include "store/run.h"
#include "store/store.h"

#include "rows.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIXTURE_DEVICES = 2 };

// The clocks of the run: the recorder starts 1,000 s after boot, at a round second of November 2023.
static const int64_t fixture_mono_ns = 1000 * NS_PER_S;
static const int64_t fixture_wall_ns = 1700000000 * NS_PER_S;

struct fixture {
	char folder[64];
	char path[128]; // of a run file that does not exist yet
	struct domain domains[FIXTURE_DEVICES];
	const struct domain *devices[FIXTURE_DEVICES];
	struct store_header header;
	struct batch batch;
};

static inline int fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *tmp = getenv("TMPDIR");
	snprintf(f->folder, sizeof(f->folder), "%s/wattle-store-XXXXXX",
		tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp");
	if (mkdtemp(f->folder) == NULL || batch_init(&f->batch, 1 << 20) < 0) {
		free(f);
		return -1;
	}
	snprintf(f->path, sizeof(f->path), "%s/run.sqlite", f->folder);
	f->domains[0] = (struct domain){.name = "package-0",
		.kind = DOMAIN_PACKAGE,
		.device = "intel-rapl:0",
		.index = 0,
		.provenance = PROVENANCE_MEASURED,
		.has_energy = true,
		.resolution_uj = 61,
		.energy_range_uj = 262143328850,
		.update_period_ns = 1000000};
	f->domains[1] = (struct domain){.name = "gpu-0",
		.kind = DOMAIN_GPU,
		.device = "NVIDIA H100 80GB HBM3",
		.uuid = "GPU-11111111-2222-3333-4444-555555555555",
		.index = 0,
		.provenance = PROVENANCE_DERIVED,
		.relative_error = 0.05,
		.memory_total_bytes = 80000000000};
	static const char *const sources[] = {"powercap", "nvml"};
	static const char *const command[] = {"python3", "train.py", "--name", "a \"b\" c", NULL};
	static const char *const meta[] = {"seed=42", "note=a=b", NULL};
	for (size_t i = 0; i < FIXTURE_DEVICES; i++)
		f->devices[i] = &f->domains[i];
	f->header = (struct store_header){
		.run_id = "0b3c9f1e-0000-4000-8000-000000000001",
		.anchor_mono_ns = fixture_mono_ns,
		.anchor_wall_ns = fixture_wall_ns,
		.boot_id = "boot-1",
		.host = "node-1",
		.command = command,
		.interval_ns = 100 * NS_PER_MS,
		.devices = f->devices,
		.sources = sources,
		.n_devices = FIXTURE_DEVICES,
		.memory_total_bytes = 64000000000,
		.n_cores = 8,
		.expected_cores = 4,
		.n_gpus_system = 1,
		.gpu_memory_total_bytes = 80000000000,
		.ram_unit = "gigabytes",
		.gpu_ram_unit = "megabytes",
		.time_unit = "hours",
		.attribution = "busy",
		.carbon_intensity_g_per_kwh = (double)NAN,
		.pue = 1,
		.meta = meta,
		.label = "first try",
	};
	*state = f;
	return 0;
}

static inline int fixture_unlink(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	batch_finish(&f->batch);
	nftw(f->folder, fixture_unlink, 8, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

// Time of sample i: every 100 ms from the anchor on.
static inline int64_t fixture_t_ns(int64_t i)
{
	return fixture_mono_ns + i * 100 * NS_PER_MS;
}

/* Sample i: the target uses half a core in its main process and one core in its descendants; three of eight cores
 * are busy; the package draws 20 W. */
static inline void fixture_add_sample(struct batch *batch, int64_t t_ns, int64_t i)
{
	struct record *r = batch_add(batch, METRIC_RUN, t_ns, 0, 0);
	assert_non_null(r);
	r->values[RUN_SYSTEM_BUSY] = 5000 * NS_PER_S + 300 * NS_PER_MS * i;
	r->values[RUN_SYSTEM_IDLE] = 7000 * NS_PER_S + 500 * NS_PER_MS * i;
	r->values[RUN_MAIN_CPU] = 50 * NS_PER_MS * i;
	r->values[RUN_DESCENDANTS_CPU] = 100 * NS_PER_MS * i;
	r->values[RUN_SYSTEM_MEMORY] = 16000000000;
	r->values[RUN_MAIN_RSS] = 1000000000;
	r->values[RUN_DESCENDANTS_RSS] = 2000000000;
	r->values[RUN_MAIN_THREADS] = 3;
	r->values[RUN_DESCENDANTS_THREADS] = 5;
	r = batch_add(batch, METRIC_DEVICE, t_ns, 0, 0);
	assert_non_null(r);
	r->values[DEVICE_ENERGY] = 2000000 * i;
	r = batch_add(batch, METRIC_DEVICE, t_ns, 1, 0);
	assert_non_null(r);
	r->values[DEVICE_POWER] = 300000 + i;
	r->values[DEVICE_UTILIZATION] = 70;
	r->values[DEVICE_MEMORY_USED] = 30000000000;
	r->values[DEVICE_MAIN_MEMORY] = 5000000000;
	r->values[DEVICE_TARGET_MEMORY] = 20000000000;
}

static inline struct store_footer fixture_footer(int64_t n)
{
	return (struct store_footer){
		.start_ns = fixture_mono_ns + 1,
		.end_ns = fixture_t_ns(n),
		.pid = 4242,
		.exit_code = 130,
		.n_samples = n,
		.cpu_method = "rusage",
		.main_cpu_ns = 50 * NS_PER_MS * n,
		.descendants_cpu_ns = 100 * NS_PER_MS * n,
		.referee_cpu_ns = VALUE_MISSING,
		.processes_seen = 7,
		.processes_sampled = 6,
		.peak_rss_bytes = 3000000000,
		.main_peak_rss_bytes = 1100000000,
		.read_bytes = VALUE_MISSING,
		.written_bytes = 4096,
		.self_cpu_ns = 12345678,
	};
}

// Opens a store; failure ends the test with the store's error.
static inline void *fixture_open(const struct store_ops *ops, const struct store_open_options *options,
	const struct store_header *header)
{
	struct wattle_error error = {0};
	void *store = calloc(1, ops->state_size);
	if (ops->open(store, options, header, &error) < 0)
		fail_msg("%s", error.text);
	return store;
}

static inline void fixture_close(const struct store_ops *ops, void *store, bool discard)
{
	ops->close(store, discard);
	free(store);
}

// Samples first..first + n - 1 as one batch, shifted by `later_ns` on the recorder's clock.
static inline int fixture_write(struct fixture *f, const struct store_ops *ops, void *store, int64_t first, int64_t n,
	int64_t later_ns)
{
	batch_clear(&f->batch);
	for (int64_t i = first; i < first + n; i++)
		fixture_add_sample(&f->batch, fixture_t_ns(i) + later_ns, i);
	return ops->write(store, &(struct store_delivery){.batch = &f->batch}, NULL);
}

// A whole run of n samples in one file.
static inline void fixture_record(struct fixture *f, const struct store_ops *ops,
	const struct store_open_options *options, int64_t n)
{
	void *store = fixture_open(ops, options, &f->header);
	assert_int_equal(fixture_write(f, ops, store, 0, n, 0), 0);
	struct store_footer footer = fixture_footer(n);
	assert_int_equal(ops->finish(store, &footer, NULL), 0);
	fixture_close(ops, store, false);
}

static inline bool fixture_exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

// The folder has no other entries, hidden ones included, than `name` (NULL: none at all).
static inline void fixture_assert_only(const struct fixture *f, const char *name)
{
	DIR *folder = opendir(f->folder);
	assert_non_null(folder);
	bool found = false;
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		assert_non_null(name);
		assert_string_equal(entry->d_name, name);
		found = true;
	}
	closedir(folder);
	assert_true(found == (name != NULL));
}

static inline void fixture_load(const char *path, struct run *run)
{
	struct wattle_error error = {0};
	if (run_load(path, run, &error) < 0)
		fail_msg("%s", error.text);
}

// A test with a folder of its own, as a row.
static inline void fixture_add(struct rows *rows, const char *teaches, CMUnitTestFunction function)
{
	rows_add(rows, teaches, function, NULL);
	rows->tests[rows->n - 1].setup_func = fixture_setup;
	rows->tests[rows->n - 1].teardown_func = fixture_teardown;
}
