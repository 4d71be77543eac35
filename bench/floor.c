/* Floors for wattle's cost, measured on this machine in the same minute.
 *
 *	floor reading BURNER N HZ SECONDS   the cheapest complete reading of a process with N children: stat and children
 *	                                    files kept open, /proc/stat and /proc/meminfo kept open, figures parsed
 *	                                    from the texts, nothing stored
 *	floor ticks HZ SECONDS              a bare timerfd loop: ticks that the machine itself misses
 *
 * Prints one line of JSON. CPU time is that of the loop only, without start and end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES_MAX = 1000 };

struct process {
	int stat_fd, children_fd;
};

struct reading { // result of parsing, so that no compiler removes it
	uint64_t cpu_ticks, rss_pages, threads, children, busy_ticks, available_kib;
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int open_or_die(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

static size_t read_text(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static uint64_t number(const char **at)
{
	uint64_t value = 0;
	while (**at != '\0' && (**at < '0' || **at > '9'))
		++*at;
	for (; **at >= '0' && **at <= '9'; ++*at)
		value = value * 10 + (uint64_t)(**at - '0');
	return value;
}

static void skip_fields(const char **at, int n)
{
	while (n-- > 0 && (*at = strchr(*at, ' ')) != NULL)
		++*at;
	if (*at == NULL)
		*at = "";
}

static void read_process(const struct process *process, struct reading *reading)
{
	char text[4096];
	read_text(process->stat_fd, text, sizeof(text));
	const char *at = strrchr(text, ')');
	if (at == NULL)
		return;
	skip_fields(&at, 12); // to utime
	reading->cpu_ticks += number(&at);
	reading->cpu_ticks += number(&at);
	at++;
	skip_fields(&at, 4); // to num_threads
	reading->threads += number(&at);
	at++;
	skip_fields(&at, 3); // to rss
	reading->rss_pages += number(&at);
	size_t length = read_text(process->children_fd, text, sizeof(text));
	for (size_t i = 0; i < length; i++)
		reading->children += text[i] == ' ';
}

static void read_machine(int stat_fd, int meminfo_fd, struct reading *reading)
{
	char text[8192];
	read_text(stat_fd, text, sizeof(text));
	const char *at = text;
	for (int i = 0; i < 8; i++)
		reading->busy_ticks += number(&at);
	read_text(meminfo_fd, text, sizeof(text));
	at = strstr(text, "MemAvailable:");
	if (at != NULL)
		reading->available_kib += number(&at);
}

static int start_timer(double hz)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	int64_t period_ns = (int64_t)(1e9 / hz);
	struct timespec period = {period_ns / 1000000000, period_ns % 1000000000};
	timerfd_settime(fd, 0, &(struct itimerspec){.it_interval = period, .it_value = period}, NULL);
	return fd;
}

static uint64_t wait_for_tick(int timer)
{
	uint64_t ticks = 0;
	return read(timer, &ticks, sizeof(ticks)) == sizeof(ticks) ? ticks : 0;
}

static pid_t start_burner(const char *burner, const char *n, const char *seconds)
{
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0); // so that the whole tree can be ended at once
		execl(burner, "burner", "tree", n, seconds, (char *)NULL);
		perror(burner);
		_exit(127);
	}
	return pid;
}

static struct process open_process(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	int stat_fd = open_or_die(path);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	return (struct process){stat_fd, open_or_die(path)};
}

static size_t open_tree(pid_t root, size_t n_children, struct process *processes)
{
	processes[0] = open_process(root);
	char text[16384];
	size_t found = 0;
	for (int patience = 0; found < n_children && patience < 500; patience++) {
		usleep(10000);
		size_t length = read_text(processes[0].children_fd, text, sizeof(text));
		found = 0;
		for (size_t i = 0; i < length; i++)
			found += text[i] == ' ';
	}
	const char *at = text;
	for (size_t i = 0; i < found; i++)
		processes[1 + i] = open_process((pid_t)number(&at));
	return 1 + found;
}

static int measure_reading(char **arguments)
{
	size_t n_children = strtoul(arguments[1], NULL, 10);
	double hz = atof(arguments[2]), seconds = atof(arguments[3]);
	static struct process processes[PROCESSES_MAX + 1];
	if (n_children > PROCESSES_MAX)
		return 2;
	pid_t root = start_burner(arguments[0], arguments[1], "600");
	size_t n = open_tree(root, n_children, processes);
	int stat_fd = open_or_die("/proc/stat"), meminfo_fd = open_or_die("/proc/meminfo");
	int timer = start_timer(hz);
	struct reading reading = {0};
	int samples = (int)(hz * seconds);
	wait_for_tick(timer);
	int64_t before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < samples; i++) {
		wait_for_tick(timer);
		for (size_t p = 0; p < n; p++)
			read_process(&processes[p], &reading);
		read_machine(stat_fd, meminfo_fd, &reading);
	}
	int64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns;
	kill(-root, SIGTERM);
	waitpid(root, NULL, 0);
	printf("{\"samples\": %d, \"cpu_us_per_sample\": %.2f, \"processes\": %zu, \"threads\": %.1f, \"check\": %llu}\n",
		samples, (double)cpu_ns * 1e-3 / samples, n, (double)reading.threads / samples,
		(unsigned long long)(reading.cpu_ticks + reading.rss_pages + reading.busy_ticks +
			reading.available_kib));
	return n == n_children + 1 ? 0 : 1;
}

static int measure_ticks(char **arguments)
{
	double hz = atof(arguments[0]), seconds = atof(arguments[1]);
	int timer = start_timer(hz);
	uint64_t missed = 0;
	int64_t samples = (int64_t)(hz * seconds);
	int64_t before_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int64_t done = 0; done < samples;) {
		uint64_t ticks = wait_for_tick(timer);
		missed += ticks > 1 ? ticks - 1 : 0;
		done += (int64_t)ticks;
	}
	int64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns;
	printf("{\"ticks\": %lld, \"missed\": %llu, \"cpu_percent\": %.3f}\n", (long long)samples,
		(unsigned long long)missed, (double)cpu_ns * 1e-7 / seconds);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "reading") == 0)
		return measure_reading(argv + 2);
	if (argc == 4 && strcmp(argv[1], "ticks") == 0)
		return measure_ticks(argv + 2);
	fputs("usage: floor reading BURNER N HZ SECONDS | floor ticks HZ SECONDS\n", stderr);
	return 2;
}
