/* Processes of known memory use: forked workers that write to a part of inherited memory, shared
 * segments, trees that grow and shrink. The last line on stdout is JSON with the bytes that main, descendants and all of
 * them together hold at the peak, without the program itself and its C library (1 to 2 MB a process, most of it shared).
 *
 *	memory_tree fork BYTES WORKERS PERCENT SECONDS
 *		fills BYTES, forks WORKERS; each writes to PERCENT of the pages; all hold that for SECONDS
 *	memory_tree scattered BYTES WORKERS PERCENT SECONDS
 *		the same, with pages all over the memory instead of those at its beginning
 *	memory_tree anonymous|memfd|file BYTES WORKERS SECONDS
 *		fills a shared mapping of BYTES, of which each of WORKERS reads every page
 *	memory_tree waves BYTES WORKERS SECONDS
 *		workers start one after the other and each fills BYTES, within half of SECONDS; they end in the same way
 *	memory_tree loop BYTES WORKERS SECONDS
 *		fills BYTES, forks WORKERS; each allocates, fills and frees 4 MB, some 19 times a second */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, LOOP_BYTES = 4 << 20 };

struct work {
	char *memory;
	size_t bytes;
	long workers;
	double percent, seconds;
};

static void fail(const char *what)
{
	fprintf(stderr, "memory_tree: %s: %s\n", what, strerror(errno));
	exit(3);
}

static void sleep_s(double seconds)
{
	struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

static char *map(size_t bytes, int flags, int fd)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	return memory;
}

static void fill(char *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PAGE)
		memory[i] = 1;
}

// Each worker runs `act`, reports that it is ready, and lives until the parent releases it.
static void with_workers(const struct work *work, void (*act)(const struct work *work), double hold_s)
{
	int ready[2], end[2];
	if (pipe(ready) != 0 || pipe(end) != 0)
		fail("pipe");
	for (long i = 0; i < work->workers; i++) {
		pid_t pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid != 0)
			continue;
		char letter = 'r';
		close(end[1]);
		act(work);
		if (write(ready[1], &letter, 1) != 1 || read(end[0], &letter, 1) < 0)
			_exit(3);
		_exit(0);
	}
	char letter;
	for (long i = 0; i < work->workers; i++)
		if (read(ready[0], &letter, 1) != 1)
			fail("a worker");
	sleep_s(hold_s);
	close(end[1]);
	while (wait(NULL) > 0) {}
}

static void tell(double main_bytes, double descendants_bytes, double combined_bytes)
{
	printf("{\"main\": %.0f, \"descendants\": %.0f, \"combined\": %.0f}\n", main_bytes, descendants_bytes,
		combined_bytes);
}

/* ---- actions of workers ---- */

static void write_first(const struct work *work)
{
	size_t bytes = (size_t)((double)work->bytes * work->percent / 100);
	fill(work->memory, bytes);
}

static void write_scattered(const struct work *work)
{
	for (size_t i = 0, part = 0; i < work->bytes; i += PAGE, part += (size_t)work->percent) {
		if (part % 100 + (size_t)work->percent >= 100)
			work->memory[i] = 2;
	}
}

static void read_all(const struct work *work)
{
	volatile char sum = 0;
	for (size_t i = 0; i < work->bytes; i += PAGE)
		sum = (char)(sum + work->memory[i]);
}

static void allocate_and_free(const struct work *work)
{
	struct timespec now, begin;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		char *memory = map(LOOP_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		fill(memory, LOOP_BYTES);
		sleep_s(0.002);
		munmap(memory, LOOP_BYTES);
		sleep_s(0.05); // 16 of them would use all CPUs otherwise
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) * 1e-9 < work->seconds);
}

/* ---- kinds of trees ---- */

static void forked(struct work *work, void (*act)(const struct work *work))
{
	work->memory = map(work->bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	fill(work->memory, work->bytes);
	with_workers(work, act, work->seconds);
	double bytes = (double)work->bytes, copied = bytes * work->percent / 100, n = (double)work->workers;
	tell(bytes, n * copied + bytes - copied, bytes + n * copied);
}

static void looping(struct work *work)
{
	work->memory = map(work->bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	fill(work->memory, work->bytes);
	with_workers(work, allocate_and_free, 0);
	double bytes = (double)work->bytes, own = (double)work->workers * LOOP_BYTES;
	tell(bytes, bytes + own, bytes + own);
}

static int shared_file(const char *kind)
{
	if (strcmp(kind, "memfd") == 0)
		return memfd_create("memory_tree", MFD_CLOEXEC);
	char path[] = "/dev/shm/memory_tree-XXXXXX";
	int fd = mkstemp(path);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static void sharing(struct work *work, const char *kind)
{
	int fd = -1;
	if (strcmp(kind, "anonymous") != 0) {
		fd = shared_file(kind);
		if (fd < 0 || ftruncate(fd, (off_t)work->bytes) != 0)
			fail(kind);
	}
	work->memory = map(work->bytes, fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd);
	fill(work->memory, work->bytes);
	with_workers(work, read_all, work->seconds);
	tell((double)work->bytes, (double)work->bytes, (double)work->bytes);
}

static void waves(const struct work *work)
{
	double pause_s = work->seconds / 2 / (double)work->workers;
	int ready[2], end[2];
	char letter = 'r';
	if (pipe(ready) != 0 || pipe(end) != 0)
		fail("pipe");
	for (long i = 0; i < work->workers; i++, sleep_s(pause_s)) {
		pid_t pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid != 0) {
			if (read(ready[0], &letter, 1) != 1)
				fail("a worker");
			continue;
		}
		close(end[1]);
		fill(map(work->bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1), work->bytes);
		_exit(write(ready[1], &letter, 1) == 1 && read(end[0], &letter, 1) == 1 ? 0 : 3);
	}
	for (long i = 0; i < work->workers; i++, sleep_s(pause_s))
		if (write(end[1], "e", 1) != 1 || wait(NULL) < 0)
			fail("a worker");
	double sum = (double)work->workers * (double)work->bytes;
	tell(0, sum, sum);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	int has_percent = strcmp(kind, "fork") == 0 || strcmp(kind, "scattered") == 0;
	if (argc != 5 + has_percent) {
		fprintf(stderr, "usage: memory_tree KIND BYTES WORKERS [PERCENT] SECONDS\n");
		return 2;
	}
	struct work work = {
		.bytes = strtoull(argv[2], NULL, 10),
		.workers = atol(argv[3]),
		.percent = has_percent ? atof(argv[4]) : 0,
		.seconds = atof(argv[argc - 1]),
	};
	if (has_percent)
		forked(&work, kind[0] == 'f' ? write_first : write_scattered);
	else if (strcmp(kind, "waves") == 0)
		waves(&work);
	else if (strcmp(kind, "loop") == 0)
		looping(&work);
	else
		sharing(&work, kind);
	return 0;
}
