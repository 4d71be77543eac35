#include "host.h"

#include "base/util.h"

#include <stdio.h>
#include <time.h>

static const double idle_w[] = {[DOMAIN_PACKAGE] = 60, [DOMAIN_DRAM] = 12, [DOMAIN_GPU] = 70};
static const double busy_w[] = {[DOMAIN_PACKAGE] = 180, [DOMAIN_DRAM] = 20, [DOMAIN_GPU] = 550};

static void open_domain(struct host *host, size_t i, enum domain_kind kind, int index)
{
	struct domain *domain = &host->domains[i];
	*domain = (struct domain){
		.kind = kind,
		.index = index,
		.provenance = PROVENANCE_MEASURED,
		.has_energy = true,
		.readable = true,
		.used = true,
	};
	snprintf(domain->name, sizeof(domain->name), "%s-%d", domain_kind_name(kind), index);
	if (kind == DOMAIN_GPU)
		snprintf(domain->uuid, sizeof(domain->uuid), "GPU-%08zx-0000-0000-0000-%012d", host->number, index);
	snprintf(domain->device, sizeof(domain->device), kind == DOMAIN_GPU ? "NVIDIA H100 80GB HBM3" : "intel-rapl:%d",
		index);
	host->rows[i] = (struct monitor_domain){
		.domain = domain,
		.source = kind == DOMAIN_GPU ? "nvml" : "powercap",
		.in_total = true,
		.target_w = (double)NAN,
		.cap_w = kind == DOMAIN_GPU ? 700 : (double)NAN,
#define DEVICE_LIVE(id, member, ...) .member = (double)NAN,
#include "metric/metrics.def"
		.memory_total_bytes = kind == DOMAIN_GPU ? 85520809984.0 : (double)NAN,
		.throttle_bits = kind == DOMAIN_GPU ? 0 : VALUE_MISSING,
	};
}

static void open_jobs(struct host *host)
{
	const struct totals_options rows = {.most = {[MONITOR_JOBS] = 100}};
	totals_init(&host->totals, &rows);
	for (size_t i = 0; i < HOST_JOBS; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%zu", 100000 + host->number / 16 * HOST_JOBS + i); // a job has 16 hosts
		struct group_row *row = group_rows_add(&host->totals.groups[MONITOR_JOBS], name);
		if (row == NULL)
			abort();
		snprintf(row->user, sizeof(row->user), "user%zu", (host->number / 16 + i) % 50);
		row->series.state = SERIES_SHOWN;
		row->is_here = true;
	}
}

void host_open(struct host *host, size_t number)
{
	*host = (struct host){.number = number};
	snprintf(host->name, sizeof(host->name), "node%04zu", number);
	for (int i = 0; i < 2; i++) {
		open_domain(host, (size_t)i, DOMAIN_PACKAGE, i);
		open_domain(host, (size_t)i + 2, DOMAIN_DRAM, i);
	}
	for (int i = 0; i < HOST_GPUS; i++)
		open_domain(host, (size_t)i + 4, DOMAIN_GPU, i);
	open_jobs(host);
	host->now = (struct monitor_sample){
		.dt_s = 1,
		.cores = 128,
		.memory_total_bytes = INT64_C(1) << 40,
		.memory_used_bytes = INT64_C(3) << 38,
		.processes_seen = 900,
		.threads_seen = 4000,
		.domains = host->rows,
		.n_domains = HOST_DOMAINS,
		.exists = {true, true, true},
		.own_rss_bytes = 9000000,
	};
}

// A number from 0 to 1 for each host and domain, and its integral.
static double load(double seconds, double phase)
{
	return 0.5 + 0.4 * sin(seconds / 40 + phase);
}

static double load_integral(double seconds, double phase)
{
	return 0.5 * seconds + 0.4 * 40 * (cos(phase) - cos(seconds / 40 + phase));
}

static void move_domain(struct host *host, size_t i, double seconds)
{
	struct monitor_domain *row = &host->rows[i];
	enum domain_kind kind = row->domain->kind;
	double phase = (double)(host->number * 7 + i * 3), part = load(seconds, phase);
	row->power_w = idle_w[kind] + part * busy_w[kind];
	row->energy_uj = (int64_t)((idle_w[kind] * seconds + busy_w[kind] * load_integral(seconds, phase)) * 1e6);
	if (kind != DOMAIN_GPU)
		return;
	row->utilization_percent = floor(part * 100);
	row->temperature_c = floor(35 + 45 * part);
	row->memory_used_bytes = floor(part * 80) * 1e9;
	row->clock_mhz = 1410 + floor(part * 50) * 10;
}

static void move_jobs(struct host *host, const double *energy_j, double power_w, double seconds)
{
	struct group_rows *table = &host->totals.groups[MONITOR_JOBS];
	for (size_t i = 0; i < table->n; i++) {
		struct group_row *row = &table->items[i];
		row->cpu_s = seconds * 20;
		for (int r = 0; r < MONITOR_RESOURCES; r++)
			row->energy_j[r] = energy_j[r] / HOST_JOBS * 0.8;
		row->now.power_w = power_w / HOST_JOBS * 0.8;
		row->now.cpu_cores = 20;
		row->now.processes = 200;
		row->now.rss_bytes = INT64_C(100) << 30;
		row->now.gpu_percent = 120;
		row->now.gpu_memory_bytes = INT64_C(100) << 30;
	}
	for (int r = 0; r < MONITOR_RESOURCES; r++)
		table->rest_j[r] = energy_j[r] * 0.05;
}

void host_move(struct host *host, double seconds)
{
	struct monitor_sample *now = &host->now;
	double energy_j[MONITOR_RESOURCES] = {0}, power_w = 0;
	struct timespec wall;
	clock_gettime(CLOCK_REALTIME, &wall);
	now->wall_ns = (int64_t)wall.tv_sec * NS_PER_S + wall.tv_nsec;
	if (host->totals.since_wall_ns <= 0)
		host->totals.since_wall_ns = now->wall_ns - (int64_t)(seconds * 1e9);
	now->total_energy_uj = 0;
	for (size_t i = 0; i < HOST_DOMAINS; i++) {
		move_domain(host, i, seconds);
		now->total_energy_uj += host->rows[i].energy_uj;
		power_w += host->rows[i].power_w;
		energy_j[i < 2          ? MONITOR_CPU
				: i < 4 ? MONITOR_DRAM
					: MONITOR_GPU] += (double)host->rows[i].energy_uj / 1e6;
	}
	now->total_w = power_w;
	now->busy_cores = 128 * load(seconds, (double)host->number);
	now->sum = (struct monitor_sum){(double)NAN, power_w * 0.85, 0.02, power_w * 0.15 - 0.02, 0};
	now->own_cpu_s = seconds * 0.003;
	for (int r = 0; r < MONITOR_RESOURCES; r++)
		host->totals.sums[r] = (struct monitor_added){energy_j[r], 0, 0, energy_j[r] * 0.15, 0};
	move_jobs(host, energy_j, power_w, seconds);
}

void host_close(struct host *host)
{
	totals_finish(&host->totals);
}
