#include "metric/event.h"

#include "base/util.h"
#include "metric/metric.h"

#include <errno.h>
#include <string.h>

static const char *const kind_names[] = {
#define EVENT_KIND(id, name, meaning) [EVENT_KIND_##id] = name,
#include "metric/events.def"
};

static const struct {
	enum event_kind kind;
	const char *reason, *sentence;
} types[] = {
#define EVENT(id, kind, reason, sentence) [EVENT_##id] = {EVENT_KIND_##kind, reason, sentence},
#include "metric/events.def"
};

struct event event_make(enum event_type type, int64_t t_ns)
{
	return (struct event){
		.t_ns = t_ns,
		.kind = event_type_kind(type),
		.type = type,
		.pid = VALUE_MISSING,
		.rank = VALUE_MISSING,
		.count = VALUE_MISSING,
		.duration_ns = VALUE_MISSING,
		.old_value = VALUE_MISSING,
		.new_value = VALUE_MISSING,
		.kind_name = event_kind_name(event_type_kind(type)),
	};
}

struct event event_mark(int64_t t_ns, const char *name)
{
	struct event mark = event_make(EVENT_MARK, t_ns);
	mark.detail = mark.text = name;
	return mark;
}

/* ---- names ---- */

const char *event_kind_name(enum event_kind kind)
{
	return kind < EVENT_KIND_OTHER ? kind_names[kind] : NULL;
}

enum event_kind event_kind_of_name(const char *name)
{
	for (size_t i = 0; name != NULL && i < ARRAY_SIZE(kind_names); i++)
		if (strcmp(kind_names[i], name) == 0)
			return (enum event_kind)i;
	return EVENT_KIND_OTHER;
}

enum event_kind event_type_kind(enum event_type type)
{
	return type < EVENT_OTHER ? types[type].kind : EVENT_KIND_OTHER;
}

const char *event_type_reason(enum event_type type)
{
	return type < EVENT_OTHER ? types[type].reason : NULL;
}

const char *event_type_sentence(enum event_type type)
{
	return type < EVENT_OTHER ? types[type].sentence : "";
}

enum event_type event_type_of(enum event_kind kind, const char *reason)
{
	for (size_t i = 0; reason != NULL && i < ARRAY_SIZE(types); i++)
		if (types[i].kind == kind && strcmp(types[i].reason, reason) == 0)
			return (enum event_type)i;
	return EVENT_OTHER;
}

bool event_is_of(const struct event *event, const char *device)
{
	size_t length = strlen(device);
	for (const char *at = event->device; at != NULL && length > 0; at = strchr(at, ' ')) {
		at += *at == ' ';
		if (strncmp(at, device, length) == 0 && (at[length] == ' ' || at[length] == '\0'))
			return true;
	}
	return false;
}

bool event_is_of_counter(const struct event *event)
{
	return event->kind == EVENT_KIND_WRAP || event->kind == EVENT_KIND_GAP || event->kind == EVENT_KIND_RESET;
}

/* ---- sentences ---- */

void event_device_names(struct buf *out, const struct event *event)
{
	for (const char *at = event->device; at != NULL && *at != '\0'; at++) {
		if (*at == ' ')
			buf_char(out, ',');
		buf_char(out, *at);
	}
}

static bool put_integer(struct buf *out, int64_t value)
{
	if (value_ok(value))
		buf_i64(out, value);
	return value_ok(value);
}

static bool put_text(struct buf *out, const char *text)
{
	if (text != NULL)
		buf_str(out, text);
	return text != NULL;
}

static bool put_device(struct buf *out, const struct event *event)
{
	event_device_names(out, event);
	return event->device != NULL;
}

static bool put_sensor(struct buf *out, const struct event *event)
{
	return put_text(out, event->sensor);
}

static bool put_detail(struct buf *out, const struct event *event)
{
	return put_text(out, event->detail);
}

static bool put_pid(struct buf *out, const struct event *event)
{
	return put_integer(out, event->pid);
}

static bool put_rank(struct buf *out, const struct event *event)
{
	return put_integer(out, event->rank);
}

static bool put_count(struct buf *out, const struct event *event)
{
	return put_integer(out, event->count);
}

static bool put_ms(struct buf *out, const struct event *event)
{
	return put_integer(out, value_ok(event->duration_ns) ? event->duration_ns / NS_PER_MS : VALUE_MISSING);
}

static bool put_new(struct buf *out, const struct event *event)
{
	return put_integer(out, event->new_value);
}

static bool put_w(struct buf *out, int64_t power_mw)
{
	if (!value_ok(power_mw))
		return false;
	buf_i64(out, power_mw / 1000);
	if (power_mw % 1000 != 0)
		buf_printf(out, ".%03lld", (long long)(power_mw % 1000));
	return true;
}

static bool put_old_w(struct buf *out, const struct event *event)
{
	return put_w(out, event->old_value);
}

static bool put_new_w(struct buf *out, const struct event *event)
{
	return put_w(out, event->new_value);
}

static bool put_throttle(struct buf *out, const struct event *event)
{
	char words[THROTTLE_PHRASE_SIZE];
	if (!value_ok(event->new_value))
		return false;
	throttle_phrase(event->new_value, words);
	buf_str(out, words);
	return true;
}

static const struct {
	const char *name;
	bool (*put)(struct buf *out, const struct event *event); // false: unknown
} fields[] = {
	{"{device}", put_device},
	{"{sensor}", put_sensor},
	{"{detail}", put_detail},
	{"{pid}", put_pid},
	{"{rank}", put_rank},
	{"{count}", put_count},
	{"{ms}", put_ms},
	{"{new}", put_new},
	{"{old_w}", put_old_w},
	{"{new_w}", put_new_w},
	{"{throttle}", put_throttle},
};

// Appends the field at the start of a text; adds its length to *at.
static bool put_field(struct buf *out, const char **at, const struct event *event)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		size_t length = strlen(fields[i].name);
		if (strncmp(*at, fields[i].name, length) != 0)
			continue;
		*at += length;
		return fields[i].put(out, event);
	}
	return false;
}

// Appends one alternative, which ends at "|" or the end; returns false if one of its fields is unknown.
static bool put_alternative(struct buf *out, const char *at, const struct event *event)
{
	while (*at != '\0' && *at != '|') {
		if (*at == '{') {
			if (!put_field(out, &at, event))
				return false;
		} else {
			buf_char(out, *at++);
		}
	}
	return true;
}

void event_sentence(struct buf *out, const struct event *event)
{
	struct buf text;
	const char *at = event_type_sentence(event->type);
	buf_init(&text, 1 << 20);
	while (at != NULL && *at != '\0') {
		buf_clear(&text);
		if (put_alternative(&text, at, event)) {
			buf_str(out, text.data != NULL ? text.data : "");
			break;
		}
		at = strchr(at, '|');
		at += at != NULL;
	}
	buf_finish(&text);
}

int event_set_text(struct event *event, struct arena *arena)
{
	struct buf sentence;
	buf_init(&sentence, 1 << 20);
	event_sentence(&sentence, event);
	const char *text = sentence.size > 0 ? arena_text(arena, sentence.data) : event->text;
	bool failed = sentence.failed != 0 || (sentence.size > 0 && text == NULL);
	buf_finish(&sentence);
	event->text = failed ? event->text : text;
	return failed ? -ENOMEM : 0;
}

void event_reader(struct buf *out, const struct event *event)
{
	if (!value_ok(event->pid))
		buf_str(out, "another recorder of this job");
	else if (!value_ok(event->rank))
		buf_printf(out, "pid %lld, another recorder of this job", (long long)event->pid);
	else
		buf_printf(out, "pid %lld, rank %lld of this job", (long long)event->pid, (long long)event->rank);
}
