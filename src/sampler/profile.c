#include "sampler/recorder.h"

#include "base/clock.h"
#include "base/num.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* A record is complete in its ring this long after its time: it is written with interrupts disabled. */
static const int64_t record_delay_ns = 2 * NS_PER_MS;

/* Known nodes, 16 bytes each in a table of twice as many. When it is full it starts again: later stacks then get new numbers,
 * and equal stacks may have two. Waiting samples and nodes beyond the limits are lost and counted. */
enum { NODES_MAX = 1 << 18, SLOTS = 2 * NODES_MAX, SAMPLES_MAX = 1 << 19, PENDING_NODES_MAX = 1 << 20 };
enum { JIT_SYMBOLS_MAX = 1 << 16, JIT_ADDRESSES_MAX = 1 << 18, PROFILE_FRAMES_MAX = PERF_MAX_STACK_DEPTH + 1 };

struct slot {
	uint64_t hash; // 0: free
	uint32_t node;
};

struct profiler {
	struct profile_events events;
	struct profile_maps maps;
	const struct profile_options *options; // borrowed
	struct hash_key key;
	struct slot *slots; // owned
	size_t n_known;
	uint32_t n_nodes;                 // in total
	struct store_profile_node *nodes; // owned: those that wait, from first_node on
	size_t n_pending, nodes_capacity;
	uint32_t first_node, first_module;
	struct store_profile_sample *samples; // owned
	size_t n, capacity;
	int64_t n_samples, n_lost;
	struct jit_address { // sampled addresses of generated code
		uint32_t module;
		uint64_t address;
	} * jit; // owned
	size_t n_jit, jit_capacity;
	struct store_profile_symbol *symbols; // owned
	size_t n_symbols;
};

/* ---- stacks ---- */

static void remember_jit(struct profiler *profiler, uint32_t module, uint64_t address)
{
	if (profiler->n_jit == JIT_ADDRESSES_MAX || profile_map_pid(&profiler->maps.modules[module]) == 0)
		return;
	struct jit_address *larger = array_reserve(profiler->jit, profiler->n_jit, &profiler->jit_capacity,
		sizeof(*larger), 256);
	if (larger == NULL)
		return;
	profiler->jit = larger;
	larger[profiler->n_jit++] = (struct jit_address){module, address};
}

// PROFILE_NO_PARENT: no memory.
static uint32_t add_node(struct profiler *profiler, struct slot *slot, uint64_t hash, struct store_profile_node node)
{
	struct store_profile_node *larger = array_reserve(profiler->nodes, profiler->n_pending,
		&profiler->nodes_capacity, sizeof(*larger), 1024);
	if (larger == NULL || profiler->n_pending == PENDING_NODES_MAX || profiler->n_nodes == PROFILE_NO_PARENT)
		return PROFILE_NO_PARENT;
	profiler->nodes = larger;
	larger[profiler->n_pending++] = node;
	*slot = (struct slot){hash, profiler->n_nodes++};
	profiler->n_known++;
	remember_jit(profiler, node.module, node.offset);
	return slot->node;
}

// Number of the node; PROFILE_NO_PARENT: no memory.
static uint32_t number_of(struct profiler *profiler, struct store_profile_node node)
{
	uint64_t hash = keyed_hash(&profiler->key, &node, sizeof(node));
	hash += hash == 0;
	for (size_t i = hash % SLOTS;; i = (i + 1) % SLOTS) {
		struct slot *slot = &profiler->slots[i];
		if (slot->hash == hash)
			return slot->node;
		if (slot->hash == 0)
			return add_node(profiler, slot, hash, node);
	}
}

static uint32_t number_of_stack(struct profiler *profiler, pid_t pid, bool in_kernel, const uint64_t *addresses,
	size_t n)
{
	uint32_t node = PROFILE_NO_PARENT;
	if (profiler->n_known + PROFILE_FRAMES_MAX > NODES_MAX) {
		memset(profiler->slots, 0, SLOTS * sizeof(*profiler->slots));
		profiler->n_known = 0;
	}
	for (size_t i = n; i-- > 0;) {
		// A return address may be the begin of the next function.
		struct store_profile_node frame = {.parent = node};
		frame.module = profile_maps_find(&profiler->maps, pid, addresses[i] - (i > 0), &frame.offset);
		node = number_of(profiler, frame);
		if (node == PROFILE_NO_PARENT)
			return node;
	}
	if (in_kernel)
		node = number_of(profiler,
			(struct store_profile_node){.module = PROFILE_MODULE_KERNEL, .parent = node});
	else if (n == 0)
		node = number_of(profiler,
			(struct store_profile_node){.module = PROFILE_MODULE_UNKNOWN, .parent = node});
	return node;
}

/* ---- records ---- */

static void on_sample(void *data, int64_t t_ns, pid_t pid, pid_t tid, uint64_t weight, bool in_kernel,
	const uint64_t *addresses, size_t n)
{
	struct profiler *profiler = data;
	struct store_profile_sample *larger = array_reserve(profiler->samples, profiler->n, &profiler->capacity,
		sizeof(*larger), 1024);
	uint32_t stack = PROFILE_NO_PARENT;
	if (larger != NULL)
		profiler->samples = larger;
	if (larger != NULL && profiler->n < SAMPLES_MAX)
		stack = number_of_stack(profiler, pid, in_kernel, addresses, n);
	if (stack == PROFILE_NO_PARENT) {
		profiler->n_lost++;
		return;
	}
	profiler->samples[profiler->n++] = (struct store_profile_sample){t_ns, weight, tid, stack};
	profiler->n_samples++;
}

static void on_map(void *data, pid_t pid, uint64_t begin, uint64_t size, uint64_t offset,
	struct store_profile_module *module)
{
	struct profiler *profiler = data;
	profile_maps_add(&profiler->maps, pid, begin, size, offset, module);
}

static void on_fork(void *data, pid_t pid, pid_t ppid)
{
	struct profiler *profiler = data;
	profile_maps_fork(&profiler->maps, pid, ppid);
}

static void on_exec(void *data, pid_t pid)
{
	struct profiler *profiler = data;
	profile_maps_exec(&profiler->maps, pid);
}

static void on_exit_of(void *data, pid_t pid)
{
	struct profiler *profiler = data;
	profile_maps_exit(&profiler->maps, pid);
}

static void read_until(struct profiler *profiler, int64_t until_ns)
{
	const struct profile_sink sink = {on_sample, on_map, on_fork, on_exec, on_exit_of, profiler};
	profile_events_read(&profiler->events, until_ns, &sink);
}

void profiler_read(struct profiler *profiler)
{
	if (profiler != NULL)
		read_until(profiler, clock_now_ns() - record_delay_ns);
}

/* ---- generated code ---- */

static int by_module(const void *a, const void *b)
{
	const struct jit_address *x = a, *y = b;
	if (x->module != y->module)
		return x->module > y->module ? 1 : -1;
	return (x->address > y->address) - (x->address < y->address);
}

static void name_generated(struct profiler *profiler)
{
	uint64_t *addresses = calloc_array(profiler->n_jit, sizeof(*addresses));
	profiler->symbols = profiler->n_jit > 0 ? calloc_array(JIT_SYMBOLS_MAX, sizeof(*profiler->symbols)) : NULL;
	if (profiler->n_jit > 0)
		qsort(profiler->jit, profiler->n_jit, sizeof(*profiler->jit), by_module);
	for (size_t i = 0, end; addresses != NULL && profiler->symbols != NULL && i < profiler->n_jit; i = end) {
		uint32_t module = profiler->jit[i].module;
		for (end = i; end < profiler->n_jit && profiler->jit[end].module == module; end++)
			addresses[end - i] = profiler->jit[end].address;
		struct store_profile_symbol *symbols = profiler->symbols + profiler->n_symbols;
		size_t n = profile_jit_read(profiler->maps.modules[module].path, addresses, end - i,
			profiler->maps.arena, symbols, JIT_SYMBOLS_MAX - profiler->n_symbols);
		for (size_t k = 0; k < n; k++)
			symbols[k].module = module;
		profiler->n_symbols += n;
	}
	free(addresses);
}

void profiler_finish(struct profiler *profiler)
{
	if (profiler == NULL)
		return;
	read_until(profiler, INT64_MAX);
	name_generated(profiler);
}

/* ---- the run file ---- */

struct store_profile profiler_delivery(const struct profiler *profiler)
{
	return (struct store_profile){
		.event = profiler->events.name,
		.hz = profiler->options->hz,
		.n_samples = profiler->n_samples,
		.n_lost = profiler->n_lost + profiler->events.n_lost,
		.first_module = profiler->first_module,
		.first_node = profiler->first_node,
		.modules = profiler->maps.modules + profiler->first_module,
		.n_modules = profiler->maps.n_modules - profiler->first_module,
		.nodes = profiler->nodes,
		.n_nodes = profiler->n_pending,
		.samples = profiler->samples,
		.n_delivered = profiler->n,
		.symbols = profiler->symbols,
		.n_symbols = profiler->n_symbols,
	};
}

void profiler_delivered(struct profiler *profiler)
{
	if (profiler == NULL)
		return;
	profiler->first_module = (uint32_t)profiler->maps.n_modules;
	profiler->first_node = profiler->n_nodes;
	profiler->n_pending = profiler->n = profiler->n_symbols = 0;
}

/* ---- opening ---- */

static int add_thread(struct profiler *profiler, pid_t tid, bool held, bool *is_first, struct wattle_error *reterr)
{
	int r = *is_first ? profile_events_open(&profiler->events, profiler->options, tid, held, reterr)
			  : profile_events_add(&profiler->events, tid);
	bool has_ended = r == -ESRCH;
	if (*is_first && has_ended) {
		profile_events_close(&profiler->events);
		return 0;
	}
	if (r < 0 && !has_ended && !*is_first)
		error_set(reterr, r, "--profile: can't sample thread %d: %s", tid, strerror(-r));
	*is_first = *is_first && r < 0;
	return has_ended ? 0 : r;
}

static int add_threads(struct profiler *profiler, int procfs_fd, pid_t pid, bool *is_first, struct wattle_error *reterr)
{
	char path[40];
	snprintf(path, sizeof(path), "%d/task", pid);
	int fd = openat(procfs_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	int r = 0;
	if (folder == NULL && fd >= 0)
		close(fd);
	profile_maps_exec(&profiler->maps, pid); // a process without mappings so far
	for (struct dirent *entry; r == 0 && folder != NULL && (entry = readdir(folder)) != NULL;) {
		int64_t tid;
		if (num_parse_i64(entry->d_name, &tid) < 0)
			continue;
		r = add_thread(profiler, (pid_t)tid, false, is_first, reterr);
		if (tid != pid)
			profile_maps_fork(&profiler->maps, pid, pid);
	}
	if (folder != NULL)
		closedir(folder);
	return r;
}

static int add_processes(struct profiler *profiler, const struct tree *tree, bool *is_first,
	struct wattle_error *reterr)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < tree->n_pids; i++)
		r = add_threads(profiler, tree->procfs_fd, tree->pids[i], is_first, reterr);
	// After the events, whose records contain later mappings.
	for (size_t i = 0; r == 0 && i < tree->n_pids; i++)
		profile_maps_read(&profiler->maps, tree->procfs_fd, tree->pids[i]);
	return r;
}

static int add_target(struct profiler *profiler, const struct tree *tree, pid_t held, struct wattle_error *reterr)
{
	bool is_first = true;
	int r = held != 0 ? add_thread(profiler, held, true, &is_first, reterr)
			  : add_processes(profiler, tree, &is_first, reterr);
	return r == 0 && is_first ? error_set(reterr, -ESRCH, "--profile: the program has ended") : r;
}

int profiler_open(const struct profile_options *options, const struct tree *tree, pid_t held,
	struct profiler **ret_profiler, struct wattle_error *reterr)
{
	struct profiler *profiler = calloc(1, sizeof(*profiler));
	if (profiler == NULL)
		return error_set(reterr, -ENOMEM, "--profile: out of memory");
	profiler->options = options;
	profiler->events.epoll_fd = -1;
	profiler->key = hash_key_new();
	profiler->slots = calloc_array(SLOTS, sizeof(*profiler->slots));
	int r = profile_maps_open(&profiler->maps);
	if (r < 0 || profiler->slots == NULL)
		r = error_set(reterr, -ENOMEM, "--profile: out of memory");
	else
		r = add_target(profiler, tree, held, reterr);
	if (r < 0)
		profiler_close(profiler);
	else
		*ret_profiler = profiler;
	return r;
}

void profiler_close(struct profiler *profiler)
{
	if (profiler == NULL)
		return;
	profile_events_close(&profiler->events);
	profile_maps_close(&profiler->maps);
	free(profiler->slots);
	free(profiler->nodes);
	free(profiler->samples);
	free(profiler->jit);
	free(profiler->symbols);
	free(profiler);
}

int profiler_fd(const struct profiler *profiler)
{
	return profiler->events.epoll_fd;
}
