#include "monitor/internal.h"

#include "base/nan_sum.h"
#include "base/util.h"
#include "rows.h"

/* One GPU that draws 100 W, its users, and the attribution of its power. Processes 10 (the target) and 20 are
 * listed; 0 is an unidentified user. */
enum { USERS_MAX = 4 };

static const struct row {
	const char *teaches;
	bool is_unknown; // the sensor cannot list its users
	struct device_user users[USERS_MAX];
	size_t n_users;
	struct {
		enum device_metric metric;
		int64_t value;
	} told[6];                                                         // the sensor's own totals
	double target_w, other_w;                                          // of the two processes; NaN: unknown
	double sum_target_w, sum_others_w, sum_idle_w, sum_unattributed_w; // of the ledger
} rows[] = {
	// clang-format off
	{"divided by SM time", false, {{10, 60, 1, NAN}, {20, 20, 9, NAN}}, 2,
		{{DEVICE_TARGET_UTILIZATION, 60}, {DEVICE_OTHERS_UTILIZATION, 20}}, 75, 25, 75, 25, 0, 0},
	{"no SM time: divided by memory", false, {{10, NAN, 300, NAN}, {20, NAN, 100, NAN}}, 2,
		{{DEVICE_TARGET_MEMORY, 300}, {DEVICE_OTHERS_MEMORY, 100}}, 75, 25, 75, 25, 0, 0},
	{"SM time 0 for all: divided by memory", false, {{10, 0, 300, NAN}, {20, 0, 100, NAN}}, 2,
		{{DEVICE_TARGET_UTILIZATION, 0}, {DEVICE_OTHERS_UTILIZATION, 0}, {DEVICE_TARGET_MEMORY, 300},
		{DEVICE_OTHERS_MEMORY, 100}}, 75, 25, 75, 25, 0, 0},
	{"single user: gets all power", false, {{20, NAN, VALUE_MISSING, NAN}}, 1,
		{{DEVICE_TARGET_PROCESSES, 0}, {DEVICE_OTHERS_PROCESSES, 1}}, NAN, 100, 0, 100, 0, 0},
	{"unidentified user: keeps its share", false, {{10, 50, 1, NAN}, {0, 50, 1, NAN}}, 2,
		{{DEVICE_TARGET_UTILIZATION, 50}, {DEVICE_OTHERS_UTILIZATION, 50}}, 50, NAN, 50, 50, 0, 0},
	{"unused MIG slices: idle", false, {{10, NAN, 1, 40}, {20, NAN, 1, 10}}, 2,
		{{DEVICE_TARGET_MIG_SHARE, 400000}, {DEVICE_OTHERS_MIG_SHARE, 100000}}, 40, 10, 40, 10, 50, 0},
	{"process on two MIG instances: gets both", false, {{10, NAN, 1, 40}, {10, NAN, 1, 20}}, 2,
		{{DEVICE_TARGET_MIG_SHARE, 600000}, {DEVICE_OTHERS_MIG_SHARE, 0}}, 60, NAN, 60, 0, 40, 0},
	{"no users: idle", false, {{0}}, 0, {{DEVICE_OTHERS_PROCESSES, 0}}, NAN, NAN, 0, 0, 100, 0},
	{"busy without a visible user: unattributed", false, {{0}}, 0,
		{{DEVICE_OTHERS_PROCESSES, 0}, {DEVICE_UTILIZATION, 90}}, NAN, NAN, 0, 0, 0, 100},
	{"not busy, a process holds memory: idle", false, {{10, NAN, 1, NAN}}, 1,
		{{DEVICE_UTILIZATION, 0}, {DEVICE_TARGET_MEMORY, 1}}, 0, NAN, 0, 0, 100, 0},
	{"nothing reported: unattributed, not other processes", true, {{0}}, 0, {{0}}, NAN, NAN, 0, 0, 0, 100},
	{"users without any measure: unattributed", false, {{10, NAN, VALUE_MISSING, NAN}, {20, NAN, VALUE_MISSING, NAN}}, 2,
		{{0}}, NAN, NAN, 0, 0, 0, 100},
	{"sensor without totals: its users share the power", false, {{10, 30, 1, NAN}, {20, 10, 1, NAN}}, 2, {{0}}, 75, 25, 75, 25, 0, 0},
	{"one visible user may hide others: unattributed", false, {{20, NAN, VALUE_MISSING, NAN}}, 1,
		{{DEVICE_UTILIZATION, 90}}, NAN, NAN, 0, 0, 0, 100},
	{"more users than are visible: no share is known", false, {{20, NAN, VALUE_MISSING, NAN}}, 1,
		{{DEVICE_TARGET_PROCESSES, 0}, {DEVICE_OTHERS_PROCESSES, 3}}, NAN, NAN, 0, 100, 0, 0},
	{"users beyond the list keep their share of SM time", false, {{10, 30, 1, NAN}, {20, 10, 1, NAN}}, 2,
		{{DEVICE_TARGET_UTILIZATION, 30}, {DEVICE_OTHERS_UTILIZATION, 50}}, 37.5, 12.5, 37.5, 62.5, 0, 0},
	{"users beyond the list keep their share of memory", false, {{10, NAN, 300, NAN}, {20, NAN, 100, NAN}}, 2,
		{{DEVICE_TARGET_MEMORY, 300}, {DEVICE_OTHERS_MEMORY, 900}}, 25, 100. / 12, 25, 75, 0, 0},
	// clang-format on
};

static const struct row *current;

static const struct device_user *users(void *state, size_t domain, size_t *ret_count)
{
	*ret_count = current->n_users;
	return current->is_unknown ? NULL : current->users;
}

static const struct sensor_ops ops = {.name = "made", .users = users};

static void assert_watts(const char *what, double value, double expected)
{
	if (isnan(expected) ? !isnan(value) : !(fabs(value - expected) < 1e-6))
		fail_msg("%s: %g W is not %g W", what, value, expected);
}

static void check(void **state)
{
	current = *state;
	struct domain gpu = {.name = "gpu-0", .kind = DOMAIN_GPU, .used = true};
	const struct domain *devices[] = {&gpu};
	struct monitor_domain domain = {.domain = &gpu, .in_total = true, .power_w = 100};
	struct energy_track track = {.domain = &gpu, .added_uj = 100000000};
	int64_t figures[1][DEVICE_COUNT];
	size_t device_of[] = {0};
	for (size_t m = 0; m < DEVICE_COUNT; m++)
		figures[0][m] = VALUE_MISSING;
	for (size_t i = 0; i < ARRAY_SIZE(current->told); i++)
		if (current->told[i].metric != 0)
			figures[0][current->told[i].metric] = current->told[i].value;
	struct domain_table domains = {
		.sensors = {.slots = {{.ops = &ops, .domains = &gpu, .n_domains = 1}},
			.n_slots = 1,
			.devices = devices,
			.n_devices = 1},
		.rows = figures,
		.tracks = &track,
		.domains = &domain,
		.device_of = device_of,
		.n = 1,
	};
	struct process_row processes[] = {
		{.now = {.pid = 10, .is_target = true, .rss_bytes = 1}, .used_ns = 0},
		{.now = {.pid = 20, .rss_bytes = 1}, .used_ns = 0},
	};
	struct process_table table = {.rows = processes, .n = 2, .target_pid = 10};
	struct attributed_energy all;
	attribute_power(&domains, &table, &(struct attribution_machine){0, 1}, &all);
	assert_watts("target's process", processes[0].now.gpu_w, current->target_w);
	assert_watts("other process", processes[1].now.gpu_w, current->other_w);
	const struct monitor_sum *sum = &all.sum;
	assert_watts("target", sum->target_w, current->sum_target_w);
	assert_watts("others", sum->others_w, current->sum_others_w);
	assert_watts("idle", sum->idle_w,
		current->sum_idle_w > 0 ? current->sum_idle_w : (double)NAN); // unknown, not 0
	assert_watts("unattributed", sum->unattributed_w, current->sum_unattributed_w);
	assert_watts("all", nan_sum(sum->target_w + sum->others_w + sum->unattributed_w + sum->own_w, sum->idle_w),
		100);
	assert_watts("joules", processes[0].now.energy_j, isnan(current->target_w) ? 0 : current->target_w);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	return rows_run(&tests, "gpus");
}
