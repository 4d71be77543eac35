// WATTLE_SPANS: the file that a program leaves, also when it is killed, shares the file or runs out of disk.
#include "rows.h"

#include "span/writer/writer.h"
#include "wattle.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "fake_recorder.h"

static char own_path[1024], folder[] = "/tmp/wattle-spans-XXXXXX";

/* ---- actions of a new process with WATTLE_SPANS set ---- */

static int work_spans(int n)
{
	int failed = 0;
	for (int i = 0; i < n; i++) {
		failed += wattle_span_begin(i % 2 == 0 ? "even" : "odd") != 0;
		failed += wattle_metric("tokens", i) != 0;
		failed += wattle_span_end() != 0;
	}
	return failed;
}

static void *thread_spans(void *unused)
{
	return work_spans(20000) == 0 ? NULL : own_path;
}

static int do_spans(void)
{
	return work_spans(100);
}

static int do_open(void)
{
	wattle_span_begin("never ended");
	return 0;
}

static int do_kill(void)
{
	wattle_span_begin("outer");
	work_spans(10000);
	return raise(SIGKILL);
}

// All have begun before the first one ends; otherwise the next one would take over its blocks.
static void *thread_spans_at_once(void *barrier)
{
	wattle_span_begin("first");
	pthread_barrier_wait(barrier);
	wattle_span_end();
	return thread_spans(NULL);
}

static int do_threads(void)
{
	pthread_barrier_t barrier;
	pthread_barrier_init(&barrier, NULL, 4);
	pthread_t threads[4];
	void *failed = NULL;
	int n_failed = 0;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, thread_spans_at_once, &barrier);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		n_failed += failed != NULL;
	}
	return n_failed;
}

static int do_short_threads(void)
{
	for (int i = 0; i < 500; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, (void *(*)(void *))(void (*)(void))do_spans, NULL) == 0)
			pthread_join(thread, NULL);
	}
	return 0;
}

static int do_fork(void)
{
	wattle_span_begin("parent");
	pid_t pid = fork();
	if (pid == 0)
		_exit(wattle_span_end() == -ENOENT ? work_spans(100) : 100);
	int status = -1;
	waitpid(pid, &status, 0);
	return status != 0 || wattle_span_end() != 0;
}

static int do_other_folder(void)
{
	return chdir("/") != 0 || work_spans(100) != 0;
}

static int do_much(void)
{
	work_spans(100000);
	return 0; // the number of lost spans is what the test checks
}

// The same, with room again afterwards.
static int do_much_twice(void)
{
	struct rlimit limit;
	work_spans(100000);
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_FSIZE, &limit);
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	return work_spans(100) != 0;
}

static int do_is_recording(void)
{
	return wattle_is_recording();
}

static const struct job {
	const char *name;
	int (*run)(void);
} jobs[] = {
	{"spans", do_spans},
	{"open", do_open},
	{"kill", do_kill},
	{"threads", do_threads},
	{"short threads", do_short_threads},
	{"fork", do_fork},
	{"other folder", do_other_folder},
	{"much", do_much},
	{"much twice", do_much_twice},
	{"is recording", do_is_recording},
};

static int run_job(const char *name)
{
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		if (strcmp(jobs[i].name, name) == 0)
			return jobs[i].run();
	return 99;
}

/* ---- the test's side ---- */

static pid_t start(const char *job, const char *file, rlim_t max_bytes)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	struct rlimit limit = {max_bytes, RLIM_INFINITY};
	setrlimit(RLIMIT_FSIZE, &limit);
	if (chdir(folder) != 0 || setenv("WATTLE_SPANS", file, 1) != 0)
		_exit(98);
	execl(own_path, own_path, job, (char *)NULL);
	_exit(97);
}

static int wait_for(pid_t pid)
{
	int status = -1;
	waitpid(pid, &status, 0);
	return status;
}

static int run(const char *job, const char *file)
{
	return wait_for(start(job, file, RLIM_INFINITY));
}

struct span_file {
	struct reading *streams;           // owned
	struct span_block_header *headers; // owned: of each stream's first block
	size_t n_streams, n_blocks;
	uint64_t n_claimed, lost;
};

static size_t stream_of(struct span_file *file, const struct span_block_header *header)
{
	for (size_t i = 0; i < file->n_streams; i++)
		if (file->headers[i].stream == header->stream && file->headers[i].pid == header->pid)
			return i;
	file->streams = realloc(file->streams, (file->n_streams + 1) * sizeof(*file->streams));
	file->headers = realloc(file->headers, (file->n_streams + 1) * sizeof(*file->headers));
	assert_non_null(file->streams);
	assert_non_null(file->headers);
	memset(&file->streams[file->n_streams], 0, sizeof(*file->streams));
	memcpy(&file->headers[file->n_streams], header, sizeof(*header));
	return file->n_streams++;
}

// Blocks of a stream are in ascending order here, because there are no gaps to fill.
static void read_block(struct span_file *file, const char *block)
{
	const struct span_block_header *header = (const void *)block;
	if (header->magic != SPAN_BLOCK_MAGIC)
		return;
	assert_int_equal(header->version, SPAN_FILE_VERSION);
	size_t stream = stream_of(file, header);
	struct reading *reading = &file->streams[stream];
	assert_int_equal(header->n_open, reading->depth);
	assert_true(header->n_used <= SPAN_BLOCK_RECORDS);
	reading_forget_names(reading);
	reading_records(reading, (const void *)(block + SPAN_BLOCK_HEADER_BYTES), header->n_used);
	file->lost += header->lost;
	file->n_blocks++;
}

static struct span_file read_file(const char *name)
{
	struct span_file file = {0};
	struct stat stat;
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_return_code(fd, errno);
	fstat(fd, &stat);
	char *bytes = malloc((size_t)stat.st_size);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)stat.st_size), stat.st_size);
	close(fd);
	unlink(path);
	const struct span_file_header *header = (const void *)bytes;
	assert_int_equal(header->magic, SPAN_FILE_MAGIC);
	file.n_claimed = header->n_claimed;
	for (off_t at = SPAN_BLOCK_BYTES; at + SPAN_BLOCK_BYTES <= stat.st_size; at += SPAN_BLOCK_BYTES)
		read_block(&file, bytes + at);
	free(bytes);
	for (size_t i = 0; i < file.n_streams; i++)
		assert_null(file.streams[i].fault);
	return file;
}

static uint64_t count_begins(const struct span_file *file)
{
	uint64_t n = 0;
	for (size_t i = 0; i < file->n_streams; i++)
		n += file->streams[i].n_begins;
	return n;
}

static void forget(struct span_file *file)
{
	for (size_t i = 0; i < file->n_streams; i++)
		reading_forget_names(&file->streams[i]);
	free(file->streams);
	free(file->headers);
}

static const struct row {
	const char *teaches, *job;
	int status;
	uint64_t n_begins;
	size_t n_streams;
	uint32_t n_open;
} rows[] = {
	{"program ends: its spans are in the file", "spans", 0, 100, 1, 0},
	{"span open at the end: stays open", "open", 0, 1, 1, 1},
	{"program killed: all written spans are in the file", "kill", SIGKILL, 10001, 1, 1},
	{"each thread has blocks of its own", "threads", 0, 80004, 4, 0},
	{"500 threads in succession share blocks", "short threads", 0, 50000, 1, 0},
	{"forked child continues in the same file", "fork", 0, 101, 2, 0},
	{"program changes its working directory: the file stays at its path", "other folder", 0, 100, 1, 0},
};

static void check(void **state)
{
	const struct row *row = *state;
	assert_int_equal(run(row->job, "spans"), row->status);
	struct span_file file = read_file("spans");
	uint32_t n_open = 0;
	for (size_t i = 0; i < file.n_streams; i++)
		n_open += file.streams[i].depth;
	assert_int_equal(count_begins(&file), row->n_begins);
	assert_int_equal(file.n_streams, row->n_streams);
	assert_int_equal(n_open, row->n_open);
	assert_int_equal(file.lost, 0);
	assert_int_equal(file.n_claimed, file.n_blocks);
	forget(&file);
}

static void the_pid_in_the_name(void **state)
{
	pid_t pid = start("spans", "of-%p-spans", RLIM_INFINITY);
	assert_int_equal(wait_for(pid), 0);
	char name[64];
	snprintf(name, sizeof(name), "of-%d-spans", pid);
	struct span_file file = read_file(name);
	assert_int_equal(file.headers[0].pid, pid);
	assert_true(file.headers[0].anchor_wall_ns > INT64_C(1600000000000000000));
	assert_true(memcmp(file.headers[0].boot_id, (uint8_t[16]){0}, 16) != 0);
	forget(&file);
}

static void processes_share_a_file(void **state)
{
	pid_t pids[4];
	for (int i = 0; i < 4; i++)
		pids[i] = start("threads", "shared", RLIM_INFINITY);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wait_for(pids[i]), 0);
	struct span_file file = read_file("shared");
	assert_int_equal(count_begins(&file), 4 * 80004);
	assert_int_equal(file.n_streams, 16);
	assert_int_equal(file.n_claimed, file.n_blocks);
	forget(&file);
}

static void a_file_is_continued(void **state)
{
	assert_int_equal(run("spans", "twice"), 0);
	assert_int_equal(run("spans", "twice"), 0);
	struct span_file file = read_file("twice");
	assert_int_equal(count_begins(&file), 200);
	assert_int_equal(file.n_streams, 2);
	forget(&file);
}

// At the file size limit neither SIGXFSZ nor SIGBUS kills the program.
static void beyond_the_size_limit(void **state)
{
	assert_int_equal(wait_for(start("much", "limited", 5 * SPAN_BLOCK_BYTES)), 0);
	struct span_file file = read_file("limited");
	assert_int_equal(file.n_blocks, 4);
	// The last block reports it.
	assert_int_equal(count_begins(&file) * 2 + file.lost, 200000);
	forget(&file);
}

static void room_again(void **state)
{
	assert_int_equal(wait_for(start("much twice", "limited", 5 * SPAN_BLOCK_BYTES)), 0);
	struct span_file file = read_file("limited");
	assert_int_equal(file.n_blocks, 5);
	assert_int_equal((count_begins(&file) - 100) * 2 + file.lost, 200000);
	forget(&file);
}

static int on_a_small_disk(void)
{
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("none", folder, "tmpfs", 0, "size=512k") != 0)
		return 77;
	if (run("much", "full") != 0)
		return 1;
	struct span_file file = read_file("full");
	bool is_right = file.n_blocks == 7 && count_begins(&file) * 2 + file.lost == 200000;
	forget(&file);
	return is_right ? 0 : 2;
}

static void a_full_disk(void **state)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(on_a_small_disk());
	int status = wait_for(pid);
	if (WEXITSTATUS(status) == 77)
		SKIP_BECAUSE("needs the right to mount in a namespace of its own");
	assert_int_equal(status, 0);
}

static const struct refused_row {
	const char *teaches, *content;
} refused_rows[] = {
	{"existing text file: not touched", "some notes\nthat matter\n"},
	{"existing short file: not touched", "x"},
	{"existing file of zeros: not touched", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"},
};

static void check_refused(void **state)
{
	const struct refused_row *row = *state;
	char path[256], back[64] = "";
	size_t length = row->content[0] != '\0' ? strlen(row->content) : 20;
	snprintf(path, sizeof(path), "%s/notes", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_TRUNC, 0600);
	assert_int_equal(write(fd, row->content, length), (ssize_t)length);
	assert_int_equal(run("is recording", "notes"), 0);
	assert_int_equal(run("spans", "notes"), 0); // every call succeeds, nothing is written
	assert_int_equal(pread(fd, back, sizeof(back), 0), (ssize_t)length);
	assert_memory_equal(back, row->content, length);
	close(fd);
	unlink(path);
}

static void an_empty_file_is_taken(void **state)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/empty", folder);
	close(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(run("spans", "empty"), 0);
	struct span_file file = read_file("empty");
	assert_int_equal(count_begins(&file), 100);
	forget(&file);
}

static void no_such_folder(void **state)
{
	assert_int_equal(run("spans", "missing/spans"), 0);
	assert_int_equal(run("spans", "/dev/null"), 0);
	assert_int_equal(run("is recording", "missing/spans"), 0);
}

static void file_after_a_gone_recorder(void **state)
{
	setenv("WATTLE_RING", "1:0:2048:00000000feedface:@wattle-nobody", 1);
	assert_int_equal(run("spans", "instead"), 0);
	unsetenv("WATTLE_RING");
	struct span_file file = read_file("instead");
	assert_int_equal(count_begins(&file), 100);
	assert_int_equal(file.lost, 0);
	forget(&file);
}

int main(int argc, char **argv)
{
	struct rows tests = {0};
	if (argc > 1)
		return run_job(argv[1]);
	assert_true(readlink("/proc/self/exe", own_path, sizeof(own_path) - 1) > 0);
	assert_non_null(mkdtemp(folder));
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "%p in the name is the pid", the_pid_in_the_name);
	ROWS_ADD_ONE(&tests, "four processes with four threads each share a file", processes_share_a_file);
	ROWS_ADD_ONE(&tests, "existing span file: continued", a_file_is_continued);
	ROWS_ADD_ONE(&tests, "file size limit reached: spans are lost and counted", beyond_the_size_limit);
	ROWS_ADD_ONE(&tests, "room again after the limit: recording continues", room_again);
	ROWS_ADD_ONE(&tests, "disk full: spans are lost and counted", a_full_disk);
	ROWS_ADD(&tests, refused_rows, check_refused);
	ROWS_ADD_ONE(&tests, "existing empty file: used", an_empty_file_is_taken);
	ROWS_ADD_ONE(&tests, "missing folder, device: nothing is recorded", no_such_folder);
	ROWS_ADD_ONE(&tests, "recorder gone: spans go to the file", file_after_a_gone_recorder);
	int failed = rows_run(&tests, "span_file");
	rmdir(folder);
	return failed;
}
