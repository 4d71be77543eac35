#include "cli/sensors.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/num.h"
#include "base/util.h"
#include "process/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void add(struct busy_processes *processes, const struct busy_process *process)
{
	struct busy_process *larger = array_reserve(processes->all, processes->n, &processes->capacity, sizeof(*larger),
		256);
	if (larger == NULL)
		return;
	processes->all = larger;
	processes->all[processes->n++] = *process;
}

static void read_process(struct busy_processes *processes, int procfs_fd, const char *name,
	const struct process_units *units)
{
	char path[64], text[1024];
	uint64_t pid;
	if (strlen(name) > 10 || num_parse_u64(name, &pid) < 0 || pid == (uint64_t)getpid())
		return;
	snprintf(path, sizeof(path), "%s/stat", name);
	struct process_stat stat;
	ssize_t length = file_read_in(procfs_fd, path, text, sizeof(text));
	if (length <= 0 || process_stat_parse(text, (size_t)length, units, &stat) < 0)
		return;
	struct busy_process process = {(pid_t)pid, stat.start_ticks, stat.own_ns, ""};
	text_copy(process.name, sizeof(process.name), stat.name);
	add(processes, &process);
}

static int by_pid(const void *left, const void *right)
{
	const struct busy_process *a = left, *b = right;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

void busy_processes_read(struct busy_processes *processes, const struct wattle_env *env)
{
	*processes = (struct busy_processes){0};
	const struct process_units units = process_units_get();
	wattle_cleanup_close int fd = file_open_in(env->procfs_fd, ".", O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return;
	char text[FOLDER_TEXT_SIZE] __attribute__((aligned(8)));
	struct folder_walk walk = folder_walk_begin(fd, text, sizeof(text));
	for (const char *name; (name = folder_walk_next(&walk, NULL)) != NULL;)
		read_process(processes, env->procfs_fd, name, &units);
	if (processes->n > 0)
		qsort(processes->all, processes->n, sizeof(processes->all[0]), by_pid);
}

void busy_processes_finish(struct busy_processes *processes)
{
	free(processes->all);
	*processes = (struct busy_processes){0};
}

static int64_t used_since(const struct busy_processes *before, const struct busy_process *process)
{
	const struct busy_process *old = before->n > 0
		? bsearch(process, before->all, before->n, sizeof(before->all[0]), by_pid)
		: NULL;
	bool is_same = old != NULL && old->start_ticks == process->start_ticks;
	return process->cpu_ns - (is_same ? old->cpu_ns : 0);
}

void busy_processes_name(const struct busy_processes *before, const struct busy_processes *after, struct buf *out)
{
	enum { MOST = 3 };
	int64_t limit_ns = INT64_MAX,
		max_ns = 0; // CPU time of the process named last; ties end the list, which is harmless
	for (int named = 0; named < MOST; named++) {
		const struct busy_process *next = NULL;
		int64_t next_ns = max_ns / 10;
		for (size_t i = 0; i < after->n; i++) {
			int64_t used_ns = used_since(before, &after->all[i]);
			if (used_ns > next_ns && used_ns < limit_ns) {
				next = &after->all[i];
				next_ns = used_ns;
			}
		}
		if (next == NULL)
			return;
		buf_printf(out, "%s%s (%d)", named > 0 ? ", " : "", next->name, (int)next->pid);
		limit_ns = next_ns;
		max_ns = named == 0 ? next_ns : max_ns;
	}
}
