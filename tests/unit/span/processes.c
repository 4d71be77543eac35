// Threads that start and end, forks, exec, plugins, descriptors: the source of rings and who may write to them.
#include "rows.h"

#include "span/writer/internal.h"
#include "span/writer/writer.h"
#include "wattle.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "fake_recorder.h"

static struct fake_recorder connected(uint32_t n_records)
{
	struct fake_recorder fake;
	fake_open(&fake, n_records, 0);
	assert_int_equal(span_writer_connect(fake.address), 0);
	return fake;
}

static void disconnect(struct fake_recorder *fake)
{
	span_writer_disconnect();
	fake_close(fake);
}

static struct reading sum(const struct fake_recorder *fake)
{
	struct reading sum = {0};
	for (size_t i = 0; i < fake->n; i++) {
		const struct reading *reading = &fake->rings[i].reading;
		assert_null(reading->fault);
		sum.n_begins += reading->n_begins;
		sum.n_ended += reading->n_ended;
		sum.n_threads += reading->n_threads;
		sum.n_thread_ends += reading->n_thread_ends;
		sum.depth += reading->depth;
	}
	return sum;
}

static void *one_span(void *unused)
{
	(void)span_begin("short life", NULL, NULL);
	(void)span_begin("left open", NULL, NULL);
	(void)span_end();
	return NULL;
}

static void short_threads_share_a_ring(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	for (int i = 0; i < 2000; i++) {
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, one_span, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		fake_read_all(&fake);
	}
	assert_int_equal(fake.n, 1);
	assert_int_equal(fake.rings[0].reading.n_begins, 4000);
	assert_int_equal(fake.rings[0].reading.n_threads, 1999);
	assert_int_equal(fake.rings[0].reading.n_thread_ends, 2000);
	assert_int_equal(fake.rings[0].header->lost, 0);
	disconnect(&fake);
}

static void *thousand_spans(void *barrier)
{
	pthread_barrier_wait(barrier);
	for (int i = 0; i < 1000; i++) {
		(void)span_begin("at once", NULL, NULL);
		(void)span_end();
	}
	pthread_barrier_wait(barrier);
	return NULL;
}

static void threads_at_once_have_their_own(void **state)
{
	enum { THREADS = 16 };
	struct fake_recorder fake = connected(4096);
	pthread_barrier_t barrier;
	pthread_t threads[THREADS];
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, thousand_spans, &barrier), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fake_read_all(&fake);
	assert_int_equal(fake.n, THREADS);
	assert_int_equal(sum(&fake).n_ended, THREADS * 1000);
	assert_int_equal(sum(&fake).n_thread_ends, THREADS);
	for (size_t i = 1; i < fake.n; i++)
		assert_int_equal(fake.rings[i].hello.image, fake.rings[0].hello.image);
	pthread_barrier_destroy(&barrier);
	disconnect(&fake);
}

static pthread_key_t late_key;

static void late_spans(void *unused)
{
	(void)span_begin("late", NULL, NULL);
	(void)span_end();
}

static void *end_with_a_destructor(void *unused)
{
	(void)span_begin("early", NULL, NULL);
	(void)span_end();
	pthread_setspecific(late_key, &late_key);
	return NULL;
}

static void destructors_may_mark_spans(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	pthread_t thread;
	assert_int_equal(pthread_key_create(&late_key, late_spans), 0);
	pthread_create(&thread, NULL, end_with_a_destructor, NULL);
	pthread_join(thread, NULL);
	assert_string_equal(fake_only(&fake)->reading.log, "begin early\nend\nbegin late\nend\nthread end\n");
	pthread_key_delete(late_key);
	disconnect(&fake);
}

static int status_of(pid_t pid)
{
	int status = -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void child_work(void)
{
	if (span_end() != -ENOENT)
		_exit(1);
	if (span_begin("in the child", NULL, NULL) != 0 || span_end() != 0)
		_exit(2);
	_exit(span_depth() != 0 ? 3 : 0);
}

// fork of the C library, and the bare system call, after which no fork handler runs.
static void check_fork(pid_t (*fork_by)(void))
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	assert_int_equal(span_begin("in the parent", NULL, NULL), 0);
	pid_t pid = fork_by();
	if (pid == 0)
		child_work();
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(span_end(), 0);
	fake_read_all(&fake);
	assert_int_equal(fake.n, 2);
	assert_string_equal(fake.rings[0].reading.log, "begin in the parent\nend\n");
	assert_string_equal(fake.rings[1].reading.log, "begin in the child\nend\n");
	assert_int_equal(fake.rings[0].hello.pid, getpid());
	assert_int_equal(fake.rings[1].hello.pid, pid);
	assert_int_equal(fake.rings[1].hello.image, fake.rings[0].hello.image);
	disconnect(&fake);
}

static void a_fork_has_its_own_ring(void **state)
{
	check_fork(fork);
}

static void a_bare_fork_too(void **state)
{
	check_fork(_Fork);
}

static void ranges_of_the_parent_are_not_the_childs(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	uint64_t range;
	assert_int_equal(span_range_begin("load", NULL, &range), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(span_range_end(range) == -ENOENT ? 0 : 1);
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(span_range_end(range), 0);
	disconnect(&fake);
}

static void threads_of_a_child(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	pthread_t thread;
	pthread_create(&thread, NULL, one_span, NULL);
	pthread_join(thread, NULL);
	(void)span_begin("outer", NULL, NULL);
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 50; i++) {
			(void)one_span(NULL);
			if (pthread_create(&thread, NULL, one_span, NULL) != 0)
				_exit(1);
			pthread_join(thread, NULL);
		}
		_exit(0);
	}
	assert_int_equal(status_of(pid), 0);
	fake_read_all(&fake);
	struct reading all = sum(&fake);
	assert_int_equal(fake.n, 4); // two of the parent, two of the child
	assert_int_equal(all.n_begins, 1 + 2 + 50 * 4);
	disconnect(&fake);
}

/* ---- descriptors ---- */

static int next_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(fd);
	return fd;
}

static void no_descriptor_stays(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	int before = next_descriptor();
	assert_int_equal(span_begin("a", NULL, NULL), 0);
	assert_int_equal(next_descriptor(), before);
	assert_int_equal(span_end(), 0);
	disconnect(&fake);
}

static void out_of_descriptors(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	struct rlimit limit, none;
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	assert_int_equal(span_begin("lost", NULL, NULL), -ENOBUFS);
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(span_begin("too early to try again", NULL, NULL), -ENOBUFS);
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	assert_int_equal(span_begin("kept", NULL, NULL), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(span_end(), 0);
	struct fake_ring *ring = fake_only(&fake);
	assert_string_equal(ring->reading.log, "begin kept\nend\n");
	assert_int_equal(ring->header->lost, 2);
	disconnect(&fake);
}

// Replaces libc's: the next calls fail as if the recorder had closed the connection.
static int sends_to_fail;
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (sends_to_fail > 0) {
		sends_to_fail--;
		errno = EPIPE;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, message, flags);
}

// A recorder with too many connections that have not sent anything closes the oldest ones.
static void a_closed_connection(void **state)
{
	struct fake_recorder fake = connected(RING_RECORDS_MIN);
	sends_to_fail = 1;
	assert_int_equal(span_begin("lost", NULL, NULL), -ENOBUFS);
	close(accept(fake.fd, NULL, NULL));
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	assert_int_equal(span_begin("kept", NULL, NULL), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(span_end(), 0);
	struct fake_ring *ring = fake_only(&fake);
	assert_string_equal(ring->reading.log, "begin kept\nend\n");
	assert_int_equal(ring->header->lost, 1);
	disconnect(&fake);
}

// A ring is a file for the kernel, which kills a program that makes one longer than RLIMIT_FSIZE.
static const struct file_limit_row {
	const char *teaches;
	rlim_t bytes;
	uint32_t n_records; // size of the ring; 0: none is created
} file_limits[] = {
	{"no file size limit: a ring of the requested size", RLIM_INFINITY, 8192},
	{"file size limit of 40 kB: a smaller ring, the program continues", 40000, 2048},
	{"file size limit of 1 kB: no ring, the program continues", 1000, 0},
};

static void check_file_limit(void **state)
{
	const struct file_limit_row *row = *state;
	struct fake_recorder fake = connected(8192);
	struct rlimit limit, own;
	getrlimit(RLIMIT_FSIZE, &limit);
	own = limit;
	own.rlim_cur = row->bytes;
	setrlimit(RLIMIT_FSIZE, &own);
	int r = span_begin("a", NULL, NULL);
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(r, row->n_records > 0 ? 0 : -ENOBUFS);
	assert_int_equal(span_end(), 0);
	fake_read_all(&fake);
	assert_int_equal(fake.n, row->n_records > 0);
	if (fake.n > 0)
		assert_int_equal(fake_only(&fake)->hello.n_records, row->n_records);
	disconnect(&fake);
}

/* ---- other images ---- */

// Output of this program when it is executed again: image, whether it records, and a span.
static int probe(void)
{
	int is_recording = wattle_is_recording(), begin = wattle_span_begin("probe"), end = wattle_span_end();
	printf("%u %d %d %d\n", span_image(), is_recording, begin, end);
	return 0;
}

struct answer {
	unsigned image;
	int is_recording, begin, end;
};

static struct answer ask(const char *program, const char *variables, const char *ring)
{
	struct answer answer = {0};
	char command[2048];
	snprintf(command, sizeof(command), "%s WATTLE_RING='%s' '%s' probe", variables, ring, program);
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%u %d %d %d", &answer.image, &answer.is_recording, &answer.begin, &answer.end),
		4);
	assert_int_equal(pclose(pipe), 0);
	return answer;
}

static char own_path[1024];

static void each_exec_is_an_image(void **state)
{
	struct fake_recorder fake;
	fake_open(&fake, RING_RECORDS_MIN, 0);
	struct answer first = ask(own_path, "", fake.address), second = ask(own_path, "", fake.address);
	assert_int_not_equal(first.image, second.image);
	assert_int_equal(first.is_recording, 1);
	fake_read_all(&fake);
	assert_int_equal(fake.n, 2);
	assert_int_equal(fake.rings[0].hello.image, first.image);
	assert_string_equal(fake.rings[1].reading.log, "begin probe\nend\n");
	fake_close(&fake);
}

static const struct environment_row {
	const char *teaches, *variables;
	int is_recording;
} environment_rows[] = {
	{"WATTLE_DISABLE=1 disables recording", "WATTLE_DISABLE=1", 0},
	{"WATTLE_DISABLE=0 does not disable recording", "WATTLE_DISABLE=0", 1},
	{"WATTLE_DISABLE overrides WATTLE_SPANS", "WATTLE_DISABLE=1 WATTLE_SPANS=/dev/null/x", 0},
};

static void check_environment(void **state)
{
	const struct environment_row *row = *state;
	struct fake_recorder fake;
	fake_open(&fake, RING_RECORDS_MIN, 0);
	struct answer answer = ask(own_path, row->variables, fake.address);
	assert_int_equal(answer.is_recording, row->is_recording);
	assert_int_equal(answer.begin, 0);
	assert_int_equal(answer.end, 0);
	fake_read_all(&fake);
	assert_int_equal(fake.n, row->is_recording);
	fake_close(&fake);
}

// A set-uid copy of this program that belongs to root, started by user nobody.
static void set_uid_programs_do_not_look(void **state)
{
	char folder[] = "/tmp/wattle-setuid-XXXXXX", copy[64], command[2048];
	if (geteuid() != 0)
		SKIP_BECAUSE("needs root to make a set-uid program");
	struct fake_recorder fake;
	assert_non_null(mkdtemp(folder));
	snprintf(copy, sizeof(copy), "%s/probe", folder);
	snprintf(command, sizeof(command), "cp '%s' %s && chmod 755 %s && chmod 4755 %s", own_path, copy, folder, copy);
	assert_int_equal(system(command), 0);
	fake_open(&fake, RING_RECORDS_MIN, 0);
	snprintf(command, sizeof(command), "ASAN_OPTIONS=detect_leaks=0 setpriv --reuid 65534 --clear-groups env");
	struct answer answer = ask(copy, command, fake.address);
	fake_read_all(&fake);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	size_t n_rings = fake.n;
	fake_close(&fake);
	assert_int_equal(answer.is_recording, 0);
	assert_int_equal(n_rings, 0);
}

/* ---- plugins ---- */

static void *work_in(void *plugin)
{
	int (*work)(const char *) = (int (*)(const char *))(uintptr_t)dlsym(plugin, "plugin_work");
	return work != NULL && work("in the plugin") == 0 ? NULL : plugin;
}

static void plugins_come_and_go(void **state)
{
	struct fake_recorder fake;
	char path[1024];
	fake_open(&fake, RING_RECORDS_MIN, 0);
	setenv("WATTLE_RING", fake.address, 1);
	snprintf(path, sizeof(path), "%s/tests/unit/span/libspan-plugin.so", getenv("WATTLE_BUILD"));
	for (int i = 0; i < 3; i++) {
		pthread_t thread;
		void *failed = NULL, *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		assert_non_null(plugin);
		assert_null(work_in(plugin));
		pthread_create(&thread, NULL, work_in, plugin);
		pthread_join(thread, &failed);
		assert_null(failed);
		assert_int_equal(dlclose(plugin), 0);
	}
	unsetenv("WATTLE_RING");
	fake_read_all(&fake);
	assert_int_equal(sum(&fake).n_ended, 6);
	for (size_t i = 0; i < fake.n; i++)
		assert_int_equal(fake.rings[i].hello.image, span_image());
	// A thread that had spans in a plugin ends after the plugin was unloaded.
	fake_close(&fake);
}

struct outliving {
	void *plugin;
	pthread_barrier_t barrier;
};

static void *outlive(void *argument)
{
	struct outliving *outliving = argument;
	void *failed = work_in(outliving->plugin);
	pthread_barrier_wait(&outliving->barrier);
	pthread_barrier_wait(&outliving->barrier); // unloaded meanwhile
	return failed;
}

static void threads_outlive_plugins(void **state)
{
	struct fake_recorder fake;
	struct outliving outliving;
	char path[1024];
	void *failed = NULL;
	pthread_t thread;
	fake_open(&fake, RING_RECORDS_MIN, 0);
	setenv("WATTLE_RING", fake.address, 1);
	snprintf(path, sizeof(path), "%s/tests/unit/span/libspan-plugin.so", getenv("WATTLE_BUILD"));
	outliving.plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unsetenv("WATTLE_RING");
	assert_non_null(outliving.plugin);
	pthread_barrier_init(&outliving.barrier, NULL, 2);
	pthread_create(&thread, NULL, outlive, &outliving);
	pthread_barrier_wait(&outliving.barrier);
	assert_int_equal(dlclose(outliving.plugin), 0);
	pthread_barrier_wait(&outliving.barrier);
	pthread_join(thread, &failed);
	pthread_barrier_destroy(&outliving.barrier);
	assert_null(failed);
	fake_close(&fake);
}

int main(int argc, char **argv)
{
	struct rows tests = {0};
	if (argc > 1)
		return probe();
	assert_true(readlink("/proc/self/exe", own_path, sizeof(own_path) - 1) > 0);
	ROWS_ADD_ONE(&tests, "2,000 threads in succession: one ring", short_threads_share_a_ring);
	ROWS_ADD_ONE(&tests, "16 threads at once: 16 rings", threads_at_once_have_their_own);
	ROWS_ADD_ONE(&tests, "destructors of thread data may record spans", destructors_may_mark_spans);
	ROWS_ADD_ONE(&tests, "forked child: a ring of its own", a_fork_has_its_own_ring);
	ROWS_ADD_ONE(&tests, "child of the bare system call: a ring of its own", a_bare_fork_too);
	ROWS_ADD_ONE(&tests, "parent's ranges: not the child's", ranges_of_the_parent_are_not_the_childs);
	ROWS_ADD_ONE(&tests, "threads of a child share the remaining slots", threads_of_a_child);
	ROWS_ADD_ONE(&tests, "no descriptor stays open", no_descriptor_stays);
	ROWS_ADD_ONE(&tests, "no descriptors left: spans are lost and counted, later tried again", out_of_descriptors);
	ROWS_ADD_ONE(&tests, "recorder closes the connection: spans are lost and counted, later tried again", a_closed_connection);
	ROWS_ADD(&tests, file_limits, check_file_limit);
	ROWS_ADD_ONE(&tests, "each exec: a new image", each_exec_is_an_image);
	ROWS_ADD(&tests, environment_rows, check_environment);
	ROWS_ADD_ONE(&tests, "set-uid program: ignores the environment", set_uid_programs_do_not_look);
	ROWS_ADD_ONE(&tests, "plugin with the library inside: loaded and unloaded", plugins_come_and_go);
	ROWS_ADD_ONE(&tests, "thread that outlives a plugin with spans", threads_outlive_plugins);
	return rows_run(&tests, "processes");
}
