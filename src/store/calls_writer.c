#include "store/sub_tracking.h"

#include "base/num.h"

#include <errno.h>
#include <string.h>

// Python's csv module ends lines with CR LF.
#define LINE_END "\r\n"

static int fail_sql(const struct calls_writer *writer, struct wattle_error *reterr)
{
	return sql_fail(writer->db, writer->path, reterr);
}

// Types as SQLAlchemy names them for int, str and float: gpu_tracker reads the columns by type.
static int open_sqlite(struct calls_writer *writer, struct wattle_error *reterr)
{
	int r = output_file_open(&writer->output, &(struct store_open_options){.path = writer->path}, "merged file",
		reterr);
	if (r == 0)
		r = sql_open_builder(writer->output.temporary_path, &writer->db, reterr);
	if (r < 0)
		return r;
	int result = sql_exec(writer->db,
		"BEGIN; CREATE TABLE data (process_id INTEGER, code_block_name VARCHAR, position INTEGER, timestamp FLOAT)");
	if (result == SQLITE_OK)
		result = sqlite3_prepare_v2(writer->db, "INSERT INTO data VALUES (?, ?, ?, ?)", -1, &writer->insert,
			NULL);
	return result == SQLITE_OK ? 0 : fail_sql(writer, reterr);
}

int calls_writer_open(struct calls_writer *writer, const char *path, struct wattle_error *reterr)
{
	*writer = (struct calls_writer){.path = path, .text.fd = -1, .text.output.fd = -1, .output.fd = -1};
	const char *ending = sub_tracking_ending(path);
	writer->is_csv = ending != NULL && strcmp(ending, ".csv") == 0;
	if (!writer->is_csv)
		return open_sqlite(writer, reterr);
	int r = export_out_open(&writer->text, path, false, reterr);
	if (r == 0)
		buf_str(&writer->text.text, "process_id,code_block_name,position,timestamp" LINE_END);
	return r;
}

static int add_text(struct calls_writer *writer, const struct sub_tracking_row *row)
{
	struct buf *text = &writer->text.text;
	buf_i64(text, row->pid);
	buf_char(text, ',');
	buf_csv(text, row->name);
	buf_str(text, row->is_stop ? ",1," : ",0,");
	if (row->time_text != NULL)
		buf_csv(text, row->time_text); // original text, so no digit is lost
	else
		buf_double(text, row->time_s);
	buf_str(text, LINE_END);
	export_out_more(&writer->text);
	return writer->text.failed;
}

int calls_writer_add(struct calls_writer *writer, const struct sub_tracking_row *row, struct wattle_error *reterr)
{
	if (writer->is_csv) {
		int r = add_text(writer, row);
		return r < 0 ? error_set(reterr, r, "%s: %s", writer->path, strerror(-r)) : 0;
	}
	sql_bind_i64(writer->insert, 1, row->pid);
	sql_bind_text(writer->insert, 2, row->name);
	sql_bind_i64(writer->insert, 3, row->is_stop);
	sql_bind_double(writer->insert, 4, row->time_s);
	return sql_run(writer->insert) == SQLITE_OK ? 0 : fail_sql(writer, reterr);
}

static int close_sqlite(struct calls_writer *writer, int r, struct wattle_error *reterr)
{
	sqlite3_finalize(writer->insert);
	if (r == 0 && sql_exec(writer->db, "COMMIT") != SQLITE_OK)
		r = fail_sql(writer, reterr);
	sqlite3_close(writer->db);
	if (r == 0)
		r = output_file_publish(&writer->output, reterr);
	output_file_close(&writer->output, r < 0);
	return r;
}

int calls_writer_close(struct calls_writer *writer, int r, struct wattle_error *reterr)
{
	if (!writer->is_csv)
		return close_sqlite(writer, r, reterr);
	if (r < 0)
		writer->text.failed = r;
	int closed = export_out_close(&writer->text, writer->path, r < 0 ? NULL : reterr);
	return r < 0 ? r : closed;
}
