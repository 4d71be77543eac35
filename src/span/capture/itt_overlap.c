/* Items that may overlap and end in another thread: tasks with an id, regions, frames and events; and instants. */
#include "span/capture/itt.h"

#include "span/writer/writer.h"

#include <string.h>
#include <unistd.h>

static void open_range(enum itt_range_kind kind, const struct itt_domain *domain, const struct itt_id *id,
	const struct itt_string *string)
{
	struct itt_name name;
	if (itt_is_recording())
		itt_range_begin(itt_range_key(kind, domain, id), itt_name_of(&name, domain, string));
}

static void overlapped_begin(const struct itt_domain *domain, struct itt_id id, struct itt_id parent,
	const struct itt_string *string)
{
	open_range(ITT_OVERLAPPED, domain, &id, string);
}

static void overlapped_begin_ex(const struct itt_domain *domain, void *clock, unsigned long long timestamp,
	struct itt_id id, struct itt_id parent, const struct itt_string *string)
{
	open_range(ITT_OVERLAPPED, domain, &id, string);
}

static void overlapped_end(const struct itt_domain *domain, struct itt_id id)
{
	itt_range_end(itt_range_key(ITT_OVERLAPPED, domain, &id));
}

static void overlapped_end_ex(const struct itt_domain *domain, void *clock, unsigned long long timestamp,
	struct itt_id id)
{
	overlapped_end(domain, id);
}

static void region_begin(const struct itt_domain *domain, struct itt_id id, struct itt_id parent,
	const struct itt_string *string)
{
	open_range(ITT_REGION, domain, &id, string);
}

static void region_end(const struct itt_domain *domain, struct itt_id id)
{
	itt_range_end(itt_range_key(ITT_REGION, domain, &id));
}

static void frame_begin(const struct itt_domain *domain, const struct itt_id *id)
{
	open_range(ITT_FRAME, domain, id, &(struct itt_string){.text = "frame"});
}

static void frame_end(const struct itt_domain *domain, const struct itt_id *id)
{
	itt_range_end(itt_range_key(ITT_FRAME, domain, id));
}

// An event is a number: the position of its text in the table.
static int event_create(const char *name, int length)
{
	char text[SPAN_NAME_BYTES_MAX + 1] = "";
	size_t buffer = length < 0 ? 0 : (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1;
	if (name != NULL)
		memcpy(text, name, strnlen(name, buffer));
	const struct text *event = string_table_add(&itt_texts, ITT_EVENT_NAME, itt_or_unnamed(text), NULL);
	return (int)((size_t)((const unsigned char *)event - itt_texts.arena) / alignof(struct text)) + 1;
}

static const struct text *event_of(int event)
{
	if (event < 1 || (size_t)event > TEXT_ARENA_BYTES / alignof(struct text))
		return NULL;
	return string_table_find(&itt_texts, ITT_EVENT_NAME,
		itt_texts.arena + (size_t)(event - 1) * alignof(struct text));
}

// An event belongs to the thread that starts it. Its end may be missing; the next event with its name in the thread
// then ends it.
static uint64_t event_key(const struct text *event)
{
	return itt_range_key(ITT_EVENT, event, &(struct itt_id){.d1 = (unsigned long long)gettid()});
}

static int event_start(int number)
{
	const struct text *event = event_of(number);
	if (event == NULL)
		return -1;
	itt_range_end(event_key(event));
	if (itt_is_recording())
		itt_range_begin(event_key(event), event->bytes);
	return 0;
}

static int event_end(int number)
{
	const struct text *event = event_of(number);
	if (event == NULL)
		return -1;
	itt_range_end(event_key(event));
	return 0;
}

static void marker(const struct itt_domain *domain, struct itt_id id, const struct itt_string *string, int scope)
{
	struct itt_name name;
	if (itt_is_recording())
		span_mark(itt_name_of(&name, domain, string), NULL);
}

static void marker_ex(const struct itt_domain *domain, void *clock, unsigned long long timestamp, struct itt_id id,
	const struct itt_string *string, int scope)
{
	marker(domain, id, string, scope);
}

const struct itt_call itt_range_calls[] = {
	{"__itt_task_begin_overlapped", ITT_CALL(overlapped_begin)},
	{"__itt_task_begin_overlapped_ex", ITT_CALL(overlapped_begin_ex)},
	{"__itt_task_end_overlapped", ITT_CALL(overlapped_end)},
	{"__itt_task_end_overlapped_ex", ITT_CALL(overlapped_end_ex)},
	{"__itt_region_begin", ITT_CALL(region_begin)},
	{"__itt_region_end", ITT_CALL(region_end)},
	{"__itt_frame_begin_v3", ITT_CALL(frame_begin)},
	{"__itt_frame_end_v3", ITT_CALL(frame_end)},
	{"__itt_event_create", ITT_CALL(event_create)},
	{"__itt_event_start", ITT_CALL(event_start)},
	{"__itt_event_end", ITT_CALL(event_end)},
	{"__itt_marker", ITT_CALL(marker)},
	{"__itt_marker_ex", ITT_CALL(marker_ex)},
	{NULL, NULL},
};
