#include "process/memory.h"

#include "base/cleanup.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum {
	AREAS_AT_FIRST = 512,
	RUN_PAGES = 16,      // a system call costs as much as reading 60 pages
	MAPPINGS_MAX = 8192, // per process: parsing a line takes 0.3 to 0.5 us
	SMALL_PAGES = 64,    // mappings up to this size are small: read completely or not at all
	SMALL_ALL = 512,     // the first small mappings are all read; of the later ones a random part
	WINDOW_PAGES = 64,   // pages per read, so that adjacent small mappings need one call
};

static const uint64_t bit_exclusive = UINT64_C(1) << 56, bit_file = UINT64_C(1) << 61, bit_present = UINT64_C(1) << 63;

int page_sample_open(struct page_sample *sample)
{
	*sample = (struct page_sample){.random = 88172645463325252u, .path_key = hash_key_new(), .pagemap_fd = -1};
	sample->window = calloc_array(WINDOW_PAGES, sizeof(*sample->window));
	sample->areas = array_reserve(NULL, 0, &sample->capacity, sizeof(*sample->areas), AREAS_AT_FIRST);
	return sample->window != NULL && sample->areas != NULL ? 0 : -ENOMEM;
}

void page_sample_close(struct page_sample *sample)
{
	free(sample->areas);
	free(sample->window);
	*sample = (struct page_sample){.pagemap_fd = -1};
}

// xorshift64: a position independent of any pattern in the program.
static uint64_t random_below(struct page_sample *sample, uint64_t limit)
{
	sample->random ^= sample->random << 13;
	sample->random ^= sample->random >> 7;
	sample->random ^= sample->random << 17;
	return limit > 0 ? sample->random % limit : 0;
}

/* ---- /proc/PID/maps ---- */

static bool starts_with(const char *text, size_t size, const char *prefix)
{
	size_t length = strlen(prefix);
	return size >= length && memcmp(text, prefix, length) == 0;
}

static uint64_t hex(const char **at, const char *end)
{
	uint64_t value = 0;
	for (; *at < end; (*at)++) {
		char c = **at;
		if (c >= '0' && c <= '9')
			value = value * 16 + (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value * 16 + (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	return value;
}

/* 64-bit hash: with some thousand paths, collisions occur once in 10^12 runs. Keyed, because the target chooses the
 * paths. Never 0, which marks a free slot. */
static uint64_t hash_text(const struct hash_key *key, const char *text, size_t size)
{
	uint64_t hash = keyed_hash(key, text, size);
	return hash != 0 ? hash : 1;
}

// "7f…-7f… r-xp 00000000 fe:00 1234   /usr/lib/x.so": five fields, then the path, which may be missing.
const char *smaps_path(const char *line, size_t size, size_t *ret_size)
{
	size_t i = 0;
	for (int field = 0; field < 5; field++) {
		while (i < size && line[i] != ' ')
			i++;
		while (i < size && line[i] == ' ')
			i++;
	}
	*ret_size = size - i;
	return line + i;
}

uint64_t smaps_path_hash(const struct hash_key *key, const char *line, size_t size)
{
	size_t path_size;
	const char *path = smaps_path(line, size, &path_size);
	return path_size > 0 ? hash_text(key, path, path_size) : hash_text(key, "[anon]", 6);
}

// False for mappings of devices and of the kernel, which have no pages of memory, and for huge pages, which the smaps
// values used here do not include.
static bool is_memory(const char *path, size_t size)
{
	static const char *const others[] = {"[vvar", "[vsyscall]", "[vdso]", "/anon_hugepage", "/dev/hugepages/"};
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (starts_with(path, size, others[i]))
			return false;
	return !starts_with(path, size, "/dev/") || starts_with(path, size, "/dev/shm/") ||
		starts_with(path, size, "/dev/zero");
}

struct page_range page_range_parse(const char *line, size_t size, int64_t page_bytes)
{
	const char *at = line, *end = line + size;
	uint64_t from = hex(&at, end);
	at += at < end;
	uint64_t to = hex(&at, end);
	if (to <= from || end - at < 5 || *at != ' ')
		return (struct page_range){0};
	bool has_access = memcmp(at + 1, "---", 3) != 0;
	size_t path_size;
	const char *path = smaps_path(line, size, &path_size);
	return (struct page_range){
		.first_page = from / (uint64_t)page_bytes,
		.n_pages = (to - from) / (uint64_t)page_bytes,
		.is_readable_memory = has_access && is_memory(path, path_size),
	};
}

/* ---- /proc/PID/pagemap ---- */

// Reads the entries of n <= n_ahead <= WINDOW_PAGES pages; fewer at the end of the readable range.
static const uint64_t *entries(struct page_sample *sample, uint64_t first_page, size_t n, size_t n_ahead, size_t *ret_n)
{
	bool is_inside = first_page >= sample->first_page && first_page + n <= sample->first_page + sample->n_pages;
	if (!is_inside) {
		ssize_t size = pread(sample->pagemap_fd, sample->window, n_ahead * sizeof(*sample->window),
			(off_t)(first_page * sizeof(*sample->window)));
		sample->first_page = first_page;
		sample->n_pages = size > 0 ? (size_t)size / sizeof(*sample->window) : 0;
	}
	size_t left = (size_t)(sample->first_page + sample->n_pages - first_page);
	*ret_n = left < n ? left : n;
	return sample->window + (first_page - sample->first_page);
}

static void count(struct page_sample *sample, struct page_area *area, uint64_t first_page, size_t n, size_t n_ahead,
	double weight)
{
	size_t n_read;
	const uint64_t *entry = entries(sample, first_page, n, n_ahead, &n_read);
	for (size_t i = 0; i < n_read; i++) {
		if ((entry[i] & bit_present) == 0)
			continue;
		enum page_kind kind = (entry[i] & bit_file) != 0 ? PAGE_FILE : PAGE_ANONYMOUS;
		*((entry[i] & bit_exclusive) != 0 ? &area->exclusive[kind] : &area->shared[kind]) += weight;
	}
}

static void count_large(struct page_sample *sample, struct page_area *area, const struct page_range *range,
	uint64_t n_runs_max)
{
	uint64_t n_runs = (range->n_pages + sample->stride_pages - 1) / sample->stride_pages;
	n_runs = n_runs < n_runs_max ? n_runs : n_runs_max;
	double weight = (double)range->n_pages / (double)(n_runs * RUN_PAGES);
	for (uint64_t i = 0; i < n_runs; i++) {
		uint64_t from = range->n_pages / n_runs * i, room = range->n_pages / n_runs;
		from += random_below(sample, room > RUN_PAGES ? room - RUN_PAGES + 1 : 1);
		count(sample, area, range->first_page + from, RUN_PAGES, RUN_PAGES, weight);
	}
}

/* Number of small mappings that the next one represents; 0: skip it. The nth is read with probability SMALL_ALL / n: of
 * 8192 about 1900 are read, and each part of the address space keeps its weight. */
static double weight_of_small(struct page_sample *sample)
{
	uint64_t n = ++sample->n_small;
	if (n <= SMALL_ALL)
		return 1;
	return random_below(sample, n) < SMALL_ALL ? (double)n / SMALL_ALL : 0;
}

static void sum_up(struct page_sample *sample, const struct page_area *area)
{
	for (size_t kind = 0; kind < PAGE_KINDS; kind++) {
		sample->exclusive[kind] += area->exclusive[kind];
		sample->shared[kind] += area->shared[kind];
	}
}

static int read_area(struct page_sample *sample, const char *line, size_t size, size_t n_runs, int64_t page_bytes)
{
	struct page_range range = page_range_parse(line, size, page_bytes);
	if (!range.is_readable_memory)
		return 0;
	bool is_small = range.n_pages <= SMALL_PAGES;
	double weight = is_small ? weight_of_small(sample) : 1;
	if (weight <= 0)
		return 0;
	struct page_area *areas = array_reserve(sample->areas, sample->n_areas, &sample->capacity, sizeof(*areas),
		AREAS_AT_FIRST);
	if (areas == NULL)
		return -ENOMEM;
	sample->areas = areas;
	struct page_area *area = &areas[sample->n_areas++];
	*area = (struct page_area){.path_hash = smaps_path_hash(&sample->path_key, line, size)};
	if (is_small)
		count(sample, area, range.first_page, (size_t)range.n_pages, WINDOW_PAGES, weight);
	else
		count_large(sample, area, &range, n_runs);
	sum_up(sample, area);
	return 0;
}

static int read_areas(struct page_sample *sample, int maps_fd, size_t n_runs, int64_t page_bytes, char *text,
	size_t text_size)
{
	size_t kept = 0; // size of an incomplete line left from the previous piece
	size_t n_mappings = 0;
	for (;;) {
		ssize_t n = read(maps_fd, text + kept, text_size - kept);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : sample->n_areas > 0 ? 0 : -ESRCH;
		const char *line = text, *end = text + kept + n;
		for (const char *next; (next = memchr(line, '\n', (size_t)(end - line))) != NULL; line = next + 1) {
			int r = ++n_mappings > MAPPINGS_MAX
				? -E2BIG
				: read_area(sample, line, (size_t)(next - line), n_runs, page_bytes);
			if (r < 0)
				return r;
		}
		kept = (size_t)(end - line);
		memmove(text, line, kept);
		if (kept == text_size)
			return -EINVAL; // lines are never this long
	}
}

static int open_file(const struct tree *tree, pid_t pid, const char *name)
{
	char path[40];
	snprintf(path, sizeof(path), "%d/%s", pid, name);
	int fd = openat(tree->procfs_fd, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int page_sample_read(struct page_sample *sample, const struct tree *tree, const struct tree_member *member,
	size_t n_runs, char *text, size_t text_size)
{
	wattle_cleanup_close int pagemap_fd = open_file(tree, member->pid, "pagemap");
	if (pagemap_fd < 0)
		return pagemap_fd;
	wattle_cleanup_close int maps_fd = open_file(tree, member->pid, "maps");
	if (maps_fd < 0)
		return maps_fd;
	uint64_t rss_pages = (uint64_t)(member->stat.rss_bytes / tree->units.page_bytes);
	uint64_t stride_pages = rss_pages / n_runs;
	sample->n_areas = 0;
	for (size_t kind = 0; kind < PAGE_KINDS; kind++)
		sample->exclusive[kind] = sample->shared[kind] = 0;
	sample->pagemap_fd = pagemap_fd;
	sample->n_pages = 0;
	sample->n_small = 0;
	sample->stride_pages = stride_pages > SMALL_PAGES ? stride_pages : SMALL_PAGES;
	int r = read_areas(sample, maps_fd, n_runs, tree->units.page_bytes, text, text_size);
	sample->pagemap_fd = -1;
	return r;
}

/* ---- conversion to bytes ---- */

/* Anonymous pages beyond the resident ones are the kernel's zero page, mapped by reads of memory that was never
 * written. It is not memory of the process, and not exclusive. Returns factors for both sums of one kind. */
static void scale(double exclusive, double shared, double resident, double *ret_exclusive, double *ret_shared)
{
	double excess = exclusive + shared - resident;
	double real_shared = excess > 0 ? fmax(0, shared - excess) : shared;
	double factor = exclusive + real_shared > 0 ? resident / (exclusive + real_shared) : 0;
	*ret_exclusive = factor;
	*ret_shared = shared > 0 ? factor * real_shared / shared : 0;
}

int64_t page_sample_private(struct page_sample *sample, int64_t anonymous_bytes, int64_t file_bytes, int64_t page_bytes)
{
	const double resident[PAGE_KINDS] = {(double)anonymous_bytes / (double)page_bytes,
		(double)file_bytes / (double)page_bytes};
	double pages = 0;
	for (size_t kind = 0; kind < PAGE_KINDS; kind++) {
		double of_exclusive, of_shared;
		bool is_found = sample->exclusive[kind] + sample->shared[kind] > 0;
		scale(sample->exclusive[kind], sample->shared[kind], resident[kind], &of_exclusive, &of_shared);
		pages += is_found ? sample->exclusive[kind] * of_exclusive : resident[kind];
		for (size_t i = 0; i < sample->n_areas; i++)
			sample->areas[i].shared[kind] *= of_shared;
	}
	return (int64_t)pages * page_bytes;
}

int64_t page_sample_shared(const struct page_area *area, int64_t page_bytes)
{
	return (int64_t)(area->shared[PAGE_ANONYMOUS] + area->shared[PAGE_FILE]) * page_bytes;
}
