/* A simulated machine with two packages and processes, which a test changes from sample to sample, with its own
 * clock. */
#pragma once

#include "base/util.h"
#include "monitor/monitor.h"
#include "tree.h"

enum { TICK_MS = 10 };

struct made_machine {
	struct tree tree;
	struct wattle_env env;
	struct monitor *state;
	const struct monitor_sample *now;
	int64_t now_ns;
	int64_t busy_ms, idle_ms;
};

static inline int64_t made_ns(void *data)
{
	return ((struct made_machine *)data)->now_ns;
}

static inline int64_t made_wall_ns(void *data)
{
	return INT64_C(1700000000) * NS_PER_S + made_ns(data);
}

__attribute__((format(printf, 3, 4))) static inline void made_file(const struct made_machine *m, const char *path,
	const char *format, ...)
{
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tree_write(&m->tree, path, text);
}

// CPU times since boot; memory_mib: in use, of 1000.
static inline void made_load(struct made_machine *m, int64_t busy_ms, int64_t memory_mib)
{
	m->busy_ms = busy_ms;
	made_file(m, "proc/stat", "cpu  %lld 0 0 %lld 0 0 0 0\ncpu0 0\ncpu1 0\n", (long long)(busy_ms / TICK_MS),
		100000LL);
	made_file(m, "proc/meminfo", "MemTotal: %lld kB\nMemAvailable: %lld kB\n", 1000 * 1024LL,
		(1000 - (long long)memory_mib) * 1024);
}

struct made_process {
	int pid, ppid;
	const char *name;
	char state;
	int64_t cpu_ms, children_ms, rss_mib, start_ms;
};

static inline void made_process(const struct made_machine *m, const struct made_process *p)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/stat", p->pid);
	long long pages = (long long)p->rss_mib * 1024 * 1024 / sysconf(_SC_PAGESIZE);
	made_file(m, path, "%d (%s) %c %d 0 0 0 0 0 0 0 0 0 %lld 0 %lld 0 20 0 2 0 %lld 0 %lld\n", p->pid, p->name,
		p->state != 0 ? p->state : 'S', p->ppid, (long long)(p->cpu_ms / TICK_MS),
		(long long)(p->children_ms / TICK_MS), (long long)(p->start_ms / TICK_MS), pages);
	snprintf(path, sizeof(path), "proc/%d/status", p->pid);
	made_file(m, path, "Name:\t%s\nUid:\t1000\t1000\t1000\t1000\n", p->name);
}

static inline void made_command(const struct made_machine *m, int pid, const char *words, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "proc/%d/cmdline", pid);
	tree_write_bytes(&m->tree, path, words, size);
}

static inline void made_end(const struct made_machine *m, int pid)
{
	static const char *const files[] = {"stat", "status", "cmdline", ""};
	char path[64], full[512];
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "proc/%d/%s", pid, files[i]);
		tree_path(&m->tree, full, "%s", path);
		remove(full);
	}
}

// zone: "intel-rapl:0", "intel-rapl:0:0" …
static inline void made_energy(const struct made_machine *m, const char *zone, const char *name, int64_t energy_uj)
{
	char path[96];
	snprintf(path, sizeof(path), "sys/class/powercap/%s/name", zone);
	made_file(m, path, "%s\n", name);
	snprintf(path, sizeof(path), "sys/class/powercap/%s/energy_uj", zone);
	made_file(m, path, "%lld\n", (long long)energy_uj);
	snprintf(path, sizeof(path), "sys/class/powercap/%s/max_energy_range_uj", zone);
	made_file(m, path, "1000000000\n");
}

static inline void made_begin(struct made_machine *m)
{
	*m = (struct made_machine){.now_ns = 1000 * NS_PER_S};
	char path[512];
	tree_make(&m->tree);
	made_load(m, 0, 500);
	tree_path(&m->tree, path, "sys");
	mkdir(path, 0755);
	setenv("WATTLE_SYSFS", path, 1);
	tree_path(&m->tree, path, "proc");
	setenv("WATTLE_PROCFS", path, 1);
	setenv("WATTLE_NVML", "/nowhere", 1);
	assert_int_equal(env_open(&m->env, NULL), 0);
	m->env.clock = (struct env_clock){made_ns, made_ns, made_wall_ns, m};
}

static inline void made_open(struct made_machine *m, pid_t pid, size_t most)
{
	const struct sensor_options sensors = {0};
	const struct monitor_options options = {.env = &m->env,
		.sensors = &sensors,
		.pid = pid,
		.max_processes = most,
		.history = 8};
	struct wattle_error error = {0};
	if (monitor_open(&options, &m->state, &error) < 0)
		fail_msg("%s", error.text);
}

static inline void made_look(struct made_machine *m, int64_t after_ms)
{
	m->now_ns += after_ms * NS_PER_MS;
	m->now = monitor_take_sample(m->state);
}

static inline void made_finish(struct made_machine *m)
{
	monitor_close(m->state);
	env_close(&m->env);
	tree_finish(&m->tree);
}

static inline const struct monitor_process *made_find(const struct made_machine *m, pid_t pid, bool is_gone)
{
	for (size_t i = 0; i < m->now->n_processes; i++)
		if (m->now->processes[i].pid == pid && m->now->processes[i].is_gone == is_gone)
			return &m->now->processes[i];
	return NULL;
}

static inline void assert_near(double value, double expected)
{
	if (isnan(expected) ? !isnan(value) : !(fabs(value - expected) <= 1e-6 * fmax(1, fabs(expected))))
		fail_msg("%.9g is not %.9g", value, expected);
}
