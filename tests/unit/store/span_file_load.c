/* Span files made block by block, and read back as a run. */
#include "span/span_file_format.h"
#include "store/sub_tracking.h"

#include "rows.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t MONO_NS = 1000 * NS_PER_S, WALL_NS = 1700000000 * NS_PER_S;

struct file {
	char path[64];
	int fd;
	int64_t n_blocks;
};

struct block {
	union {
		struct span_block_header header;
		unsigned char bytes[SPAN_BLOCK_BYTES];
	};
};

static void open_file(struct file *f)
{
	text_copy(f->path, sizeof(f->path), "/tmp/wattle-spans-XXXXXX");
	f->fd = mkstemp(f->path);
	assert_true(f->fd >= 0);
	const struct span_file_header header = {
		.magic = SPAN_FILE_MAGIC, .version = SPAN_FILE_VERSION, .block_bytes = SPAN_BLOCK_BYTES};
	assert_int_equal(pwrite(f->fd, &header, sizeof(header), 0), sizeof(header));
	f->n_blocks = 1;
}

static void close_file(struct file *f)
{
	close(f->fd);
	unlink(f->path);
}

static struct block block_of(int32_t pid, uint64_t stream, uint64_t sequence)
{
	return (struct block){.header = {.magic = SPAN_BLOCK_MAGIC,
				      .version = SPAN_FILE_VERSION,
				      .pid = pid,
				      .tid = pid + (int32_t)stream,
				      .image = 1,
				      .stream = stream,
				      .sequence = sequence,
				      .boot_id = {1},
				      .anchor_mono_ns = MONO_NS,
				      .anchor_wall_ns = WALL_NS}};
}

static void put(struct block *block, enum record_kind kind, int64_t at_ms, uint16_t slot, uint32_t n)
{
	struct span_record record = {
		.t_ns = MONO_NS + at_ms * NS_PER_MS, .kind = (uint8_t)kind, .slot = slot, .n = n};
	memcpy(block->bytes + SPAN_BLOCK_HEADER_BYTES + block->header.n_used++ * sizeof(record), &record,
		sizeof(record));
}

static void put_name(struct block *block, uint16_t slot, const char *name)
{
	put(block, RECORD_NAME, 0, slot, (uint32_t)strlen(name));
	strncpy((char *)block->bytes + SPAN_BLOCK_HEADER_BYTES + block->header.n_used++ * 16, name, 16);
}

static void put_number(struct block *block, uint64_t number)
{
	const struct record_extra extra = {.number = number};
	memcpy(block->bytes + SPAN_BLOCK_HEADER_BYTES + block->header.n_used++ * 16, &extra, sizeof(extra));
}

static void write_block(struct file *f, const struct block *block, size_t bytes)
{
	assert_int_equal(pwrite(f->fd, block->bytes, bytes, f->n_blocks++ * SPAN_BLOCK_BYTES), bytes);
}

static struct run load(const struct file *f)
{
	struct run run;
	struct wattle_error error = {0};
	if (span_file_load(f->path, &run, &error) < 0)
		fail_msg("%s", error.text);
	return run;
}

static void streams_go_on_from_block_to_block(void **state)
{
	struct file f;
	open_file(&f);
	struct block first = block_of(10, 0, 0), second = block_of(10, 0, 1), other = block_of(10, 1, 0);
	put_name(&first, 0, "outer");
	put(&first, RECORD_BEGIN, 1, 0, 0);
	second.header.n_open = 1;
	put_name(&second, 0, "inner"); // the table of names starts again
	put(&second, RECORD_BEGIN, 3, 0, 0);
	put(&second, RECORD_END, 4, 0, 1);
	put(&second, RECORD_END, 5, 0, 1);
	put_name(&other, 3, "other");
	put(&other, RECORD_BEGIN, 2, 3, 0);
	put(&other, RECORD_END, 6, 0, 1);
	write_block(&f, &second, SPAN_BLOCK_BYTES); // in any order
	write_block(&f, &other, SPAN_BLOCK_BYTES);
	write_block(&f, &first, SPAN_BLOCK_BYTES);
	struct run run = load(&f);
	assert_int_equal(run.n_spans, 3);
	assert_string_equal(run.spans[0].name, "outer");
	assert_int_equal(run.spans[0].end_ns - run.spans[0].begin_ns, 4 * NS_PER_MS);
	assert_string_equal(run.spans[1].name, "other");
	assert_int_equal(run.spans[1].tid, 11);
	assert_string_equal(run.spans[2].name, "inner");
	assert_int_equal(run.spans[2].parent, run.spans[0].id);
	assert_int_equal(run_wall_ns(&run, MONO_NS), WALL_NS);
	assert_int_equal(run.segments[0].end_ns, MONO_NS + 6 * NS_PER_MS);
	assert_false(value_ok(run.segments[0].main_cpu_ns));
	run_finish(&run);
	close_file(&f);
}

static void a_killed_program_leaves_what_it_wrote(void **state)
{
	struct file f;
	open_file(&f);
	struct block block = block_of(10, 0, 0);
	put_name(&block, 0, "killed");
	put(&block, RECORD_BEGIN, 1, 0, 0);
	put(&block, RECORD_RANGE_BEGIN, 2, 0, 0);
	put_number(&block, 7);
	put(&block, RECORD_MARK, 9, 0, 0);
	block.header.n_used += 100000; // more than a block holds
	f.n_blocks++;                  // allocated and never written
	write_block(&f, &block, SPAN_BLOCK_HEADER_BYTES + 6 * 16 + 5); // incomplete
	struct run run = load(&f);
	assert_int_equal(run.n_spans, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(run.spans[i].close, SPAN_AT_DEATH);
		assert_int_equal(run.spans[i].end_ns, MONO_NS + 9 * NS_PER_MS);
	}
	assert_int_equal(run.n_events, 1);
	assert_string_equal(run.events[0].kind_name, "mark");
	run_finish(&run);
	close_file(&f);
}

static void runs_of_two_starts_of_the_machine_share_a_clock(void **state)
{
	struct file f;
	open_file(&f);
	struct block early = block_of(10, 0, 0), late = block_of(10, 0, 0);
	late.header.boot_id[0] = 2;
	late.header.anchor_wall_ns += 3600 * NS_PER_S;
	put_name(&early, 0, "a");
	put(&early, RECORD_BEGIN, 1, 0, 0);
	put(&early, RECORD_END, 2, 0, 1);
	put_name(&late, 0, "a");
	put(&late, RECORD_BEGIN, 1, 0, 0);
	put(&late, RECORD_END, 2, 0, 1);
	write_block(&f, &late, SPAN_BLOCK_BYTES);
	write_block(&f, &early, SPAN_BLOCK_BYTES);
	struct run run = load(&f);
	assert_int_equal(run.n_spans, 2);
	assert_int_equal(run.spans[1].begin_ns - run.spans[0].begin_ns, 3600 * NS_PER_S);
	assert_ptr_equal(run.spans[0].name, run.spans[1].name);
	run_finish(&run);
	close_file(&f);
}

static void a_block_that_is_missing_harms_itself_only(void **state)
{
	struct file f;
	open_file(&f);
	struct block first = block_of(10, 0, 0), third = block_of(10, 0, 2);
	put_name(&first, 0, "a");
	put(&first, RECORD_BEGIN, 1, 0, 0);
	put(&first, RECORD_BEGIN, 2, 0, 0);
	put_name(&third, 0, "b");
	third.header.n_open = 1; // the thread has ended in the second of the two
	put(&third, RECORD_BEGIN, 5, 0, 0);
	put(&third, RECORD_END, 6, 0, 1);
	put(&third, RECORD_END, 7, 0, 1);
	write_block(&f, &first, SPAN_BLOCK_BYTES);
	write_block(&f, &third, SPAN_BLOCK_BYTES);
	struct run run = load(&f);
	assert_int_equal(run.n_spans, 3);
	assert_int_equal(run.spans[1].close, SPAN_UNWOUND);
	assert_int_equal(run.spans[0].end_ns, MONO_NS + 7 * NS_PER_MS);
	assert_int_equal(run.spans[2].parent, run.spans[0].id);
	run_finish(&run);
	close_file(&f);
}

static void noise_is_read_without_harm(void **state)
{
	struct file f;
	open_file(&f);
	uint64_t noise = 1;
	for (int i = 0; i < 20; i++) {
		struct block block = block_of(10, 0, (uint64_t)i);
		for (size_t at = SPAN_BLOCK_HEADER_BYTES; at < SPAN_BLOCK_BYTES; at++) {
			noise = noise * 6364136223846793005 + 1442695040888963407;
			block.bytes[at] = at % 16 == 8 ? (unsigned char)(noise >> 60) : (unsigned char)(noise >> 56);
		}
		block.header.n_used = SPAN_BLOCK_RECORDS;
		write_block(&f, &block, SPAN_BLOCK_BYTES);
	}
	struct run run = load(&f);
	for (size_t i = 0; i < run.n_spans; i++)
		assert_true(run.spans[i].begin_ns <= run.spans[i].end_ns);
	run_finish(&run);
	close_file(&f);
}

static void other_files_are_refused(void **state)
{
	struct run run;
	struct wattle_error error = {0};
	struct file f;
	open_file(&f);
	assert_int_equal(pwrite(f.fd, "CSV,", 4, 0), 4);
	assert_int_equal(span_file_load(f.path, &run, &error), -EINVAL);
	assert_false(span_file_probe(f.path));
	close_file(&f);
	assert_int_equal(span_file_load(f.path, &run, &error), -ENOENT);
	assert_int_equal(span_file_load("/tmp", &run, &error), -EINVAL);
	open_file(&f);
	const uint32_t version = 99;
	assert_int_equal(pwrite(f.fd, &version, sizeof(version), 4), 4);
	assert_int_equal(span_file_load(f.path, &run, &error), -ENOTSUP);
	close_file(&f);
	open_file(&f); // nothing was ever written to it
	run = load(&f);
	assert_int_equal(run.n_spans, 0);
	run_finish(&run);
	close_file(&f);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD_ONE(&tests, "streams continue from block to block, in any order of blocks",
		streams_go_on_from_block_to_block);
	ROWS_ADD_ONE(&tests, "killed program: its written spans are read", a_killed_program_leaves_what_it_wrote);
	ROWS_ADD_ONE(&tests, "runs of two boots share a clock", runs_of_two_starts_of_the_machine_share_a_clock);
	ROWS_ADD_ONE(&tests, "missing block: only its own records are lost", a_block_that_is_missing_harms_itself_only);
	ROWS_ADD_ONE(&tests, "noise: read without a crash", noise_is_read_without_harm);
	ROWS_ADD_ONE(&tests, "other files: refused", other_files_are_refused);
	return rows_run(&tests, "span_file_load");
}
