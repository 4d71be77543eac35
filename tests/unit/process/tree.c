/* Films of simulated /proc trees, one frame for each sample, and the resulting tree of the target. */
#include "process/tree.h"

#include "base/util.h"
#include "rows.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAIN = 100, FRAMES = 6, PROCESSES = 6 };

struct process { // of a frame; times in ticks of 10 ms
	int pid, ppid;
	int own, children;
	int start;  // 0: 1000
	char state; // 0: 'S'
	int rss_pages;
};

struct frame {
	struct process processes[PROCESSES];
	// expected after this frame
	int main_ticks, descendants_ticks, alive;
};

static const struct film {
	const char *teaches;
	struct frame frames[FRAMES];
	int seen;
	bool no_children_files;
	// After the last frame the root's parent reports its CPU time; 0: not reported.
	int told_ticks, told_main_ticks, told_descendants_ticks;
} films[] = {
	{"attach: earlier CPU time does not count",
		{{{{MAIN, 1, 50, 70, 0, 0, 10}}, 0, 0, 1}, {{{MAIN, 1, 53, 75, 0, 0, 10}}, 3, 5, 1}}, 1, false},
	{"child is found: its time counts from its start",
		{{{{MAIN, 1, 5, 0, 0, 0, 10}}, 0, 0, 1},
			{{{MAIN, 1, 6, 0, 0, 0, 10}, {101, MAIN, 4, 0, 0, 0, 10}}, 1, 4, 2}},
		2, false},
	{"parent waits for a child: its time counts once",
		{{{{MAIN, 1, 5, 0, 0, 0, 10}}, 0, 0, 1},
			{{{MAIN, 1, 5, 0, 0, 0, 10}, {101, MAIN, 7, 0, 0, 0, 10}}, 0, 7, 2},
			{{{MAIN, 1, 5, 9, 0, 0, 10}}, 0, 9, 1}},
		2, false},
	{"no wait for a child (SIGCHLD ignored): its last sampled time is kept",
		{{{{MAIN, 1, 5, 0, 0, 0, 10}}, 0, 0, 1},
			{{{MAIN, 1, 5, 0, 0, 0, 10}, {101, MAIN, 7, 0, 0, 0, 10}}, 0, 7, 2},
			{{{MAIN, 1, 6, 0, 0, 0, 10}}, 1, 7, 1}},
		2, false},
	{"children between two samples: counted through their parent's waited-for time",
		{{{{MAIN, 1, 5, 0, 0, 0, 10}}, 0, 0, 1}, {{{MAIN, 1, 5, 33, 0, 0, 10}}, 0, 33, 1}}, 1, false},
	{"orphan stays a member, also after setsid and a double fork",
		{{{{MAIN, 1, 5, 0, 0, 0, 10}}, 0, 0, 1},
			{{{MAIN, 1, 5, 0, 0, 0, 10}, {101, MAIN, 1, 0, 0, 0, 10}, {102, 101, 2, 0, 0, 0, 10}}, 0, 3, 3},
			{{{MAIN, 1, 5, 1, 0, 0, 10}, {102, 1, 6, 0, 0, 0, 10}}, 0, 7, 2}},
		3, false},
	{"reused pid: another process, which counts from zero; the old one's time is kept",
		{{{{MAIN, 1, 5, 0, 0, 0, 10}}, 0, 0, 1},
			{{{MAIN, 1, 5, 0, 0, 0, 10}, {101, MAIN, 40, 0, 1000, 0, 10}}, 0, 40, 2},
			{{{MAIN, 1, 5, 40, 0, 0, 10}, {101, MAIN, 2, 0, 2000, 0, 10}}, 0, 40, 1},
			{{{MAIN, 1, 5, 40, 0, 0, 10}, {101, MAIN, 3, 0, 2000, 0, 10}}, 0, 43, 2}},
		3, false},
	{"zombie: keeps its time, not a living process",
		{{{{MAIN, 1, 5, 0, 0, 0, 10}}, 0, 0, 1},
			{{{MAIN, 1, 5, 0, 0, 0, 10}, {101, MAIN, 8, 0, 0, 'Z', 0}}, 0, 8, 1}},
		2, false},
	{"attach: an earlier child adds only its time since then",
		{{{{MAIN, 1, 5, 0, 0, 0, 10}, {101, MAIN, 30, 0, 0, 0, 10}}, 0, 0, 2},
			{{{MAIN, 1, 5, 0, 0, 0, 10}, {101, MAIN, 34, 0, 0, 0, 10}}, 0, 4, 2},
			{{{MAIN, 1, 5, 36, 0, 0, 10}}, 0, 6, 1}},
		2, false},
	{"sum read during a wait: does not decrease",
		{{{{MAIN, 1, 5, 0, 0, 0, 10}}, 0, 0, 1},
			{{{MAIN, 1, 5, 0, 0, 0, 10}, {101, MAIN, 9, 0, 0, 0, 10}}, 0, 9, 2},
			{{{MAIN, 1, 5, 0, 0, 0, 10}}, 0, 9, 1}, {{{MAIN, 1, 5, 9, 0, 0, 10}}, 0, 9, 1}},
		2, false},
	{"whole branch ends at once: each second counts once",
		{{{{MAIN, 1, 0, 0, 0, 0, 10}}, 0, 0, 1},
			{{{MAIN, 1, 0, 0, 0, 0, 10}, {101, MAIN, 5, 0, 0, 0, 10}, {102, 101, 6, 0, 0, 0, 10}}, 0, 11,
				3},
			{{{MAIN, 1, 0, 11, 0, 0, 10}}, 0, 11, 1}},
		3, false},
	{"no children files: parents' pids are used",
		{{{{MAIN, 1, 5, 0, 0, 0, 10}}, 0, 0, 1},
			{{{MAIN, 1, 5, 0, 0, 0, 10}, {103, 102, 3, 0, 0, 0, 10}, {102, MAIN, 4, 0, 0, 0, 10},
				 {900, 1, 99, 0, 0, 0, 10}},
				0, 7, 3}},
		3, true},
	{"attach: the root's unsampled time comes from the process that waited for it",
		{{{{MAIN, 1, 0, 0, 0, 0, 10}}, 0, 0, 1}, {{{MAIN, 1, 30, 0, 0, 0, 10}}, 30, 0, 1}}, 1, false, 35, 35,
		0},
	{"attach with children: the owner is unknown, not added to the root",
		{{{{MAIN, 1, 0, 0, 0, 0, 10}}, 0, 0, 1}, {{{MAIN, 1, 2, 20, 0, 0, 10}}, 2, 20, 1}}, 1, false, 30, 2,
		28},
	{"daemon left behind: not in the time that the parent reports",
		{{{{MAIN, 1, 0, 0, 0, 0, 10}}, 0, 0, 1},
			{{{MAIN, 1, 5, 0, 0, 0, 10}, {101, MAIN, 10, 0, 0, 0, 10}}, 5, 10, 2}},
		2, false, 5, 5, 10},
	{"root never sampled alive", {{{{MAIN, 1, 0, 0, 0, 0, 10}}, 0, 0, 1}}, 1, false, 7, 7, 0},
};

struct stage {
	char root[64];
	struct wattle_env env;
	int64_t t_ns;
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void clear(const struct stage *stage)
{
	nftw(stage->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

// In place, as the kernel does: readers with an open descriptor see the new text.
static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void write_process(const struct stage *stage, const struct process *process, bool children_files,
	const struct process *all)
{
	char path[256], text[512];
	snprintf(path, sizeof(path), "%s/%d", stage->root, process->pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%d/task", stage->root, process->pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%d/task/%d", stage->root, process->pid, process->pid);
	mkdir(path, 0755);
	if (children_files) {
		size_t n = 0;
		text[0] = '\0';
		for (size_t i = 0; i < PROCESSES; i++)
			if (all[i].ppid == process->pid)
				n += (size_t)snprintf(text + n, sizeof(text) - n, "%d ", all[i].pid);
		snprintf(path, sizeof(path), "%s/%d/task/%d/children", stage->root, process->pid, process->pid);
		write_text(path, text);
	}
	snprintf(text, sizeof(text), "%d (p%d) %c %d 1 1 0 -1 0 0 0 0 0 %d 0 %d 0 20 0 1 0 %d 0 %d 0 0\n", process->pid,
		process->pid, process->state != 0 ? process->state : 'S', process->ppid, process->own,
		process->children, process->start != 0 ? process->start : 1000, process->rss_pages);
	snprintf(path, sizeof(path), "%s/%d/stat", stage->root, process->pid);
	write_text(path, text);
}

static bool in_frame(const struct frame *frame, int pid)
{
	for (size_t i = 0; i < PROCESSES; i++)
		if (frame->processes[i].pid == pid)
			return true;
	return false;
}

// An ended process: its open files give ESRCH, which a folder on disk cannot; an empty stat file takes its place.
static void show(const struct stage *stage, const struct film *film, int index)
{
	const struct frame *frame = &film->frames[index];
	for (size_t i = 0; i < PROCESSES && index > 0; i++) {
		int pid = film->frames[index - 1].processes[i].pid;
		char path[256];
		snprintf(path, sizeof(path), "%s/%d", stage->root, pid);
		if (pid != 0 && !in_frame(frame, pid))
			nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	}
	for (size_t i = 0; i < PROCESSES && frame->processes[i].pid != 0; i++)
		write_process(stage, &frame->processes[i], !film->no_children_files, frame->processes);
}

static int64_t stage_now_ns(void *data)
{
	return ((struct stage *)data)->t_ns;
}

static void check_told(struct tree *tree, const struct film *film, int64_t t_ns)
{
	const struct rusage usage = {.ru_utime.tv_usec = film->told_ticks * 10000};
	int64_t main_ns, descendants_ns;
	tree_main_waited(tree, &usage, t_ns);
	tree_cpu(tree, &main_ns, &descendants_ns);
	assert_int_equal(main_ns / 10000000, film->told_main_ticks);
	assert_int_equal(descendants_ns / 10000000, film->told_descendants_ticks);
}

static void check_film(void **state)
{
	const struct film *film = *state;
	struct stage stage = {.root = "/tmp/wattle-tree-XXXXXX"};
	assert_non_null(mkdtemp(stage.root));
	stage.env = (struct wattle_env){.procfs_replaced = true,
		.clock = {stage_now_ns, stage_now_ns, stage_now_ns, &stage}};
	text_copy(stage.env.procfs, sizeof(stage.env.procfs), stage.root);
	struct tree tree;
	for (int i = 0; i < FRAMES && film->frames[i].processes[0].pid != 0; i++) {
		const struct frame *frame = &film->frames[i];
		show(&stage, film, i);
		stage.t_ns += 2 * NS_PER_S;
		if (i == 0)
			assert_int_equal(tree_open(&tree, &stage.env, MAIN, 0), 0);
		struct tree_totals totals;
		tree_update(&tree, stage.t_ns, &totals);
		assert_int_equal(totals.main_cpu_ns / 10000000, frame->main_ticks);
		assert_int_equal(totals.descendants_cpu_ns / 10000000, frame->descendants_ticks);
		assert_int_equal(totals.processes, frame->alive);
		assert_int_equal(tree.n_pids, frame->alive + (i == 1 && frame->processes[1].state == 'Z'));
		tree_forget_ended(&tree);
	}
	assert_int_equal(tree.n_seen, film->seen);
	if (film->told_ticks > 0)
		check_told(&tree, film, stage.t_ns);
	tree_close(&tree);
	clear(&stage);
}

static void no_such_process(void **state)
{
	struct stage stage = {.root = "/tmp/wattle-tree-XXXXXX"};
	assert_non_null(mkdtemp(stage.root));
	stage.env = (struct wattle_env){.procfs_replaced = true,
		.clock = {stage_now_ns, stage_now_ns, stage_now_ns, &stage}};
	text_copy(stage.env.procfs, sizeof(stage.env.procfs), stage.root);
	struct tree tree;
	assert_true(tree_open(&tree, &stage.env, MAIN, 0) < 0);
	tree_close(&tree);
	clear(&stage);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, films, check_film);
	ROWS_ADD_ONE(&tests, "attach to a missing process: fails", no_such_process);
	return rows_run(&tests, "tree");
}
