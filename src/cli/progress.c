/* --progress: one line on standard error, with steps counted from spans, and from gpu_tracker's sub-tracking file as it
 * grows. */
#include "cli/measure.h"

#include "base/cleanup.h"
#include "base/util.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 4096 };

struct measure_progress {
	const struct measure_options *options; // borrowed
	bool terminal;
	size_t shown; // width of the line that stands there
	off_t read;   // of the sub-tracking file
	char line[LINE_SIZE];
	size_t line_size;
	int64_t steps; // VALUE_MISSING: nothing counts them
	double elapsed_at_first_step_s;
};

struct measure_progress *progress_new(const struct measure_options *options)
{
	struct measure_progress *progress = calloc(1, sizeof(*progress));
	if (progress == NULL)
		return NULL;
	progress->options = options;
	progress->terminal = isatty(STDERR_FILENO);
	progress->steps = VALUE_MISSING;
	return progress;
}

void progress_free(struct measure_progress *progress)
{
	if (progress != NULL && progress->terminal && progress->shown > 0)
		fprintf(stderr, "\r%*s\r", (int)progress->shown, "");
	free(progress);
}

// "pid,NAME,1,timestamp": the end of a step.
static bool is_step(const char *line, const char *name)
{
	const char *comma = strchr(line, ',');
	if (comma == NULL)
		return false;
	const char *found = comma + 1;
	bool quoted = *found == '"';
	for (found += quoted; *name != '\0' && *found == *name; name++)
		found += quoted && *name == '"' && found[1] == '"' ? 2 : 1; // in quotes a quote is doubled
	if (*name != '\0')
		return false;
	found += quoted && *found == '"';
	return strncmp(found, ",1,", 3) == 0;
}

static void take_char(struct measure_progress *progress, char c)
{
	if (c != '\n') {
		if (progress->line_size < LINE_SIZE - 1)
			progress->line[progress->line_size++] = c;
		return;
	}
	progress->line[progress->line_size] = '\0';
	progress->line_size = 0;
	if (is_step(progress->line, progress->options->step))
		progress->steps = (value_ok(progress->steps) ? progress->steps : 0) + 1;
}

static void count_steps(struct measure_progress *progress)
{
	const struct measure_options *options = progress->options;
	if (options->step == NULL || options->sub_tracking_file == NULL)
		return;
	wattle_cleanup_close int fd = open(options->sub_tracking_file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!value_ok(progress->steps))
		progress->steps = 0;
	char text[LINE_SIZE];
	for (ssize_t n; (n = pread(fd, text, sizeof(text), progress->read)) > 0; progress->read += n)
		for (ssize_t i = 0; i < n; i++)
			take_char(progress, text[i]);
}

static void add_steps(const struct measure_progress *progress, const struct recorder_progress *figures, struct buf *out)
{
	double elapsed_s = figures->elapsed_s;
	int64_t all = progress->options->steps;
	int64_t of_file = progress->steps, of_spans = figures->steps;
	if (!value_ok(of_file) && !value_ok(of_spans))
		return;
	int64_t steps = (value_ok(of_file) ? of_file : 0) + (value_ok(of_spans) ? of_spans : 0);
	buf_printf(out, ", step %lld", (long long)steps);
	if (!value_ok(all))
		return;
	buf_printf(out, "/%lld", (long long)all);
	if (steps > 0 && steps < all) {
		buf_str(out, ", left ");
		human_time(out, elapsed_s / (double)steps * (double)(all - steps));
	}
}

void progress_show(struct measure_progress *progress, const struct recorder_progress *figures)
{
	count_steps(progress);
	struct buf out;
	buf_init(&out, LINE_SIZE);
	buf_str(&out, "wattle: ");
	human_time(&out, figures->elapsed_s);
	buf_str(&out, ", ");
	human_power(&out, figures->power_w);
	buf_str(&out, ", ");
	buf_fixed(&out, figures->cpu_cores, 2);
	buf_str(&out, " cores, ");
	human_bytes(&out, value_to_double(figures->rss_bytes, 1));
	buf_printf(&out, ", %lld process%s", (long long)figures->processes, figures->processes == 1 ? "" : "es");
	add_steps(progress, figures, &out);
	if (progress->terminal)
		fprintf(stderr, "\r%-*s", (int)progress->shown, out.data);
	else
		fprintf(stderr, "%s\n", out.data);
	progress->shown = out.size > progress->shown ? out.size : progress->shown;
	buf_finish(&out);
}
