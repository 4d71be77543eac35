#include "cli/measure.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "report/table.h"
#include "store/output_file.h"
#include "store/postgres/pq.h"

#include <stdio.h>
#include <string.h>

static void on_warning(void *data, const char *text)
{
	const struct measure *measure = data;
	if (!measure->options.disable_logs)
		cli_warn(text);
}

int measure_store_open(struct measure *measure, struct wattle_error *reterr)
{
	struct wattle_error why = {0};
	if (measure->options.store == NULL)
		return 0;
	if (pg_check_url(measure->options.store, &why) < 0)
		return error_set(reterr, why.code, "--store: %s", why.text);
	const struct uploader_options options = {
		.url = measure->options.store,
		.path = measure->path,
		.wait_ns = measure->options.store_wait_ns,
		.warn = on_warning,
		.data = measure,
	};
	return uploader_start(&options, &measure->uploader, reterr);
}

void measure_store_maintain(void *data)
{
	const struct measure *measure = data;
	uploader_maintain(measure->uploader);
}

void measure_store_over(struct measure *measure)
{
	if (measure->uploader != NULL)
		uploader_run_ended(measure->uploader, measure->path);
}

static void report_remaining(const struct measure *measure, const struct uploader_result *result)
{
	char text[sizeof(result->why.text) + 4 * 4096];
	const char *const words[] = {"wattle", "push", measure->path, measure->options.store, NULL};
	wattle_cleanup_free char *command = command_line_text(words);
	snprintf(text, sizeof(text), "%s; the run file is complete; send the rest with: %s", result->why.text,
		command != NULL ? command : "wattle push");
	if (!measure->options.disable_logs)
		cli_warn(text);
}

enum { RUN_ID_BRIEF = 8, LINE_COLUMNS = TEXT_WIDTH - 2 };

// In LINE_COLUMNS the id is never truncated, but the path and the store's address are. path: NULL: no file was kept.
static void store_line(const char *path, const char *id, size_t id_columns, const char *where, char *ret_line, size_t size)
{
	struct buf line;
	buf_init(&line, 4096);
	if (path != NULL) {
		text_fit_middle(&line, path, LINE_COLUMNS / 2 - id_columns);
		buf_str(&line, ", and ");
	}
	buf_printf(&line, "run %.*s at ", (int)id_columns, id);
	text_fit_middle(&line, where, LINE_COLUMNS - utf8_text_columns(line.data, line.size));
	snprintf(ret_line, size, "%s", line.failed == 0 ? line.data : id);
	buf_finish(&line);
}

void measure_store_conclude(struct measure *measure, bool is_whole, char *ret_line, size_t size)
{
	const char *const words[] = {"wattle", "report", measure->path, NULL};
	wattle_cleanup_free char *command = command_line_text(words);
	if (measure->options.no_file)
		snprintf(ret_line, size, "no run file was kept (--no-file)");
	else
		snprintf(ret_line, size, "More: %s", command != NULL ? command : measure->path);
	if (measure->uploader == NULL)
		return;
	struct uploader_result result;
	uploader_wait(measure->uploader, &result);
	if (!result.is_done)
		report_remaining(measure, &result);
	else if (measure->options.output != NULL || !is_whole)
		store_line(measure->path, result.run_id, RUN_ID_BRIEF, result.where, ret_line, size); // --run takes the begin of an id
	else {
		output_file_remove(measure->path);
		store_line(NULL, result.run_id, strlen(result.run_id), result.where, ret_line, size);
	}
}
