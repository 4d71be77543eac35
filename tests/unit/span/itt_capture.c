/* The ITT capture, driven by a list of calls as the static part of a program makes them, with a writer that only
 * logs. */
#include "span/capture/domain_stack.c"
#include "span/capture/itt.c"
#include "span/capture/itt_numbers.c"
#include "span/capture/itt_overlap.c"
#include "span/capture/itt_ranges.c"
#include "span/capture/itt_tasks.c"
#include "span/capture/string_table.c"

#include "rows.h"
#include "writer_double.h"

/* ---- a program's side of ITT ---- */

static struct itt_domain *(*p_domain)(const char *);
static struct itt_string *(*p_string)(const char *);
static void (*p_task)(const struct itt_domain *, struct itt_id, struct itt_id, const struct itt_string *);
static void (*p_task_fn)(const struct itt_domain *, struct itt_id, struct itt_id, void *);
static void (*p_task_end)(const struct itt_domain *);
static void (*p_overlapped)(const struct itt_domain *, struct itt_id, struct itt_id, const struct itt_string *);
static void (*p_overlapped_end)(const struct itt_domain *, struct itt_id);
static void (*p_region)(const struct itt_domain *, struct itt_id, struct itt_id, const struct itt_string *);
static void (*p_region_end)(const struct itt_domain *, struct itt_id);
static void (*p_frame)(const struct itt_domain *, const struct itt_id *);
static void (*p_frame_end)(const struct itt_domain *, const struct itt_id *);
static int (*p_event)(const char *, int);
static int (*p_event_start)(int), (*p_event_end)(int);
static void (*p_marker)(const struct itt_domain *, struct itt_id, const struct itt_string *, int);
static void (
	*p_metadata)(const struct itt_domain *, struct itt_id, const struct itt_string *, int, size_t, const void *);
static void (*p_metadata_text)(void);
static void *(*p_counter)(const char *, const char *);
static void *(*p_counter_typed)(const char *, const char *, int);
static void (*p_inc)(const void *), (*p_dec)(const void *);
static void (*p_inc_delta)(const void *, unsigned long long);
static void (*p_set)(void *, const void *);
static void (*p_pause)(void), (*p_resume)(void), (*p_detach)(void);

static void own_null(void)
{
}

#define ENTRY(text, pointer)                                                                                           \
	{                                                                                                              \
		text, (itt_function *)(void *)&(pointer), own_null, NULL, 1                                            \
	}
static struct itt_api apis[] = {
	ENTRY("__itt_domain_create", p_domain),
	ENTRY("__itt_string_handle_create", p_string),
	ENTRY("__itt_task_begin", p_task),
	ENTRY("__itt_task_begin_fn", p_task_fn),
	ENTRY("__itt_task_end", p_task_end),
	ENTRY("__itt_task_begin_overlapped", p_overlapped),
	ENTRY("__itt_task_end_overlapped", p_overlapped_end),
	ENTRY("__itt_region_begin", p_region),
	ENTRY("__itt_region_end", p_region_end),
	ENTRY("__itt_frame_begin_v3", p_frame),
	ENTRY("__itt_frame_end_v3", p_frame_end),
	ENTRY("__itt_event_create", p_event),
	ENTRY("__itt_event_start", p_event_start),
	ENTRY("__itt_event_end", p_event_end),
	ENTRY("__itt_marker", p_marker),
	ENTRY("__itt_metadata_add", p_metadata),
	{"__itt_metadata_str_add", &p_metadata_text, own_null, own_null, 1},
	ENTRY("__itt_counter_create", p_counter),
	ENTRY("__itt_counter_create_typed", p_counter_typed),
	ENTRY("__itt_counter_inc", p_inc),
	ENTRY("__itt_counter_dec", p_dec),
	ENTRY("__itt_counter_inc_delta", p_inc_delta),
	ENTRY("__itt_counter_set_value", p_set),
	ENTRY("__itt_pause", p_pause),
	ENTRY("__itt_resume", p_resume),
	ENTRY("__itt_detach", p_detach),
	{NULL},
};
static struct itt_global global = {.apis = apis};
static const struct itt_id none, first = {1, 2, 3}, second = {1, 2, 4};

/* ---- rows: calls of a program, expected records ---- */

static void tasks(void)
{
	struct itt_domain *domain = p_domain("d");
	assert_int_equal(domain->flags, 1);
	assert_string_equal(domain->name, "d");
	assert_ptr_equal(p_domain("d"), domain);
	p_task(domain, none, none, p_string("outer"));
	p_task(domain, none, none, p_string("inner"));
	p_task_end(domain);
	p_task_end(domain);
	p_task_end(domain);
}

static void nameless(void)
{
	struct itt_domain foreign = {.flags = 1};
	p_task(&foreign, none, none, NULL);
	p_task(&foreign, none, none, &(struct itt_string){0});
	p_task_fn(&foreign, none, none, (void *)(uintptr_t)0xabc123);
	for (int i = 0; i < 3; i++)
		p_task_end(&foreign);
}

static void overlapped(void)
{
	struct itt_domain *domain = p_domain("o");
	p_overlapped(domain, first, none, p_string("a"));
	p_overlapped(domain, second, none, p_string("b"));
	p_region(domain, first, none, p_string("r"));
	p_frame(domain, NULL);
	p_overlapped_end(domain, first);
	p_overlapped_end(domain, second);
	p_region_end(domain, first);
	p_frame_end(domain, NULL);
	p_frame_end(domain, &first);
}

static void paused(void)
{
	struct itt_domain *domain = p_domain("p");
	p_task(domain, none, none, p_string("before"));
	p_pause();
	p_task(domain, none, none, p_string("meanwhile"));
	p_task_end(domain);
	p_marker(domain, none, p_string("m"), 0);
	p_region(domain, first, none, p_string("r"));
	p_task(domain, none, none, p_string("across"));
	p_resume();
	p_task(domain, none, none, p_string("after"));
	p_task_end(domain);
	p_region_end(domain, first);
	p_task_end(domain);
	p_task_end(domain);
}

static void events(void)
{
	int event = p_event("event and more", 5);
	assert_true(event > 0);
	assert_int_equal(p_event("event", 5), event);
	assert_int_equal(p_event_start(event), 0);
	assert_int_equal(p_event_end(event), 0);
	p_event_end(event);
	p_event_start(event);
	p_event_start(event);
	p_event_end(event);
	assert_true(p_event_start(0) < 0 && p_event_start(event + 1) < 0 && p_event_end(INT32_MAX) < 0);
}

static void numbers(void)
{
	struct itt_domain *domain = p_domain("n");
	struct itt_string *key = p_string("batch");
	p_metadata(domain, none, key, ITT_U64, 1, &(uint64_t){1ull << 40});
	p_metadata(domain, none, key, ITT_S64, 1, &(int64_t){-1});
	p_metadata(domain, none, key, ITT_U32, 1, &(uint32_t){4000000000});
	p_metadata(domain, none, key, ITT_S32, 1, &(int32_t){-2});
	p_metadata(domain, none, key, ITT_U16, 1, &(uint16_t){65535});
	p_metadata(domain, none, key, ITT_S16, 1, &(int16_t){-3});
	p_metadata(domain, none, key, ITT_FLOAT, 1, &(float){0.5f});
	p_metadata(domain, none, key, ITT_DOUBLE, 1, &(double){0.25});
	p_metadata(domain, none, key, ITT_UNKNOWN, 1, &(double){1});
	p_metadata(domain, none, key, 99, 1, &(double){1});
	p_metadata(domain, none, key, ITT_U32, 2, (uint32_t[]){1, 2});
	p_metadata(domain, none, key, ITT_U32, 1, NULL);
}

static void counters(void)
{
	void *counter = p_counter("items", "c"), *typed = p_counter_typed("level", NULL, ITT_DOUBLE);
	p_inc(counter);
	p_inc_delta(counter, 41);
	p_dec(counter);
	p_set(counter, &(uint64_t){7});
	p_set(typed, &(double){0.5});
	p_inc(NULL);
	p_inc(&counter);
}

static void detached(void)
{
	p_detach();
	p_marker(p_domain("x"), none, p_string("m"), 0);
}

static const struct row {
	const char *teaches;
	void (*play)(void);
	const char *expected;
} rows[] = {
	{"tasks nest; their names are domain/name", tasks, "begin d/outer; begin d/inner; end; end; "},
	{"tasks without a name; tasks of a function", nameless,
		"begin (no name); begin (no name); begin function 0x0000000000abc123; end; end; end; "},
	{"overlapped tasks end by their id, within their own kind", overlapped,
		"range o/a; (1); range o/b; (2); range o/r; (3); range o/frame; (4); "
		"end (1); end (2); end (3); end (4); "},
	{"while paused: no task begins; open tasks end; tasks not recorded have no end", paused,
		"begin p/before; begin p/after; end; end; "},
	{"events end explicitly, or with the next event of their name in the thread", events,
		"range event; (1); end (1); range event; (2); end (2); range event; (3); end (3); "},
	{"metadata with one number: a metric named by its key", numbers,
		"batch = 1099511627776; batch = -1; batch = 4000000000; batch = -2; batch = 65535; batch = -3; "
		"batch = 0.5; batch = 0.25; "},
	{"counters: increments and set values are recorded", counters,
		"c/items = 1; c/items = 41; c/items = -1; c/items = 7; level = 0.5; "},
	{"after detach: nothing is recorded", detached, "disconnect; "},
};

static void check(void **state)
{
	const struct row *row = *state;
	forget();
	__itt_api_init(&global, -1); // once for each binary
	row->play();
	assert_string_equal(told, row->expected);
}

static void no_recorder(void **state)
{
	forget();
	span_writer_state = SPAN_OFF;
	__itt_api_init(&global, -1);
	assert_null(p_task);
	assert_ptr_equal(p_metadata_text, own_null);
	__itt_api_init(NULL, 0);
	__itt_api_init(&(struct itt_global){.apis = NULL}, 0);
}

static void many_open(void **state)
{
	forget();
	__itt_api_init(&global, -1);
	struct itt_domain *domain = p_domain("many");
	struct itt_string *name = p_string("x");
	for (unsigned long long i = 0; i < 20000; i++) {
		told[0] = '\0';
		p_overlapped(domain, (struct itt_id){i, 0, 0}, none, name);
	}
	uint64_t recorded = last_range;
	assert_in_range(recorded, 5000, RANGES_MAX);
	size_t ended = 0;
	for (unsigned long long i = 0; i < 20000; i++) {
		told[0] = '\0';
		p_overlapped_end(domain, (struct itt_id){i, 0, 0});
		ended += told[0] != '\0';
	}
	assert_int_equal(ended, recorded);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "no recorder: every call stays the program's no-op", no_recorder);
	ROWS_ADD_ONE(&tests, "open ranges beyond the limit: not recorded, all others end", many_open);
	return rows_run(&tests, "itt");
}
