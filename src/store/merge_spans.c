#include "store/sub_tracking.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "span/span_file_format.h"
#include "store/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Merges span files into one. Each block is self-contained, and its stream key differs between processes and machines, so the
 * blocks are simply concatenated. */

static int fail(const char *path, int code, struct wattle_error *reterr)
{
	return error_set(reterr, code, "%s: %s", path, strerror(-code));
}

static int write_all(int fd, const void *bytes, size_t size)
{
	for (const char *at = bytes; size > 0;) {
		ssize_t n = write(fd, at, size);
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

// Reads a whole block, padding a short last block with zeros; 0: end of file.
static ssize_t read_block(int fd, unsigned char *block)
{
	size_t size = 0;
	while (size < SPAN_BLOCK_BYTES) {
		ssize_t n = read(fd, block + size, SPAN_BLOCK_BYTES - size);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		size += n > 0 ? (size_t)n : 0;
	}
	memset(block + size, 0, SPAN_BLOCK_BYTES - size);
	return (ssize_t)size;
}

// A block that was claimed but never written is skipped.
static bool is_written(const unsigned char *block)
{
	uint32_t magic;
	memcpy(&magic, block + offsetof(struct span_block_header, magic), sizeof(magic));
	return magic == SPAN_BLOCK_MAGIC;
}

static int copy_blocks(const char *path, int out, unsigned char *block, uint64_t *n_blocks, const char *out_path,
	struct wattle_error *reterr)
{
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return fail(path, -errno, reterr);
	ssize_t n = read_block(fd, block); // the file's header
	while (n > 0 && (n = read_block(fd, block)) > 0) {
		if (!is_written(block))
			continue;
		int r = write_all(out, block, SPAN_BLOCK_BYTES);
		if (r < 0)
			return fail(out_path, r, reterr);
		++*n_blocks;
	}
	return n < 0 ? fail(path, (int)n, reterr) : 0;
}

static int write_header(int fd, unsigned char *block, uint64_t n_blocks)
{
	struct span_file_header header = {.magic = SPAN_FILE_MAGIC,
		.version = SPAN_FILE_VERSION,
		.block_bytes = SPAN_BLOCK_BYTES};
	header.n_claimed = n_blocks;
	memset(block, 0, SPAN_BLOCK_BYTES);
	memcpy(block, &header, sizeof(header));
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : write_all(fd, block, SPAN_BLOCK_BYTES);
}

static int copy_all(const struct output_file *output, const char *const *inputs, size_t n, struct wattle_error *reterr)
{
	wattle_cleanup_free unsigned char *block = calloc_array(SPAN_BLOCK_BYTES, 1);
	if (block == NULL)
		return -ENOMEM;
	uint64_t n_blocks = 0;
	int r = write_header(output->fd, block, 0); // placeholder for the header
	for (size_t i = 0; r == 0 && i < n; i++)
		if ((r = copy_blocks(inputs[i], output->fd, block, &n_blocks, output->path, reterr)) < 0)
			return r;
	if (r == 0)
		r = write_header(output->fd, block, n_blocks);
	return r < 0 ? fail(output->path, r, reterr) : 0;
}

int merge_spans(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr)
{
	struct output_file output;
	int r = output_file_open(&output, &(struct store_open_options){.path = out}, "merged file", reterr);
	if (r == 0)
		r = copy_all(&output, inputs, n, reterr);
	if (r == 0)
		r = output_file_publish(&output, reterr);
	output_file_close(&output, r < 0);
	return r;
}

/* Span files to starts and stops */

struct edge { // begin or end of a span
	int64_t t_ns;
	const struct run_span *span;
	bool is_stop;
};

/* Order of edges at the same instant: ends (inner spans first), then spans of zero length, then begins (outer spans first). The
 * starts and stops of one name thus pair last in, first out, even where the file's seconds are coarser than the spans. */
static int phase(const struct edge *edge)
{
	if (edge->span->begin_ns == edge->span->end_ns)
		return 1;
	return edge->is_stop ? 0 : 2;
}

static int by_time(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;
	if (a->t_ns != b->t_ns)
		return a->t_ns < b->t_ns ? -1 : 1;
	if (phase(a) != phase(b))
		return phase(a) - phase(b);
	if (a->span->id != b->span->id)
		return (a->span->id < b->span->id ? -1 : 1) * (phase(a) == 0 ? -1 : 1);
	return a->is_stop - b->is_stop;
}

static size_t make_edges(const struct run *run, struct edge *edges)
{
	size_t n = 0;
	for (size_t i = 0; i < run->n_spans; i++) {
		const struct run_span *span = &run->spans[i];
		edges[n++] = (struct edge){span->begin_ns, span, false};
		if (value_ok(span->end_ns) && span->end_ns >= span->begin_ns)
			edges[n++] = (struct edge){span->end_ns, span, true};
	}
	qsort(edges, n, sizeof(*edges), by_time);
	return n;
}

/* The format has a column for the process only and pairs calls by it. wattle writes the thread id there instead, so that
 * overlapping calls of several threads are paired correctly. The main thread's id equals the process id. */
static int add_edge(struct calls_writer *writer, const struct run *run, const struct edge *edge,
	struct wattle_error *reterr)
{
	int64_t wall_ns = run_wall_ns(run, edge->t_ns);
	if (!value_ok(wall_ns))
		return error_set(reterr, -EINVAL, "%s: the spans have no wall-clock time", writer->path);
	char time_text[40];
	snprintf(time_text, sizeof(time_text), "%lld.%09lld", (long long)(wall_ns / NS_PER_S),
		(long long)(wall_ns % NS_PER_S));
	const struct sub_tracking_row row = {
		.pid = edge->span->tid > 0 ? edge->span->tid : edge->span->pid,
		.name = edge->span->name,
		.is_stop = edge->is_stop,
		.time_s = (double)wall_ns / 1e9,
		.time_text = time_text,
	};
	return calls_writer_add(writer, &row, reterr);
}

static int add_spans(struct calls_writer *writer, const struct run *run, struct wattle_error *reterr)
{
	wattle_cleanup_free struct edge *edges = calloc_array(run->n_spans, 2 * sizeof(*edges));
	if (edges == NULL)
		return -ENOMEM;
	size_t n = make_edges(run, edges);
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_edge(writer, run, &edges[i], reterr);
	return r;
}

int merge_spans_into_calls(const char *out, const char *const *inputs, size_t n, struct wattle_error *reterr)
{
	struct calls_writer writer;
	int r = calls_writer_open(&writer, out, reterr);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct run run;
		r = span_file_load(inputs[i], &run, reterr);
		if (r < 0)
			break;
		r = add_spans(&writer, &run, reterr);
		run_finish(&run);
	}
	return calls_writer_close(&writer, r, reterr);
}
