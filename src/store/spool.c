#include "store/follow.h"

#include "base/util.h"
#include "store/sql.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(sizeof(struct spool_header) == 64 && sizeof(struct spool_name) == 8 && sizeof(struct spool_span) == 64 &&
		sizeof(struct spool_metric) == 40 && sizeof(struct spool_mark) == 32,
	"entries are of these sizes in files");

static const char magic[8] = {'W', 'T', 'L', 'S', 'P', 'O', 'O', 'L'};
static const char ending[] = "-spans";

void spool_path(const char *run_path, char *out, size_t size)
{
	snprintf(out, size, "%s%s", run_path, ending);
}

/* ---- writing ---- */

static int write_all(int fd, const void *bytes, size_t size, int64_t at)
{
	for (const unsigned char *from = bytes; size > 0;) {
		ssize_t n = pwrite(fd, from, size, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		from += n;
		size -= (size_t)n;
		at += n;
	}
	return 0;
}

int spool_make(struct spool *spool, const char *run_path, const char *run_id, int64_t segment)
{
	*spool = (struct spool){.fd = -1, .size = sizeof(struct spool_header)};
	spool_path(run_path, spool->path, sizeof(spool->path));
	spool->chunk = malloc(SPOOL_CHUNK_BYTES);
	spool->is_named = calloc(SPOOL_NAMES / 8, 1);
	struct stat run;
	int r = spool->chunk != NULL && spool->is_named != NULL ? 0 : -ENOMEM;
	if (r == 0) {
		unlink(spool->path); // never write into another user's file
		spool->fd = open(spool->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		r = spool->fd < 0 ? -errno : 0;
		if (r == 0 && stat(run_path, &run) == 0)
			fchmod(spool->fd, run.st_mode & 0666); // same read permissions as the run file
	}
	struct spool_header header = {.version = SPOOL_VERSION, .segment = segment};
	memcpy(header.magic, magic, sizeof(magic));
	text_copy(header.run_id, sizeof(header.run_id), run_id);
	if (r == 0)
		r = write_all(spool->fd, &header, sizeof(header), 0);
	if (r < 0)
		spool_close(spool, spool->fd >= 0);
	return r;
}

void spool_close(struct spool *spool, bool remove)
{
	if (remove && spool->fd >= 0)
		unlink(spool->path);
	if (spool->fd >= 0)
		close(spool->fd);
	free(spool->chunk);
	free(spool->is_named);
	*spool = (struct spool){.fd = -1};
}

struct appending {
	struct spool *spool;
	const struct store_spans *spans;
	int64_t at; // file offset of the next chunk
	int failed; // sticky
};

static void write_chunk(struct appending *a)
{
	struct spool *spool = a->spool;
	if (a->failed < 0 || spool->used == sizeof(struct spool_chunk))
		return;
	const struct spool_chunk head = {SPOOL_CHUNK_MAGIC, (uint32_t)(spool->used - sizeof(head))};
	memcpy(spool->chunk, &head, sizeof(head));
	a->failed = write_all(spool->fd, spool->chunk, spool->used, a->at);
	a->at += (int64_t)spool->used;
	spool->used = sizeof(head);
}

static void add(struct appending *a, const void *bytes, size_t size)
{
	memcpy(a->spool->chunk + a->spool->used, bytes, size);
	a->spool->used += size;
}

static void reserve(struct appending *a, size_t size)
{
	if (a->spool->used + size > SPOOL_CHUNK_BYTES)
		write_chunk(a);
}

static void add_name(struct appending *a, uint32_t name)
{
	struct spool *spool = a->spool;
	if (name >= a->spans->n_names || name >= SPOOL_NAMES || (spool->is_named[name / 8] >> name % 8 & 1) != 0)
		return;
	const char *text = a->spans->names[name];
	const struct spool_name entry = {.entry = SPOOL_NAME, .length = (uint16_t)strlen(text), .name = name};
	static const char padding[8] = {0};
	reserve(a, sizeof(entry) + entry.length + sizeof(padding));
	add(a, &entry, sizeof(entry));
	add(a, text, entry.length);
	add(a, padding, (8 - entry.length % 8) % 8);
	spool->is_named[name / 8] |= (uint8_t)(1 << name % 8);
}

static int64_t plus(int64_t value, int64_t offset)
{
	return value_ok(value) ? value + offset : VALUE_MISSING;
}

static void add_span(struct appending *a, const struct span_row *row, int64_t id_offset, int64_t shift_ns)
{
	add_name(a, row->name);
	add_name(a, row->category);
	const struct spool_span entry = {
		.entry = SPOOL_SPAN,
		.kind = row->kind,
		.close = row->close,
		.name = row->name,
		.category = row->category,
		.pid = row->pid,
		.tid = row->tid,
		.id = row->id + id_offset,
		.parent = plus(row->parent, id_offset),
		.begin_ns = plus(row->begin_ns, shift_ns),
		.end_ns = plus(row->end_ns, shift_ns),
		.cpu_ns = row->cpu_ns,
	};
	reserve(a, sizeof(entry));
	add(a, &entry, sizeof(entry));
}

static void add_metric(struct appending *a, const struct span_metric_row *row, int64_t id_offset, int64_t shift_ns)
{
	add_name(a, row->name);
	const struct spool_metric entry = {
		.entry = SPOOL_METRIC,
		.name = row->name,
		.pid = row->pid,
		.tid = row->tid,
		.t_ns = plus(row->t_ns, shift_ns),
		.span = plus(row->span, id_offset),
		.value = row->value,
	};
	reserve(a, sizeof(entry));
	add(a, &entry, sizeof(entry));
}

static void add_mark(struct appending *a, const struct span_mark_row *row, int64_t shift_ns)
{
	add_name(a, row->name);
	add_name(a, row->category);
	const struct spool_mark entry = {
		.entry = SPOOL_MARK,
		.name = row->name,
		.category = row->category,
		.pid = row->pid,
		.tid = row->tid,
		.t_ns = plus(row->t_ns, shift_ns),
	};
	reserve(a, sizeof(entry));
	add(a, &entry, sizeof(entry));
}

int spool_append(struct spool *spool, const struct store_spans *spans, int64_t id_offset, int64_t shift_ns)
{
	struct appending a = {.spool = spool, .spans = spans, .at = spool->size};
	spool->used = sizeof(struct spool_chunk);
	for (size_t i = 0; a.failed == 0 && i < spans->n_ended; i++)
		add_span(&a, &spans->ended[i], id_offset, shift_ns);
	for (size_t i = 0; a.failed == 0 && i < spans->n_metrics; i++)
		add_metric(&a, &spans->metrics[i], id_offset, shift_ns);
	for (size_t i = 0; a.failed == 0 && i < spans->n_marks; i++)
		add_mark(&a, &spans->marks[i], shift_ns);
	write_chunk(&a);
	if (a.failed == 0) {
		spool->size = a.at;
		return 0;
	}
	// Names in the discarded chunks must be written again.
	memset(spool->is_named, 0, SPOOL_NAMES / 8);
	return ftruncate(spool->fd, spool->size) == 0 ? a.failed : -errno;
}

/* ---- reading ---- */

int64_t spool_bytes_done(int fd, int64_t stored)
{
	struct stat st;
	int64_t size = fstat(fd, &st) == 0 ? st.st_size : 0;
	return stored < 0 ? 0 : stored < size ? stored : size;
}

// If the run file was removed, only the user's own spool is accepted.
static bool has_fit_owner(const char *run_path, int fd)
{
	struct stat database, st;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	return stat(run_path, &database) == 0 ? companions_may_own(&database, &st) : st.st_uid == geteuid();
}

int spool_open_reader(const char *run_path, const char *run_id, struct spool_header *ret_header)
{
	char path[PATH_MAX + 8], resolved[PATH_MAX];
	// The recorder follows symbolic links to the run file, too.
	spool_path(realpath(run_path, resolved) != NULL ? resolved : run_path, path, sizeof(path));
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	bool is_ours = has_fit_owner(run_path, fd) &&
		pread(fd, ret_header, sizeof(*ret_header), 0) == (ssize_t)sizeof(*ret_header) &&
		memcmp(ret_header->magic, magic, sizeof(magic)) == 0 && ret_header->version == SPOOL_VERSION &&
		strncmp(ret_header->run_id, run_id, sizeof(ret_header->run_id)) == 0;
	if (is_ours)
		return fd;
	close(fd);
	return -ENOENT;
}

// Size in bytes of the entry at `at`; 0: unknown kind or incomplete.
static size_t entry_size(const unsigned char *at, size_t left)
{
	struct spool_name name;
	size_t size = 0;
	switch (at[0]) {
	case SPOOL_NAME:
		memcpy(&name, at, sizeof(name));
		size = sizeof(name) + (size_t)(name.length + 7) / 8 * 8;
		break;
	case SPOOL_SPAN:
		size = sizeof(struct spool_span);
		break;
	case SPOOL_METRIC:
		size = sizeof(struct spool_metric);
		break;
	case SPOOL_MARK:
		size = sizeof(struct spool_mark);
		break;
	}
	return size <= left ? size : 0;
}

static int visit(const unsigned char *at, bool is_wanted, const struct spool_callbacks *callbacks)
{
	union {
		struct spool_name name;
		struct spool_span span;
		struct spool_metric metric;
		struct spool_mark mark;
	} entry;
	if (at[0] == SPOOL_NAME && callbacks->name != NULL) {
		memcpy(&entry.name, at, sizeof(entry.name));
		return callbacks->name(callbacks->data, entry.name.name, (const char *)at + sizeof(entry.name),
			entry.name.length);
	}
	if (!is_wanted)
		return 0;
	if (at[0] == SPOOL_SPAN && callbacks->span != NULL) {
		memcpy(&entry.span, at, sizeof(entry.span));
		return callbacks->span(callbacks->data, &entry.span);
	}
	if (at[0] == SPOOL_METRIC && callbacks->metric != NULL) {
		memcpy(&entry.metric, at, sizeof(entry.metric));
		return callbacks->metric(callbacks->data, &entry.metric);
	}
	if (at[0] == SPOOL_MARK && callbacks->mark != NULL) {
		memcpy(&entry.mark, at, sizeof(entry.mark));
		return callbacks->mark(callbacks->data, &entry.mark);
	}
	return 0;
}

static int handle_chunk(const unsigned char *bytes, size_t n, bool is_wanted, const struct spool_callbacks *callbacks)
{
	int r = 0;
	for (size_t at = 0, size; r == 0 && n - at >= sizeof(uint64_t); at += size) {
		size = entry_size(bytes + at, n - at);
		if (size == 0)
			return 0; // damaged: the next entry cannot be located
		r = visit(bytes + at, is_wanted, callbacks);
	}
	return r;
}

// Reads one chunk. 1; 0 at the end of the complete chunks; or the visitor's return value. *at advances past the chunk.
static int read_chunk(int fd, unsigned char *bytes, int64_t *at, bool is_wanted,
	const struct spool_callbacks *callbacks)
{
	struct spool_chunk chunk;
	ssize_t n = pread(fd, &chunk, sizeof(chunk), *at);
	if (n != (ssize_t)sizeof(chunk) || chunk.magic != SPOOL_CHUNK_MAGIC ||
		chunk.bytes > SPOOL_CHUNK_BYTES - sizeof(chunk))
		return 0;
	n = pread(fd, bytes, chunk.bytes, *at + (int64_t)sizeof(chunk));
	if (n != (ssize_t)chunk.bytes)
		return 0; // incomplete chunk
	int r = handle_chunk(bytes, chunk.bytes, is_wanted, callbacks);
	*at += (int64_t)sizeof(chunk) + chunk.bytes;
	if (r == 0 && is_wanted && callbacks->chunk != NULL)
		r = callbacks->chunk(callbacks->data, *at);
	return r == 0 ? 1 : r;
}

int spool_read(int fd, int64_t from, const struct spool_callbacks *callbacks)
{
	unsigned char *bytes = malloc(SPOOL_CHUNK_BYTES);
	int r = bytes != NULL ? 1 : -ENOMEM;
	for (int64_t at = sizeof(struct spool_header); r == 1;)
		r = read_chunk(fd, bytes, &at, at >= from, callbacks);
	free(bytes);
	return r;
}

int spool_read_on(int fd, int64_t *at, const struct spool_callbacks *callbacks)
{
	unsigned char *bytes = malloc(SPOOL_CHUNK_BYTES);
	int r = bytes != NULL ? 1 : -ENOMEM;
	*at = *at > (int64_t)sizeof(struct spool_header) ? *at : (int64_t)sizeof(struct spool_header);
	while (r == 1)
		r = read_chunk(fd, bytes, at, true, callbacks);
	free(bytes);
	return r;
}
