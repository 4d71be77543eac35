#include "store/run_read.h"

#include "base/num.h"
#include "base/util.h"
#include "metric/metric.h"

#include <errno.h>
#include <string.h>

enum { TEXT_MAX = 512 };

struct matching {
	struct event *event;
	struct arena *arena;
	bool no_memory;
};

static const char *keep(struct matching *m, const char *text)
{
	const char *kept = arena_text(m->arena, text);
	m->no_memory |= kept == NULL;
	return kept;
}

/* ---- fields ---- */

// "package-0, dram-0" becomes "package-0 dram-0". Domain names contain no blanks, so a sentence is not a list of devices.
static bool take_device(struct matching *m, const char *text)
{
	char names[TEXT_MAX];
	size_t n = 0;
	for (const char *at = text; *at != '\0'; at++) {
		if (*at == ' ' && (at == text || at[-1] != ','))
			return false;
		if (*at != ',')
			names[n++] = *at;
	}
	names[n] = '\0';
	m->event->device = keep(m, names);
	return n > 0;
}

static bool take_sensor(struct matching *m, const char *text)
{
	m->event->sensor = keep(m, text);
	return true;
}

static bool take_detail(struct matching *m, const char *text)
{
	m->event->detail = keep(m, text);
	return true;
}

static bool take_pid(struct matching *m, const char *text)
{
	return num_parse_i64(text, &m->event->pid) == 0;
}

static bool take_rank(struct matching *m, const char *text)
{
	return num_parse_i64(text, &m->event->rank) == 0;
}

static bool take_count(struct matching *m, const char *text)
{
	return num_parse_i64(text, &m->event->count) == 0;
}

static bool take_new(struct matching *m, const char *text)
{
	return num_parse_i64(text, &m->event->new_value) == 0;
}

static bool take_ms(struct matching *m, const char *text)
{
	int64_t ms;
	if (num_parse_i64(text, &ms) < 0 || ms < 0 || ms > INT64_MAX / NS_PER_MS)
		return false;
	m->event->duration_ns = ms * NS_PER_MS;
	return true;
}

static bool take_w(const char *text, int64_t *ret_mw)
{
	double w;
	if (num_parse_double(text, &w) < 0 || !(w >= 0 && w < 1e9))
		return false;
	*ret_mw = llround(w * 1e3);
	return true;
}

static bool take_old_w(struct matching *m, const char *text)
{
	return take_w(text, &m->event->old_value);
}

static bool take_new_w(struct matching *m, const char *text)
{
	return take_w(text, &m->event->new_value);
}

// Reasons that only a later driver reports match no known bit.
static bool take_throttle(struct matching *m, const char *text)
{
	int64_t bits = 0;
	for (const char *at = text; *at != '\0';) {
		size_t length = strcspn(at, ",");
		for (size_t i = 0; i < THROTTLE_REASONS; i++)
			if (strlen(throttle_reasons[i].words) == length &&
				strncmp(at, throttle_reasons[i].words, length) == 0)
				bits |= throttle_reasons[i].bit;
		at += length;
		at += strspn(at, ", ");
	}
	m->event->new_value = bits != 0 ? bits : VALUE_MISSING;
	return true;
}

static const struct {
	const char *name;
	bool (*take)(struct matching *m, const char *text); // false: the text does not match the field
} fields[] = {
	{"{device}", take_device},
	{"{sensor}", take_sensor},
	{"{detail}", take_detail},
	{"{pid}", take_pid},
	{"{rank}", take_rank},
	{"{count}", take_count},
	{"{ms}", take_ms},
	{"{new}", take_new},
	{"{old_w}", take_old_w},
	{"{new_w}", take_new_w},
	{"{throttle}", take_throttle},
};

/* ---- sentences ---- */

// End of a field's text: the first occurrence of the literal that follows the field, or the end of the text.
static const char *end_of_field(const char *text, const char *behind)
{
	char literal[TEXT_MAX];
	size_t length = strcspn(behind, "{|");
	if (length == 0)
		return text + strlen(text);
	memcpy(literal, behind, length);
	literal[length] = '\0';
	const char *end = strstr(text, literal);
	return end != NULL ? end : text + strlen(text);
}

static bool take_field(struct matching *m, const char **sentence, const char **text)
{
	char value[TEXT_MAX];
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		size_t length = strlen(fields[i].name);
		if (strncmp(*sentence, fields[i].name, length) != 0)
			continue;
		*sentence += length;
		const char *end = end_of_field(*text, *sentence);
		if ((size_t)(end - *text) >= sizeof(value))
			return false;
		memcpy(value, *text, (size_t)(end - *text));
		value[end - *text] = '\0';
		*text = end;
		return fields[i].take(m, value);
	}
	return false;
}

static bool matches(struct matching *m, const char *sentence, const char *text)
{
	while (*sentence != '\0' && *sentence != '|') {
		if (*sentence == '{') {
			if (!take_field(m, &sentence, &text))
				return false;
		} else if (*sentence++ != *text++) {
			return false;
		}
	}
	return *text == '\0';
}

static bool matches_any(struct matching *m, enum event_type type, const char *sentences, const char *text)
{
	const struct event before = *m->event;
	if (event_type_kind(type) != m->event->kind)
		return false;
	for (const char *at = sentences; at != NULL && *at != '\0'; at += *at == '|') {
		if (matches(m, at, text)) {
			m->event->type = type;
			return true;
		}
		*m->event = before;
		at += strcspn(at, "|");
	}
	return false;
}

// Sentences of earlier versions that events.def has reworded since. Never edit a row: stored files contain these texts.
static const struct {
	enum event_type type;
	const char *sentence;
} earlier[] = {
	{EVENT_GAP_BEFORE, "{device}: nobody had read it before"},
	{EVENT_GAP_AFTER, "{device}: nobody read it any more"},
	{EVENT_WRAP_SEVERAL,
		"{device}: the energy counter wrapped; it had time for more than once, and the power before tells how often"},
	{EVENT_WRAP_UNREAD, "{device}: may have wrapped more than once while nobody read it"},
	{EVENT_WRAP_HANDOVER, "{device}: the counter wrapped while one recorder took over from another"},
	{EVENT_RESET_HANDOVER, "{device}: nothing tells what was used between two recorders' readings"},
	{EVENT_SUSPEND, "the machine slept for {ms} ms"},
	{EVENT_THROTTLE, "{device}: clocks held back: {throttle}"},
	{EVENT_THROTTLE_END, "{device}: clocks are free again"},
	{EVENT_NOTE_SPANS_UNWOUND,
		"{count} spans were left without an end of their own; the end of an outer one closed them"},
	{EVENT_NOTE_CGROUP_PEAK, "largest memory of the cgroup since it was made, page cache included: {new} bytes"},
	{EVENT_WARNING_SENSOR,
		"{device} ({sensor}) is not in the total: {detail}; `wattle sensors` tells the remedy"},
	{EVENT_WARNING_CPU_LOST,
		"rusage has lost {ms} ms of CPU time (children that nobody waited for); perf's task clock was taken"},
	{EVENT_WARNING_NO_SPANS, "spans are not recorded: no socket could be made for them: {detail}"},
	{EVENT_WARNING_BAD_RECORDS, "{count} records of spans made no sense and were left out"},
	{EVENT_WARNING_BROKEN_RINGS, "{count} rings of spans were damaged by their program and not read further"},
	{EVENT_WARNING_REFUSED_RINGS,
		"{count} rings of spans were refused: not of the target, or more than there is room for"},
	{EVENT_WARNING_NAMES, "spans had more than 65536 different names; the further ones have one name"},
	{EVENT_LOST_SPANS,
		"{count} spans, ranges, marks or metrics were lost: a ring was full, or none could be made, or too many were open"},
	{EVENT_LOST_UNREAD,
		"{count} records of spans were not read: the recording was ended by a signal while the rings were full"},
};

// Sentences of still other versions are recognised by these words.
static const struct {
	enum event_kind kind;
	const char *words;
	enum event_type type;
} words[] = {
	{EVENT_KIND_WRAP, "more than once", EVENT_WRAP_SEVERAL},
	{EVENT_KIND_SENSORS, ": read by ", EVENT_SENSORS_ELSEWHERE},
	{EVENT_KIND_SENSORS, ": taken over", EVENT_SENSORS_TAKEN},
	{EVENT_KIND_SENSORS, ": read here", EVENT_SENSORS_HERE},
};

// Common prefix of the sentences of all versions: "NAME: …".
static void take_begin(struct matching *m, const char *text)
{
	char name[TEXT_MAX];
	const char *colon = strstr(text, ": ");
	if (colon == NULL || (size_t)(colon - text) >= sizeof(name))
		return;
	memcpy(name, text, (size_t)(colon - text));
	name[colon - text] = '\0';
	if (!take_device(m, name))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (words[i].kind == m->event->kind && strstr(colon, words[i].words) != NULL) {
			m->event->type = words[i].type;
			return;
		}
}

int event_of_text(struct event *event, const char *text, struct arena *arena)
{
	struct matching m = {.event = event, .arena = arena};
	bool known = event->kind == EVENT_KIND_MARK;
	if (known) { // the program's own text, of any length
		event->type = EVENT_MARK;
		take_detail(&m, text);
	}
	for (size_t i = 0; !known && strlen(text) < TEXT_MAX && i < ARRAY_SIZE(earlier); i++)
		known = matches_any(&m, earlier[i].type, earlier[i].sentence, text);
	for (size_t type = 0; !known && strlen(text) < TEXT_MAX && type < EVENT_OTHER; type++)
		known = matches_any(&m, (enum event_type)type, event_type_sentence((enum event_type)type), text);
	if (!known && strlen(text) < TEXT_MAX)
		take_begin(&m, text);
	return m.no_memory ? -ENOMEM : 0;
}
