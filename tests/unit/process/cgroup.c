/* Cgroups in simulated trees: how they are found, and films of processes that move. */
#include "process/cgroup.h"

#include "base/util.h"
#include "process/tree.h"

#define tree made_tree // the folder in place of /sys is a `struct tree` as well
#include "tree.h"
#undef tree

#include <errno.h>

enum { FILES = 14, MEMBERS = 5, FRAMES = 5 };

#define PURE "fs/cgroup/"
#define UNIFIED "fs/cgroup/unified/"
#define CPUACCT "fs/cgroup/cpu,cpuacct/"
#define MEMORY "fs/cgroup/memory/"

struct made_file {
	const char *path, *text;
};

// clang-format off
/* Version 2 alone, as systemd sets it up: a service with processes in two sub-cgroups. */
static const struct made_file pure[FILES] = {
	{PURE "cgroup.controllers", "cpu memory\n"},
	{PURE "cgroup.procs", "1\n"},
	{PURE "cpu.stat", "usage_usec 99000000\n"},
	{PURE "system.slice/cgroup.procs", ""},
	{PURE "system.slice/x.service/cgroup.procs", "101\n102\n"},
	{PURE "system.slice/x.service/cgroup.events", "populated 1\nfrozen 0\n"},
	{PURE "system.slice/x.service/cpu.stat", "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n"},
	{PURE "system.slice/x.service/memory.peak", "123456789\n"},
	{PURE "system.slice/x.service/a/cgroup.procs", "103\n"},
	{PURE "system.slice/x.service/a/b/cgroup.procs", "104\n"},
	{PURE "empty/cgroup.procs", ""},
};

/* Version 1, as Slurm uses it: the same job in each hierarchy; the memory hierarchy has no CPU accounting. */
static const struct made_file version_1[FILES] = {
	{CPUACCT "cgroup.procs", "1\n"},
	{CPUACCT "slurm/uid_7/job_42/cgroup.procs", "101\n"},
	{CPUACCT "slurm/uid_7/job_42/cpuacct.usage", "2500000000\n"},
	{CPUACCT "slurm/uid_7/job_42/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"},
	{CPUACCT "slurm/uid_7/job_42/step_0/cgroup.procs", "102\n103\n"},
	{CPUACCT "elsewhere/cgroup.procs", "104\n"},
	{CPUACCT "elsewhere/cpuacct.usage", "7\n"},
	{MEMORY "cgroup.procs", "1\n"},
	{MEMORY "slurm/uid_7/job_42/cgroup.procs", "101\n"},
	{MEMORY "slurm/uid_7/job_42/step_0/cgroup.procs", "102\n103\n"},
	{MEMORY "slurm/uid_7/job_42/memory.max_usage_in_bytes", "987654321\n"},
	{MEMORY "elsewhere/cgroup.procs", "101\n102\n"},
};

/* Both: controllers in version 1, the processes of services in version 2 as well. */
static const struct made_file hybrid[FILES] = {
	{CPUACCT "cgroup.procs", "1\n"},
	{CPUACCT "job/cgroup.procs", "101\n102\n"},
	{CPUACCT "job/cpuacct.usage", "2500000000\n"},
	{UNIFIED "cgroup.procs", "1\n"},
	{UNIFIED "cgroup.controllers", "\n"},
	{UNIFIED "job/cgroup.procs", ""},
	{UNIFIED "job/cpu.stat", "usage_usec 0\n"},
	{UNIFIED "service/cgroup.procs", "103\n"},
	{UNIFIED "service/cpu.stat", "user_usec 5\nusage_usec 2500000\n"},
	{UNIFIED "hidden/cgroup.procs", "0\n0\n"},
	{UNIFIED "odd/cgroup.procs", "104\n"},
	{UNIFIED "odd/cpu.stat", "usage_usec garbage\n"},
};

static const struct found {
	const char *teaches;
	const struct made_file *files;
	const char *text; // the user's argument; $ is the folder of the simulated /sys
	int error;        // expected negative errno, and then:
	const char *words; // part of the message; otherwise of the name
	const char *method;
	int64_t cpu_ns, processes, main_pid, memory_peak;
} founds[] = {
	{"version 2: the path in /proc/PID/cgroup", pure, "/system.slice/x.service", 0,
		"/system.slice/x.service", "cgroup cpu.stat", 2500000000, 4, 102, 123456789},
	{"a whole line of /proc/PID/cgroup", pure, "0::/system.slice/x.service", 0,
		"/system.slice/x.service", "cgroup cpu.stat", 2500000000, 4, 102, 123456789},
	{"the cgroup's folder", pure, "$/fs/cgroup/system.slice/x.service/", 0,
		"/system.slice/x.service", "cgroup cpu.stat", 2500000000, 4, 102, 123456789},
	{"path on the real machine", pure, "/sys/fs/cgroup/system.slice/x.service", 0,
		"/system.slice/x.service", "cgroup cpu.stat", 2500000000, 4, 102, 123456789},
	{"folder relative to the working directory", pure, "fs/cgroup/system.slice/x.service", 0,
		"/system.slice/x.service", "cgroup cpu.stat", 2500000000, 4, 102, 123456789},
	{"parent cgroup: includes all processes below; without accounting their times are summed", pure,
		"system.slice", 0, "/system.slice", "proc", VALUE_MISSING, 4, 102, VALUE_MISSING},
	{"root cgroup: the whole machine", pure, "/", 0, "/", "cgroup cpu.stat", 99000000000, 5, 1, VALUE_MISSING},
	{"empty cgroup: refused", pure, "/empty", -ESRCH, "/empty is empty", NULL, 0, 0, 0, 0},
	{"processes of another PID namespace: refused with the reason", hybrid, "/hidden", -ESRCH, "are not visible", NULL, 0, 0, 0, 0},
	{"missing cgroup: refused", pure, "/system.slice/y.service", -ENOENT, "/system.slice/y.service", NULL, 0, 0, 0, 0},
	{"folder that is no cgroup: refused", pure, "$", -ENOENT, "is not a cgroup", NULL, 0, 0, 0, 0},
	{"empty argument: refused", pure, "", -ENOENT, "is not a cgroup", NULL, 0, 0, 0, 0},
	{"out of the tree there is not a cgroup", pure, "/../..", -ENOENT, "is not a cgroup", NULL, 0, 0, 0, 0},
	{"version 1: the cpuacct hierarchy is preferred", version_1, "/slurm/uid_7/job_42", 0,
		"/slurm/uid_7/job_42", "cgroup cpuacct", 2500000000, 3, 102, VALUE_MISSING},
	{"version 1: a memory folder leads to the cpuacct folder of the same name", version_1, "$/fs/cgroup/memory/slurm/uid_7/job_42", 0,
		"/slurm/uid_7/job_42", "cgroup cpuacct", 2500000000, 3, 102, 987654321},
	{"version 1: accounting of other processes is not used", version_1, "$/fs/cgroup/memory/elsewhere", 0,
		"/elsewhere", "proc", VALUE_MISSING, 2, 102, VALUE_MISSING},
	{"both versions: the cgroup of this name with processes is used", hybrid, "/job", 0,
		"/job", "cgroup cpuacct", 2500000000, 2, 102, VALUE_MISSING},
	{"both versions: version 2 without controllers counts CPU time too", hybrid, "/service", 0,
		"/service", "cgroup cpu.stat", 2500000000, 1, 103, VALUE_MISSING},
	{"invalid accounting file: not used", hybrid, "/odd", 0, "/odd", "proc", VALUE_MISSING, 1, 104,
		VALUE_MISSING},
};
// clang-format on

struct stage {
	struct made_tree sys, proc;
	struct wattle_env env;
	int64_t t_ns;
};

static int64_t stage_now_ns(void *data)
{
	return ((struct stage *)data)->t_ns;
}

// Opens /sys and /proc with a simulated clock.
static void stage_make(struct stage *stage)
{
	*stage = (struct stage){0};
	tree_make(&stage->sys);
	tree_make(&stage->proc);
	tree_write(&stage->proc, "stat", "cpu 0 0 0 0\n");
	setenv("WATTLE_SYSFS", stage->sys.root, 1);
	setenv("WATTLE_PROCFS", stage->proc.root, 1);
	assert_int_equal(env_open(&stage->env, NULL), 0);
	stage->env.clock = (struct env_clock){stage_now_ns, stage_now_ns, stage_now_ns, stage};
}

static void stage_finish(struct stage *stage)
{
	env_close(&stage->env);
	tree_finish(&stage->sys);
	tree_finish(&stage->proc);
}

static void write_process(const struct stage *stage, int pid, int ppid, int ticks, int start)
{
	char path[64], text[256];
	snprintf(path, sizeof(path), "%d/stat", pid);
	snprintf(text, sizeof(text), "%d (p) S %d 1 1 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 %d 0 10 0 0\n", pid, ppid, ticks,
		start);
	tree_write(&stage->proc, path, text);
}

static void count(void *data, pid_t pid)
{
	*(int *)data += 1;
}

static void check_found(void **state)
{
	const struct found *row = *state;
	struct stage stage;
	stage_make(&stage);
	for (size_t i = 0; i < FILES && row->files[i].path != NULL; i++)
		tree_write(&stage.sys, row->files[i].path, row->files[i].text);
	write_process(&stage, 1, 0, 0, 1);
	static const int starts[] = {500, 200, 300, 400}; // 102 is the oldest
	for (int i = 0; i < 4; i++)
		write_process(&stage, 101 + i, 1, 0, starts[i]);
	assert_int_equal(chdir(stage.sys.root), 0);

	char text[600];
	bool in_tree = row->text[0] == '$';
	snprintf(text, sizeof(text), "%s%s", in_tree ? stage.sys.root : "", row->text + in_tree);
	struct cgroup cgroup;
	struct wattle_error error = {0};
	int r = cgroup_open(&cgroup, &stage.env, text, &error);
	assert_int_equal(r, row->error);
	if (r < 0) {
		assert_non_null(strstr(error.text, row->words));
	} else {
		int n = 0;
		assert_string_equal(cgroup.path, row->words);
		assert_string_equal(cgroup_cpu_method(&cgroup), row->method);
		assert_int_equal(cgroup_cpu_ns(&cgroup), row->cpu_ns);
		assert_int_equal(cgroup_each_process(&cgroup, count, &n), row->processes);
		assert_int_equal(n, row->processes);
		assert_int_equal(cgroup.main_pid, row->main_pid);
		assert_int_equal(cgroup_memory_peak_bytes(&cgroup), row->memory_peak);
	}
	cgroup_close(&cgroup);
	assert_int_equal(chdir("/"), 0);
	stage_finish(&stage);
}

/* ---- films ---- */

struct member { // times in ticks of 10 ms
	int pid, ticks, start;
	char where; // 'a': in the cgroup, 'b': in a sub-cgroup, '-': alive, elsewhere
};

struct frame {
	struct member members[MEMBERS];
	int account_ticks; // CPU time of the cgroup since its creation; -1: unreadable
	bool gone;         // the cgroup was removed
	// expected
	int main_ticks, descendants_ticks, alive, listed;
};

// clang-format off
static const struct film {
	const char *teaches;
	struct frame frames[FRAMES];
	int seen;
} films[] = {
	{"accounting: earlier CPU time does not count, children never sampled do", {
		{{{101, 50, 1000, 'a'}}, 700, false, 0, 0, 1, 1},
		{{{101, 60, 1000, 'a'}}, 750, false, 10, 40, 1, 1},
	}, 1},
	{"main process: the one that started first", {
		{{{101, 5, 3000, 'a'}, {102, 5, 2000, 'b'}}, 10, false, 0, 0, 2, 2},
		{{{101, 6, 3000, 'a'}, {102, 9, 2000, 'b'}}, 15, false, 4, 1, 2, 2},
	}, 2},
	{"new process in a sub-cgroup: a member, even if its parent is not", {
		{{{101, 5, 1000, 'a'}}, 5, false, 0, 0, 1, 1},
		{{{101, 5, 1000, 'a'}, {102, 3, 1300, 'b'}}, 8, false, 0, 3, 2, 2},
	}, 2},
	{"process that moves out: leaves, its time inside is kept; missed once is not gone", {
		{{{101, 5, 1000, 'a'}, {102, 5, 1001, 'a'}}, 10, false, 0, 0, 2, 2},
		{{{101, 5, 1000, 'a'}, {102, 8, 1001, '-'}}, 13, false, 0, 3, 2, 1},
		{{{101, 5, 1000, 'a'}, {102, 50, 1001, '-'}}, 13, false, 0, 3, 1, 1},
	}, 2},
	{"process that moves between sub-cgroups: stays a member", {
		{{{101, 5, 1000, 'a'}, {102, 5, 1001, 'a'}}, 10, false, 0, 0, 2, 2},
		{{{101, 5, 1000, 'a'}, {102, 6, 1001, 'b'}}, 11, false, 0, 1, 2, 2},
	}, 2},
	{"main process ends: the others continue, its time is kept", {
		{{{101, 5, 1000, 'a'}, {102, 5, 1001, 'b'}}, 10, false, 0, 0, 2, 2},
		{{{101, 9, 1000, 'a'}, {102, 5, 1001, 'b'}}, 14, false, 4, 0, 2, 2},
		{{{102, 15, 1001, 'b'}}, 24, false, 4, 10, 1, 1},
	}, 2},
	{"no accounting: members' times are summed from their start or their arrival", {
		{{{101, 5, 1000, 'a'}}, -1, false, 0, 0, 1, 1},
		{{{101, 6, 1000, 'a'}, {102, 70, 100, 'a'}}, -1, false, 1, 0, 2, 2},
		{{{101, 6, 1000, 'a'}, {102, 75, 100, 'a'}, {103, 2, 1500, 'b'}}, -1, false, 1, 7, 3, 3},
		{{{101, 6, 1000, 'a'}}, -1, false, 1, 7, 1, 1},
	}, 3},
	{"accounting unreadable for a while: the last value is kept", {
		{{{101, 5, 1000, 'a'}}, 5, false, 0, 0, 1, 1},
		{{{101, 9, 1000, 'a'}}, 9, false, 4, 0, 1, 1},
		{{{101, 9, 1000, 'a'}}, -1, false, 4, 0, 1, 1},
		{{{101, 9, 1000, 'a'}}, 19, false, 4, 10, 1, 1},
	}, 1},
	{"cgroup removed: no members, counted time is kept", {
		{{{101, 5, 1000, 'a'}}, 5, false, 0, 0, 1, 1},
		{{{101, 9, 1000, 'a'}}, 11, false, 4, 2, 1, 1},
		{{{0}}, 0, true, 4, 2, 0, 0},
	}, 1},
};
// clang-format on

static void list_members(const struct stage *stage, const struct frame *frame, char where, const char *path)
{
	char text[128] = "";
	size_t n = 0;
	for (size_t i = 0; i < MEMBERS && frame->members[i].pid != 0; i++)
		if (frame->members[i].where == where)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%d\n", frame->members[i].pid);
	tree_write(&stage->sys, path, text);
}

static void remove_folder(const struct made_tree *tree, const char *name)
{
	char path[512];
	tree_path(tree, path, "%s", name);
	nftw(path, tree_remove_entry_, 16, FTW_DEPTH | FTW_PHYS);
}

static void show(const struct stage *stage, const struct frame *frame)
{
	char text[64] = "";
	for (int pid = 101; pid < 101 + MEMBERS; pid++) {
		snprintf(text, sizeof(text), "%d", pid);
		remove_folder(&stage->proc, text);
	}
	for (size_t i = 0; i < MEMBERS && frame->members[i].pid != 0; i++)
		write_process(stage, frame->members[i].pid, 1, frame->members[i].ticks, frame->members[i].start);
	if (frame->gone) {
		remove_folder(&stage->sys, PURE "job");
		return;
	}
	list_members(stage, frame, 'a', PURE "job/cgroup.procs");
	list_members(stage, frame, 'b', PURE "job/below/cgroup.procs");
	snprintf(text, sizeof(text), "usage_usec %d\n", frame->account_ticks * 10000);
	tree_write(&stage->sys, PURE "job/cpu.stat", frame->account_ticks < 0 ? "" : text);
}

static void check_film(void **state)
{
	const struct film *film = *state;
	struct stage stage;
	struct cgroup cgroup;
	struct tree tree;
	stage_make(&stage);
	tree_write(&stage.sys, PURE "cgroup.procs", "1\n");
	stage.t_ns = 11 * NS_PER_S;
	for (int i = 0; i < FRAMES && (i == 0 || film->frames[i].alive > 0 || film->frames[i].gone); i++) {
		const struct frame *frame = &film->frames[i];
		show(&stage, frame);
		if (i == 0) {
			assert_int_equal(cgroup_open(&cgroup, &stage.env, "/job", NULL), 0);
			assert_int_equal(tree_open_cgroup(&tree, &stage.env, &cgroup), 0);
		}
		struct tree_totals totals;
		tree_update(&tree, stage.t_ns, &totals);
		assert_int_equal(totals.main_cpu_ns / 10000000, frame->main_ticks);
		assert_int_equal(totals.descendants_cpu_ns / 10000000, frame->descendants_ticks);
		assert_int_equal(totals.processes, frame->alive);
		assert_int_equal(tree.n_pids, frame->alive);
		assert_int_equal(tree.listed, frame->listed);
		tree_forget_ended(&tree);
		stage.t_ns += 2 * NS_PER_S;
	}
	assert_int_equal(tree.n_seen, film->seen);
	tree_close(&tree);
	cgroup_close(&cgroup);
	stage_finish(&stage);
}

/* ---- sizes ---- */

// More processes than one read returns, so that numbers are split between two reads, in folders 40 deep.
static void many_and_deep(void **state)
{
	enum { PROCESSES = 20000 };
	struct stage stage;
	struct cgroup cgroup;
	stage_make(&stage);
	char *list = malloc(PROCESSES * 8), path[512] = PURE "job/";
	size_t size = 0;
	for (int i = 0; i < PROCESSES; i++)
		size += (size_t)sprintf(list + size, "%d\n", 100 + i);
	write_process(&stage, 100, 1, 0, 1);
	tree_write(&stage.sys, PURE "cgroup.procs", "");
	tree_write(&stage.sys, PURE "job/cgroup.procs", list);
	free(list);
	for (int depth = 1; depth <= 40; depth++) {
		strcat(path, "d/");
		size_t length = strlen(path);
		strcat(path, "cgroup.procs");
		tree_write(&stage.sys, path, "7\n");
		path[length] = '\0';
	}
	int n = 0;
	assert_int_equal(cgroup_open(&cgroup, &stage.env, "/job", NULL), 0);
	assert_int_equal(cgroup_each_process(&cgroup, count, &n), PROCESSES + 32); // deeper than any system nests them
	assert_int_equal(n, PROCESSES + 32);
	cgroup_close(&cgroup);
	stage_finish(&stage);
}

// Version 2 reports it before the list is shorter.
static void populated(void **state)
{
	struct stage stage;
	struct cgroup cgroup;
	struct tree tree;
	struct tree_totals totals;
	const struct frame frame = {{{101, 5, 1000, 'a'}}, 5, false, 0, 0, 1, 1};
	stage_make(&stage);
	tree_write(&stage.sys, PURE "cgroup.procs", "1\n");
	tree_write(&stage.sys, PURE "job/cgroup.events", "populated 1\nfrozen 0\n");
	show(&stage, &frame);
	assert_int_equal(cgroup_open(&cgroup, &stage.env, "/job", NULL), 0);
	assert_int_equal(tree_open_cgroup(&tree, &stage.env, &cgroup), 0);
	assert_int_equal(tree.listed, 1);
	tree_write(&stage.sys, PURE "job/cgroup.events", "populated 0\nfrozen 0\n");
	tree_update(&tree, stage.t_ns, &totals);
	assert_int_equal(tree.listed, 0);
	tree_close(&tree);
	cgroup_close(&cgroup);
	stage_finish(&stage);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, founds, check_found);
	ROWS_ADD(&tests, films, check_film);
	ROWS_ADD_ONE(&tests, "20,000 processes, and cgroups nested deeper than the limit", many_and_deep);
	ROWS_ADD_ONE(&tests, "cgroup that reports itself empty: empty", populated);
	return rows_run(&tests, "cgroup");
}
