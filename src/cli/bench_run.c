/* One run of a command: executes `wattle run` and reads its report. A separate process isolates the sensors, memory and
 * failures of each run, and measures a run exactly as a user would. */
#include "cli/bench.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "sampler/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, ARGUMENTS_MAX = 16 };

/* ---- the folder ---- */

int bench_folder_make(const char *name, char *ret_folder, size_t size, struct wattle_error *reterr)
{
	const char *top = getenv("TMPDIR");
	top = top != NULL && top[0] != '\0' ? top : "/tmp";
	int n = snprintf(ret_folder, size, "%s/%s-XXXXXX", top, name);
	if (n < 0 || (size_t)n >= size) {
		ret_folder[0] = '\0';
		return error_set(reterr, -ENAMETOOLONG, "TMPDIR is too long: %s", top);
	}
	if (mkdtemp(ret_folder) != NULL)
		return 0;
	int r = -errno;
	ret_folder[0] = '\0';
	return error_set(reterr, r, "can't create a folder in %s: %s; set TMPDIR to a writable folder", top,
		strerror(-r));
}

void bench_folder_remove(char *folder)
{
	if (folder[0] == '\0')
		return;
	wattle_cleanup_dir DIR *dir = opendir(folder);
	if (dir != NULL)
		for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
			unlinkat(dirfd(dir), entry->d_name, 0); // fails for "." and "..", as intended
	rmdir(folder);
	folder[0] = '\0';
}

int bench_runner_open(struct bench_runner *runner, const struct bench_options *options, struct bench_signals *signals,
	struct wattle_error *reterr)
{
	*runner = (struct bench_runner){.options = options, .signals = signals};
	return bench_folder_make("wattle-bench", runner->folder, sizeof(runner->folder), reterr);
}

void bench_runner_close(struct bench_runner *runner)
{
	bench_folder_remove(runner->folder);
}

static void path_in(const struct bench_runner *runner, const char *name, char path[PATH_SIZE])
{
	snprintf(path, PATH_SIZE, "%s/%s", runner->folder, name);
}

/* ---- the process ---- */

struct arguments {
	char interval[40], run[PATH_SIZE], report[PATH_SIZE];
};

void bench_escape_pattern(const char *path, char *out, size_t size)
{
	size_t n = 0;
	for (; *path != '\0' && n + 2 < size; path++) {
		if (*path == '%')
			out[n++] = '%';
		out[n++] = *path;
	}
	out[n] = '\0';
}

static void fill_arguments(const struct bench_runner *runner, const char *keep, struct arguments *arguments)
{
	char path[PATH_SIZE];
	path_in(runner, "run.sqlite", path);
	bench_escape_pattern(keep != NULL ? keep : path, arguments->run, sizeof(arguments->run));
	path_in(runner, "report.json", arguments->report);
	snprintf(arguments->interval, sizeof(arguments->interval), "%lldus",
		(long long)(runner->options->interval_ns / 1000));
}

static void redirect(const char *path, int flags, int fd)
{
	int opened = open(path, flags | O_CLOEXEC, 0600);
	if (opened < 0 || dup2(opened, fd) < 0)
		_exit(EXIT_OWN_FAILURE);
}

static void child(const struct bench_runner *runner, char *const *argv, pid_t parent)
{
	char stderr_path[PATH_SIZE];
	path_in(runner, "stderr", stderr_path);
	bench_signals_restore(runner->signals);
	prctl(PR_SET_PDEATHSIG, SIGTERM); // if the bench is killed, no run continues
	if (getppid() != parent)
		_exit(EXIT_OWN_FAILURE);
	redirect("/dev/null", O_RDONLY, STDIN_FILENO);
	if (!runner->options->show_output) {
		redirect("/dev/null", O_WRONLY, STDOUT_FILENO);
		redirect(stderr_path, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
	}
	execv("/proc/self/exe", argv);
	_exit(EXIT_OWN_FAILURE);
}

static pid_t start(const struct bench_runner *runner, char *const *command, const char *keep)
{
	struct arguments text;
	fill_arguments(runner, keep, &text);
	char *const own[] = {(char[]){"wattle"}, (char[]){"run"}, (char[]){"--quiet"}, (char[]){"--disable-logs"},
		(char[]){"--alone"}, (char[]){"--interval"}, text.interval, (char[]){"--output"}, text.run,
		(char[]){"--json"}, text.report, (char[]){"--"}};
	size_t n = 0;
	while (command[n] != NULL)
		n++;
	wattle_cleanup_free char **argv = calloc_array(ARRAY_SIZE(own) + n + 1, sizeof(*argv));
	if (argv == NULL)
		return -1;
	memcpy(argv, own, sizeof(own));
	memcpy(argv + ARRAY_SIZE(own), command, n * sizeof(*argv));
	pid_t parent = getpid(), pid = fork();
	if (pid == 0)
		child(runner, argv, parent);
	return pid;
}

/* ---- results ---- */

struct reported_domain {
	const char *name, *source, *kind;
	double energy_j;
};

struct reported { // the part of a report that a run's values are made of
	double time_s, total_j, error_j, target_j;
	int64_t status;
	const char *provenance;
	struct reported_domain *domains;
	size_t n_domains;
};

// clang-format off
#define D struct reported_domain
static const struct field domain_fields[] = {
	FIELD_AS(D, "domain", name, NULL, "name"),
	FIELD(D, source, NULL, "sensor"),
	FIELD(D, kind, NULL, "kind of the domain"),
	FIELD(D, energy_j, "J", "its energy"),
};
#undef D
static const struct object_type domain_type = OBJECT_TYPE("domain", "A domain.", domain_fields);

#define R struct reported
static const struct field ledger_fields[] = {FIELD(R, target_j, "J", "energy attributed to the command")};
static const struct object_type ledger_type = OBJECT_TYPE("ledger", "Energy by owner.", ledger_fields);
static const struct field energy_fields[] = {
	FIELD(R, total_j, "J", "energy of the machine"),
	FIELD(R, error_j, "J", "its error"),
	FIELD(R, provenance, NULL, "provenance: measured, derived or estimated"),
	FIELD_SELF("ledger", &ledger_type, "energy by owner"),
	FIELD_ITEMS(R, "domains", domains, n_domains, &domain_type, "the domains"),
};
static const struct object_type energy_type = OBJECT_TYPE("energy", "Energy of the machine.", energy_fields);
static const struct field run_fields[] = {
	FIELD_AS(R, "duration_s", time_s, "s", "measured time"),
	FIELD_AS(R, "exit_code", status, NULL, "status of the command"),
};
static const struct object_type run_type = OBJECT_TYPE("run", "The run.", run_fields);
static const struct field report_fields[] = {
	FIELD_SELF("run", &run_type, "the run"),
	FIELD_SELF("energy", &energy_type, "its energy"),
};
#undef R
static const struct object_type report_type = OBJECT_TYPE("report", "Report of a run.", report_fields);
// clang-format on

// Names of the meters included in the total: "package-0 (powercap), dram-0 (powercap)".
static void name_meters(const struct reported *reported, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < reported->n_domains && used < size; i++) {
		const struct reported_domain *domain = &reported->domains[i];
		int kind = domain->kind != NULL ? domain_kind_from_name(domain->kind) : -EINVAL;
		if (domain->name == NULL || domain->source == NULL || isnan(domain->energy_j) || kind < 0 ||
			!domain_kind_adds_up((enum domain_kind)kind))
			continue;
		int n = snprintf(out + used, size - used, "%s%s (%s)", used > 0 ? ", " : "", domain->name,
			domain->source);
		used += n > 0 ? (size_t)n : 0;
	}
}

// Rounds off the last digits: equal quotients may differ there, and rank statistics would treat them as different.
static double without_last_digits(double value)
{
	char text[32];
	snprintf(text, sizeof(text), "%.12g", value);
	return strtod(text, NULL);
}

static int read_report(const struct bench_runner *runner, struct bench_run *run)
{
	char path[PATH_SIZE];
	struct reported reported = {0};
	path_in(runner, "report.json", path);
	json_t *report = json_load_file(path, 0, NULL);
	struct arena *arena = arena_new();
	int r = arena != NULL ? fields_read(report, &report_type, &reported, arena, NULL) : -ENOMEM;
	if (r == 0 && (!(reported.time_s > 0) || !value_ok(reported.status)))
		r = -EIO;
	if (r == 0) {
		*run = (struct bench_run){
			.values = {[BENCH_TIME] = reported.time_s,
				[BENCH_ENERGY] = reported.total_j,
				[BENCH_POWER] = without_last_digits(reported.total_j / reported.time_s),
				[BENCH_TARGET_ENERGY] = reported.target_j},
			.energy_error_j = reported.error_j,
			.status = (int)reported.status,
		};
		bool has_energy = reported.provenance != NULL && !isnan(reported.total_j);
		text_copy(run->provenance, sizeof(run->provenance), has_energy ? reported.provenance : "");
		name_meters(&reported, run->meter, sizeof(run->meter));
	}
	arena_free(arena);
	json_decref(report);
	return r;
}

static int broken(const struct bench_runner *runner, int wait_status, struct wattle_error *reterr)
{
	struct buf words;
	buf_init(&words, 4096);
	bench_last_output(runner, &words);
	int r = error_set(reterr, -EIO, "measuring failed (status %d)%s%.400s",
		WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status),
		words.size > 0 ? ": " : "", words.size > 0 ? words.data : "");
	for (char *c = reterr->text; *c != '\0'; c++) // keep the message on one line
		*c = *c == '\n' ? ' ' : *c;
	buf_finish(&words);
	return r;
}

static void clean(const struct bench_runner *runner)
{
	static const char *const left[] = {"run.sqlite", "report.json", "stderr"};
	char path[PATH_SIZE];
	for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
		path_in(runner, left[i], path);
		unlink(path);
	}
}

enum bench_outcome bench_run(const struct bench_runner *runner, char *const *argv, const char *keep,
	struct bench_run *ret_run, struct wattle_error *reterr)
{
	clean(runner);
	if (!bench_pause(runner->signals, 0))
		return BENCH_STOPPED;
	pid_t pid = start(runner, argv, keep);
	if (pid < 0) {
		error_set(reterr, -errno, "can't start a process: %s", strerror(errno));
		return BENCH_BROKEN;
	}
	int status = bench_wait(runner->signals, pid);
	if (runner->signals->stopped_by != 0)
		return BENCH_STOPPED;
	if (read_report(runner, ret_run) < 0) {
		broken(runner, status, reterr);
		return BENCH_BROKEN;
	}
	return BENCH_RAN;
}

/* ---- messages about commands ---- */

void bench_last_output(const struct bench_runner *runner, struct buf *out)
{
	enum { LINES = 5, BYTES = 2000 };
	char path[PATH_SIZE], text[BYTES + 1];
	path_in(runner, "stderr", path);
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0)
		return;
	ssize_t n = pread(fd, text, BYTES, st.st_size > BYTES ? st.st_size - BYTES : 0);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n <= 0)
		return;
	ssize_t from = n;
	for (int lines = 0; from > 0; from--)
		if (text[from - 1] == '\n' && ++lines == LINES)
			break;
	for (ssize_t i = from; i < n; i++) // remove control characters, which a terminal would interpret
		buf_char(out, text[i] == '\n' || text[i] == '\t' || (unsigned char)text[i] >= 0x20 ? text[i] : '?');
}

static int read_result(const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0)
		return EXIT_NOT_FOUND;
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0 ? 0 : EXIT_NOT_EXECUTABLE;
}

int bench_find_command(const char *command)
{
	if (strchr(command, '/') != NULL)
		return read_result(command);
	const char *path = getenv("PATH");
	int best = EXIT_NOT_FOUND;
	for (const char *at = path != NULL ? path : "/bin:/usr/bin"; command[0] != '\0';) {
		size_t length = strcspn(at, ":");
		char file[PATH_SIZE];
		int n = snprintf(file, sizeof(file), "%.*s%s%s", (int)length, at, length > 0 ? "/" : "", command);
		int found = n > 0 && (size_t)n < sizeof(file) ? read_result(file) : EXIT_NOT_FOUND;
		if (found == 0)
			return 0;
		best = found < best ? found : best;
		if (at[length] == '\0')
			break;
		at += length + 1;
	}
	return best;
}
