#include "store/run_read.h"

#include "base/util.h"
#include "rows.h"

#include <string.h>

/* Sentences of older run files, from before events had columns. */
static const struct row {
	const char *teaches, *kind, *text;
	enum event_type type;
	const char *device; // NULL: none
	int64_t value;      // the field that is a number; 0: none
} rows[] = {
	{"a gap", "gap", "package-0: the energy counter can't be read", EVENT_GAP, "package-0", 0},
	{"gap, older wording", "gap", "package-0: the power can't be read", EVENT_OTHER, "package-0", 0},
	{"a wrap", "wrap", "package-0: the energy counter wrapped", EVENT_WRAP, "package-0", 0},
	{"possibly several wraps", "wrap",
		"package-0: the energy counter wrapped; it had time for more than once, and the power before tells how often",
		EVENT_WRAP_SEVERAL, "package-0", 0},
	{"possibly several wraps, older wording", "wrap", "package-0: it had time for more than once",
		EVENT_WRAP_SEVERAL, "package-0", 0},
	{"an earlier sentence: not read before", "gap", "dram-0: nobody had read it before", EVENT_GAP_BEFORE, "dram-0",
		0},
	{"an earlier sentence: not read after", "gap", "dram-0: nobody read it any more", EVENT_GAP_AFTER, "dram-0", 0},
	{"an earlier sentence: wraps while unread", "wrap",
		"dram-0: may have wrapped more than once while nobody read it", EVENT_WRAP_UNREAD, "dram-0", 0},
	{"an earlier sentence: wrap at a handover", "wrap",
		"dram-0: the counter wrapped while one recorder took over from another", EVENT_WRAP_HANDOVER, "dram-0",
		0},
	{"an earlier sentence: reset at a handover", "reset",
		"dram-0: nothing tells what was used between two recorders' readings", EVENT_RESET_HANDOVER, "dram-0",
		0},
	{"an earlier sentence: end of throttling", "throttle-end", "gpu-0: clocks are free again", EVENT_THROTTLE_END,
		"gpu-0", 0},
	{"an earlier sentence: unwound spans", "note",
		"7 spans were left without an end of their own; the end of an outer one closed them",
		EVENT_NOTE_SPANS_UNWOUND, NULL, 7},
	{"an earlier sentence: CPU time lost", "warning",
		"rusage has lost 12 ms of CPU time (children that nobody waited for); perf's task clock was taken",
		EVENT_WARNING_CPU_LOST, NULL, 12 * NS_PER_MS},
	{"an earlier sentence: no spans", "warning",
		"spans are not recorded: no socket could be made for them: permission denied", EVENT_WARNING_NO_SPANS,
		NULL, 0},
	{"an earlier sentence: invalid records", "warning", "7 records of spans made no sense and were left out",
		EVENT_WARNING_BAD_RECORDS, NULL, 7},
	{"an earlier sentence: damaged rings", "warning",
		"7 rings of spans were damaged by their program and not read further", EVENT_WARNING_BROKEN_RINGS, NULL,
		7},
	{"an earlier sentence: refused rings", "warning",
		"7 rings of spans were refused: not of the target, or more than there is room for",
		EVENT_WARNING_REFUSED_RINGS, NULL, 7},
	{"an earlier sentence: too many names", "warning",
		"spans had more than 65536 different names; the further ones have one name", EVENT_WARNING_NAMES, NULL,
		0},
	{"an earlier sentence: lost spans", "lost",
		"7 spans, ranges, marks or metrics were lost: a ring was full, or none could be made, or too many were open",
		EVENT_LOST_SPANS, NULL, 7},
	{"an earlier sentence: unread records", "lost",
		"7 records of spans were not read: the recording was ended by a signal while the rings were full",
		EVENT_LOST_UNREAD, NULL, 7},
	{"a suspend", "suspend", "the machine was suspended for 12000 ms", EVENT_SUSPEND, NULL, 12000 * NS_PER_MS},
	{"a limit", "cap", "gpu-0: power limit 250.005 W (before: 400 W)", EVENT_CAP, "gpu-0", 250005},
	{"throttling", "throttle", "gpu-0: clocks held back: power limit, thermal slowdown", EVENT_THROTTLE, "gpu-0",
		0x24},
	{"throttling for reasons of a later driver", "throttle", "gpu-0: clocks held back: other reasons",
		EVENT_THROTTLE, "gpu-0", 0},
	{"read by a rank", "sensors", "package-0, dram-0: read by pid 12, rank 3 of this job", EVENT_SENSORS_ELSEWHERE,
		"package-0 dram-0", 12},
	{"read by an unknown recorder", "sensors", "gpu-0: read by another recorder of this job",
		EVENT_SENSORS_ELSEWHERE, "gpu-0", 0},
	{"taken over", "sensors", "gpu-0: taken over from pid 12, read here from now on", EVENT_SENSORS_TAKEN, "gpu-0",
		12},
	{"taken over, older wording", "sensors", "dram-0: taken over", EVENT_SENSORS_TAKEN, "dram-0", 0},
	{"read elsewhere, older wording", "sensors", "dram-0: read by rank 3", EVENT_SENSORS_ELSEWHERE, "dram-0", 0},
	{"note of a sensor", "note", "gpu-0: awake again", EVENT_NOTE_SENSOR, "gpu-0", 0},
	{"note about no domain", "note",
		"largest memory of the cgroup since it was made, page cache included: 123 bytes",
		EVENT_NOTE_CGROUP_PEAK, NULL, 123},
	{"lost spans", "lost", "7 spans were lost: too many were open at the same time", EVENT_LOST_OPEN, NULL, 7},
	{"unreadable sensor", "warning",
		"dram-0 (powercap) is not in the total: permission denied; `wattle sensors` tells the remedy",
		EVENT_WARNING_SENSOR, "dram-0", 0},
	{"mark: the program's own text", "mark", "epoch 3: done", EVENT_MARK, NULL, 0},
	{"unknown sentence: no fields", "warning", "something: happened", EVENT_OTHER, "something", 0},
	{"event kind of a later version: no fields", "of tomorrow", "the energy counter wrapped", EVENT_OTHER, NULL, 0},
	{"empty sentence: no fields", "gap", "", EVENT_OTHER, NULL, 0},
	{"invalid number: no fields", "lost", "many spans were lost: too many were open at the same time", EVENT_OTHER,
		NULL, 0},
};

static struct event read_back(const char *kind, const char *text, struct arena *arena)
{
	struct event event = event_make(EVENT_OTHER, 5);
	event.kind = event_kind_of_name(kind);
	assert_int_equal(event_of_text(&event, text, arena), 0);
	return event;
}

static int64_t first_number(const struct event *event)
{
	const int64_t numbers[] = {event->pid, event->count, event->duration_ns, event->new_value};
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (value_ok(numbers[i]))
			return numbers[i];
	return 0;
}

static void check(void **state)
{
	const struct row *row = *state;
	struct arena *arena = arena_new();
	const struct event event = read_back(row->kind, row->text, arena);
	assert_int_equal(event.type, row->type);
	assert_true(text_is_same(event.device, row->device));
	assert_int_equal(first_number(&event), row->value);
	arena_free(arena);
}

// Every current sentence, made with all of its fields, is parsed back into them.
static void sentences_come_back(void **state)
{
	struct arena *arena = arena_new();
	for (size_t type = 0; type < EVENT_OTHER; type++) {
		struct event event = event_make((enum event_type)type, 5);
		struct buf before, after;
		event.device = "package-0 dram-0";
		event.sensor = "powercap";
		event.detail = "permission denied";
		event.pid = 12;
		event.rank = 3;
		event.count = 7;
		event.duration_ns = 9 * NS_PER_MS;
		event.old_value = 400000;
		event.new_value = 0x24;
		buf_init(&before, 4096);
		buf_init(&after, 4096);
		event_sentence(&before, &event);
		const struct event back = read_back(event_kind_name(event.kind), before.data, arena);
		assert_int_equal(back.type, type);
		event_sentence(&after, &back);
		assert_string_equal(after.data, before.data);
		buf_finish(&before);
		buf_finish(&after);
	}
	arena_free(arena);
}

// A text of any length: the fields are unknown, no crash.
static void long_texts(void **state)
{
	enum { LENGTH = 100000 };
	struct arena *arena = arena_new();
	char *text = arena_alloc(arena, LENGTH + 1, 1);
	memset(text, 'x', LENGTH);
	assert_int_equal(read_back("gap", text, arena).type, EVENT_OTHER);
	assert_string_equal(read_back("mark", text, arena).detail, text);
	arena_free(arena);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "every current sentence: parsed back", sentences_come_back);
	ROWS_ADD_ONE(&tests, "text of any length: fields unknown", long_texts);
	return rows_run(&tests, "events of older run files");
}
