#include "metric/event.h"

#include "base/util.h"
#include "rows.h"

static const struct sentence_row {
	const char *teaches;
	enum event_type type;
	struct event with; // fields of the event; 0 and NULL: unknown
	const char *text;
} sentence_rows[] = {
	{"gap: names its domain", EVENT_GAP, {.device = "package-0"}, "package-0: the energy counter can't be read"},
	{"gap in several domains: separated by commas", EVENT_SENSORS_HERE, {.device = "package-0 dram-0"},
		"package-0, dram-0: read here"},
	{"suspend: whole milliseconds", EVENT_SUSPEND, {.duration_ns = 12000999999},
		"the machine was suspended for 12000 ms"},
	{"limit in whole watts", EVENT_CAP, {.device = "gpu-0", .old_value = 400000, .new_value = 250000},
		"gpu-0: power limit 250 W (before: 400 W)"},
	{"limit in fractions of a watt", EVENT_CAP, {.device = "gpu-0", .old_value = 400000, .new_value = 250005},
		"gpu-0: power limit 250.005 W (before: 400 W)"},
	{"throttling: names its reasons", EVENT_THROTTLE, {.device = "gpu-0", .new_value = 0x4 | 0x20},
		"gpu-0: clocks throttled: power limit, thermal slowdown"},
	{"another recorder, rank known", EVENT_SENSORS_ELSEWHERE, {.device = "gpu-0", .pid = 12, .rank = 3},
		"gpu-0: read by pid 12, rank 3 of this job"},
	{"another recorder, rank unknown", EVENT_SENSORS_ELSEWHERE, {.device = "gpu-0", .pid = 12},
		"gpu-0: read by pid 12, another recorder of this job"},
	{"another recorder, nothing known", EVENT_SENSORS_ELSEWHERE, {.device = "gpu-0"},
		"gpu-0: read by another recorder of this job"},
	{"required field unknown: no sentence", EVENT_CAP, {.device = "gpu-0", .new_value = 250000}, NULL},
	{"event of a later version: no sentence", EVENT_OTHER, {.device = "gpu-0"}, NULL},
};

static int64_t known(int64_t value)
{
	return value != 0 ? value : VALUE_MISSING;
}

static void check_sentence(void **state)
{
	const struct sentence_row *row = *state;
	struct event event = event_make(row->type, 5);
	struct buf out;
	event.device = row->with.device;
	event.pid = known(row->with.pid);
	event.rank = known(row->with.rank);
	event.duration_ns = known(row->with.duration_ns);
	event.old_value = known(row->with.old_value);
	event.new_value = known(row->with.new_value);
	buf_init(&out, 4096);
	event_sentence(&out, &event);
	if (row->text == NULL)
		assert_int_equal(out.size, 0);
	else
		assert_string_equal(out.data, row->text);
	buf_finish(&out);
}

static const struct device_row {
	const char *teaches, *devices, *asked;
	bool is_of;
} device_rows[] = {
	{"domain match: the only domain", "package-0", "package-0", true},
	{"domain match: the second of two", "package-0 dram-0", "dram-0", true},
	{"no domain match: name with the same beginning", "package-01", "package-0", false},
	{"no domain match: name with the same ending", "xpackage-0", "package-0", false},
	{"no domain match: no domains", NULL, "package-0", false},
	{"no domain match: empty name", "package-0", "", false},
};

static void check_device(void **state)
{
	const struct device_row *row = *state;
	struct event event = event_make(EVENT_GAP, 5);
	event.device = row->devices;
	assert_int_equal(event_is_of(&event, row->asked), row->is_of);
}

static void names_are_found_again(void **state)
{
	for (size_t i = 0; i < EVENT_OTHER; i++) {
		enum event_type type = (enum event_type)i;
		enum event_kind kind = event_kind_of_name(event_kind_name(event_type_kind(type)));
		assert_int_equal(event_type_of(kind, event_type_reason(type)), type); // kind and reason are unique
	}
	assert_int_equal(event_kind_of_name("of tomorrow"), EVENT_KIND_OTHER);
	assert_int_equal(event_type_of(EVENT_KIND_GAP, "of tomorrow"), EVENT_OTHER);
	assert_int_equal(event_type_of(EVENT_KIND_GAP, NULL), EVENT_OTHER);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, sentence_rows, check_sentence);
	ROWS_ADD(&tests, device_rows, check_device);
	ROWS_ADD_ONE(&tests, "event table: kind and reason name each event once", names_are_found_again);
	return rows_run(&tests, "events");
}
