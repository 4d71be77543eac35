#include "sampler/recorder.h"

#include "base/file.h"
#include "base/num.h"
#include "base/search.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* Bounds: a target may map and unmap without end. What exceeds them is shown as unknown. */
enum { MAPS_MAX = 1 << 19, MAPS_OF_PROCESS_MAX = 1 << 16, MODULES_MAX = 1 << 16, MAPS_TEXT_MAX = 16 << 20 };

struct profile_map {
	uint64_t begin, end, offset; // offset: in the module, of `begin`
	uint32_t module;
};

struct profile_process {
	pid_t pid;
	int n_threads;
	struct profile_map *maps; // owned; ascending, disjoint
	size_t n, capacity;
};

/* ---- modules ---- */

struct module_key { // followed by the path
	unsigned char build_id[PROFILE_BUILD_ID_SIZE];
	int64_t inode;
};

static const char jit_format[] = "/tmp/perf-%d.map";

pid_t profile_map_pid(const struct store_profile_module *module)
{
	int pid = 0, n = 0;
	bool is_map = sscanf(module->path, "/tmp/perf-%d.map%n", &pid, &n) == 1 && n > 0 && module->path[n] == '\0';
	return is_map && !value_ok(module->inode) ? pid : 0;
}

// Memory without a file contains generated code, if any.
static bool is_anonymous(const char *path)
{
	static const char *const prefixes[] = {"//anon", "/memfd:", "/dev/zero", "/SYSV", "[heap]", "[stack", "[anon"};
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return path[0] == '\0';
}

// Inode, size and time of change show later whether the file is still the mapped one.
static void read_file(struct store_profile_module *module)
{
	struct stat st;
	if (module->path[0] != '/' || profile_map_pid(module) != 0 || stat(module->path, &st) != 0 ||
		!S_ISREG(st.st_mode) || (value_ok(module->inode) && module->inode != (int64_t)st.st_ino))
		return;
	module->inode = (int64_t)st.st_ino;
	module->size_bytes = st.st_size;
	module->mtime_ns = (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
}

static uint32_t number_of(struct profile_maps *maps, struct store_profile_module *module)
{
	unsigned char key[sizeof(struct module_key) + 4096];
	struct module_key identity = {.inode = module->inode};
	size_t length = strnlen(module->path, sizeof(key) - sizeof(identity));
	memcpy(identity.build_id, module->build_id, sizeof(identity.build_id));
	memcpy(key, &identity, sizeof(identity));
	memcpy(key + sizeof(identity), module->path, length);
	int64_t known = intern_find(&maps->interned, key, sizeof(identity) + length);
	if (known >= 0)
		return (uint32_t)known;
	struct store_profile_module *modules = array_reserve(maps->modules, maps->n_modules, &maps->modules_capacity,
		sizeof(*modules), 64);
	if (modules == NULL || maps->n_modules == MODULES_MAX)
		return PROFILE_MODULE_UNKNOWN;
	maps->modules = modules;
	int64_t number = intern_number(&maps->interned, key, sizeof(identity) + length);
	if (number < 0)
		return PROFILE_MODULE_UNKNOWN;
	read_file(module);
	modules[number] = *module;
	modules[number].path = (const char *)maps->interned.keys[number].bytes + sizeof(identity);
	maps->n_modules = (size_t)number + 1;
	return (uint32_t)number;
}

static struct store_profile_module named(const char *path)
{
	return (struct store_profile_module){.path = path,
		.inode = VALUE_MISSING,
		.size_bytes = VALUE_MISSING,
		.mtime_ns = VALUE_MISSING};
}

int profile_maps_open(struct profile_maps *maps)
{
	static const char *const special[PROFILE_MODULES_SPECIAL] =
		{[PROFILE_MODULE_UNKNOWN] = "[unknown]", [PROFILE_MODULE_KERNEL] = "[kernel]"};
	*maps = (struct profile_maps){.arena = arena_new()};
	if (maps->arena == NULL)
		return -ENOMEM;
	intern_init(&maps->interned, maps->arena);
	for (uint32_t i = 0; i < PROFILE_MODULES_SPECIAL; i++) {
		struct store_profile_module module = named(special[i]);
		if (number_of(maps, &module) != i || maps->n_modules != i + 1)
			return -ENOMEM;
	}
	return 0;
}

/* ---- processes ---- */

static bool before_pid(const void *item, const void *key)
{
	return (*(struct profile_process *const *)item)->pid < *(const pid_t *)key;
}

static size_t place_of(const struct profile_maps *maps, pid_t pid)
{
	return search_first(maps->processes, maps->n_processes, sizeof(*maps->processes), &pid, before_pid);
}

static struct profile_process *find(const struct profile_maps *maps, pid_t pid)
{
	size_t i = place_of(maps, pid);
	return i < maps->n_processes && maps->processes[i]->pid == pid ? maps->processes[i] : NULL;
}

static struct profile_process *find_or_add(struct profile_maps *maps, pid_t pid)
{
	size_t i = place_of(maps, pid);
	if (i < maps->n_processes && maps->processes[i]->pid == pid)
		return maps->processes[i];
	struct profile_process **larger = array_reserve(maps->processes, maps->n_processes, &maps->processes_capacity,
		sizeof(*larger), 64);
	if (larger == NULL)
		return NULL;
	maps->processes = larger;
	struct profile_process *process = calloc(1, sizeof(*process));
	if (process == NULL)
		return NULL;
	process->pid = pid;
	process->n_threads = 1;
	memmove(&maps->processes[i + 1], &maps->processes[i], (maps->n_processes - i) * sizeof(*larger));
	maps->processes[i] = process;
	maps->n_processes++;
	return process;
}

static void clear(struct profile_maps *maps, struct profile_process *process)
{
	maps->n_maps -= process->n;
	free(process->maps);
	process->maps = NULL;
	process->n = process->capacity = 0;
}

static void remove_process(struct profile_maps *maps, pid_t pid)
{
	size_t i = place_of(maps, pid);
	clear(maps, maps->processes[i]);
	free(maps->processes[i]);
	maps->n_processes--;
	memmove(&maps->processes[i], &maps->processes[i + 1], (maps->n_processes - i) * sizeof(*maps->processes));
}

void profile_maps_close(struct profile_maps *maps)
{
	while (maps->n_processes > 0)
		remove_process(maps, maps->processes[0]->pid);
	free(maps->processes);
	free(maps->modules);
	if (maps->arena != NULL)
		intern_finish(&maps->interned);
	arena_free(maps->arena);
	*maps = (struct profile_maps){0};
}

/* ---- mappings ---- */

static bool before_end(const void *item, const void *key)
{
	return ((const struct profile_map *)item)->end <= *(const uint64_t *)key;
}

static size_t map_place(const struct profile_process *process, uint64_t address)
{
	return search_first(process->maps, process->n, sizeof(*process->maps), &address, before_end);
}

// Makes room at `at` for one more; false: there is none.
static bool insert(struct profile_maps *maps, struct profile_process *process, size_t at, struct profile_map map)
{
	if (process->n == MAPS_OF_PROCESS_MAX || maps->n_maps == MAPS_MAX)
		return false;
	struct profile_map *larger = array_reserve(process->maps, process->n, &process->capacity, sizeof(*larger), 16);
	if (larger == NULL)
		return false;
	process->maps = larger;
	memmove(&larger[at + 1], &larger[at], (process->n - at) * sizeof(*larger));
	larger[at] = map;
	process->n++;
	maps->n_maps++;
	return true;
}

// Cuts a range out of the older mappings, as mmap does.
static void cut(struct profile_maps *maps, struct profile_process *process, uint64_t begin, uint64_t end)
{
	size_t i = map_place(process, begin);
	if (i < process->n && process->maps[i].begin < begin && process->maps[i].end > end) {
		struct profile_map upper = process->maps[i];
		upper.offset += end - upper.begin;
		upper.begin = end;
		process->maps[i].end = begin;
		(void)insert(maps, process, i + 1, upper);
		return;
	}
	if (i < process->n && process->maps[i].begin < begin)
		process->maps[i++].end = begin;
	size_t last = i;
	while (last < process->n && process->maps[last].end <= end)
		last++;
	if (process->n == 0)
		return;
	memmove(&process->maps[i], &process->maps[last], (process->n - last) * sizeof(*process->maps));
	process->n -= last - i;
	maps->n_maps -= last - i;
	if (i < process->n && process->maps[i].begin < end) {
		process->maps[i].offset += end - process->maps[i].begin;
		process->maps[i].begin = end;
	}
}

void profile_maps_add(struct profile_maps *maps, pid_t pid, uint64_t begin, uint64_t size, uint64_t offset,
	struct store_profile_module *module)
{
	char jit[32];
	struct store_profile_module generated = named(jit);
	uint64_t end;
	if (size == 0 || __builtin_add_overflow(begin, size, &end))
		return;
	if (is_anonymous(module->path)) {
		snprintf(jit, sizeof(jit), jit_format, pid);
		module = &generated;
		offset = begin; // perf maps have addresses
	} else if (module->path[0] == '[') {
		offset = 0;
	}
	struct profile_process *process = find_or_add(maps, pid);
	if (process == NULL)
		return;
	cut(maps, process, begin, end);
	(void)insert(maps, process, map_place(process, begin),
		(struct profile_map){begin, end, offset, number_of(maps, module)});
}

void profile_maps_fork(struct profile_maps *maps, pid_t pid, pid_t ppid)
{
	struct profile_process *parent = find(maps, ppid);
	if (pid == ppid && parent != NULL)
		parent->n_threads++;
	if (pid == ppid || parent == NULL)
		return;
	struct profile_process *child = find_or_add(maps, pid);
	if (child == NULL)
		return;
	clear(maps, child); // of an earlier process with this pid
	parent = find(maps, ppid);
	for (size_t i = 0; i < parent->n; i++)
		(void)insert(maps, child, child->n, parent->maps[i]);
}

void profile_maps_exec(struct profile_maps *maps, pid_t pid)
{
	struct profile_process *process = find_or_add(maps, pid);
	if (process == NULL)
		return;
	clear(maps, process);
	process->n_threads = 1;
}

void profile_maps_exit(struct profile_maps *maps, pid_t pid)
{
	struct profile_process *process = find(maps, pid);
	if (process != NULL && --process->n_threads <= 0)
		remove_process(maps, pid);
}

uint32_t profile_maps_find(const struct profile_maps *maps, pid_t pid, uint64_t address, uint64_t *ret_offset)
{
	const struct profile_process *process = find(maps, pid);
	size_t i = process != NULL ? map_place(process, address) : 0;
	*ret_offset = 0;
	if (process == NULL || i == process->n || address < process->maps[i].begin)
		return PROFILE_MODULE_UNKNOWN;
	*ret_offset = process->maps[i].offset + (address - process->maps[i].begin);
	return process->maps[i].module;
}

/* ---- /proc/PID/maps ---- */

static void read_line(struct profile_maps *maps, pid_t pid, char *line)
{
	unsigned long long begin, end, offset, inode;
	char access[8];
	int path = 0;
	if (sscanf(line, "%llx-%llx %7s %llx %*s %llu %n", &begin, &end, access, &offset, &inode, &path) < 5 ||
		path == 0 || strchr(access, 'x') == NULL || end <= begin)
		return;
	struct store_profile_module module = named(line + path);
	if (inode > 0 && inode <= INT64_MAX)
		module.inode = (int64_t)inode;
	profile_maps_add(maps, pid, begin, end - begin, offset, &module);
}

void profile_maps_read(struct profile_maps *maps, int procfs_fd, pid_t pid)
{
	char path[40], *text;
	size_t size;
	snprintf(path, sizeof(path), "%d/maps", pid);
	if (file_read_all_in(procfs_fd, path, MAPS_TEXT_MAX, &text, &size) < 0)
		return;
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n")) != NULL;)
		read_line(maps, pid, line);
	free(text);
}
