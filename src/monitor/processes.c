#include "monitor/internal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/num.h"
#include "base/search.h"
#include "base/util.h"
#include "process/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
	SHOWN_CEILING = 1 << 14,
	FOLDER_TEXT = 32768,  // bytes; 1,300 processes per system call
	FILES_RESERVED = 128, // open files left to the caller
	FILES_MAX = 16384,
};

/* ---- open and close ---- */

static bool is_real_proc(int fd)
{
	struct statfs file_system;
	return fstatfs(fd, &file_system) == 0 && file_system.f_type == PROC_SUPER_MAGIC;
}

static size_t files_allowed(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= FILES_RESERVED)
		return 0;
	rlim_t most = limit.rlim_cur == RLIM_INFINITY ? FILES_MAX : (limit.rlim_cur - FILES_RESERVED);
	return most < FILES_MAX ? (size_t)most : FILES_MAX;
}

// The pid of this process as that /proc numbers it; 0: not found.
static pid_t number_in_proc(const struct wattle_env *env, pid_t pid)
{
	bool is_foreign = !env->procfs_replaced && proc_is_foreign(env->procfs_fd);
	return is_foreign ? proc_pid(env->procfs_fd, pid) : pid;
}

static bool exists(const struct wattle_env *env, pid_t pid)
{
	char path[32], text[1024];
	snprintf(path, sizeof(path), "%d/stat", (int)pid);
	return pid > 0 && file_read_in(env->procfs_fd, path, text, sizeof(text)) > 0;
}

int process_table_open(struct process_table *table, const struct monitor_options *options, struct wattle_error *reterr)
{
	const struct wattle_env *env = options->env;
	*table = (struct process_table){
		.env = env,
		.is_open = true,
		.arguments = options->arguments,
		.units = process_units_get(),
		.folder_fd = file_open_in(env->procfs_fd, ".", O_RDONLY | O_DIRECTORY),
		.own_pid = number_in_proc(env, getpid()),
		.max_files = files_allowed(),
		.kept = options->kept_processes,
		.n_kept = options->n_kept_processes,
		.last_t_ns = VALUE_MISSING,
		.text = calloc_array(1, FOLDER_TEXT),
	};
	buf_init(&table->shown, SHOWN_CEILING);
	if (table->text == NULL)
		return error_set(reterr, -ENOMEM, "out of memory for the list of processes");
	table->keeps_files = table->folder_fd >= 0 && is_real_proc(table->folder_fd);
	if (options->pid <= 0)
		return 0;
	table->target_pid = number_in_proc(env, options->pid);
	if (!exists(env, table->target_pid))
		return error_set(reterr, -ENOENT, "there is no process %d", (int)options->pid);
	return 0;
}

static void close_file(struct process_table *table, struct process_row *row)
{
	if (row->stat_fd < 0)
		return;
	close(row->stat_fd);
	row->stat_fd = -1;
	table->n_files--;
}

void process_table_close(struct process_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		close_file(table, &table->rows[i]);
	if (table->is_open && table->folder_fd >= 0)
		close(table->folder_fd);
	free(table->rows);
	free(table->old);
	free(table->ended);
	free(table->text);
	buf_finish(&table->shown);
	*table = (struct process_table){.folder_fd = -1};
}

/* ---- process list ---- */

static int by_pid(const void *left, const void *right)
{
	const struct process_row *a = left, *b = right;
	return (a->now.pid > b->now.pid) - (a->now.pid < b->now.pid);
}

static struct process_row *add_row(struct process_row **rows, size_t *n, size_t *capacity)
{
	struct process_row *larger = array_reserve(*rows, *n, capacity, sizeof(**rows), 256);
	if (larger == NULL)
		return NULL;
	*rows = larger;
	return &larger[(*n)++];
}

// A row with only the pid known.
static struct process_row blank_row(pid_t pid)
{
	const double none = (double)NAN;
	return (struct process_row){
		.now = {.pid = pid,
			.uid = (uid_t)-1,
			.state = '?',
			.start_ns = VALUE_MISSING,
			.cpu_cores = none,
			.cpu_ns = VALUE_MISSING,
			.rss_bytes = VALUE_MISSING,
			.threads = VALUE_MISSING,
			.gpu_percent = none,
			.gpu_memory_bytes = VALUE_MISSING,
			.cpu_w = none,
			.dram_w = none,
			.gpu_w = none,
			.power_w = none,
			.energy_j = none},
		.used_ns = VALUE_MISSING,
		.stat_fd = -1,
		.is_new = true,
	};
}

// The kernel lists pids in ascending order; a replaced /proc may not.
static void list_numbers(struct process_table *table)
{
	bool ascending = true;
	table->n = 0;
	if (table->folder_fd < 0)
		return;
	struct folder_walk walk = folder_walk_begin(table->folder_fd, table->text, FOLDER_TEXT);
	for (const char *name; (name = folder_walk_next(&walk, NULL)) != NULL;) {
		uint64_t pid;
		if (name[0] < '1' || name[0] > '9' || num_parse_u64(name, &pid) < 0 || pid > INT32_MAX)
			continue;
		struct process_row *row = add_row(&table->rows, &table->n, &table->capacity);
		if (row == NULL)
			return;
		row->now.pid = (pid_t)pid; // the rest is set later: most rows continue from the previous sample
		ascending = ascending && (table->n < 2 || row[-1].now.pid < row->now.pid);
	}
	if (!ascending)
		qsort(table->rows, table->n, sizeof(table->rows[0]), by_pid);
}

/* ---- one process ---- */

static ssize_t read_stat(struct process_table *table, struct process_row *row, char *text, size_t size)
{
	char path[32];
	if (row->stat_fd < 0) {
		snprintf(path, sizeof(path), "%d/stat", (int)row->now.pid);
		row->stat_fd = file_open_in(table->env->procfs_fd, path, O_RDONLY);
		if (row->stat_fd < 0)
			return row->stat_fd;
		table->n_files++;
	}
	ssize_t length = pread(row->stat_fd, text, size - 1, 0);
	int code = errno;
	if (length <= 0 || !table->keeps_files || table->n_files > table->max_files)
		close_file(table, row);
	text[length > 0 ? length : 0] = '\0';
	return length < 0 ? -code : length;
}

static int64_t start_ns(const struct process_table *table, uint64_t start_ticks)
{
	int64_t suspended_ns = env_boottime_ns(table->env) - env_now_ns(table->env);
	return (int64_t)start_ticks * table->units.tick_ns - suspended_ns;
}

static int by_kept_pid(const void *pid, const void *kept)
{
	pid_t a = *(const pid_t *)pid, b = ((const struct monitor_kept_process *)kept)->pid;
	return (a > b) - (a < b);
}

// Energy attributed before this server started; NaN: not recorded.
static double kept_energy_j(const struct process_table *table, pid_t pid, uint64_t start_ticks)
{
	const struct monitor_kept_process *kept = table->kept == NULL
		? NULL
		: bsearch(&pid, table->kept, table->n_kept, sizeof(*kept), by_kept_pid);
	return kept != NULL && kept->start_ticks == start_ticks ? kept->energy_j : (double)NAN;
}

static void take_over(struct process_table *table, const struct process_stat *stat, struct process_row *row)
{
	struct monitor_process *now = &row->now;
	bool renamed = strcmp(row->comm, stat->name) != 0;
	now->ppid = stat->ppid;
	now->state = stat->state;
	now->cpu_ns = stat->own_ns;
	now->rss_bytes = stat->rss_bytes;
	now->threads = stat->threads;
	now->is_own = now->pid == table->own_pid;
	row->own_ns = stat->own_ns;
	row->children_ns = stat->children_ns;
	if (row->is_new) {
		now->start_ticks = stat->start_ticks;
		now->start_ns = start_ns(table, stat->start_ticks);
		now->energy_j = kept_energy_j(table, now->pid, now->start_ticks);
	}
	// Between fork and exec a process has its parent's arguments and possibly its user, so the second sample reads them
	// again.
	if (row->is_new || !row->is_cmdline_known || renamed) {
		memcpy(row->comm, stat->name, sizeof(row->comm));
		cmdline_read(table, row->comm, now);
		row->is_cmdline_known = !row->is_new;
	}
}

static void count_own(const struct process_row *before, int64_t last_t_ns, struct process_row *row)
{
	row->late_ns = row->counted_ns = 0;
	if (before != NULL)
		row->used_ns = row->own_ns > before->own_ns ? row->own_ns - before->own_ns : 0;
	else // the process is new or was hidden before, or this is the first sample
		row->used_ns = value_ok(last_t_ns) && row->now.start_ns >= last_t_ns - NS_PER_S / 10 ? row->own_ns
												     : VALUE_MISSING;
}

// False: the process has ended.
static bool read_row(struct process_table *table, struct process_row *row, const struct process_row *before)
{
	char text[1024];
	struct process_stat stat;
	ssize_t length = read_stat(table, row, text, sizeof(text));
	if (length <= 0 || process_stat_parse(text, (size_t)length, &table->units, &stat) < 0) {
		close_file(table, row);
		return false;
	}
	if (before != NULL && stat.start_ticks != row->now.start_ticks)
		return false; // the pid was reused
	// For this process, reads CPU time at full resolution: a whole tick is more than most samples cost.
	if (row->now.pid == table->own_pid && !table->env->procfs_replaced)
		stat.own_ns = clock_cpu_ns();
	take_over(table, &stat, row);
	count_own(before, table->last_t_ns, row);
	return true;
}

static void mark_ended(struct process_table *table, struct process_row *row)
{
	close_file(table, row);
	struct process_row *ended = add_row(&table->ended, &table->n_ended, &table->ended_capacity);
	if (ended == NULL)
		return;
	*ended = *row;
	ended->now.is_gone = true;
	ended->now.cpu_cores = ended->now.power_w = ended->now.cpu_w = ended->now.dram_w = ended->now.gpu_w = (double)
		NAN;
	ended->now.gpu_percent = (double)NAN;
	ended->now.rss_bytes = ended->now.gpu_memory_bytes = VALUE_MISSING;
}

// Continues the old row if it is the same process; otherwise marks it as ended and starts a new row for the pid.
static bool follow(struct process_table *table, pid_t pid, struct process_row *row, struct process_row *old)
{
	if (old != NULL) {
		*row = *old; // including its open file
		row->is_new = false;
		if (read_row(table, row, old))
			return true;
		old->stat_fd = row->stat_fd;
		mark_ended(table, old);
	}
	*row = blank_row(pid);
	return read_row(table, row, NULL);
}

// Both lists ascend by pid. Processes that end while they are read are left out.
static void read_all(struct process_table *table)
{
	size_t kept = 0, at = 0;
	for (size_t i = 0; i < table->n; i++) {
		const pid_t pid = table->rows[i].now.pid;
		while (at < table->n_old && table->old[at].now.pid < pid)
			mark_ended(table, &table->old[at++]);
		bool known = at < table->n_old && table->old[at].now.pid == pid;
		kept += follow(table, pid, &table->rows[kept],
			known ? &table->old[at] : NULL); // rows[i] is not needed any more
		at += known;
	}
	while (at < table->n_old)
		mark_ended(table, &table->old[at++]);
	table->n = kept;
}

/* ---- sampling ---- */

static void swap_lists(struct process_table *table)
{
	struct process_row *rows = table->rows;
	size_t capacity = table->capacity;
	table->rows = table->old;
	table->capacity = table->old_capacity;
	table->old = rows;
	table->old_capacity = capacity;
	table->n_old = table->n;
	table->n = table->n_ended = 0;
}

static void sum_up(struct process_table *table, int64_t t_ns)
{
	double dt_ns = value_ok(table->last_t_ns) ? (double)(t_ns - table->last_t_ns) : 0;
	table->threads = table->own_total_ns = 0;
	for (size_t i = 0; i < table->n; i++) {
		struct process_row *row = &table->rows[i];
		bool known = value_ok(row->used_ns) && dt_ns > 0;
		row->now.cpu_cores = known ? (double)row->used_ns / dt_ns : (double)NAN;
		table->threads += value_ok(row->now.threads) ? row->now.threads : 0;
		table->own_total_ns += known ? row->used_ns : 0;
	}
}

void process_table_sample(struct process_table *table, int64_t t_ns, int64_t busy_ns)
{
	swap_lists(table);
	list_numbers(table);
	read_all(table);
	process_tree_count(table, busy_ns);
	process_tree_mark_target(table);
	sum_up(table, t_ns);
	table->n_old = 0;
	table->last_t_ns = t_ns;
}
