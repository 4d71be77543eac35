#include "monitor/monitor.h"

#include "base/clock.h"
#include "base/util.h"
#include "monitor/internal.h"
#include "process/machine.h"

#include <errno.h>
#include <unistd.h>

struct monitor {
	const struct wattle_env *env;
	struct monitor_options options;
	struct machine machine;
	int64_t busy_ns; // of the machine, at the last sample
	struct domain_table domains;
	struct process_table processes;
	struct group_table groups;
	double resumed_j[MONITOR_RESOURCES]; // energy from before the first sample, until it is reported
	pid_t *pids;                         // owned: all pids, then, from `pids_capacity` on, the target's
	size_t pids_capacity, n_target;
	struct monitor_process *listed; // owned: now.processes
	size_t listed_capacity;
	int64_t opened_ns, opened_cpu_ns;
	struct monitor_sample now;
	struct target_ram *target_ram; // owned; NULL: no target, or its memory is unreadable
};

/* ---- measurement overhead ---- */

static void fill_own(struct monitor *state, struct monitor_sample *now)
{
	int64_t wall_ns = now->t_ns - state->opened_ns;
	now->own_cpu_percent = wall_ns > 0 ? (double)(clock_cpu_ns() - state->opened_cpu_ns) / (double)wall_ns * 100
					   : (double)NAN;
	now->own_cpu_s = (double)clock_cpu_ns() / 1e9;
	now->own_rss_bytes = self_rss_bytes();
}

/* ---- open and close ---- */

static int open_histories(struct monitor_sample *now, size_t history)
{
	struct monitor_history *all[] = {&now->total_history_w, &now->target_history_w, &now->cpu_history_cores,
		&now->memory_history_bytes};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (monitor_history_open(all[i], history) < 0)
			return -ENOMEM;
	return 0;
}

int monitor_open(const struct monitor_options *options, struct monitor **ret_state, struct wattle_error *reterr)
{
	struct monitor *state = calloc(1, sizeof(*state));
	if (state == NULL)
		return error_set(reterr, -ENOMEM, "out of memory");
	state->env = options->env;
	state->options = *options;
	state->options.sensors = NULL; // borrowed during open only
	state->options.kept = NULL;
	state->options.kept_processes = NULL;
	state->busy_ns = VALUE_MISSING;
	state->now.t_ns = VALUE_MISSING;
	state->opened_ns = env_now_ns(options->env);
	state->opened_cpu_ns = clock_cpu_ns();
	machine_open(&state->machine, options->env);
	int r = process_table_open(&state->processes, options, reterr);
	if (r == 0)
		r = domain_table_open(&state->domains, options, reterr);
	if (r == 0 && group_table_open(&state->groups, options) < 0)
		r = error_set(reterr, -ENOMEM, "out of memory for jobs and cgroups");
	if (r == 0 && open_histories(&state->now, options->history) < 0)
		r = error_set(reterr, -ENOMEM, "out of memory for the history");
	if (r < 0) {
		monitor_close(state);
		return r;
	}
	state->now.cores = machine_cores(options->env);
	if (options->pid > 0)
		state->target_ram = target_ram_open(options->env, options->pid);
	monitor_take_sample(state);
	state->processes.kept = NULL; // borrowed during open only
	*ret_state = state;
	return 0;
}

void monitor_close(struct monitor *state)
{
	if (state == NULL)
		return;
	machine_close(&state->machine);
	domain_table_close(&state->domains);
	process_table_close(&state->processes);
	group_table_close(&state->groups);
	target_ram_close(state->target_ram);
	monitor_history_close(&state->now.total_history_w);
	monitor_history_close(&state->now.target_history_w);
	monitor_history_close(&state->now.cpu_history_cores);
	monitor_history_close(&state->now.memory_history_bytes);
	free(state->pids);
	free(state->listed);
	free(state);
}

void monitor_keep(const struct monitor *state, size_t i, struct monitor_kept *ret_kept)
{
	domain_table_keep(&state->domains, i, ret_kept);
}

void monitor_set_interval(struct monitor *state, int64_t interval_ns)
{
	static const double join_intervals = 2.5;
	int64_t join_max_ns = (int64_t)(join_intervals * (double)interval_ns);
	for (size_t i = 0; i < state->domains.n; i++)
		energy_track_set_join(&state->domains.tracks[i], join_max_ns);
}

/* ---- process list ---- */

// NaN sorts below all numbers.
static int compare_doubles(double left, double right)
{
	left = isnan(left) ? -1 : left;
	right = isnan(right) ? -1 : right;
	return (left < right) - (left > right);
}

int monitor_compare_use(const struct monitor_process *left, const struct monitor_process *right)
{
	int order = compare_doubles(left->power_w, right->power_w);
	if (order == 0)
		order = compare_doubles(left->cpu_cores, right->cpu_cores);
	if (order == 0)
		order = compare_doubles(value_to_double(left->rss_bytes, 1), value_to_double(right->rss_bytes, 1));
	return order != 0 ? order : (left->pid > right->pid) - (left->pid < right->pid);
}

static int by_use(const void *left, const void *right)
{
	return monitor_compare_use(left, right);
}

static void list_processes(struct monitor *state)
{
	const struct process_table *table = &state->processes;
	struct monitor_sample *now = &state->now;
	size_t n = table->n + table->n_ended;
	if (n > state->listed_capacity) {
		struct monitor_process *larger = realloc_array(state->listed, n + n / 4, sizeof(*larger));
		if (larger != NULL) {
			state->listed = larger;
			state->listed_capacity = n + n / 4;
		}
	}
	now->n_processes = 0;
	for (size_t i = 0; i < n && now->n_processes < state->listed_capacity; i++)
		state->listed[now->n_processes++] = i < table->n ? table->rows[i].now : table->ended[i - table->n].now;
	size_t most = state->options.max_processes;
	if (most > 0 && now->n_processes > most) {
		qsort(state->listed, now->n_processes, sizeof(state->listed[0]), by_use);
		now->n_processes = most;
	}
	now->processes = state->listed;
}

/* ---- sampling ---- */

// Lists the pids of all processes and of the target, both ascending. False: no memory; pids are unknown.
static bool list_pids(struct monitor *state)
{
	const struct process_table *table = &state->processes;
	state->n_target = 0;
	if (table->n > state->pids_capacity) {
		pid_t *larger = realloc_array(state->pids, 2 * (table->n + table->n / 4), sizeof(*larger));
		if (larger == NULL)
			return false;
		state->pids = larger;
		state->pids_capacity = table->n + table->n / 4;
	}
	for (size_t i = 0; i < table->n; i++) {
		state->pids[i] = table->rows[i].now.pid;
		if (table->rows[i].now.is_target)
			state->pids[state->pids_capacity + state->n_target++] = table->rows[i].now.pid;
	}
	return true;
}

static void read_domains(struct monitor *state, int64_t t_ns, const struct machine_reading *reading)
{
	bool listed = list_pids(state);
	const struct sensor_context context = {
		.t_ns = t_ns,
		.system_busy_ns = reading->cpu_busy_ns,
		.system_idle_ns = reading->cpu_idle_ns,
		.main_pid = state->processes.target_pid,
		.target_pids = state->pids + state->pids_capacity,
		.n_target_pids = state->n_target,
		.all_pids = state->pids,
		.n_all_pids = listed ? state->processes.n : 0,
		.self_pid = state->processes.own_pid,
	};
	domain_table_sample(&state->domains, state->env, &context);
}

// Power is a mean between two samples. A total of the first sample would contain only the domains whose sensors report power.
static void add_up(struct monitor *state)
{
	struct monitor_sample *now = &state->now;
	now->total_w = (double)NAN;
	now->total_energy_uj = VALUE_MISSING;
	now->provenance = PROVENANCE_MEASURED;
	for (size_t i = 0; i < state->domains.n; i++) {
		const struct monitor_domain *domain = &state->domains.domains[i];
		if (!domain->in_total)
			continue;
		now->total_energy_uj = domain->energy_uj + (value_ok(now->total_energy_uj) ? now->total_energy_uj : 0);
		if (domain->domain->provenance > now->provenance)
			now->provenance = domain->domain->provenance;
		if (isnan(domain->power_w) || isnan(now->dt_s))
			continue;
		now->total_w = isnan(now->total_w) ? domain->power_w : now->total_w + domain->power_w;
	}
}

static void remember(struct monitor *state)
{
	struct monitor_sample *now = &state->now;
	for (size_t i = 0; i < state->domains.n; i++) {
		struct monitor_domain *domain = &state->domains.domains[i];
		monitor_history_add(&domain->power_history_w, domain->power_w);
		monitor_history_add(&domain->utilization_history_percent, domain->utilization_percent);
	}
	monitor_history_add(&now->total_history_w, now->total_w);
	monitor_history_add(&now->target_history_w, now->sum.target_w);
	monitor_history_add(&now->cpu_history_cores, now->busy_cores);
	monitor_history_add(&now->memory_history_bytes, value_to_double(now->memory_used_bytes, 1));
}

static void fill_machine(struct monitor *state, const struct machine_reading *reading, int64_t busy_ns)
{
	struct monitor_sample *now = &state->now;
	now->busy_cores = value_ok(busy_ns) && now->dt_s > 0 ? (double)busy_ns / 1e9 / now->dt_s : (double)NAN;
	now->memory_total_bytes = reading->memory_total_bytes;
	now->memory_used_bytes = reading->memory_used_bytes;
	now->processes_seen = (int64_t)state->processes.n;
	now->threads_seen = state->processes.threads;
	now->domains = state->domains.domains;
	now->n_domains = state->domains.n;
	now->target_is_gone = state->processes.target_is_gone;
	now->problem = state->domains.problem[0] != '\0' ? state->domains.problem : NULL;
}

/* Sets aside the first increment of a continued counter: it was used before the first sample, so no current process can be
 * charged for it. */
static void set_aside(struct monitor *state)
{
	for (size_t i = 0; i < state->domains.n; i++) {
		struct energy_track *track = &state->domains.tracks[state->domains.device_of[i]];
		if (state->domains.domains[i].in_total)
			state->resumed_j[attribution_resource(track->domain->kind)] += (double)track->added_uj * 1e-6;
		track->added_uj = 0;
	}
}

static void divide(struct monitor *state, const struct attribution_machine *machine, bool is_first)
{
	struct monitor_sample *now = &state->now;
	struct attributed_energy divided;
	attribute_power(&state->domains, &state->processes, machine, &divided);
	now->sum = divided.sum;
	for (int r = 0; r < MONITOR_RESOURCES; r++) {
		now->added[r] = divided.added[r];
		now->exists[r] = divided.exists[r];
		if (is_first)
			continue;
		now->added[r].total_j += state->resumed_j[r];
		now->added[r].unattributed_j += state->resumed_j[r];
		state->resumed_j[r] = 0;
	}
}

const struct monitor_sample *monitor_take_sample(struct monitor *state)
{
	struct monitor_sample *now = &state->now;
	struct machine_reading reading;
	machine_read(&state->machine, &reading);
	int64_t t_ns = env_now_ns(state->env), before_ns = state->busy_ns;
	bool is_first = !value_ok(now->t_ns);
	now->dt_s = is_first ? (double)NAN : (double)(t_ns - now->t_ns) / 1e9;
	now->t_ns = t_ns;
	now->wall_ns = env_wall_ns(state->env);
	state->busy_ns = reading.cpu_busy_ns;
	bool known = value_ok(before_ns) && value_ok(reading.cpu_busy_ns);
	int64_t busy_ns = known ? reading.cpu_busy_ns - before_ns : VALUE_MISSING;
	if (busy_ns < 0 && known) // the kernel's idle time can decrease, and the derived busy time with it
		busy_ns = 0;
	process_table_sample(&state->processes, t_ns, busy_ns);
	group_table_update(&state->groups, &state->processes);
	read_domains(state, t_ns, &reading);
	const struct attribution_machine machine = {busy_ns, reading.memory_used_bytes};
	if (is_first)
		set_aside(state);
	divide(state, &machine, is_first);
	group_table_sum(&state->groups, &state->processes);
	fill_machine(state, &reading, busy_ns);
	add_up(state);
	list_processes(state);
	for (int k = 0; k < MONITOR_GROUPINGS; k++) {
		now->groups[k] = state->groups.groups[k];
		now->n_groups[k] = state->groups.n[k];
	}
	now->target_ram_bytes = target_ram_sample(state->target_ram, t_ns);
	fill_own(state, now);
	if (!is_first)
		remember(state);
	return now;
}
