/* Whole pictures of simulated machines at several sizes: required texts, and no line too wide. */
#include "live/session.h"

#include "base/util.h"
#include "rows.h"

#include <locale.h>
#include <stdio.h>

enum { DOMAINS_MAX = 24, PROCESSES_MAX = 60, PAST = 100 };

struct made { // a machine
	struct domain described[DOMAINS_MAX];
	struct monitor_domain domains[DOMAINS_MAX];
	struct monitor_process processes[PROCESSES_MAX];
	struct monitor_sample now;
	struct live_run run;
	struct live_span spans[3];
	struct live_ui ui;
	struct monitor_history dt_s;
	pid_t pid;
};

static float past_w[PAST], past_s[PAST];

static void add_domain(struct made *made, const char *name, enum domain_kind kind, const char *inside, double power_w,
	enum provenance provenance)
{
	size_t i = made->now.n_domains++;
	struct domain *described = &made->described[i];
	*described = (struct domain){.kind = kind, .provenance = provenance};
	snprintf(described->name, sizeof(described->name), "%s", name);
	snprintf(described->inside, sizeof(described->inside), "%s", inside);
	snprintf(described->device, sizeof(described->device), "%s", kind == DOMAIN_GPU ? "NVIDIA H100 80GB HBM3" : "");
	made->domains[i] = (struct monitor_domain){.domain = described,
		.source = "made",
		.in_total = inside[0] == '\0',
		.power_w = power_w,
		.cap_w = kind == DOMAIN_GPU ? 700 : (double)NAN,
		.target_w = power_w / 2,
#define DEVICE_LIVE(id, member, ...) .member = (double)NAN,
#include "metric/metrics.def"
		.memory_total_bytes = kind == DOMAIN_GPU ? 80e9 : (double)NAN,
		.throttle_bits = kind == DOMAIN_GPU && i % 2 == 1 ? 0x4 : VALUE_MISSING,
		.power_history_w = {.values = past_w, .n = PAST, .capacity = PAST}};
	if (kind != DOMAIN_GPU)
		return;
	made->domains[i].temperature_c = 61;
	made->domains[i].utilization_percent = 98;
	made->domains[i].memory_used_bytes = 31.2e9;
}

static void add_process(struct made *made, pid_t pid, const char *command, double power_w, bool is_target)
{
	struct monitor_process *process = &made->processes[made->now.n_processes++];
	*process = (struct monitor_process){.pid = pid,
		.ppid = 1,
		.uid = 4711,
		.state = 'R',
		.is_target = is_target,
		.cpu_cores = power_w / 10,
		.rss_bytes = 1 << 30,
		.threads = 4,
		.gpu_percent = (double)NAN,
		.gpu_memory_bytes = VALUE_MISSING,
		.cpu_w = power_w,
		.dram_w = (double)NAN,
		.gpu_w = (double)NAN,
		.power_w = power_w,
		.energy_j = power_w * 60};
	snprintf(process->command, sizeof(process->command), "%s", command);
}

static void begin(struct made *made)
{
	for (size_t i = 0; i < PAST; i++) {
		past_w[i] = (float)(100 + 50 * sin((double)i / 8));
		past_s[i] = 1;
	}
	*made = (struct made){0};
	made->now = (struct monitor_sample){.t_ns = 1000 * NS_PER_S,
		.dt_s = 1,
		.cores = 16,
		.busy_cores = 6.2,
		.memory_total_bytes = INT64_C(64000000000),
		.memory_used_bytes = INT64_C(12300000000),
		.domains = made->domains,
		.processes = made->processes,
		.processes_seen = 217,
		.threads_seen = 1032,
		.total_w = 142,
		.total_energy_uj = INT64_C(12400000000),
		.provenance = PROVENANCE_MEASURED,
		.sum = {80, 20, 0.1, 40, 1.9},
		.total_history_w = {.values = past_w, .n = PAST, .capacity = PAST},
		.target_history_w = {.values = past_w, .n = PAST, .capacity = PAST},
		.own_cpu_percent = 0.31,
		.own_rss_bytes = 9100000};
	made->dt_s = (struct monitor_history){.values = past_s, .n = PAST, .capacity = PAST};
	made->ui.interval_ns = NS_PER_S;
}

static void make_laptop(struct made *made)
{
	begin(made);
	add_domain(made, "package-0", DOMAIN_PACKAGE, "", 62.3, PROVENANCE_MEASURED);
	add_domain(made, "core-0", DOMAIN_CORE, "package-0", 48.1, PROVENANCE_MEASURED);
	add_domain(made, "dram-0", DOMAIN_DRAM, "", 5.1, PROVENANCE_DERIVED);
	for (int i = 0; i < PROCESSES_MAX; i++)
		add_process(made, 1000 + i, i == 0 ? "python train.py --epochs 90" : "worker", 30.0 / (i + 1), false);
}

static void make_server(struct made *made)
{
	char name[16];
	begin(made);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "package-%d", i);
		add_domain(made, name, DOMAIN_PACKAGE, "", 211, PROVENANCE_MEASURED);
	}
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "gpu-%d", i);
		add_domain(made, name, DOMAIN_GPU, "", 512, PROVENANCE_MEASURED);
	}
	made->now.total_w = 4518;
	for (int i = 0; i < PROCESSES_MAX; i++)
		add_process(made, 1000 + i, "python train.py", 30.0 / (i + 1), i < 8);
	made->processes[0].gpu_percent = 98;
	made->processes[0].gpu_memory_bytes = 31200000000;
	made->processes[0].gpu_w = 400;
	made->pid = 1000;
	made->ui.has_target = made->ui.only_target = true;
	made->spans[0] = (struct live_span){.name = "epoch 3", .begin_ns = 900 * NS_PER_S, .pid = 1000, .tid = 1000};
	made->spans[1] = (struct live_span){.name = "forward",
		.begin_ns = 999 * NS_PER_S,
		.pid = 1000,
		.tid = 1000,
		.depth = 1};
	made->spans[2] = (struct live_span){.name = "load", .begin_ns = 999 * NS_PER_S, .pid = 1001, .tid = 1007};
	made->run = (struct live_run){.path = "run.sqlite",
		.command = "python train.py",
		.target_j = 8.2e6,
		.total_j = 9e6,
		.start_ns = 0,
		.stored_ns = 1000 * NS_PER_S - 400 * NS_PER_MS,
		.spans = made->spans,
		.n_spans = 3,
		.spans_open = 3};
}

static void make_nothing(struct made *made)
{
	begin(made);
	made->now.problem = "no energy: no sensor of this machine can be read";
	made->now.total_w = (double)NAN;
	made->now.dt_s = (double)NAN;
	made->now.busy_cores = (double)NAN;
	made->now.cores = made->now.memory_total_bytes = made->now.memory_used_bytes = VALUE_MISSING;
	made->now.processes_seen = made->now.threads_seen = made->now.own_rss_bytes = VALUE_MISSING;
	made->now.own_cpu_percent = (double)NAN;
	made->now.sum = (struct monitor_sum){(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
	made->now.total_history_w = made->now.target_history_w = made->dt_s = (struct monitor_history){0};
}

static void make_estimate(struct made *made)
{
	begin(made);
	add_domain(made, "package-0", DOMAIN_PACKAGE, "", 10.8, PROVENANCE_ESTIMATED);
	made->now.provenance = PROVENANCE_ESTIMATED;
	made->now.total_w = 10.8;
	add_process(made, 5, "\xd7\xa9\xd7\x9c\x1b[2J\xf0\x9f\x94\xa5 \xe7\x81\xab<script>", 10, false);
}

static const struct picture_row {
	const char *teaches;
	void (*make)(struct made *made);
	int columns, rows;
	bool utf8, is_once, help;
	const char *seen[10], *unseen[4];
} picture_rows[] = {
	{"a laptop at 80 x 24", make_laptop, 80, 24, true, false, false,
		{"wattle top · host", "Power 142 W measured · 12.4 kJ", "wattle 100 mW", "6.20 of 16 cores",
			"12.3 GB of 64.0 GB", "package-0", "  core-0", "W▼", "python train.py", "q quit"},
		{"~", "target", "GPU"}},
	{"without UTF-8: ASCII only", make_laptop, 80, 24, false, false, false,
		{"wattle top | host", "Wv", "[####", "= programs 20.0 W", "q quit"}, {"·"}},
	{"20 x 5: power and processes", make_laptop, 20, 5, true, false, false,
		{"Power 142 W", "30.00 python", "q quit"}, {"core-0"}},
	{"40 x 10", make_laptop, 40, 10, true, false, false, {"Power 142 W measured", "package-0", "62.3 W", "python"},
		{"USER"}},
	{"eight GPUs and a run at 120 x 40", make_server, 120, 40, true, false, false,
		{"Run 80.0 W · 8.20 MJ in 16:39", "gpu-7", "/700 W", "98 %", "61 °C", "31.2G/80.0G", "throttled",
			"epoch 3", "  forward", "GMEM"},
		{"worker"}},
	{"eight GPUs at 80 x 24: those that do not fit are summed", make_server, 80, 24, true, false, false,
		{"Power 4.52 kW", "more: ", "epoch 3", "GMEM"}, {"gpu-7"}},
	{"300 x 100: GPU names, fractions of watts", make_server, 300, 100, true, false, false,
		{"NVIDIA H100 80GB HBM3", "CPU W", "GPU W", "SPAN (3 running, 0.40s ago)"}, {0}},
	{"an unknown value is n/a, never 0", make_nothing, 80, 24, true, false, false,
		{"no energy: no sensor", "n/a of n/a cores", "n/a of n/a"},
		{"0 W", "NaN", "nan", "-9223372036854775808"}},
	{"estimated power is marked and hatched; hostile names stay in their cells", make_estimate, 80, 24, true,
		false, false, {"Power ~10.8 W estimated", "~10.8 W [▒", "?[2J🔥 火<script>"}, {"\x1b"}},
	{"help lists all keys", make_laptop, 80, 24, true, false, true,
		{"sort by power", "as a tree", "is its share"}, {"package-0"}},
	{"single picture: no keys, no history", make_laptop, 80, 40, true, true, false, {"package-0", "python"},
		{"q quit", "every", "⣿"}},
};

static const char *no_name(void *data, uid_t uid)
{
	return NULL;
}

static void compose(struct made *made, const struct picture_row *row, int columns, int rows, struct frame *ret_frame)
{
	const struct user_names users = {.name_of = no_name};
	struct live_rows list = {0};
	made->ui.help = row->help;
	struct live_view view = {.now = &made->now,
		.run = made->run.path != NULL ? &made->run : NULL,
		.pid = made->pid,
		.target_j = (double)NAN,
		.since_s = 87,
		.dt_history_s = &made->dt_s,
		.host = "host",
		.clock = "12:34:56",
		.rows = &list,
		.ui = &made->ui,
		.users = &users,
		.is_once = row->is_once};
	struct live_layout layout;
	assert_int_equal(live_rows_make(&list, &made->now, &made->ui, &users), 0);
	const struct live_need need = live_need_of(&view);
	live_layout(&need, columns, rows, &layout);
	view.selected = live_rows_select(&list, &made->ui, live_list_height(&layout));
	assert_int_equal(frame_init(ret_frame, columns, rows, row->utf8), 0);
	live_compose(&view, &layout, ret_frame);
	live_rows_finish(&list);
}

static void check_picture(void **state)
{
	const struct picture_row *row = *state;
	struct made made;
	struct frame frame;
	struct buf out;
	row->make(&made);
	made.now.domains = made.domains;
	made.now.processes = made.processes;
	compose(&made, row, row->columns, row->rows, &frame);
	buf_init(&out, 1 << 20);
	frame_text(&frame, &out);
	for (size_t i = 0; i < ARRAY_SIZE(row->seen) && row->seen[i] != NULL; i++)
		if (strstr(out.data, row->seen[i]) == NULL)
			fail_msg("'%s' is not seen in\n%s", row->seen[i], out.data);
	for (size_t i = 0; i < ARRAY_SIZE(row->unseen) && row->unseen[i] != NULL; i++)
		if (strstr(out.data, row->unseen[i]) != NULL)
			fail_msg("'%s' is seen in\n%s", row->unseen[i], out.data);
	for (const char *at = out.data; !row->utf8 && *at != '\0'; at++)
		assert_true((unsigned char)*at < 0x80);
	buf_finish(&out);
	frame_finish(&frame);
}

// Sanitizers and the bounds of the frame detect errors; here it is enough that drawing ends.
static void check_sizes(void **state)
{
	const struct picture_row *row = *state;
	struct frame frame;
	struct made made;
	row->make(&made);
	made.now.domains = made.domains;
	made.now.processes = made.processes;
	if (made.run.path != NULL)
		made.run.spans = made.spans;
	for (int rows = 0; rows <= 100; rows += rows < 30 ? 1 : 7)
		for (int columns = 0; columns <= 300; columns += columns < 100 ? 3 : 20) {
			compose(&made, row, columns, rows, &frame);
			frame_finish(&frame);
		}
}

int main(void)
{
	struct rows tests = {0};
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL)
		return 77;
	ROWS_ADD(&tests, picture_rows, check_picture);
	rows_add(&tests, "all sizes: a laptop", check_sizes, &picture_rows[0]);
	rows_add(&tests, "all sizes: eight GPUs and a run", check_sizes, &picture_rows[4]);
	rows_add(&tests, "all sizes: no sensor", check_sizes, &picture_rows[7]);
	rows_add(&tests, "all sizes: the help", check_sizes, &picture_rows[9]);
	return rows_run(&tests, "picture");
}
