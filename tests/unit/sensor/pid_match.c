/* Owners of a driver's pids, in simulated /proc trees of several PID namespaces. */
#include "sensor/gpu/pid_match.h"

#include "base/util.h"
#include "sensor/gpu/nvml.h"
#include "tree.h"

#define OURS "@pid:[4026539999]"
#define THEIRS "@pid:[4026531111]"
#define POD "0::/kubepods/pod1/ctr1\n"

static const pid_t target_pids[] = {10, 20}; // 10 is the root process

enum { FILES = 10, IDS = 6 };

/* One GPU (minor 0) with processes of these pids, and the visible /proc. A file that begins with @ is a link. */
static const struct match_row {
	const char *teaches;
	const char *self; // target of /proc/self; NULL: this process, "": none
	const char *own_namespace;
	struct {
		const char *path, *content;
	} files[FILES];
	uint32_t ids[IDS]; // 0 ends the list
	int64_t target, others;
	enum pid_method method;
	int64_t target_bytes; // 1000 for each process
} match_rows[] = {
	{"initial namespace: by pid; a pid unknown to /proc has ended", NULL, "@pid:[4026531836]", {{0}},
		{10, 20, 77}, 2, 1, PID_BY_EQUALITY, 2000},
	{"initial namespace: an equal inner pid of a container does not count", NULL, "@pid:[4026531836]",
		{{"77/status", "Name:\tx\nNSpid:\t77\t10\n"}}, {77}, 0, 1, PID_BY_EQUALITY, 0},
	{"container, driver translates: all pids exist here, so they are equal", NULL, OURS,
		{{"10/status", "x"}, {"33/status", "x"}}, {10, 33}, 1, 1, PID_BY_EQUALITY, 1000},
	{"container, host pids: no other evidence and no other user: exclusive use", NULL, OURS,
		{{"10/status", "x"}}, {51234}, 1, 0, PID_BY_EXCLUSIVITY, VALUE_MISSING},
	{"container, host pids: a pid equal to the target's proves nothing", NULL, OURS,
		{{"10/status", "x"}}, {10, 51234}, 2, 0, PID_BY_EXCLUSIVITY, VALUE_MISSING},
	{"container, host pids: as many as the target's processes that have the GPU open", NULL, OURS,
		{{"10/fd/3", "@/dev/nvidia0"}, {"20/fd/7", "@/dev/nvidia0"}, {"20/fd/8", "@/dev/nvidia-uvm"}},
		{51234, 51235}, 2, 0, PID_BY_DESCRIPTORS, 2000},
	{"container, host pids: more than target processes with the GPU open: unknown which are the target's", NULL, OURS,
		{{"10/fd/3", "@/dev/nvidia0"}}, {51234, 51235, 51236}, 1, 2, PID_BY_DESCRIPTORS, VALUE_MISSING},
	{"container, host pids: another program here has the GPU open as well: unknown", NULL, OURS,
		{{"10/fd/3", "@/dev/nvidia0"}, {"33/fd/3", "@/dev/nvidia0"}}, {51234, 51235}, 1, 1, PID_BY_DESCRIPTORS,
		VALUE_MISSING},
	{"container, host pids: two have the GPU open, one computes: unknown which", NULL, OURS,
		{{"10/fd/3", "@/dev/nvidia0"}, {"33/fd/3", "@/dev/nvidia0"}}, {51234}, VALUE_MISSING, VALUE_MISSING,
		PID_UNMATCHED, VALUE_MISSING},
	{"container, host pids: the target has another GPU open", NULL, OURS,
		{{"10/fd/3", "@/dev/nvidia1"}}, {51234}, 0, 1, PID_BY_DESCRIPTORS, 0},
	{"container, host pids: only wattle has the driver open, the target does not", NULL, OURS,
		{{"self/fd/3", "@/dev/nvidiactl"}, {"10/fd/0", "@/dev/null"}}, {51234}, 0, 1, PID_BY_DESCRIPTORS, 0},
	{"host's /proc, target with host pids: equal to the driver's", "4711", OURS,
		{{"10/status", "x"}, {"33/status", "x"}}, {10, 33}, 1, 1, PID_BY_EQUALITY, 1000},
	{"host's /proc, driver translates: NSpid of the target's processes", "4711", OURS,
		{{"10/status", "Name:\tx\nNSpid:\t10\t3\n"}, {"20/status", "Name:\tx\nNSpid:\t20\t4\n"},
			{"4/status", "Name:\tkthread\nNSpid:\t4\n"}, {"33/status", "Name:\tx\nNSpid:\t33\n"}},
		{3, 4, 33}, 2, 1, PID_BY_NSPID, 2000},
	{"host's /proc of a kernel without NSpid: by cgroup", "4711", OURS,
		{{"51234/status", "Name:\tx\n"}, {"51234/cgroup", POD}, {"10/cgroup", POD},
			{"51235/status", "Name:\tx\n"}, {"51235/cgroup", "0::/\n"}},
		{51234, 51235}, 1, 1, PID_BY_CGROUP, 1000},
	{"host's /proc of a kernel without NSpid: the root cgroup proves nothing", "4711", OURS,
		{{"51234/status", "Name:\tx\n"}, {"51234/cgroup", "0::/\n"}, {"10/cgroup", "0::/\n"}}, {51234}, 0, 1,
		PID_BY_EQUALITY, 0},
	{"host's /proc: another program in the same container is not the target", "4711", OURS,
		{{"51234/status", "Name:\tx\nNSpid:\t51234\t9\n"}, {"51234/cgroup", POD}, {"10/cgroup", POD}}, {51234},
		0, 1, PID_BY_EQUALITY, 0},
	{"simulated tree: pids are folder names", "", "", {{"10/status", "x"}}, {10, 77}, 1, 1, PID_BY_EQUALITY,
		1000},
	{"simulated tree: the driver's pid leads to a process whose NSpid is the target's", "", "",
		{{"51234/status", "Name:\tx\nNSpid:\t51234\t10\n"}, {"51234/cgroup", POD}, {"10/cgroup", POD}}, {51234},
		1, 0, PID_BY_NSPID, 1000},
	{"simulated tree: the same inner pid in another container", "", "",
		{{"51234/status", "Name:\tx\nNSpid:\t51234\t10\n"}, {"51234/cgroup", "0::/kubepods/pod2/ctr9\n"},
			{"10/cgroup", POD}},
		{51234}, 0, 1, PID_BY_EQUALITY, 0},
	{"simulated tree: the same inner pid, distinguished by namespace", "", "",
		{{"51234/status", "Name:\tx\nNSpid:\t51234\t10\n"}, {"51234/ns/pid", THEIRS}, {"10/ns/pid", OURS}},
		{51234}, 0, 1, PID_BY_EQUALITY, 0},
	{"simulated tree: the driver reports the target's innermost pid", "", "",
		{{"10/status", "Name:\tx\nNSpid:\t10\t3\n"}}, {3}, 1, 0, PID_BY_NSPID, 1000},
};

static void write_one(const struct tree *tree, const char *path, const char *content)
{
	if (content[0] == '@')
		tree_link(tree, path, content + 1);
	else
		tree_write(tree, path, content);
}

static void make_proc(const struct match_row *row, const struct tree *tree)
{
	char self[16], path[64];
	snprintf(self, sizeof(self), "%d", getpid());
	const char *name = row->self != NULL ? row->self : self;
	if (name[0] != '\0') {
		snprintf(path, sizeof(path), "%s/ns/pid", name);
		write_one(tree, path, row->own_namespace);
		tree_link(tree, "self", name);
	}
	for (size_t i = 0; i < FILES && row->files[i].path != NULL; i++)
		write_one(tree, row->files[i].path, row->files[i].content);
}

struct world {
	struct tree tree;
	struct wattle_env env;
	struct pid_match match;
};

static void world_open(struct world *w, const struct match_row *row)
{
	tree_make(&w->tree);
	make_proc(row, &w->tree);
	w->env = (struct wattle_env){.sysfs_fd = -1};
	w->env.procfs_fd = open(w->tree.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(w->env.procfs_fd >= 0);
	assert_int_equal(pid_match_open(&w->match, &w->env), 0);
}

static void world_close(struct world *w)
{
	pid_match_close(&w->match);
	close(w->env.procfs_fd);
	tree_finish(&w->tree);
}

static void update(struct world *w, int64_t t_ms, size_t n_pids)
{
	const struct sensor_context context = {.t_ns = t_ms * NS_PER_MS,
		.main_pid = 10,
		.target_pids = target_pids,
		.n_target_pids = n_pids,
		.self_pid = getpid()};
	pid_match_update(&w->match, &context);
}

static void check_match(void **state)
{
	const struct match_row *row = *state;
	struct world w;
	struct nvml_process buffer[IDS];
	struct nvml_process_v1 records[IDS];
	struct nvml_process_set set = {.processes = buffer, .capacity = IDS};
	struct nvml_owners owners;
	int64_t values[DEVICE_COUNT];
	size_t n = 0;
	for (; n < IDS && row->ids[n] != 0; n++)
		records[n] = (struct nvml_process_v1){row->ids[n], 1000};
	values[DEVICE_TARGET_MEMORY] = VALUE_MISSING;
	world_open(&w, row);
	update(&w, 1000, ARRAY_SIZE(target_pids));
	nvml_process_set_add(&set, records, sizeof(records[0]), n, NVML_NO_INSTANCE);
	nvml_process_set_check(&set, &w.match, 0, &owners);
	nvml_process_set_sum(&set, &owners, true, values);
	assert_int_equal(owners.method, row->method);
	assert_int_equal(owners.target, row->target);
	assert_int_equal(owners.others, row->others);
	assert_int_equal(values[DEVICE_TARGET_MEMORY], row->target_bytes);
	world_close(&w);
}

static enum pid_side side_of(struct world *w, uint32_t pid)
{
	enum pid_method method;
	pid_t known;
	return pid_match_side(&w->match, pid, &method, &known);
}

// The driver's samples lag: a process that has just ended is still the target's; later its pid may be reused.
static void remembers_the_ended(void **state)
{
	static const struct match_row initial = {.own_namespace = "@pid:[4026531836]"};
	struct world w;
	world_open(&w, &initial);
	update(&w, 0, 2);
	update(&w, 100, 1);
	assert_int_equal(w.match.ended_ns, 100 * NS_PER_MS);
	assert_int_equal(side_of(&w, 20), PID_TARGET);
	update(&w, 2900, 1);
	assert_int_equal(side_of(&w, 20), PID_TARGET);
	update(&w, 3200, 1);
	assert_int_equal(side_of(&w, 20), PID_OTHER);
	assert_int_equal(side_of(&w, 10), PID_TARGET);
	world_close(&w);
}

// A process that was visible and has ended does not make the driver's pids foreign.
static void an_ended_one_is_not_foreign(void **state)
{
	static const struct match_row nested = {.own_namespace = OURS,
		.files = {{"10/status", "x"}, {"33/status", "x"}}};
	struct world w;
	char path[512];
	world_open(&w, &nested);
	update(&w, 0, 2);
	pid_match_add_seen(&w.match, 33);
	tree_path(&w.tree, path, "33/status");
	unlink(path);
	update(&w, 1500, 2);
	pid_match_add_seen(&w.match, 33);
	assert_int_equal(side_of(&w, 33), PID_OTHER);
	assert_int_equal(side_of(&w, 10), PID_TARGET);
	pid_match_add_seen(&w.match, 51234); // this process was never visible
	assert_int_equal(side_of(&w, 10), PID_UNKNOWN);
	world_close(&w);
}

// More pids than fit: no invalid pid is returned, and nothing is written past the end.
static void more_ids_than_room(void **state)
{
	static const struct match_row nested = {.own_namespace = OURS};
	struct world w;
	world_open(&w, &nested);
	update(&w, 0, 2);
	for (uint32_t pid = 100000; pid < 100000 + 2 * PID_SEEN_MAX; pid++)
		pid_match_add_seen(&w.match, pid);
	assert_int_equal(w.match.n_seen, PID_SEEN_MAX);
	assert_int_equal(side_of(&w, 99), PID_UNKNOWN);
	world_close(&w);
}

static void every_method_has_its_note(void **state)
{
	assert_string_equal(pid_method_note(PID_BY_EQUALITY), "");
	for (enum pid_method method = PID_BY_NSPID; method <= PID_UNMATCHED; method++) {
		assert_non_null(strstr(pid_method_note(method), "another PID namespace"));
		assert_true(strlen(pid_method_note(method)) < sizeof(((struct domain *)NULL)->note));
	}
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, match_rows, check_match);
	ROWS_ADD_ONE(&tests, "ended processes: remembered for three seconds", remembers_the_ended);
	ROWS_ADD_ONE(&tests, "ended process: not of another namespace", an_ended_one_is_not_foreign);
	ROWS_ADD_ONE(&tests, "more pids than fit", more_ids_than_room);
	ROWS_ADD_ONE(&tests, "each method has its note", every_method_has_its_note);
	return rows_run(&tests, "pid_match");
}
