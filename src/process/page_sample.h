/* Estimates private and shared memory of one process from some thousand pages of /proc/PID/pagemap. smaps reads all pages and
 * takes 6 ms per 500 MB; this takes 0.2 ms for any size.
 *
 * The kernel marks each present page as exclusive (mapped once: private) or not (shared), and as anonymous or of a file; that
 * is what smaps counts. Small mappings are read whole (where there are more than 512, a random part of the rest stands for all of it), of large ones some runs of pages, each at a random place of its part
 * of the mapping. The sums are scaled to the resident anonymous and file pages of statm, which are exact. Bit 56 of
 * Documentation/admin-guide/mm/pagemap.rst, since Linux 4.2; the right to read it is that of smaps. */
#pragma once

#include "base/keyed_hash.h"
#include "process/tree.h"

#include <stddef.h>
#include <stdint.h>

enum page_kind { PAGE_ANONYMOUS, PAGE_FILE, PAGE_KINDS };

struct page_area { // one mapping; pages, as estimated
	uint64_t path_hash;
	double exclusive[PAGE_KINDS], shared[PAGE_KINDS];
};

struct page_sample {
	struct page_area *areas; // owned
	size_t n_areas, capacity;
	double exclusive[PAGE_KINDS], shared[PAGE_KINDS]; // sums over them
	uint64_t random;
	struct hash_key path_key; // of the hashes of mapped paths, which the target chooses

	/* of the process that is read */
	int pagemap_fd;
	uint64_t *window; // owned: entries of pages first_page to first_page + n_pages
	uint64_t first_page;
	size_t n_pages;
	uint64_t n_small;      // small mappings so far
	uint64_t stride_pages; // one run of so many pages of a large mapping
};

int page_sample_open(struct page_sample *sample); // -ENOMEM
void page_sample_close(struct page_sample *sample);

/* Reads the mappings of a member, about n_runs runs of pages and all small mappings: fills areas. text is scratch of
 * text_size bytes. -EACCES, -ESRCH, -ENOENT (no page map), -E2BIG (too many mappings) …: nothing is known. */
int page_sample_read(struct page_sample *sample, const struct tree *tree, const struct tree_member *member,
	size_t n_runs, char *text, size_t text_size);
/* What the mappings have of so many resident bytes, in bytes: private, and by area shared (of page_sample_shared). */
int64_t page_sample_private(struct page_sample *sample, int64_t anonymous_bytes, int64_t file_bytes,
	int64_t page_bytes);
int64_t page_sample_shared(const struct page_area *area, int64_t page_bytes); // after page_sample_private

/* The pure half: one line of /proc/PID/maps. */
struct page_range {
	uint64_t first_page, n_pages;
	bool is_readable_memory; // it may have pages, and they are memory: no reserved address space, no device
};
struct page_range page_range_parse(const char *line, size_t size, int64_t page_bytes);
// The path at the end of a line of maps, or of the first line of a mapping in smaps; nothing where it has none.
const char *smaps_path(const char *line, size_t size, size_t *ret_size);
uint64_t smaps_path_hash(const struct hash_key *key, const char *line, size_t size); // never 0
