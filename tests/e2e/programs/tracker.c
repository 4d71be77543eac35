/* Uses of a tracker in a C program, one act for each run: tracker.py compiles and runs it and checks its output.
 * Each result is a line "NAME VALUE". */
#include <wattle.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct wattle_tracker_options options = {.size = sizeof(options), .interval_s = 0.02, .overwrite = 1};

static double now_s(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void say(const char *name, long value)
{
	printf("%s %ld\n", name, value);
	fflush(stdout);
}

static void say_text(const char *name, const char *value)
{
	printf("%s %s\n", name, value != NULL ? value : "(null)");
	fflush(stdout);
}

static void burn(double seconds)
{
	double end_s = now_s(CLOCK_THREAD_CPUTIME_ID) + seconds;
	while (now_s(CLOCK_THREAD_CPUTIME_ID) < end_s)
		continue;
}

static wattle_tracker *started(void)
{
	wattle_tracker *tracker;
	int r = wattle_tracker_new(&options, &tracker);
	if (r == 0)
		r = wattle_tracker_start(tracker);
	say("start", r);
	if (r < 0) {
		fprintf(stderr, "%s\n", wattle_tracker_error(tracker));
		exit(1);
	}
	return tracker;
}

static void finish(wattle_tracker *tracker)
{
	char *report;
	say("stop", wattle_tracker_stop(tracker));
	say("report", wattle_tracker_report_json(tracker, &report));
	FILE *file = fopen("report.json", "w");
	fputs(report, file);
	fclose(file);
	free(report);
	wattle_tracker_free(tracker);
}

static void states(void)
{
	wattle_tracker *tracker;
	char *report = NULL;
	say("new", wattle_tracker_new(&options, &tracker));
	say("state", wattle_tracker_state(tracker));
	say("stop_early", wattle_tracker_stop(tracker));
	say("report_early", wattle_tracker_report_json(tracker, &report));
	say("file_early", wattle_tracker_run_file(tracker) != NULL);
	say("start", wattle_tracker_start(tracker));
	say_text("error_after", wattle_tracker_error(tracker)[0] == '\0' ? "none" : wattle_tracker_error(tracker));
	say("state", wattle_tracker_state(tracker));
	say("start_again", wattle_tracker_start(tracker));
	say_text("error", wattle_tracker_error(tracker));
	say("report_during", wattle_tracker_report_json(tracker, &report));
	say_text("file", wattle_tracker_run_file(tracker));
	say("exists", access(wattle_tracker_run_file(tracker), R_OK) == 0);
	say("stop", wattle_tracker_stop(tracker));
	say("state", wattle_tracker_state(tracker));
	say("stop_again", wattle_tracker_stop(tracker));
	say("start_late", wattle_tracker_start(tracker));
	say("report", wattle_tracker_report_json(tracker, &report));
	free(report);
	say("report_again", wattle_tracker_report_json(tracker, &report));
	free(report);
	wattle_tracker_free(tracker);
	wattle_tracker_free(NULL);
	say("null", wattle_tracker_start(NULL));
}

static void refused(void)
{
	const struct {
		const char *name;
		struct wattle_tracker_options options;
	} rows[] = {
		{"no_size", {.size = 0}},
		{"interval_short", {.size = sizeof(options), .interval_s = 0.0001}},
		{"interval_long", {.size = sizeof(options), .interval_s = 3601}},
		{"interval_nan", {.size = sizeof(options), .interval_s = 0.0 / 0.0}},
		{"ram_unit", {.size = sizeof(options), .ram_unit = "gibibytes"}},
		{"gpu_ram_unit", {.size = sizeof(options), .gpu_ram_unit = ""}},
		{"time_unit", {.size = sizeof(options), .time_unit = "weeks"}},
		{"tracking_file", {.size = sizeof(options), .tracking_file = "t.txt"}},
		{"gpu_brand", {.size = sizeof(options), .gpu_brand = "voodoo"}},
		{"expected_cores", {.size = sizeof(options), .expected_cores = -1}},
		{"pid", {.size = sizeof(options), .pid = -1}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		wattle_tracker *tracker = NULL;
		say(rows[i].name, wattle_tracker_new(&rows[i].options, &tracker));
		say("untouched", tracker == NULL);
	}
}

// Errors that new could not detect: the recorder's message comes with the code.
static void refused_by_recorder(void)
{
	static const char *const wrong[] = {"--no-such-option", NULL};
	const struct {
		const char *name;
		struct wattle_tracker_options options;
	} rows[] = {
		{"exists", {.size = sizeof(options), .output = "there.sqlite"}},
		{"no_folder", {.size = sizeof(options), .output = "no/such/folder/run.sqlite"}},
		{"gpus", {.size = sizeof(options), .gpus = "GPU-of-nobody"}},
		{"gone", {.size = sizeof(options), .pid = 2147483646}},
		{"arguments", {.size = sizeof(options), .arguments = wrong}},
		{"program", {.size = sizeof(options), .program = "/no/such/wattle"}},
		{"other_program", {.size = sizeof(options), .program = "/bin/true"}},
	};
	fclose(fopen("there.sqlite", "w"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		wattle_tracker *tracker;
		wattle_tracker_new(&rows[i].options, &tracker);
		say(rows[i].name, wattle_tracker_start(tracker));
		say_text("error", wattle_tracker_error(tracker));
		say("state", wattle_tracker_state(tracker));
		wattle_tracker_free(tracker);
	}
	errno = 0;
	say("wait", wait(NULL));
	say("echild", errno == ECHILD);
}

static void usage(void)
{
	wattle_tracker *tracker = started();
	burn(0.7);
	finish(tracker);
}

static volatile sig_atomic_t n_sigchld;

static void on_sigchld(int number)
{
	(void)number;
	n_sigchld++;
}

/* A program with a SIGCHLD handler of its own and a loop around wait(-1): it sees only its own three children. */
static void waits(void)
{
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = on_sigchld, .sa_flags = SA_RESTART}, NULL);
	wattle_tracker *tracker = started();
	say("sigchld_start", n_sigchld);
	errno = 0;
	say("wait_start", wait(NULL));
	say("echild", errno == ECHILD);
	long met = 0;
	for (int i = 0; i < 3; i++)
		if (fork() == 0)
			_exit(0);
	while (wait(NULL) > 0)
		met++;
	say("met", met);
	long before = n_sigchld;
	finish(tracker);
	say("sigchld_stop", n_sigchld - before);
	say("wait_stop", wait(NULL));
}

static void ignores_children(void)
{
	signal(SIGCHLD, SIG_IGN);
	sigset_t all, mask;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	wattle_tracker *tracker = started();
	sigprocmask(SIG_SETMASK, NULL, &mask);
	say("still_blocked", sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGTERM));
	finish(tracker);
}

static void subreaper(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	wattle_tracker *tracker = started();
	burn(0.3);
	finish(tracker);
	errno = 0;
	say("wait", wait(NULL));
	say("echild", errno == ECHILD);
}

static void *thread(void *data)
{
	(void)data;
	burn(0.3);
	if (fork() == 0)
		_exit(0);
	return NULL;
}

static void threads(void)
{
	pthread_t ids[4];
	for (int i = 0; i < 2; i++)
		pthread_create(&ids[i], NULL, thread, NULL);
	wattle_tracker *tracker = started();
	for (int i = 2; i < 4; i++)
		pthread_create(&ids[i], NULL, thread, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	finish(tracker);
}

static void *start_and_stop(void *data)
{
	wattle_tracker *tracker = data;
	wattle_tracker_start(tracker);
	wattle_tracker_stop(tracker);
	return NULL;
}

// Eight threads at once on one tracker: one of them starts it, one stops it, nothing hangs.
static void race(void)
{
	wattle_tracker *tracker;
	pthread_t ids[8];
	wattle_tracker_new(&options, &tracker);
	for (int i = 0; i < 8; i++)
		pthread_create(&ids[i], NULL, start_and_stop, tracker);
	for (int i = 0; i < 8; i++)
		pthread_join(ids[i], NULL);
	say("state", wattle_tracker_state(tracker));
	wattle_tracker_free(tracker);
}

static void forks(void)
{
	wattle_tracker *tracker = started();
	pid_t child = fork();
	if (child == 0) {
		char *report;
		say("child_start", wattle_tracker_start(tracker));
		say("child_stop", wattle_tracker_stop(tracker));
		say("child_report", wattle_tracker_report_json(tracker, &report));
		wattle_tracker_free(tracker);
		burn(0.4);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	finish(tracker);
}

static void crash(void)
{
	options.output = "run.sqlite";
	started();
	burn(0.5);
	raise(SIGKILL);
}

static void exits(void)
{
	options.output = "run.sqlite";
	started();
	burn(0.2);
	exit(3);
}

static void execs(void)
{
	options.output = "run.sqlite";
	started();
	burn(0.3);
	execl("./program", "program", "burn", NULL);
}

static void just_burn(void)
{
	burn(0.5);
	say("burnt", 1);
}

// The tracker's descriptor number is reused by another file when it stops.
static void closes(void)
{
	options.output = "run.sqlite";
	wattle_tracker *tracker = started();
	closefrom(3);
	int pair[2], fds[64];
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	for (int i = 0; i < 64; i++)
		fds[i] = dup(pair[0]);
	burn(0.3);
	say("stop", wattle_tracker_stop(tracker));
	say_text("error", wattle_tracker_error(tracker));
	wattle_tracker_free(tracker);
	char byte;
	say("leaked", recv(pair[1], &byte, 1, MSG_DONTWAIT));
	say("open", fcntl(fds[0], F_GETFD) == 0);
}

static void without_stdio(void)
{
	options.output = "run.sqlite";
	int kept = fcntl(1, F_DUPFD, 50);
	close(0);
	close(1);
	close(2);
	wattle_tracker *tracker;
	wattle_tracker_new(&options, &tracker);
	int start = wattle_tracker_start(tracker);
	int stop = wattle_tracker_stop(tracker);
	wattle_tracker_free(tracker);
	dup2(kept, 1);
	say("start", start);
	say("stop", stop);
}

static void few_descriptors(void)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = 24;
	setrlimit(RLIMIT_NOFILE, &limit);
	wattle_tracker *tracker = started();
	burn(0.2);
	finish(tracker);
	getrlimit(RLIMIT_NOFILE, &limit);
	say("limit", (long)limit.rlim_cur);
}

static void two(void)
{
	options.output = "first.sqlite";
	wattle_tracker *first = started();
	options.output = "second.sqlite";
	wattle_tracker *second = started();
	WATTLE_SPAN("both")
		burn(0.3);
	say("stop_first", wattle_tracker_stop(first));
	WATTLE_SPAN("one")
		burn(0.2);
	wattle_tracker_free(first);
	finish(second);
	say("environment", getenv("WATTLE_RING") != NULL);
	say("recording", wattle_is_recording());
}

static void environment(void)
{
	wattle_tracker *tracker = started();
	say("set", getenv("WATTLE_RING") != NULL);
	finish(tracker);
	say("after", getenv("WATTLE_RING") != NULL);
	options.keep_environment = 1;
	tracker = started();
	say("kept", getenv("WATTLE_RING") != NULL);
	finish(tracker);
}

static void spans(void)
{
	options.output = "run.sqlite";
	say("before", wattle_is_recording());
	wattle_tracker *tracker = started();
	say("during", wattle_is_recording());
	for (int i = 0; i < 10; i++)
		WATTLE_SPAN("step")
	burn(0.02);
	wattle_metric("tokens", 100);
	if (fork() == 0) {
		WATTLE_SPAN("child")
		burn(0.05);
		_exit(0);
	}
	wait(NULL);
	finish(tracker);
	say("after", wattle_is_recording());
}

static void inside(void)
{
	options.output = "run.sqlite";
	WATTLE_SPAN("before")
		burn(0.05);
	wattle_tracker *tracker = started();
	WATTLE_SPAN("inside")
		burn(0.05);
	finish(tracker);
	WATTLE_SPAN("after")
		burn(0.05);
}

static void tracking_file(void)
{
	options.tracking_file = "tracking.csv";
	options.ram_unit = "megabytes";
	options.time_unit = "seconds";
	options.expected_cores = 1;
	options.label = "-x a label";
	wattle_tracker *tracker = started();
	burn(0.3);
	finish(tracker);
}

static void other(void)
{
	pid_t child = fork();
	if (child == 0) {
		burn(0.6);
		_exit(0);
	}
	options.pid = child;
	wattle_tracker *tracker = started();
	say("recording", wattle_is_recording());
	say("environment", getenv("WATTLE_RING") != NULL);
	waitpid(child, NULL, 0);
	finish(tracker);
}

static void killed_recorder(void)
{
	options.output = "run.sqlite";
	wattle_tracker *tracker = started();
	char line[64];
	fgets(line, sizeof(line), stdin); // tracker.py kills it
	say("stop", wattle_tracker_stop(tracker));
	say_text("error", wattle_tracker_error(tracker));
	say("state", wattle_tracker_state(tracker));
	char *report;
	say("report", wattle_tracker_report_json(tracker, &report));
	wattle_tracker_free(tracker);
}

static void large(void)
{
	size_t size = (size_t)512 << 20;
	char *memory = malloc(size);
	memset(memory, 1, size);
	double begin_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
	wattle_tracker *tracker = started();
	say("start_us", (long)((now_s(CLOCK_PROCESS_CPUTIME_ID) - begin_s) * 1e6));
	begin_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
	finish(tracker);
	say("stop_us", (long)((now_s(CLOCK_PROCESS_CPUTIME_ID) - begin_s) * 1e6));
	free(memory);
}

static void disabled(void)
{
	wattle_tracker *tracker;
	char *report;
	say("new", wattle_tracker_new(&options, &tracker));
	say("start", wattle_tracker_start(tracker));
	say("stop", wattle_tracker_stop(tracker));
	say("report", wattle_tracker_report_json(tracker, &report));
	say_text("text", report);
	free(report);
	wattle_tracker_free(tracker);
}

static const struct {
	const char *name;
	void (*run)(void);
} acts[] = {
	{"states", states},
	{"refused", refused},
	{"refused_by_recorder", refused_by_recorder},
	{"usage", usage},
	{"waits", waits},
	{"ignores_children", ignores_children},
	{"subreaper", subreaper},
	{"threads", threads},
	{"race", race},
	{"forks", forks},
	{"crash", crash},
	{"exits", exits},
	{"execs", execs},
	{"burn", just_burn},
	{"closes", closes},
	{"without_stdio", without_stdio},
	{"few_descriptors", few_descriptors},
	{"two", two},
	{"environment", environment},
	{"spans", spans},
	{"inside", inside},
	{"tracking_file", tracking_file},
	{"other", other},
	{"killed_recorder", killed_recorder},
	{"large", large},
	{"disabled", disabled},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(argv[1], acts[i].name) == 0) {
			acts[i].run();
			return 0;
		}
	return 2;
}
