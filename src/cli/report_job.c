#include "cli/report_job.h"

#include "cli/command.h"
#include "report/page/page.h"
#include "report/report.h"
#include "task/load_job.h"

#include <stdlib.h>
#include <string.h>

enum { REPORT_CEILING = 1 << 30 };

static int write_job(const struct job_findings *job, const char *format, const char *output)
{
	struct buf out;
	buf_init(&out, REPORT_CEILING);
	if (strcmp(format, "json") == 0)
		job_report_json(job, &out);
	else if (strcmp(format, "html") == 0)
		page_job(job, &out);
	else if (strcmp(format, "line") == 0)
		job_report_line(job, &out);
	else
		job_report_text(job, &out, cli_wants_colour(output));
	int status = cli_write(&out, output);
	buf_finish(&out);
	return status;
}

int cli_report_job(const struct job_request *request)
{
	const struct job_options options = {.waiting = request->waiting->n > 0 ? request->waiting->items : NULL,
		.step = request->choice.step};
	struct wattle_error error = {0};
	struct loaded_job job;
	if (load_job(request->folder, request->url, &request->choice, &options, &job, &error) < 0)
		return cli_fail(EXIT_FAILED, &error);
	int status = write_job(&job.job, request->format, request->output);
	load_job_finish(&job);
	return status;
}
