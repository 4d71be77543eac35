#include "store/tracking.h"

#include "base/units.h"

#include <errno.h>
#include <string.h>

/* The writer */

static const struct tracking_layout *layout_of(const char *path)
{
	static const struct tracking_layout *const layouts[] = {&tracking_csv, &tracking_sqlite};
	size_t length = strlen(path);
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		size_t n = strlen(layouts[i]->ending);
		if (length > n && strcmp(path + length - n, layouts[i]->ending) == 0)
			return layouts[i];
	}
	return NULL;
}

static int open_layout(struct tracking_writer *writer, const struct tracking_metadata *facts,
	struct wattle_error *reterr)
{
	const struct tracking_layout *layout = writer->layout;
	int r = writer->output.is_new ? layout->make(writer, facts, reterr) : layout->check(writer, facts, reterr);
	if (r == 0 && writer->output.is_new)
		r = output_file_publish(&writer->output, reterr);
	return r < 0 ? r : layout->resume(writer, reterr);
}

int tracking_open(struct tracking_writer *writer, const struct store_open_options *options,
	const struct tracking_metadata *facts, const enum domain_kind *kinds, size_t n_devices,
	struct wattle_error *reterr)
{
	*writer = (struct tracking_writer){.n_devices = n_devices};
	writer->output.fd = -1;
	tracking_rows_init(&writer->rows, facts);
	const struct tracking_layout *layout = layout_of(options->path);
	if (layout == NULL)
		return error_set(reterr, -EINVAL, "%s: a tracking file ends in .csv or .sqlite", options->path);
	writer->is_gpu = calloc_array(n_devices, sizeof(*writer->is_gpu));
	if (writer->is_gpu == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", options->path);
	for (size_t i = 0; i < n_devices; i++)
		writer->is_gpu[i] = kinds[i] == DOMAIN_GPU;
	writer->layout = layout;
	int r = output_file_open(&writer->output, options, "tracking file", reterr);
	return r < 0 ? r : open_layout(writer, facts, reterr);
}

void tracking_start(struct tracking_writer *writer, int64_t anchor_mono_ns, int64_t anchor_wall_ns)
{
	tracking_rows_start(&writer->rows, anchor_mono_ns, anchor_wall_ns);
	writer->has_run = false;
	writer->gpus = (struct tracking_gpus){0};
}

int tracking_begin(struct tracking_writer *writer, struct wattle_error *reterr)
{
	return writer->layout->begin(writer, reterr);
}

// When sampling is faster than the update rate of /proc, most samples have no values of machine and target and give no row.
static bool has_content(const int64_t *run_values)
{
	for (size_t i = 0; i < RUN_COUNT; i++)
		if (value_ok(run_values[i]))
			return true;
	return false;
}

static int write_ready(struct tracking_writer *writer, struct wattle_error *reterr)
{
	struct tracking_row row;
	int r = 0;
	while (r == 0 && tracking_rows_take(&writer->rows, &row))
		r = writer->layout->add(writer, &row, reterr);
	return r;
}

int tracking_flush(struct tracking_writer *writer, struct wattle_error *reterr)
{
	bool target_is_gone = writer->run_values[RUN_PROCESSES] == 0; // before the target's start, or after its end
	if (writer->has_run && has_content(writer->run_values))
		tracking_rows_feed(&writer->rows, writer->t_ns, writer->run_values, &writer->gpus, !target_is_gone);
	writer->has_run = false;
	writer->gpus = (struct tracking_gpus){0};
	return write_ready(writer, reterr);
}

int tracking_feed(struct tracking_writer *writer, const struct record *record, struct wattle_error *reterr)
{
	int r = record->t_ns != writer->t_ns ? tracking_flush(writer, reterr) : 0;
	writer->t_ns = record->t_ns;
	if (record->scope == METRIC_RUN) {
		memcpy(writer->run_values, record->values, sizeof(writer->run_values));
		writer->has_run = true;
	}
	if (record->scope == METRIC_DEVICE && record->id >= 0 && (size_t)record->id < writer->n_devices &&
		writer->is_gpu[record->id])
		tracking_gpus_add(&writer->gpus, record->values);
	return r;
}

int tracking_stop(struct tracking_writer *writer, struct wattle_error *reterr)
{
	int r = tracking_flush(writer, reterr);
	if (r < 0)
		return r;
	tracking_rows_end(&writer->rows);
	return write_ready(writer, reterr);
}

int tracking_commit(struct tracking_writer *writer, struct wattle_error *reterr)
{
	return writer->layout->commit(writer, reterr);
}

void tracking_rollback(struct tracking_writer *writer)
{
	writer->layout->rollback(writer);
}

void tracking_close(struct tracking_writer *writer, bool finished, bool discard)
{
	if (writer->layout != NULL && finished)
		writer->layout->end(writer);
	if (writer->layout != NULL)
		writer->layout->close(writer);
	output_file_close(&writer->output, discard);
	free(writer->is_gpu);
	writer->is_gpu = NULL;
	writer->layout = NULL;
}

/* The store */

struct state {
	struct tracking_writer writer;
	bool finished;
};

static int64_t count_gpus(const struct store_header *header)
{
	int64_t n = 0;
	for (size_t i = 0; i < header->n_devices; i++)
		n += header->devices[i]->kind == DOMAIN_GPU;
	return n;
}

static struct tracking_metadata metadata_of(const struct store_header *header)
{
	struct tracking_metadata facts = {
		.ram_unit = header->ram_unit,
		.gpu_ram_unit = header->gpu_ram_unit,
		.time_unit = header->time_unit,
		.system_core_count = header->n_cores,
		.n_expected_cores = header->expected_cores,
		.system_gpu_count = header->n_gpus_system,
		.n_expected_gpus = count_gpus(header),
	};
	tracking_metadata_capacity(&facts, value_to_double(header->memory_total_bytes, 1),
		value_to_double(header->gpu_memory_total_bytes, 1));
	return facts;
}

static int tracking_file_open(void *state, const struct store_open_options *options, const struct store_header *header,
	struct wattle_error *reterr)
{
	struct state *s = state;
	*s = (struct state){.writer.output.fd = -1};
	enum domain_kind *kinds = calloc_array(header->n_devices, sizeof(*kinds));
	if (kinds == NULL)
		return error_set(reterr, -ENOMEM, "%s: out of memory", options->path);
	for (size_t i = 0; i < header->n_devices; i++)
		kinds[i] = header->devices[i]->kind;
	struct tracking_metadata facts = metadata_of(header);
	int r = tracking_open(&s->writer, options, &facts, kinds, header->n_devices, reterr);
	free(kinds);
	tracking_start(&s->writer, header->anchor_mono_ns, header->anchor_wall_ns);
	return r;
}

static int write_batch(struct tracking_writer *writer, const struct batch *batch, bool is_last,
	struct wattle_error *reterr)
{
	int r = tracking_begin(writer, reterr);
	for (const struct record *record = batch != NULL ? batch_first(batch) : NULL; r == 0 && record != NULL;
		record = batch_next(batch, record))
		r = tracking_feed(writer, record, reterr);
	if (r == 0)
		r = is_last ? tracking_stop(writer, reterr) : tracking_flush(writer, reterr);
	return r < 0 ? r : tracking_commit(writer, reterr);
}

// All or nothing: on failure neither the file nor the row state has changed.
static int write_whole(struct state *s, const struct batch *batch, bool is_last, struct wattle_error *reterr)
{
	struct tracking_rows before = s->writer.rows;
	output_file_discard_old(&s->writer.output);
	int r = write_batch(&s->writer, batch, is_last, reterr);
	if (r < 0) {
		tracking_rollback(&s->writer);
		s->writer.rows = before;
		s->writer.has_run = false;
		s->writer.gpus = (struct tracking_gpus){0};
	}
	return r;
}

static int tracking_file_write(void *state, const struct store_delivery *delivery, struct wattle_error *reterr)
{
	return write_whole(state, delivery->batch, false, reterr);
}

static int tracking_file_finish(void *state, const struct store_footer *footer, struct wattle_error *reterr)
{
	struct state *s = state;
	if (!output_file_is_ours(&s->writer.output))
		return error_set(reterr, -ENOENT, "%s was removed or replaced during the run: its data is lost",
			s->writer.output.path);
	int r = write_whole(s, NULL, true, reterr);
	s->finished = r == 0;
	return r;
}

static void tracking_file_close(void *state, bool discard)
{
	struct state *s = state;
	tracking_close(&s->writer, s->finished, discard);
}

const struct store_ops store_tracking_file = {
	.name = "tracking file",
	.state_size = sizeof(struct state),
	.open = tracking_file_open,
	.write = tracking_file_write,
	.finish = tracking_file_finish,
	.close = tracking_file_close,
};
