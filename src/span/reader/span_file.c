#include "span/reader/reader.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/util.h"
#include "span/span_file_format.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

// Upper limit of a run: sums with the wall clock stay far below the 64-bit limit.
static const int64_t LONGEST_NS = 10 * 365 * 86400 * NS_PER_S;
// The time of a span is read shortly before its block is claimed.
static const int64_t SLACK_NS = NS_PER_S;

struct block { // position in the file, and stream
	struct span_block_header header;
	int64_t at;
};

struct reading {
	int fd;
	struct block *blocks; // owned
	size_t n_blocks, capacity;
	struct span_recording *recording; // of the caller: final destination of rows
	struct span_recording streams;    // passed to the decoders, with a sink that shifts times
	int64_t shift_ns;
	struct span_file_info *facts;
	union {
		unsigned char bytes[SPAN_BLOCK_BYTES];
		struct span_record records[SPAN_BLOCK_BYTES / sizeof(struct span_record)];
	} buffer;
};

/* ---- blocks ---- */

static bool is_block(const struct span_block_header *header)
{
	return header->magic == SPAN_BLOCK_MAGIC && header->version == SPAN_FILE_VERSION &&
		header->anchor_mono_ns > 0 && header->anchor_mono_ns < LONGEST_NS &&
		header->anchor_wall_ns > -LONGEST_NS && header->anchor_wall_ns < INT64_MAX / 4;
}

static int compare(const void *left, const void *right)
{
	const struct span_block_header *a = &((const struct block *)left)->header,
				       *b = &((const struct block *)right)->header;
	int boot = memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id));
	if (boot != 0)
		return boot;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

static bool same_boot(const struct block *a, const struct block *b)
{
	return memcmp(a->header.boot_id, b->header.boot_id, sizeof(a->header.boot_id)) == 0;
}

static bool same_process(const struct block *a, const struct block *b)
{
	return same_boot(a, b) && a->header.pid == b->header.pid && a->header.image == b->header.image;
}

static int list_blocks(struct reading *r, int64_t size)
{
	for (int64_t at = SPAN_BLOCK_BYTES; at + SPAN_BLOCK_HEADER_BYTES <= size; at += SPAN_BLOCK_BYTES) {
		struct block *larger = array_reserve(r->blocks, r->n_blocks, &r->capacity, sizeof(*larger), 64);
		if (larger == NULL)
			return -ENOMEM;
		r->blocks = larger;
		struct block *block = &r->blocks[r->n_blocks];
		block->at = at;
		if (pread(r->fd, &block->header, sizeof(block->header), at) != (ssize_t)sizeof(block->header))
			break;
		if (is_block(&block->header))
			r->n_blocks++;
		else // claimed but never written (not an error), or damaged
			r->facts->n_damaged += block->header.magic != 0;
	}
	if (r->n_blocks > 0)
		qsort(r->blocks, r->n_blocks, sizeof(*r->blocks), compare);
	return 0;
}

// Reads a block into the buffer; returns its number of records.
static size_t read_block(struct reading *r, const struct block *block)
{
	ssize_t n = pread(r->fd, r->buffer.bytes, SPAN_BLOCK_BYTES, block->at);
	size_t there = n > SPAN_BLOCK_HEADER_BYTES ? ((size_t)n - SPAN_BLOCK_HEADER_BYTES) / sizeof(struct span_record)
						   : 0;
	uint64_t used = block->header.n_used;
	return used < there ? (size_t)used : there;
}

/* ---- streams ---- */

static int64_t latest_ns(const struct block *block)
{
	return block->header.anchor_mono_ns + LONGEST_NS;
}

static void feed_block(struct reading *r, struct span_decoder *decoder, const struct block *block)
{
	size_t n = read_block(r, block);
	const struct span_record *records = &r->buffer.records[SPAN_BLOCK_HEADER_BYTES / sizeof(struct span_record)];
	span_decoder_clear_names(decoder);
	decoder->tid = block->header.tid;
	// A block before this one is missing and may have contained ends.
	span_decoder_close(decoder, block->header.n_open, SPAN_UNWOUND, decoder->last_ns);
	span_decoder_feed(decoder, records, n, latest_ns(block), 0);
	r->facts->n_blocks++;
	r->facts->lost += block->header.lost;
	r->facts->unwound += block->header.unwound;
}

// Reads the blocks of a process, which are adjacent after sorting. Open spans end at the last known time.
static int read_process(struct reading *r, const struct block *blocks, size_t n)
{
	size_t n_streams = 0;
	for (size_t i = 0; i < n; i++)
		n_streams += i == 0 || blocks[i].header.stream != blocks[i - 1].header.stream;
	struct span_decoder *decoders = calloc_array(n_streams, sizeof(*decoders));
	if (decoders == NULL)
		return -ENOMEM;
	struct span_ranges ranges = {0};
	int64_t last_ns = 0;
	size_t stream = 0;
	for (size_t i = 0; i < n; i++) {
		const struct span_block_header *header = &blocks[i].header;
		if (i == 0 || header->stream != blocks[i - 1].header.stream)
			span_decoder_init(&decoders[stream++], &r->streams, &ranges, header->pid, header->tid,
				header->anchor_mono_ns - SLACK_NS);
		feed_block(r, &decoders[stream - 1], &blocks[i]);
		if (decoders[stream - 1].last_ns > last_ns)
			last_ns = decoders[stream - 1].last_ns;
	}
	for (size_t i = 0; i < n_streams; i++) {
		span_decoder_close(&decoders[i], 0, SPAN_AT_DEATH, last_ns);
		span_decoder_finish(&decoders[i]);
	}
	span_decoder_close_ranges(&r->streams, &ranges, SPAN_AT_DEATH, last_ns);
	r->facts->n_processes++;
	free(decoders);
	return 0;
}

/* ---- common clock ---- */

static void on_span(void *data, const struct span_row *row)
{
	const struct reading *r = data;
	struct span_row moved = *row;
	moved.begin_ns += r->shift_ns;
	moved.end_ns += r->shift_ns;
	r->recording->sink.span(r->recording->sink.data, &moved);
}

static void on_metric(void *data, const struct span_metric_row *row)
{
	const struct reading *r = data;
	struct span_metric_row moved = *row;
	moved.t_ns += r->shift_ns;
	r->recording->sink.metric(r->recording->sink.data, &moved);
}

static void on_mark(void *data, const struct span_mark_row *row)
{
	const struct reading *r = data;
	struct span_mark_row moved = *row;
	moved.t_ns += r->shift_ns;
	r->recording->sink.mark(r->recording->sink.data, &moved);
}

// The first claimed block defines the clock.
static void choose_clock(struct reading *r)
{
	for (size_t i = 0; i < r->n_blocks; i++) {
		const struct span_block_header *header = &r->blocks[i].header;
		if (i > 0 && header->anchor_wall_ns >= r->facts->anchor_wall_ns)
			continue;
		r->facts->anchor_wall_ns = header->anchor_wall_ns;
		r->facts->anchor_mono_ns = header->anchor_mono_ns;
	}
}

// One shift per boot: the wall clock may be adjusted in between, the monotonic clock can't.
static int64_t shift_of(const struct reading *r, const struct block *first_of_boot)
{
	const struct span_block_header *header = &first_of_boot->header;
	return (header->anchor_wall_ns - header->anchor_mono_ns) -
		(r->facts->anchor_wall_ns - r->facts->anchor_mono_ns);
}

static int read_all(struct reading *r)
{
	choose_clock(r);
	r->streams = *r->recording;
	r->streams.sink = (struct span_sink){on_span, on_metric, on_mark, r};
	int result = 0;
	for (size_t i = 0, n; result == 0 && i < r->n_blocks; i += n) {
		if (i == 0 || !same_boot(&r->blocks[i], &r->blocks[i - 1]))
			r->shift_ns = shift_of(r, &r->blocks[i]);
		for (n = 1; i + n < r->n_blocks && same_process(&r->blocks[i], &r->blocks[i + n]); n++)
			;
		result = read_process(r, &r->blocks[i], n);
	}
	struct span_sink sink = r->recording->sink;
	*r->recording = r->streams; // copies back the names and counts
	r->recording->sink = sink;
	return result;
}

/* ---- file ---- */

bool span_file_probe(const char *path)
{
	struct span_file_header header;
	return file_head(path, &header, sizeof(header)) == (ssize_t)sizeof(header) && header.magic == SPAN_FILE_MAGIC;
}

static int check_header(int fd, const char *path, struct wattle_error *reterr)
{
	struct span_file_header header;
	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) || header.magic != SPAN_FILE_MAGIC)
		return error_set(reterr, -EINVAL, "%s is not a span file", path);
	if (header.version != SPAN_FILE_VERSION || header.block_bytes != SPAN_BLOCK_BYTES)
		return error_set(reterr, -ENOTSUP,
			"%s has span file version %u, this wattle supports %d: use the wattle that wrote it",
			path, (unsigned)header.version, SPAN_FILE_VERSION);
	return 0;
}

int span_file_read(const char *path, struct span_recording *recording, struct span_file_info *ret_metadata,
	struct wattle_error *reterr)
{
	*ret_metadata = (struct span_file_info){0};
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0)
		return error_set(reterr, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(reterr, -EINVAL, "%s is not a span file", path);
	int result = check_header(fd, path, reterr);
	if (result < 0)
		return result;
	struct reading *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", path);
	r->fd = fd;
	r->recording = recording;
	r->facts = ret_metadata;
	result = list_blocks(r, st.st_size);
	if (result == 0)
		result = read_all(r);
	free(r->blocks);
	free(r);
	return result < 0 ? error_set(reterr, result, "%s: out of memory", path) : 0;
}
