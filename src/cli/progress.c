/* --progress: one line on standard error, with steps counted from spans and from gpu_tracker's growing sub-tracking file. On a
 * terminal, the line is in the last row and is cleared at the end; elsewhere, lines are written at increasing intervals. */
#include "cli/measure.h"

#include "analysis/forecast/forecast.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_SIZE = 4096 };

struct file_steps { // steps in the sub-tracking file
	off_t read;
	char line[LINE_SIZE];
	size_t line_size;
	int64_t n;
	double wall_s; // end of the last step, Unix time
};

struct measure_progress {
	const struct measure_options *options; // borrowed
	bool is_terminal;
	struct status_line row;
	double shown_s; // without a terminal: time of the last written line
	char *waiting;  // without a terminal: the latest unwritten line, so that the last line of a run is never omitted
	struct file_steps file;
	int64_t before_ns; // time of the previous call
	double before_j;
	struct forecast_log log;
};

struct measure_progress *progress_new(const struct measure_options *options)
{
	struct measure_progress *progress = calloc(1, sizeof(*progress));
	if (progress == NULL)
		return NULL;
	progress->options = options;
	progress->is_terminal = isatty(STDERR_FILENO);
	progress->row.fd = STDERR_FILENO;
	return progress;
}

/* ---- writing ---- */

// A reader that is too slow must not block the recorder: the line is dropped.
static void put(const char *text, size_t size)
{
	struct pollfd capacity = {.fd = STDERR_FILENO, .events = POLLOUT};
	if (poll(&capacity, 1, 0) == 1 && (capacity.revents & POLLOUT) != 0 && write(STDERR_FILENO, text, size) < 0)
		return; // an error cannot be reported
}

static void put_waiting(struct measure_progress *progress)
{
	if (progress->waiting != NULL)
		put(progress->waiting, strlen(progress->waiting));
	free(progress->waiting);
	progress->waiting = NULL;
}

static void draw(struct measure_progress *progress, const struct progress_figures *figures)
{
	struct buf out;
	buf_init(&out, LINE_SIZE);
	progress_line(figures, status_line_columns(&progress->row), &out);
	if (out.failed == 0)
		status_line_draw(&progress->row, out.data, out.size);
	buf_finish(&out);
}

// Every second at first, later every ten seconds, and after ten minutes every minute.
static double pause_s(double elapsed_s)
{
	return elapsed_s < 60 ? 0 : elapsed_s < 600 ? 9.5 : 59.5;
}

static void print(struct measure_progress *progress, const struct progress_figures *figures)
{
	struct buf out;
	buf_init(&out, LINE_SIZE);
	progress_line(figures, 0, &out);
	buf_char(&out, '\n');
	free(progress->waiting);
	progress->waiting = buf_take(&out);
	if (figures->elapsed_s - progress->shown_s < pause_s(figures->elapsed_s))
		return;
	put_waiting(progress);
	progress->shown_s = figures->elapsed_s;
}

void progress_free(struct measure_progress *progress)
{
	if (progress == NULL)
		return;
	if (progress->is_terminal)
		status_line_finish(&progress->row);
	put_waiting(progress);
	free(progress);
}

/* ---- steps in the sub-tracking file ---- */

// "pid,NAME,1,timestamp": the end of a step. Returns the timestamp, or NULL.
static const char *step_time(const char *line, const char *name)
{
	const char *comma = strchr(line, ',');
	if (comma == NULL)
		return NULL;
	const char *found = comma + 1;
	bool quoted = *found == '"';
	for (found += quoted; *name != '\0' && *found == *name; name++)
		found += quoted && *name == '"' && found[1] == '"' ? 2 : 1; // a quoted field doubles its quotes
	if (*name != '\0')
		return NULL;
	found += quoted && *found == '"';
	return strncmp(found, ",1,", 3) == 0 ? found + 3 : NULL;
}

static void take_line(struct file_steps *file, const char *name)
{
	size_t n = file->line_size;
	file->line_size = 0;
	file->line[n > 0 && file->line[n - 1] == '\r' ? n - 1 : n] = '\0';
	const char *time = step_time(file->line, name);
	if (time == NULL)
		return;
	double wall_s;
	file->n++;
	if (num_parse_double(time, &wall_s) == 0)
		file->wall_s = fmax(file->wall_s, wall_s);
}

static void take_char(struct file_steps *file, char c, const char *name)
{
	if (c == '\n')
		take_line(file, name);
	else if (file->line_size < LINE_SIZE - 1)
		file->line[file->line_size++] = c;
}

static void read_file(struct measure_progress *progress)
{
	const struct measure_options *options = progress->options;
	struct file_steps *file = &progress->file;
	if (options->step == NULL || options->sub_tracking_file == NULL)
		return;
	// The recording runs in this thread: opening a FIFO must not block it, and a FIFO's writer must not see a reader come
	// and go.
	struct stat status;
	if (stat(options->sub_tracking_file, &status) < 0 || !S_ISREG(status.st_mode))
		return;
	wattle_cleanup_close int fd = open(options->sub_tracking_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return;
	char text[LINE_SIZE];
	for (ssize_t n; (n = pread(fd, text, sizeof(text), file->read)) > 0; file->read += n)
		for (ssize_t i = 0; i < n; i++)
			take_char(file, text[i], options->step);
}

// On our clock, limited to the time between the previous call and this one.
static int64_t newest_of_file_ns(const struct measure_progress *progress, const struct recorder_progress *figures)
{
	double ago_s = (double)clock_wall_ns() * 1e-9 - progress->file.wall_s;
	double max_s = (double)(figures->t_ns - progress->before_ns) * 1e-9;
	return figures->t_ns - (int64_t)(fmin(fmax(ago_s, 0), max_s) * 1e9);
}

/* ---- all steps ---- */

static void add_point(struct measure_progress *progress, const struct recorder_progress *figures, int64_t steps,
	int64_t t_ns, double energy_j)
{
	double time_s = (double)(t_ns - figures->start_ns) * 1e-9;
	forecast_add(&progress->log, (struct forecast_point){steps, time_s, energy_j});
}

// Steps of both sources are added.
static void note_steps(struct measure_progress *progress, const struct recorder_progress *figures)
{
	int64_t of_file = progress->file.n;
	read_file(progress);
	for (size_t i = 0; i < figures->n_points; i++) {
		const struct step_point *point = &figures->points[i];
		add_point(progress, figures, of_file + point->steps, point->t_ns, point->energy_j);
	}
	if (progress->file.n > of_file) {
		int64_t t_ns = newest_of_file_ns(progress, figures), dt_ns = figures->t_ns - progress->before_ns;
		double share = dt_ns > 0 ? (double)(t_ns - progress->before_ns) / (double)dt_ns : 1;
		double energy_j = progress->before_j + share * (figures->energy_j - progress->before_j);
		add_point(progress, figures, progress->file.n + figures->steps, t_ns, energy_j);
	}
	progress->before_ns = figures->t_ns;
	progress->before_j = figures->energy_j;
}

void progress_show(struct measure_progress *progress, const struct recorder_progress *figures)
{
	const struct measure_options *options = progress->options;
	if (progress->before_ns == 0)
		progress->before_ns = figures->start_ns;
	note_steps(progress, figures);
	struct progress_figures shown = {
		.elapsed_s = (double)(figures->t_ns - figures->start_ns) * 1e-9,
		.energy_j = figures->energy_j,
		.power_w = figures->power_w,
		.is_estimated = figures->provenance == PROVENANCE_ESTIMATED,
		.step = options->step,
		.steps = progress->file.n + figures->steps,
		.all_steps = options->steps,
	};
	const struct forecast_point now = {shown.steps, shown.elapsed_s, shown.energy_j};
	shown.forecast = forecast_make(&progress->log, value_ok(options->steps) ? options->steps : 0, now);
	if (progress->is_terminal)
		draw(progress, &shown);
	else
		print(progress, &shown);
}
