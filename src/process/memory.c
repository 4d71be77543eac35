#include "process/memory.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

// Timer ticks jitter, so the limits are nine tenths of 100 ms and of 1 s.
enum { PATHS_AT_FIRST = 1024, PERIOD_MIN_MS = 90, PERIOD_STABLE_MS = 900 };

static const double target_share_max = 0.005;          // maximum time share the target may lose because its memory-map
                                                       // lock is held
static const int64_t credit_first_ns = 10 * NS_PER_MS; // initial credit, so that a short run gets one reading near its peak
static const int64_t credit_max_ns = 200 * NS_PER_MS;
static const double rss_growth = 1.02; // once RSS is steady, growth of the maximum by this factor triggers a reading
static const double rss_growth_rising =
	2.0; // factor while RSS rises: keeps the cost of all earlier readings below that of the one at the peak

#define NOTHING                                                                                                        \
	{                                                                                                              \
		VALUE_MISSING, VALUE_MISSING, VALUE_MISSING, VALUE_MISSING                                             \
	}
const struct memory_reading memory_nothing_read = {NOTHING, NOTHING, VALUE_MISSING};
#undef NOTHING

int memory_reader_open(struct memory_reader *reader, double budget_percent, int64_t t_ns)
{
	double share = budget_percent / 100;
	*reader = (struct memory_reader){
		.share = share < target_share_max ? share : target_share_max,
		.credit_ns = credit_first_ns,
		.last_credit_t_ns = t_ns,
		.last_read_t_ns = VALUE_MISSING,
		// Initial estimates: 10 ms per GB and 0.1 ms per process, until measured on this machine.
		.cost_ns_per_byte = 0.01,
		.cost_ns_per_process = 100e3,
		.all_share = share,
		.all_credit_ns = credit_first_ns,
		.all_credit_t_ns = t_ns,
		.sample_ns_per_process = 150e3,
		.sample_t_ns = VALUE_MISSING,
	};
	if (reader->share <= 0)
		return 0;
	int r = page_sample_open(&reader->pages);
	reader->unreliable_bytes = array_reserve(NULL, 0, &reader->unreliable_capacity,
		sizeof(*reader->unreliable_bytes), 256);
	if (r < 0 || reader->unreliable_bytes == NULL)
		return -ENOMEM;
	reader->paths_size = PATHS_AT_FIRST;
	reader->paths = calloc_array(reader->paths_size, sizeof(*reader->paths));
	reader->text = malloc(MEMORY_TEXT_SIZE + 1);
	return reader->paths != NULL && reader->text != NULL ? 0 : -ENOMEM;
}

void memory_reader_close(struct memory_reader *reader)
{
	page_sample_close(&reader->pages);
	free(reader->unreliable_bytes);
	free(reader->paths);
	free(reader->text);
	*reader = (struct memory_reader){0};
}

static int64_t expected_cost_ns(const struct memory_reader *reader, int64_t rss_bytes, int64_t processes)
{
	return (int64_t)(reader->cost_ns_per_byte * (double)rss_bytes +
		reader->cost_ns_per_process * (double)processes);
}

static bool is_new_maximum(const struct memory_reader *reader, int64_t rss_bytes, int64_t rss_before_bytes)
{
	bool rising = (double)rss_bytes > (double)rss_before_bytes * rss_growth;
	return (double)rss_bytes > (double)reader->max_rss_bytes * (rising ? rss_growth_rising : rss_growth);
}

bool memory_reader_due(struct memory_reader *reader, int64_t t_ns, int64_t rss_bytes, int64_t processes)
{
	if (reader->share <= 0 || processes <= 0 || !value_ok(rss_bytes))
		return false;
	bool is_new = is_new_maximum(reader, rss_bytes, reader->last_rss_bytes);
	reader->last_rss_bytes = rss_bytes;
	reader->credit_ns += (int64_t)(reader->share * (double)(t_ns - reader->last_credit_t_ns));
	reader->last_credit_t_ns = t_ns;
	if (!value_ok(reader->last_read_t_ns))
		return true;
	int64_t cost_ns = expected_cost_ns(reader, rss_bytes, processes);
	int64_t max_ns = cost_ns > credit_max_ns ? cost_ns : credit_max_ns;
	if (reader->credit_ns > max_ns)
		reader->credit_ns = max_ns;
	if (reader->credit_ns < cost_ns)
		return false;
	int64_t since_ns = t_ns - reader->last_read_t_ns;
	return since_ns >= (is_new ? PERIOD_MIN_MS : PERIOD_STABLE_MS) * NS_PER_MS;
}

/* ---- paths ---- */

static struct memory_path *path_slot(struct memory_path *paths, size_t size, uint64_t hash)
{
	size_t slot = (size_t)hash & (size - 1);
	while (paths[slot].hash != 0 && paths[slot].hash != hash)
		slot = (slot + 1) & (size - 1);
	return &paths[slot];
}

static bool paths_grow(struct memory_reader *reader)
{
	size_t size = reader->paths_size * 2;
	struct memory_path *larger = calloc_array(size, sizeof(*larger));
	if (larger == NULL)
		return false;
	for (size_t i = 0; i < reader->paths_size; i++)
		if (reader->paths[i].hash != 0)
			*path_slot(larger, size, reader->paths[i].hash) = reader->paths[i];
	free(reader->paths);
	reader->paths = larger;
	reader->paths_size = size;
	return true;
}

uint32_t memory_reader_next(struct memory_reader *reader)
{
	return ++reader->n_files;
}

void memory_reader_add_path(struct memory_reader *reader, uint32_t process, uint64_t hash, bool is_main,
	int64_t shared_bytes)
{
	if (shared_bytes <= 0)
		return;
	if (reader->n_paths * 2 >= reader->paths_size && !paths_grow(reader) &&
		reader->n_paths + 1 >= reader->paths_size)
		return;
	struct memory_path *path = path_slot(reader->paths, reader->paths_size, hash);
	if (path->hash == 0) {
		*path = (struct memory_path){.hash = hash};
		reader->n_paths++;
	}
	if (path->process != process) {
		path->process = process;
		path->process_bytes = 0;
	}
	path->process_bytes += shared_bytes;
	int64_t *largest = is_main ? &path->main_bytes : &path->descendants_bytes;
	if (path->process_bytes > *largest)
		*largest = path->process_bytes;
}

/* ---- one smaps file ---- */

static int64_t field_bytes(const char *line, size_t size, size_t key_size)
{
	int64_t kilobytes = 0;
	for (size_t i = key_size; i < size; i++)
		if (line[i] >= '0' && line[i] <= '9')
			kilobytes = kilobytes * 10 + (line[i] - '0');
	return kilobytes * 1024;
}

enum smaps_field { SMAPS_RSS, SMAPS_ANONYMOUS, SMAPS_PSS, SMAPS_PRIVATE, SMAPS_HUGE, SMAPS_SHARED };
static const struct {
	const char *key;
	size_t size;
	enum smaps_field field;
} smaps_fields[] = {
	{"Rss:", 4, SMAPS_RSS},
	{"Anonymous:", 10, SMAPS_ANONYMOUS},
	{"Pss:", 4, SMAPS_PSS},
	{"Shared_Clean:", 13, SMAPS_SHARED},
	{"Shared_Dirty:", 13, SMAPS_SHARED},
	{"Private_Clean:", 14, SMAPS_PRIVATE},
	{"Private_Dirty:", 14, SMAPS_PRIVATE},
	{"Private_Hugetlb:", 16, SMAPS_HUGE},
};

static void feed_field(struct smaps_state *state, const char *line, size_t size)
{
	if (line[0] != 'P' && line[0] != 'S' && line[0] != 'R' && line[0] != 'A') // fast skip: most lines hold other values
		return;
	for (size_t i = 0; i < ARRAY_SIZE(smaps_fields); i++) {
		size_t key_size = smaps_fields[i].size;
		if (size < key_size || memcmp(line, smaps_fields[i].key, key_size) != 0)
			continue;
		int64_t *const sums[] = {
			[SMAPS_RSS] = &state->rss_bytes,
			[SMAPS_ANONYMOUS] = &state->anonymous_bytes,
			[SMAPS_PSS] = &state->pss_bytes,
			[SMAPS_PRIVATE] = &state->private_bytes,
			[SMAPS_HUGE] = &state->private_huge_bytes,
			[SMAPS_SHARED] = &state->shared_bytes,
		};
		*sums[smaps_fields[i].field] += field_bytes(line, size, key_size);
		return;
	}
}

void smaps_end(struct memory_reader *reader, struct smaps_state *state)
{
	if (state->path_hash != 0)
		memory_reader_add_path(reader, state->process, state->path_hash, state->is_main, state->shared_bytes);
	state->path_hash = 0;
	state->shared_bytes = 0;
}

void smaps_feed(struct memory_reader *reader, struct smaps_state *state, const char *lines, size_t size)
{
	if (state->process == 0)
		state->process = memory_reader_next(reader);
	for (const char *line = lines, *end = lines + size; line < end;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *next = newline != NULL ? newline : end;
		size_t length = (size_t)(next - line);
		bool starts_mapping = length > 0 && !(line[0] >= 'A' && line[0] <= 'Z'); // addresses are lower-case hex
		if (starts_mapping && memchr(line, '-', length) != NULL) {
			smaps_end(reader, state);
			state->path_hash = smaps_path_hash(&reader->pages.path_key, line, length);
		} else if (length > 0) {
			feed_field(state, line, length);
		}
		line = next + 1;
	}
}

// 0, or negative errno if nothing could be read: a process of another user, or one that is exiting.
static int read_smaps(struct memory_reader *reader, const struct tree *tree, const struct tree_member *member,
	struct smaps_state *state)
{
	char path[32];
	snprintf(path, sizeof(path), "%d/smaps", member->pid);
	wattle_cleanup_close int fd = openat(tree->procfs_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	size_t kept = 0, total = 0; // size of an incomplete line left from the previous piece
	for (;;) {
		ssize_t n = read(fd, reader->text + kept, MEMORY_TEXT_SIZE - kept);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		total += (size_t)n;
		size_t size = kept + (size_t)n;
		const char *last = memrchr(reader->text, '\n', size);
		size_t whole = last != NULL ? (size_t)(last - reader->text) + 1 : size;
		smaps_feed(reader, state, reader->text, whole);
		kept = size - whole;
		memmove(reader->text, reader->text + whole, kept);
	}
	smaps_end(reader, state);
	return total > 0 ? 0 : -ESRCH; // an exiting process has an empty file
}

static void group_add(struct memory_group *group, const struct smaps_state *state)
{
	if (!value_ok(group->pss_bytes))
		*group = (struct memory_group){0};
	group->pss_bytes += state->pss_bytes;
	group->uss_bytes += state->private_bytes + state->private_huge_bytes;
	group->private_bytes += state->private_bytes;
}

/* Updates the cost estimates. The excess over the expected cost goes to the larger of the two cost terms: a small
 * process shows the cost per file, but nothing about the cost per byte. */
static void update_cost(struct memory_reader *reader, double cost_ns, int64_t rss_bytes, int64_t processes)
{
	double of_bytes = reader->cost_ns_per_byte * (double)rss_bytes;
	double of_processes = reader->cost_ns_per_process * (double)processes;
	double excess_ns = cost_ns - (of_bytes + of_processes);
	if (excess_ns < 0)
		excess_ns /= 2; // increase at once, decrease slowly
	double squares = of_bytes * of_bytes + of_processes * of_processes;
	double share = squares > 0 ? of_bytes * of_bytes / squares : 0;
	if (rss_bytes > 0)
		reader->cost_ns_per_byte += excess_ns * share / (double)rss_bytes;
	if (processes > 0)
		reader->cost_ns_per_process += excess_ns * (1 - share) / (double)processes;
}

void memory_reader_charge(struct memory_reader *reader, int64_t cost_ns, int64_t t_ns, int64_t rss_bytes,
	int64_t processes)
{
	double max_ns = MEMORY_EXCESS_MAX * (double)expected_cost_ns(reader, rss_bytes, processes);
	double believed_ns = (double)cost_ns < max_ns ? (double)cost_ns : max_ns;
	reader->spent_ns += cost_ns;
	reader->credit_ns -= (int64_t)believed_ns;
	reader->all_credit_ns -= (int64_t)believed_ns;
	reader->n_readings++;
	reader->last_read_t_ns = t_ns;
	if (rss_bytes > reader->max_rss_bytes)
		reader->max_rss_bytes = rss_bytes;
	update_cost(reader, believed_ns, rss_bytes, processes);
}

struct memory_shared memory_reader_shared(const struct memory_reader *reader)
{
	struct memory_shared shared = {0};
	for (size_t i = 0; i < reader->paths_size; i++) {
		const struct memory_path *path = &reader->paths[i];
		shared.main_bytes += path->main_bytes;
		shared.descendants_bytes += path->descendants_bytes;
		shared.combined_bytes += path->main_bytes > path->descendants_bytes ? path->main_bytes
										    : path->descendants_bytes;
	}
	return shared;
}

void memory_member_read(struct tree_member *member, int64_t private_bytes, int64_t anonymous_bytes, int64_t file_bytes)
{
	struct tree_member_memory *memory = &member->memory;
	memory->is_read = true;
	memory->is_stale = false;
	memory->private_bytes = private_bytes;
	memory->anonymous_bytes = anonymous_bytes;
	memory->file_bytes = file_bytes;
	memory->minor_faults = member->stat.minor_faults;
}

void memory_reader_begin(struct memory_reader *reader)
{
	memset(reader->paths, 0, reader->paths_size * sizeof(*reader->paths));
	reader->n_paths = 0;
}

static void read_member(struct memory_reader *reader, const struct tree *tree, struct tree_member *member,
	struct memory_reading *reading)
{
	struct smaps_state state = {.is_main = member->is_main};
	int r = read_smaps(reader, tree, member, &state);
	if (r < 0) {
		reader->n_unread += r != -ESRCH && r != -ENOENT; // with these errors the process has ended
		return;
	}
	group_add(member->is_main ? &reading->main : &reading->descendants, &state);
	memory_member_read(member, state.private_bytes, state.anonymous_bytes, state.rss_bytes - state.anonymous_bytes);
}

/* The root is read last. Children that map the root's memory during the reading turn its private pages into shared
 * ones, and reading the root first would count these pages twice. */
static void read_members(struct memory_reader *reader, const struct tree *tree, struct memory_reading *reading)
{
	memory_reader_begin(reader);
	reader->n_unread = 0;
	for (int is_main = 0; is_main <= 1; is_main++)
		for (size_t i = 0; i < tree->n_members; i++) {
			struct tree_member *member = &tree->members[i];
			bool zombie = member->stat.state == 'Z' || member->stat.state == 'X';
			if (member->alive && !member->is_reaper && !zombie && member->is_main == is_main)
				read_member(reader, tree, member, reading);
		}
}

static void add_shared(const struct memory_reader *reader, int64_t processes, struct memory_reading *reading)
{
	struct memory_shared shared = memory_reader_shared(reader);
	bool main_known = value_ok(reading->main.pss_bytes);
	if (main_known)
		reading->main.shared_bytes = shared.main_bytes;
	if (main_known && processes <= 1) // known to be 0: there are no descendants
		reading->descendants = (struct memory_group){0};
	bool descendants_known = value_ok(reading->descendants.pss_bytes);
	if (descendants_known)
		reading->descendants.shared_bytes = shared.descendants_bytes;
	if (main_known || descendants_known)
		reading->combined_shared_bytes = shared.combined_bytes;
}

void memory_reader_read(struct memory_reader *reader, const struct tree *tree, int64_t t_ns, int64_t rss_bytes,
	int64_t processes, struct memory_reading *ret_reading)
{
	struct memory_reading reading = memory_nothing_read;
	int64_t before_ns = clock_cpu_ns();
	read_members(reader, tree, &reading);
	add_shared(reader, processes, &reading);
	memory_reader_charge(reader, clock_cpu_ns() - before_ns, t_ns, rss_bytes, processes);
	*ret_reading = reading;
}
