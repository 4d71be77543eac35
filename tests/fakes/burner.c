/* A program with known use of the machine: the last line on stdout is JSON with the CPU time that the kernel counted
 * for it (self) and for the children it waited for (children), and CLOCK_MONOTONIC at begin and end.
 *
 *	burner cpu SECONDS          one thread that computes
 *	burner threads N SECONDS    N threads that compute, SECONDS of CPU each
 *	burner memory BYTES SECONDS touches BYTES and holds them
 *	burner children N MS        N children one after the other, MS of CPU each, waited for
 *	burner ignored N MS         the same with SIGCHLD ignored: the kernel reaps them without a wait
 *	burner zombies N MS         N children that end at once and are waited for only at the end
 *	burner orphan SECONDS       forks twice, calls setsid; the grandchild computes, this waits for it by a pipe
 *	burner daemon SECONDS       the same, but this one ends at once
 *	burner bomb DEPTH MS        two children, each with two children, …: 2^DEPTH leaves; each computes MS
 *	burner tree N SECONDS       N children that sleep
 *	burner exec SECONDS         computes, then becomes (exec) another `burner cpu SECONDS`
 *	burner run FILE COMMAND...  runs the command; FILE gets the resources of all its descendants that were waited for, as JSON:
 *	                            a program so small adds nothing to their peak memory */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double clock_s(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// CPU time of this thread, not elapsed time: a busy machine changes nothing.
static void compute(double seconds)
{
	volatile double sum = 0;
	for (double end = clock_s(CLOCK_THREAD_CPUTIME_ID) + seconds; clock_s(CLOCK_THREAD_CPUTIME_ID) < end;)
		for (int i = 1; i < 500; i++)
			sum = sum + 1.0 / i;
}

static void sleep_s(double seconds)
{
	struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

static void wait_for_all(void)
{
	while (wait(NULL) > 0 || errno == EINTR) {}
}

static pid_t fork_or_die(void)
{
	pid_t pid = fork();
	if (pid < 0) {
		perror("burner: fork");
		exit(3);
	}
	return pid;
}

static int act_cpu(char **arguments)
{
	compute(atof(arguments[0]));
	return 0;
}

static void *thread_main(void *seconds)
{
	compute(*(double *)seconds);
	return NULL;
}

static int act_threads(char **arguments)
{
	enum { THREADS_MAX = 256 };
	int n = atoi(arguments[0]);
	double seconds = atof(arguments[1]);
	pthread_t threads[THREADS_MAX];
	if (n < 1 || n > THREADS_MAX)
		return 2;
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], NULL, thread_main, &seconds) != 0)
			return 3;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int act_memory(char **arguments)
{
	size_t size = strtoull(arguments[0], NULL, 10);
	volatile char *memory = malloc(size); // volatile: otherwise a compiler may drop stores that are never read
	if (memory == NULL)
		return 3;
	for (size_t i = 0; i < size; i += 1024)
		memory[i] = 1;
	sleep_s(atof(arguments[1]));
	free((void *)(uintptr_t)memory);
	return 0;
}

static int act_children(char **arguments)
{
	for (int n = atoi(arguments[0]); n > 0; n--) {
		pid_t child = fork_or_die();
		if (child == 0) {
			compute(atof(arguments[1]) * 1e-3);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	return 0;
}

static int act_ignored(char **arguments)
{
	signal(SIGCHLD, SIG_IGN);
	for (int n = atoi(arguments[0]); n > 0; n--) {
		pid_t child = fork_or_die();
		if (child == 0) {
			compute(atof(arguments[1]) * 1e-3);
			_exit(0);
		}
		waitpid(child, NULL, 0); // returns ECHILD once it is gone
	}
	return 0;
}

static int act_zombies(char **arguments)
{
	for (int n = atoi(arguments[0]); n > 0; n--)
		if (fork_or_die() == 0)
			_exit(0);
	sleep_s(atof(arguments[1]) * 1e-3);
	wait_for_all();
	return 0;
}

// A grandchild in a session of its own, as daemons start; *ret_alive is readable as long as it lives.
static void start_grandchild(double seconds, int *ret_alive)
{
	int alive[2];
	if (pipe(alive) != 0)
		exit(3);
	pid_t child = fork_or_die();
	if (child == 0) {
		setsid();
		if (fork_or_die() == 0) {
			close(alive[0]);
			close(STDIN_FILENO);
			close(STDOUT_FILENO);
			close(STDERR_FILENO);
			compute(seconds);
		}
		_exit(0);
	}
	close(alive[1]);
	waitpid(child, NULL, 0);
	*ret_alive = alive[0];
}

static int act_orphan(char **arguments)
{
	int alive;
	char byte;
	start_grandchild(atof(arguments[0]), &alive);
	return read(alive, &byte, 1) == 0 ? 0 : 3;
}

static int act_daemon(char **arguments)
{
	int alive;
	start_grandchild(atof(arguments[0]), &alive);
	return 0;
}

static void bomb(int depth, double seconds)
{
	for (int i = 0; i < 2 && depth > 0; i++)
		if (fork_or_die() == 0) {
			bomb(depth - 1, seconds);
			_exit(0);
		}
	compute(seconds);
	wait_for_all();
}

static int act_bomb(char **arguments)
{
	int depth = atoi(arguments[0]);
	if (depth > 9)
		return 2;
	bomb(depth, atof(arguments[1]) * 1e-3);
	return 0;
}

static int act_tree(char **arguments)
{
	for (int n = atoi(arguments[0]); n > 0; n--)
		if (fork_or_die() == 0) {
			sleep_s(atof(arguments[1]));
			_exit(0);
		}
	sleep_s(atof(arguments[1]));
	wait_for_all();
	return 0;
}

static int act_exec(char **arguments)
{
	char self[] = "/proc/self/exe", name[] = "burner", act[] = "cpu";
	compute(atof(arguments[0]));
	execv(self, (char *[]){name, act, arguments[0], NULL});
	return 3;
}

static long long now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static double used_s(int who)
{
	struct rusage usage;
	getrusage(who, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static int act_run(char **arguments)
{
	int status = 0;
	struct rusage usage;
	long long start_ns = now_ns();
	pid_t child = fork_or_die();
	if (child == 0) {
		execvp(arguments[1], arguments + 1);
		perror(arguments[1]);
		_exit(127);
	}
	waitpid(child, &status, 0);
	long long end_ns = now_ns();
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	getrusage(RUSAGE_CHILDREN, &usage);
	FILE *file = fopen(arguments[0], "we");
	if (file == NULL)
		return 3;
	fprintf(file, "{\"status\": %d, \"cpu_s\": %.6f, \"max_rss_kb\": %ld, \"start_ns\": %lld, \"end_ns\": %lld}\n",
		status, used_s(RUSAGE_CHILDREN), usage.ru_maxrss, start_ns, end_ns);
	return fclose(file) == 0 ? 0 : 3;
}

static const struct act {
	const char *name;
	int (*run)(char **arguments);
	int n_arguments; // negative: at least so many
} acts[] = {
	{"cpu", act_cpu, 1},
	{"threads", act_threads, 2},
	{"memory", act_memory, 2},
	{"children", act_children, 2},
	{"ignored", act_ignored, 2},
	{"zombies", act_zombies, 2},
	{"orphan", act_orphan, 1},
	{"daemon", act_daemon, 1},
	{"bomb", act_bomb, 2},
	{"tree", act_tree, 2},
	{"exec", act_exec, 1},
	{"run", act_run, -2},
};

static int is_enough(int n, int wanted)
{
	return wanted < 0 ? n >= -wanted : n == wanted;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(acts) / sizeof(acts[0]); i++) {
		if (strcmp(argv[1], acts[i].name) != 0 || !is_enough(argc - 2, acts[i].n_arguments))
			continue;
		long long start_ns = now_ns();
		int status = acts[i].run(argv + 2);
		printf("{\"self_cpu_s\": %.6f, \"children_cpu_s\": %.6f, \"start_ns\": %lld, \"end_ns\": %lld}\n",
			used_s(RUSAGE_SELF), used_s(RUSAGE_CHILDREN), start_ns, now_ns());
		return status;
	}
	fputs("usage: burner ACT ARGUMENT…, see the source\n", stderr);
	return 2;
}
