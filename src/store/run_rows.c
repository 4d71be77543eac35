#include "store/run_read.h"

#include "base/buf.h"
#include "base/search.h"
#include "base/util.h"
#include "sensor/gpu_gain.h"
#include "store/schema.h"

#include <string.h>

const char *cells_text(const struct cells *cells, int column, struct arena *arena)
{
	size_t size;
	const char *bytes = cells->ops->bytes(cells->row, column, &size);
	char *text = bytes != NULL ? arena_alloc(arena, size + 1, 1) : NULL;
	if (text != NULL)
		memcpy(text, bytes, size);
	return text;
}

void cells_copy(const struct cells *cells, int column, char *out, size_t size)
{
	size_t length;
	const char *bytes = cells->ops->bytes(cells->row, column, &length);
	if (bytes == NULL)
		length = 0;
	length = length < size ? length : size - 1;
	if (length > 0)
		memcpy(out, bytes, length);
	out[length] = '\0';
}

/* Converts a table of few columns to an array of structs, by a function that knows the columns. */
struct rows {
	struct run_question question;
	size_t row_size;
	void (*fill)(const struct cells *cells, struct arena *arena, void *row);
};

struct growing {
	const struct rows *rows;
	struct arena *arena;
	unsigned char *array; // owned
	size_t n, capacity;
};

static int take_row(void *data, const struct cells *cells)
{
	struct growing *growing = data;
	void *larger = array_reserve(growing->array, growing->n, &growing->capacity, growing->rows->row_size, 64);
	if (larger == NULL)
		return SQLITE_NOMEM;
	growing->array = larger;
	unsigned char *row = growing->array + growing->n++ * growing->rows->row_size;
	memset(row, 0, growing->rows->row_size);
	growing->rows->fill(cells, growing->arena, row);
	return 0;
}

static int read_rows(struct run_reader *reader, const struct rows *rows, void **ret_rows, size_t *ret_n)
{
	struct growing growing = {.rows = rows, .arena = reader->arena};
	int r = reader->source->read(reader, &rows->question, take_row, &growing);
	void *array = r == 0 ? arena_alloc(reader->arena, growing.n, rows->row_size) : NULL;
	if (r == 0 && array == NULL)
		r = SQLITE_NOMEM;
	if (r == 0) {
		if (growing.n > 0)
			memcpy(array, growing.array, growing.n * rows->row_size);
		*ret_rows = array;
		*ret_n = growing.n;
	}
	free(growing.array);
	return r;
}

// Texts that callers require to be non-NULL are "" if the file has none.
static const char *text_or_empty(const struct cells *s, int column, struct arena *arena)
{
	const char *text = cells_text(s, column, arena);
	return text != NULL ? text : "";
}

static void fill_metadata(const struct cells *s, struct arena *arena, void *row)
{
	struct run_metadata *fact = row;
	fact->key = text_or_empty(s, 0, arena);
	fact->value = text_or_empty(s, 1, arena);
}

int run_read_metadata(struct run_reader *reader, struct run *run)
{
	static const struct rows rows = {{"run", "key, value"}, sizeof(struct run_metadata), fill_metadata};
	void *facts = NULL;
	int r = read_rows(reader, &rows, &facts, &run->n_metadata);
	run->facts = facts;
	return r;
}

// Update period of a counter, limited to the longest interval at which it is read.
static double period_s(int64_t ns)
{
	return ns >= 0 && ns <= 3600 * NS_PER_S ? (double)ns / 1e9 : (double)NAN;
}

/* The sensor's declared properties need the same gain as its readings (run_columns.c). A damaged or hostile file must not
 * produce invalid values. */
static void apply_gain(struct run_device *device)
{
	if (!(device->gain >= GPU_GAIN_MIN && device->gain <= GPU_GAIN_MAX && device->gain_error > 0 &&
		    device->gain_error <= GPU_GAIN_ERROR_MAX)) {
		device->gain = device->gain_error = (double)NAN;
		device->gain_source[0] = '\0';
		return;
	}
	double *const scaled[] = {&device->resolution_j, &device->energy_range_j, &device->idle_w,
		&device->idle_error_w};
	for (size_t i = 0; i < ARRAY_SIZE(scaled); i++)
		*scaled[i] *= device->gain;
}

static void fill_device(const struct cells *s, struct arena *arena, void *row)
{
	struct run_device *device = row;
	char text[32];
	device->id = cells_i64(s, 0);
	cells_copy(s, 1, text, sizeof(text));
	int kind = domain_kind_from_name(text);
	device->kind = kind >= 0 ? (enum domain_kind)kind : DOMAIN_KINDS; // a kind of a later wattle is stored as DOMAIN_KINDS
	cells_copy(s, 2, device->name, sizeof(device->name));
	cells_copy(s, 3, device->uuid, sizeof(device->uuid));
	cells_copy(s, 4, device->device, sizeof(device->device));
	cells_copy(s, 5, device->inside, sizeof(device->inside));
	int64_t index = cells_i64(s, 6);
	device->index = value_ok(index) ? (int)index : -1;
	cells_copy(s, 7, device->source, sizeof(device->source));
	cells_copy(s, 8, text, sizeof(text));
	int provenance = provenance_from_name(text);
	device->provenance = provenance >= 0 ? (enum provenance)provenance : PROVENANCE_ESTIMATED; // the weakest provenance
	device->has_energy = cells_i64(s, 9) == 1;
	device->resolution_j = value_to_double(cells_i64(s, 10), 1e-6);
	device->update_period_s = period_s(cells_i64(s, 11));
	device->relative_error = cells_double(s, 12);
	device->memory_total_bytes = cells_i64(s, 13);
	device->energy_range_j = value_to_double(cells_i64(s, 14), 1e-6);
	device->update_jitter_s = period_s(cells_i64(s, 15));
	device->idle_w = cells_double(s, 16);
	device->idle_error_w = cells_double(s, 17);
	device->idle_temperature_c = cells_double(s, 18);
	cells_copy(s, 19, device->idle_date, sizeof(device->idle_date));
	device->gain = cells_double(s, 20);
	device->gain_error = cells_double(s, 21);
	cells_copy(s, 22, device->gain_source, sizeof(device->gain_source));
	apply_gain(device);
}

#define DEVICE_COLUMNS                                                                                                 \
	"id, kind, name, uuid, device, inside, idx, source, provenance, has_energy, resolution_uj, "                   \
	"update_period_ns, relative_error, memory_total_bytes, energy_range_uj, "

#define IDLE_COLUMNS "update_jitter_ns, idle_w, idle_error_w, idle_temperature_c, idle_date, "

int run_read_devices(struct run_reader *reader, struct run *run)
{
	// Files of older versions lack the last columns.
	static const struct rows rows[] = {
		{{"device", DEVICE_COLUMNS IDLE_COLUMNS "gain, gain_error, gain_source", .order = "id"},
			sizeof(struct run_device), fill_device},
		{{"device", DEVICE_COLUMNS IDLE_COLUMNS "NULL, NULL, NULL", .order = "id"}, sizeof(struct run_device),
			fill_device},
		{{"device", DEVICE_COLUMNS "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL", .order = "id"},
			sizeof(struct run_device), fill_device},
	};
	size_t age = 0;
	if (!reader->source->has_column(reader, "device", "gain_source"))
		age = reader->source->has_column(reader, "device", "idle_date") ? 1 : 2;
	void *devices = NULL;
	int r = read_rows(reader, &rows[age], &devices, &run->n_devices);
	run->devices = devices;
	return r;
}

static void fill_process(const struct cells *s, struct arena *arena, void *row)
{
	struct run_process *process = row;
	*process = (struct run_process){
		.pid = cells_i64(s, 0),
		.ppid = cells_i64(s, 1),
		.start_ns = cells_i64(s, 2),
		.end_ns = cells_i64(s, 3),
		.cpu_ns = cells_i64(s, 4),
		.max_rss_bytes = cells_i64(s, 5),
		.command = text_or_empty(s, 6, arena),
		.is_main = cells_i64(s, 7) == 1,
		.sampled = cells_i64(s, 8) == 1,
	};
}

int run_read_processes(struct run_reader *reader, struct run *run)
{
	static const struct rows rows =
		{{"process", "pid, ppid, start_ns, end_ns, cpu_ns, max_rss_bytes, command, is_main, sampled",
			 .order = "start_ns, pid"},
			sizeof(struct run_process), fill_process};
	void *processes = NULL;
	int r = read_rows(reader, &rows, &processes, &run->n_processes);
	run->processes = processes;
	return r;
}

static void fill_old_event(const struct cells *s, struct arena *arena, void *row)
{
	struct event *event = row;
	*event = event_make(EVENT_OTHER, run_clock_ns(cells_i64(s, 0)));
	event->kind_name = text_or_empty(s, 1, arena);
	event->kind = event_kind_of_name(event->kind_name);
	event->text = text_or_empty(s, 2, arena);
	event_of_text(event, event->text, arena); // out of memory: reading fails at the next row
}

static void fill_event(const struct cells *s, struct arena *arena, void *row)
{
	struct event *event = row;
	const char *reason = cells_text(s, 3, arena);
	fill_old_event(s, arena, row);
	if (reason == NULL) // recorded before 1.0, in a file that was appended to
		return;
	const char *kind_name = event->kind_name, *text = event->text;
	enum event_kind kind = event->kind;
	*event = event_make(event_type_of(kind, reason), event->t_ns);
	event->kind = kind;
	event->kind_name = kind_name;
	event->text = text;
	event->device = cells_text(s, 4, arena);
	event->sensor = cells_text(s, 5, arena);
	event->pid = cells_i64(s, 6);
	event->rank = cells_i64(s, 7);
	event->count = cells_i64(s, 8);
	event->duration_ns = cells_i64(s, 9);
	event->old_value = cells_i64(s, 10);
	event->new_value = cells_i64(s, 11);
	event->detail = cells_text(s, 12, arena);
	event_set_text(event, arena); // uniform wording in reports; sentences of other versions stay as they are
}

static void fill_sleep(const struct cells *s, struct arena *arena, void *row)
{
	*(struct run_sleep *)row = (struct run_sleep){cells_i64(s, 0), cells_i64(s, 1)};
}

static int read_sleeps(struct run_reader *reader, struct run *run)
{
	// RUN_SLEPT_MAX_NS
	static const struct rows rows = {{"event", "t_ns, slept_ns",
						 .where = "slept_ns BETWEEN 1 AND 1152921504606846976",
						 .order = "t_ns"},
		sizeof(struct run_sleep), fill_sleep};
	void *sleeps = NULL;
	if (!reader->source->has_column(reader, "event", "slept_ns"))
		return 0;
	int r = read_rows(reader, &rows, &sleeps, &run->n_sleeps);
	run->sleeps = sleeps;
	return r;
}

int run_read_events(struct run_reader *reader, struct run *run)
{
	static const struct rows rows[] = {
		{{"event", "t_ns, kind, text"}, sizeof(struct event), fill_old_event},
		{{"event", "t_ns, kind, text, reason, device, sensor, pid, rank, count, duration_ns, old_value, new_value, detail"},
			sizeof(struct event), fill_event},
	};
	void *events = NULL;
	bool has_fields = reader->source->has_column(reader, "event", "reason");
	int r = read_rows(reader, &rows[has_fields], &events, &run->n_events);
	run->events = events;
	// Sorted here so that events of equal time keep their file order.
	if (r == 0 &&
		sort_rows(run->events, sizeof(*run->events), run->n_events, offsetof(struct event, t_ns),
			SORT_NO_ID) < 0)
		r = SQLITE_NOMEM;
	return r == 0 ? read_sleeps(reader, run) : r;
}

/* Table segment: the figures of the footer are read by the same list that writes them. */

enum { SEGMENT_FIXED = 6 };

// Valid range: 1970 to 2116; other values are unknown.
static int64_t wall_ns(int64_t ns)
{
	return ns >= 0 && ns <= 4 * RUN_CLOCK_MAX_NS ? ns : VALUE_MISSING;
}

static void fill_segment(const struct cells *s, struct arena *arena, void *row)
{
	struct run_segment *segment = row;
	segment->id = cells_i64(s, 0);
	segment->wall_start_ns = wall_ns(cells_i64(s, 1));
	segment->command_json = text_or_empty(s, 2, arena);
	segment->complete = cells_i64(s, 3) == 1;
	segment->cpu_method = cells_text(s, 4, arena);
	segment->boot_start_ns = cells_i64(s, 5);
	size_t n;
	const struct schema_figure *figures = schema_figures(&n);
	for (size_t i = 0; i < n; i++) {
		int64_t value = cells_i64(s, SEGMENT_FIXED + (int)i);
		memcpy((unsigned char *)row + figures[i].in_segment, &value, sizeof(value));
	}
}

static int64_t last_sample_before(const struct run *run, int64_t t_ns)
{
	size_t at = search_i64(run->t_ns, run->n, t_ns);
	return at > 0 ? run->t_ns[at - 1] : VALUE_MISSING;
}

// If the recorder died or is still running, the end of its segment is not stored: the time of the last sample is used.
static void close_open_segments(struct run *run)
{
	for (size_t i = 0; i < run->n_segments; i++) {
		struct run_segment *segment = &run->segments[i];
		if (value_ok(segment->end_ns))
			continue;
		int64_t limit_ns = i + 1 < run->n_segments ? run->segments[i + 1].start_ns : INT64_MAX;
		int64_t last_ns = last_sample_before(run, limit_ns);
		segment->end_ns = value_ok(last_ns) && last_ns > segment->start_ns ? last_ns : segment->start_ns;
	}
}

static int64_t within(int64_t low_ns, int64_t t_ns, int64_t high_ns)
{
	return t_ns < low_ns ? low_ns : t_ns > high_ns ? high_ns : t_ns;
}

/* Readers require segments that follow each other. In a damaged or foreign file a segment may begin before the previous one
 * ends; the overlap then belongs to the earlier one. */
static void put_segments_in_order(struct run *run)
{
	int64_t low_ns = -RUN_CLOCK_MAX_NS;
	for (size_t i = 0; i < run->n_segments; i++) {
		struct run_segment *segment = &run->segments[i];
		segment->start_ns = within(low_ns, segment->start_ns, RUN_CLOCK_MAX_NS);
		segment->end_ns = within(segment->start_ns, segment->end_ns, RUN_CLOCK_MAX_NS);
		low_ns = segment->end_ns;
	}
}

int run_read_segments(struct run_reader *reader, struct run *run)
{
	struct buf select;
	buf_init(&select, 65536);
	buf_str(&select, "id, wall_start_ns, command, complete, cpu_method");
	buf_str(&select, reader->source->has_column(reader, "segment", "boot_start_ns") ? ", boot_start_ns" : ", NULL");
	size_t n;
	const struct schema_figure *figures = schema_figures(&n);
	for (size_t i = 0; i < n; i++) // columns that a file of an older wattle lacks
		buf_printf(&select, ", %s",
			reader->source->has_column(reader, "segment", figures[i].column) ? figures[i].column : "NULL");
	const struct rows rows = {{"segment", select.data, .order = "id"}, sizeof(struct run_segment), fill_segment};
	void *segments = NULL;
	int r = select.failed != 0 ? SQLITE_NOMEM : read_rows(reader, &rows, &segments, &run->n_segments);
	buf_finish(&select);
	run->segments = segments;
	if (r == 0) {
		close_open_segments(run);
		put_segments_in_order(run);
	}
	return r;
}
