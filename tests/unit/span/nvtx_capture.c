/* The NVTX capture, driven through its export table as header-only NVTX does, with a writer that only logs. */
#include "span/capture/domain_stack.c"
#include "span/capture/nvtx.c"
#include "span/capture/nvtx_names.c"
#include "span/capture/string_table.c"

#include "rows.h"
#include "writer_double.h"

#include <pthread.h>

/* ---- a program's side of NVTX ---- */

static void (*p_mark_ex)(const struct nvtx_attributes *);
static void (*p_mark_a)(const char *);
static uint64_t (*p_start_a)(const char *);
static uint64_t (*p_start_w)(const wchar_t *);
static void (*p_end)(uint64_t);
static int (*p_push_ex)(const struct nvtx_attributes *);
static int (*p_push_a)(const char *);
static int (*p_push_w)(const wchar_t *);
static int (*p_pop)(void);
static void (*p_category_a)(uint32_t, const char *);
static void (*p_thread_a)(uint32_t, const char *);
static uint64_t (*p_domain_start_ex)(const void *, const struct nvtx_attributes *);
static void (*p_domain_end)(const void *, uint64_t);
static int (*p_domain_push_ex)(const void *, const struct nvtx_attributes *);
static int (*p_domain_pop)(const void *);
static void (*p_domain_category_w)(const void *, uint32_t, const wchar_t *);
static const void *(*p_register_a)(const void *, const char *);
static const void *(*p_register_w)(const void *, const wchar_t *);
static const void *(*p_create_a)(const char *);
static const void *(*p_create_w)(const wchar_t *);
static void keep(const void *domain)
{
}
static void (*p_destroy)(const void *) = keep; // effect of the program's no-op

#define AT(pointer) ((nvtx_function *)(void *)&(pointer))
static nvtx_function *core_table[NVTX_CORE_CALLS] = {
	[NVTX_MARK_EX] = AT(p_mark_ex),
	[NVTX_MARK_A] = AT(p_mark_a),
	[NVTX_RANGE_START_A] = AT(p_start_a),
	[NVTX_RANGE_START_W] = AT(p_start_w),
	[NVTX_RANGE_END] = AT(p_end),
	[NVTX_RANGE_PUSH_EX] = AT(p_push_ex),
	[NVTX_RANGE_PUSH_A] = AT(p_push_a),
	[NVTX_RANGE_PUSH_W] = AT(p_push_w),
	[NVTX_RANGE_POP] = AT(p_pop),
	[NVTX_NAME_CATEGORY_A] = AT(p_category_a),
	[NVTX_NAME_OS_THREAD_A] = AT(p_thread_a),
};
static nvtx_function *core2_table[NVTX_CORE2_CALLS] = {
	[NVTX_DOMAIN_RANGE_START_EX] = AT(p_domain_start_ex),
	[NVTX_DOMAIN_RANGE_END] = AT(p_domain_end),
	[NVTX_DOMAIN_RANGE_PUSH_EX] = AT(p_domain_push_ex),
	[NVTX_DOMAIN_RANGE_POP] = AT(p_domain_pop),
	[NVTX_DOMAIN_NAME_CATEGORY_W] = AT(p_domain_category_w),
	[NVTX_DOMAIN_REGISTER_STRING_A] = AT(p_register_a),
	[NVTX_DOMAIN_REGISTER_STRING_W] = AT(p_register_w),
	[NVTX_DOMAIN_CREATE_A] = AT(p_create_a),
	[NVTX_DOMAIN_CREATE_W] = AT(p_create_w),
	[NVTX_DOMAIN_DESTROY] = AT(p_destroy),
};

static unsigned core_size = NVTX_CORE_CALLS;
static uint32_t told_version;

static int module_table(int module, nvtx_function ***ret_table, unsigned *ret_size)
{
	*ret_table = module == NVTX_MODULE_CORE ? core_table : module == NVTX_MODULE_CORE2 ? core2_table : NULL;
	*ret_size = module == NVTX_MODULE_CORE ? core_size : NVTX_CORE2_CALLS;
	return *ret_table != NULL;
}

static void set_version(uint32_t version)
{
	told_version = version;
}

static const void *export_table(uint32_t id)
{
	static const struct nvtx_callbacks callbacks = {sizeof(callbacks), module_table};
	static const struct nvtx_version version = {sizeof(version), 3, 0, set_version};
	return id == NVTX_TABLE_CALLBACKS ? (const void *)&callbacks : id == NVTX_TABLE_VERSION ? &version : NULL;
}

#define SIZED .version = 3, .size = sizeof(struct nvtx_attributes)
#define MESSAGE(string) SIZED, .message_type = NVTX_MESSAGE_ASCII, .message.ascii = (string)
#define REGISTERED(handle) SIZED, .message_type = NVTX_MESSAGE_REGISTERED, .message.registered = (handle)
#define ATTRIBUTES(...) (&(struct nvtx_attributes){__VA_ARGS__})
#define PAYLOAD(type, member, value) .payload_type = (type), .payload.member = (value)

/* ---- rows: calls of a program, expected records ---- */

static void nested(void)
{
	assert_int_equal(p_push_a("a"), 0);
	assert_int_equal(p_push_a("b"), 1);
	assert_int_equal(p_pop(), 1);
	assert_int_equal(p_pop(), 0);
	assert_true(p_pop() < 0); // nothing is open: the enclosing span is not the capture's to end
}

static void wide(void)
{
	p_push_w(L"caf\u00e9 \u20ac \U0001f600");
	p_pop();
	p_push_w((const wchar_t[]){0xd800, 0x110000, 'x', 0});
	p_pop();
}

static void nameless(void)
{
	p_push_a(NULL);
	p_push_a("");
	p_push_ex(NULL);
	p_push_ex(ATTRIBUTES(SIZED));
	p_push_ex(ATTRIBUTES(MESSAGE(NULL)));
	for (int i = 0; i < 5; i++)
		p_pop();
}

static void ranges(void)
{
	uint64_t a = p_start_a("a"), b = p_start_w(L"b");
	assert_true(a != 0 && b != 0 && a != b);
	p_end(a);
	p_end(b);
	p_end(0);
}

static void domains(void)
{
	const void *one = p_create_a("one"), *two = p_create_w(L"zwei");
	assert_true(one != NULL && two != NULL && one != two);
	p_domain_push_ex(one, ATTRIBUTES(MESSAGE("a")));
	p_domain_push_ex(two, ATTRIBUTES(MESSAGE("a")));
	p_domain_pop(two);
	p_domain_pop(one);
	p_domain_end(one, p_domain_start_ex(one, ATTRIBUTES(MESSAGE("r"))));
	p_domain_push_ex(NULL, ATTRIBUTES(MESSAGE("default")));
	assert_int_equal(p_pop(), 0);
}

static void crossing(void)
{
	const void *one = p_create_a("one"), *two = p_create_a("two");
	assert_int_equal(p_domain_push_ex(one, ATTRIBUTES(MESSAGE("a"))), 0);
	assert_int_equal(p_domain_push_ex(two, ATTRIBUTES(MESSAGE("b"))), 0);
	assert_int_equal(p_domain_push_ex(two, ATTRIBUTES(MESSAGE("c"))), 1);
	assert_int_equal(p_domain_push_ex(one, ATTRIBUTES(MESSAGE("d"))), 1);
	assert_int_equal(p_domain_pop(one), 1);
	assert_int_equal(p_domain_pop(one), 0); // b and c are open inside it
	assert_true(p_domain_pop(one) < 0);
	assert_int_equal(p_domain_pop(two), 1);
	assert_int_equal(p_domain_pop(two), 0);
}

static void registered(void)
{
	const void *domain = p_create_a("reg");
	const void *a = p_register_a(domain, "a"), *w = p_register_w(domain, L"w"), *plain = p_register_a(NULL, "a");
	assert_ptr_equal(p_register_a(domain, "a"), a);
	const void *handles[] = {a, w, plain, NULL, "no handle", (const char *)a + 16};
	for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
		p_domain_push_ex(domain, ATTRIBUTES(REGISTERED(handles[i])));
		p_domain_pop(domain);
	}
}

static void wrong_handles(void)
{
	int no_domain;
	const void *string = p_register_a(NULL, "string");
	const void *wrong[] = {&no_domain, (const void *)8, string};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_true(p_domain_push_ex(wrong[i], ATTRIBUTES(MESSAGE("a"))) < 0);
		assert_true(p_domain_pop(wrong[i]) < 0);
		assert_int_equal(p_domain_start_ex(wrong[i], ATTRIBUTES(MESSAGE("a"))), 0);
		assert_null(p_register_a(wrong[i], "s"));
	}
}

static void destroyed(void)
{
	const void *domain = p_create_a("gone");
	const void *string = p_register_a(domain, "s");
	p_destroy(domain);
	p_domain_push_ex(domain, ATTRIBUTES(REGISTERED(string)));
	p_domain_pop(domain);
	assert_ptr_equal(p_create_a("gone"), domain);
}

static void categories_of_domains(void)
{
	const void *domain = p_create_a("cat");
	p_category_a(1, "io");
	p_domain_category_w(domain, 1, L"netz");
	p_push_ex(ATTRIBUTES(MESSAGE("a"), .category = 1));
	p_domain_push_ex(domain, ATTRIBUTES(MESSAGE("a"), .category = 1));
	p_push_ex(ATTRIBUTES(MESSAGE("a"), .category = 4294967295));
	p_category_a(1, "disk");
	p_mark_ex(ATTRIBUTES(MESSAGE("m"), .category = 1));
	p_pop();
	p_domain_pop(domain);
	p_pop();
}

static void payloads(void)
{
	const void *domain = p_create_a("pay");
	p_push_ex(ATTRIBUTES(MESSAGE("u64"), PAYLOAD(NVTX_PAYLOAD_UINT64, u64, 1ull << 63)));
	p_push_ex(ATTRIBUTES(MESSAGE("i64"), PAYLOAD(NVTX_PAYLOAD_INT64, i64, -2)));
	p_push_ex(ATTRIBUTES(MESSAGE("f64"), PAYLOAD(NVTX_PAYLOAD_DOUBLE, f64, 0.5)));
	p_push_ex(ATTRIBUTES(MESSAGE("u32"), PAYLOAD(NVTX_PAYLOAD_UINT32, u32, 4000000000)));
	p_push_ex(ATTRIBUTES(MESSAGE("i32"), PAYLOAD(NVTX_PAYLOAD_INT32, i32, -3)));
	p_push_ex(ATTRIBUTES(MESSAGE("f32"), PAYLOAD(NVTX_PAYLOAD_FLOAT, f32, 0.25f)));
	p_push_ex(ATTRIBUTES(MESSAGE("schema"), PAYLOAD((int32_t)0xdfbd0009, u64, 1)));
	for (int i = 0; i < 7; i++)
		p_pop();
	p_mark_ex(ATTRIBUTES(MESSAGE("m"), PAYLOAD(NVTX_PAYLOAD_INT32, i32, 7)));
	p_domain_end(domain, p_domain_start_ex(domain, ATTRIBUTES(MESSAGE("r"), PAYLOAD(NVTX_PAYLOAD_INT32, i32, 8))));
}

static void sizes(void)
{
	struct nvtx_attributes attributes = {MESSAGE("m"), PAYLOAD(NVTX_PAYLOAD_INT32, i32, 1), .category = 2};
	const uint16_t known[] = {0, 8, 24, 32, 44, 48, 64};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		attributes.size = known[i];
		p_mark_ex(&attributes);
	}
}

static void marks(void)
{
	p_mark_a("a");
	p_mark_a(NULL);
}

static void long_message(void)
{
	char text[4000], expected[SPAN_NAME_BYTES_MAX + 1];
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	const void *domain = p_create_a("d");
	forget();
	p_domain_push_ex(domain, ATTRIBUTES(MESSAGE(text)));
	p_domain_pop(domain);
	snprintf(expected, sizeof(expected), "d/%.*s", SPAN_NAME_BYTES_MAX - 2, text);
	assert_int_equal(strlen(expected), SPAN_NAME_BYTES_MAX);
	assert_ptr_equal(strstr(told, expected), told + strlen("begin "));
	assert_string_equal(told + strlen("begin ") + strlen(expected), "; end; ");
	forget();
}

static const struct row {
	const char *teaches;
	void (*play)(void);
	const char *expected;
} rows[] = {
	{"push and pop nest and return the level, from 0", nested, "begin a; begin b; end; end; "},
	{"wide messages become UTF-8; invalid characters become U+FFFD", wide,
		"begin caf\u00e9 \u20ac \U0001f600; end; begin \ufffd\ufffdx; end; "},
	{"no message, empty message, no attributes: a default name", nameless,
		"begin (no message); begin (no message); begin (no message); begin (no message); begin (no message); "
		"end; end; end; end; end; "},
	{"start and end by number; 0 is no range", ranges, "range a; (1); range b; (2); end (1); end (2); "},
	{"name in a domain: domain/message, in the default domain: the message", domains,
		"begin one/a; begin zwei/a; end; end; range one/r; (1); end (1); begin default; end; "},
	{"crossing stacks of two domains: only the popped span ends", crossing,
		"begin one/a; begin two/b; begin two/c; begin one/d; end; end below 2; end; end; "},
	{"registered strings; an unknown handle has no message", registered,
		"begin reg/a; end; begin reg/w; end; begin a; end; begin reg/(no message); end; "
		"begin reg/(no message); end; begin reg/(no message); end; "},
	{"unknown handle: refused", wrong_handles, ""},
	{"destroyed domain: it and its strings may still be used; created again it is the same", destroyed,
		"begin gone/s; end; "},
	{"categories: names per domain, or their number; the last name counts", categories_of_domains,
		"begin a [io]; begin cat/a [netz]; begin a [4294967295]; mark m [disk]; end; end; end; "},
	{"payload: a number is a metric with the span's name, a schema is ignored", payloads,
		"begin u64; u64 = 9.2233720368547758e+18; begin i64; i64 = -2; begin f64; f64 = 0.5; "
		"begin u32; u32 = 4000000000; begin i32; i32 = -3; begin f32; f32 = 0.25; begin schema; "
		"end; end; end; end; end; end; end; mark m; m = 7; range pay/r; (1); pay/r = 8; end (1); "},
	{"attributes: only members that the program's version has are read", sizes,
		"mark (no message); mark (no message) [2]; mark (no message) [2]; "
		"mark (no message) [2]; (no message) = 1; mark (no message) [2]; (no message) = 1; "
		"mark m [2]; m = 1; mark m [2]; m = 1; "},
	{"marks", marks, "mark a; mark (no message); "},
	{"name too long: truncated", long_message, ""},
};

static void check(void **state)
{
	const struct row *row = *state;
	forget();
	assert_int_equal(InitializeInjectionNvtx2(export_table), 1); // repeatedly: once for each binary
	row->play();
	assert_string_equal(told, row->expected);
}

/* ---- initialisation ---- */

static void no_recorder(void **state)
{
	forget();
	span_writer_state = SPAN_OFF;
	assert_int_equal(InitializeInjectionNvtx2(export_table), 0);
}

static const void *no_tables(uint32_t id)
{
	return NULL;
}

static void broken_program(void **state)
{
	forget();
	assert_int_equal(InitializeInjectionNvtx2(NULL), 0);
	assert_int_equal(InitializeInjectionNvtx2(no_tables), 0);
}

static void older_program(void **state)
{
	forget();
	p_pop = NULL;
	p_thread_a = NULL;
	core_size = NVTX_RANGE_POP;
	assert_int_equal(InitializeInjectionNvtx2(export_table), 1);
	assert_null(p_pop);
	core_size = NVTX_CORE_CALLS;
	assert_int_equal(InitializeInjectionNvtx2(export_table), 1);
	assert_non_null(p_pop);
	assert_null(p_thread_a); // a call with no slot is not replaced
	assert_int_equal(told_version, 3);
}

static void without_end(void **state)
{
	char name[32];
	forget();
	const void *first = p_create_a("0");
	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		const void *domain = p_create_a(name), *string = p_register_a(domain, name);
		p_category_a((uint32_t)i, name);
		assert_non_null(domain);
		assert_non_null(string);
		p_destroy(domain);
	}
	const void *late = p_create_a("late");
	p_domain_push_ex(late, ATTRIBUTES(MESSAGE("a")));
	assert_int_equal(p_domain_pop(late), 0);
	assert_string_equal(told, "begin " TEXTS_TOO_MANY "/a; end; ");
	assert_ptr_equal(p_create_a("0"), first);
}

static void deep_and_mixed(void **state)
{
	const void *domains[] = {p_create_a("0"), p_create_a("1"), p_create_a("2")};
	forget();
	for (int i = 0; i < 300; i++)
		assert_true(p_domain_push_ex(domains[i % 3], ATTRIBUTES(MESSAGE("x"))) >= 0);
	told[0] = '\0';
	for (int i = 300; i-- > 0;)
		assert_true(p_domain_pop(domains[i % 3]) >= 0);
	for (size_t i = 0; i < 300; i++)
		assert_memory_equal(told + i * strlen("end; "), "end; ", strlen("end; "));
	assert_true(p_domain_pop(domains[0]) < 0);
}

enum { THREADS = 4, NAMES = 500 };

static void *register_all(void *handles)
{
	char name[32];
	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "shared %d", i);
		((const void **)handles)[i] = p_register_a(NULL, name);
	}
	return NULL;
}

static void at_once(void **state)
{
	static const void *handles[THREADS][NAMES];
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, register_all, handles[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < THREADS; i++)
		assert_memory_equal(handles[0], handles[i], sizeof(handles[0]));
	for (int i = 1; i < NAMES; i++)
		assert_ptr_not_equal(handles[0][i], handles[0][i - 1]);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "no recorder: the program's calls are not replaced", no_recorder);
	ROWS_ADD_ONE(&tests, "program without tables: its calls are not replaced", broken_program);
	ROWS_ADD_ONE(&tests, "older program with fewer calls: the others are replaced", older_program);
	ROWS_ADD_ONE(&tests, "three domains in turn, 300 deep: as many ends as begins", deep_and_mixed);
	ROWS_ADD_ONE(&tests, "threads that register the same strings at once: same handles", at_once);
	ROWS_ADD_ONE(&tests, "endless new names: bounded memory, earlier names stay", without_end);
	return rows_run(&tests, "nvtx");
}
