/* libwattle-nvtx.so, the library named by NVTX_INJECTION64_PATH under `wattle run --nvtx`. It converts the program's
 * NVTX calls to spans, ranges, marks and metrics; see nvtx_abi.h. The writer handles threads, fork and exit. */
#include "span/capture/nvtx_abi.h"

#include "span/capture/capture.h"
#include "span/writer/writer.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static uint16_t owner_of(const struct text *domain)
{
	return domain != NULL ? (uint16_t)domain->number : 0; // numbers start at 1 and stay below the number of owners
}
static_assert((int)TEXTS_MAX < (int)DOMAIN_STACK_OWNERS, "every domain has its own owner number");

/* ---- attributes ---- */

// The complete struct: members missing in the program's version are set to absent.
static const struct nvtx_attributes *whole(const struct nvtx_attributes *given, struct nvtx_attributes *buffer)
{
	if (given != NULL && given->size >= sizeof(*given))
		return given;
	*buffer = (struct nvtx_attributes){0};
	if (given == NULL)
		return buffer;
	size_t size = given->size;
	memcpy(buffer, given, size);
	if (size < offsetof(struct nvtx_attributes, payload) + sizeof(buffer->payload))
		buffer->payload_type = NVTX_PAYLOAD_NONE;
	buffer->message_type = NVTX_MESSAGE_NONE; // the last member
	return buffer;
}

static bool payload_of(const struct nvtx_attributes *attributes, double *ret_value)
{
	switch ((enum nvtx_payload)attributes->payload_type) {
	case NVTX_PAYLOAD_UINT64:
		*ret_value = (double)attributes->payload.u64;
		return true;
	case NVTX_PAYLOAD_INT64:
		*ret_value = (double)attributes->payload.i64;
		return true;
	case NVTX_PAYLOAD_DOUBLE:
		*ret_value = attributes->payload.f64;
		return true;
	case NVTX_PAYLOAD_UINT32:
		*ret_value = attributes->payload.u32;
		return true;
	case NVTX_PAYLOAD_INT32:
		*ret_value = attributes->payload.i32;
		return true;
	case NVTX_PAYLOAD_FLOAT:
		*ret_value = (double)attributes->payload.f32;
		return true;
	case NVTX_PAYLOAD_NONE:
		break;
	}
	return false; // includes payloads of the schema extension, which are not single numbers
}

struct event { // contents of the attributes
	struct nvtx_name name;
	const char *category;
	char category_capacity[NVTX_CATEGORY_TEXT];
	bool has_payload;
	double payload;
};

static void read_event(struct event *event, const struct text *domain, const struct nvtx_attributes *given)
{
	struct nvtx_attributes buffer;
	const struct nvtx_attributes *attributes = whole(given, &buffer);
	nvtx_name_of(&event->name, domain, attributes);
	event->category = nvtx_category_of(domain, attributes->category, event->category_capacity);
	event->has_payload = payload_of(attributes, &event->payload);
}

static void record_payload(const struct event *event)
{
	if (event->has_payload)
		span_metric(event->name.text, event->payload);
}

/* ---- push and pop ---- */

static int push(const struct text *domain, const char *name, const char *category)
{
	int level = domain_stack_push(owner_of(domain), false);
	span_begin(name, category, NULL);
	return level;
}

static int domain_push_ex(const void *handle, const struct nvtx_attributes *attributes)
{
	const struct text *domain;
	struct event event;
	if (!nvtx_domain_of(handle, &domain))
		return NVTX_NO_TRACKING;
	read_event(&event, domain, attributes);
	int level = push(domain, event.name.text, event.category);
	record_payload(&event);
	return level;
}

static int push_ex(const struct nvtx_attributes *attributes)
{
	return domain_push_ex(NULL, attributes);
}

static int push_a(const char *message)
{
	struct nvtx_name name;
	nvtx_name_ascii(&name, NULL, message);
	return push(NULL, name.text, NULL);
}

static int push_w(const wchar_t *message)
{
	struct nvtx_name name;
	nvtx_name_wide(&name, NULL, message);
	return push(NULL, name.text, NULL);
}

static int domain_pop(const void *handle)
{
	const struct text *domain;
	struct domain_stack_end end;
	if (!nvtx_domain_of(handle, &domain) || !domain_stack_pop(owner_of(domain), &end))
		return NVTX_NO_TRACKING;
	if (end.n_inner == 0)
		span_end();
	else
		span_end_below(end.n_inner);
	return end.level;
}

static int pop(void)
{
	return domain_pop(NULL);
}

/* ---- start and end ---- */

static uint64_t start(const char *name, const char *category)
{
	uint64_t range;
	return span_range_begin(name, category, &range) == 0 ? range : 0; // 0 is no range
}

static uint64_t domain_start_ex(const void *handle, const struct nvtx_attributes *attributes)
{
	const struct text *domain;
	struct event event;
	if (!nvtx_domain_of(handle, &domain))
		return 0;
	read_event(&event, domain, attributes);
	uint64_t range = start(event.name.text, event.category);
	record_payload(&event);
	return range;
}

static uint64_t start_ex(const struct nvtx_attributes *attributes)
{
	return domain_start_ex(NULL, attributes);
}

static uint64_t start_a(const char *message)
{
	struct nvtx_name name;
	nvtx_name_ascii(&name, NULL, message);
	return start(name.text, NULL);
}

static uint64_t start_w(const wchar_t *message)
{
	struct nvtx_name name;
	nvtx_name_wide(&name, NULL, message);
	return start(name.text, NULL);
}

static void end(uint64_t range)
{
	if (range != 0)
		span_range_end(range);
}

static void domain_end(const void *handle, uint64_t range)
{
	end(range); // numbers are unique in the process, so the domain is not needed
}

/* ---- marks ---- */

static void domain_mark_ex(const void *handle, const struct nvtx_attributes *attributes)
{
	const struct text *domain;
	struct event event;
	if (!nvtx_domain_of(handle, &domain))
		return;
	read_event(&event, domain, attributes);
	span_mark(event.name.text, event.category);
	record_payload(&event);
}

static void mark_ex(const struct nvtx_attributes *attributes)
{
	domain_mark_ex(NULL, attributes);
}

static void mark_a(const char *message)
{
	struct nvtx_name name;
	nvtx_name_ascii(&name, NULL, message);
	span_mark(name.text, NULL);
}

static void mark_w(const wchar_t *message)
{
	struct nvtx_name name;
	nvtx_name_wide(&name, NULL, message);
	span_mark(name.text, NULL);
}

/* ---- names ---- */

static void domain_name_category_a(const void *handle, uint32_t category, const char *name)
{
	const struct text *domain;
	if (nvtx_domain_of(handle, &domain))
		nvtx_category_name(domain, category, name);
}

static void domain_name_category_w(const void *handle, uint32_t category, const wchar_t *name)
{
	char utf8[SPAN_NAME_BYTES_MAX + 1];
	if (name == NULL)
		return;
	text_from_wide(utf8, name);
	domain_name_category_a(handle, category, utf8);
}

static void name_category_a(uint32_t category, const char *name)
{
	domain_name_category_a(NULL, category, name);
}

static void name_category_w(uint32_t category, const wchar_t *name)
{
	domain_name_category_w(NULL, category, name);
}

static const void *register_string_a(const void *handle, const char *string)
{
	const struct text *domain;
	return nvtx_domain_of(handle, &domain) ? nvtx_string_register(domain, string) : NULL;
}

static const void *register_string_w(const void *handle, const wchar_t *string)
{
	char utf8[SPAN_NAME_BYTES_MAX + 1];
	text_from_wide(utf8, string != NULL ? string : L"");
	return register_string_a(handle, utf8);
}

static const void *domain_create_a(const char *name)
{
	return nvtx_domain_create(name);
}

static const void *domain_create_w(const wchar_t *name)
{
	char utf8[SPAN_NAME_BYTES_MAX + 1];
	text_from_wide(utf8, name != NULL ? name : L"");
	return nvtx_domain_create(utf8);
}

/* ---- entry point ---- */

// Calls that are not listed keep the program's no-ops: names of threads and resources, CUDA, OpenCL and synchronisation
// objects do not show where time is spent.
#define CALL(function) ((nvtx_function)(function))
static const nvtx_function core[NVTX_CORE_CALLS] = {
	[NVTX_MARK_EX] = CALL(mark_ex),
	[NVTX_MARK_A] = CALL(mark_a),
	[NVTX_MARK_W] = CALL(mark_w),
	[NVTX_RANGE_START_EX] = CALL(start_ex),
	[NVTX_RANGE_START_A] = CALL(start_a),
	[NVTX_RANGE_START_W] = CALL(start_w),
	[NVTX_RANGE_END] = CALL(end),
	[NVTX_RANGE_PUSH_EX] = CALL(push_ex),
	[NVTX_RANGE_PUSH_A] = CALL(push_a),
	[NVTX_RANGE_PUSH_W] = CALL(push_w),
	[NVTX_RANGE_POP] = CALL(pop),
	[NVTX_NAME_CATEGORY_A] = CALL(name_category_a),
	[NVTX_NAME_CATEGORY_W] = CALL(name_category_w),
};
static const nvtx_function core2[NVTX_CORE2_CALLS] = {
	[NVTX_DOMAIN_MARK_EX] = CALL(domain_mark_ex),
	[NVTX_DOMAIN_RANGE_START_EX] = CALL(domain_start_ex),
	[NVTX_DOMAIN_RANGE_END] = CALL(domain_end),
	[NVTX_DOMAIN_RANGE_PUSH_EX] = CALL(domain_push_ex),
	[NVTX_DOMAIN_RANGE_POP] = CALL(domain_pop),
	[NVTX_DOMAIN_NAME_CATEGORY_A] = CALL(domain_name_category_a),
	[NVTX_DOMAIN_NAME_CATEGORY_W] = CALL(domain_name_category_w),
	[NVTX_DOMAIN_REGISTER_STRING_A] = CALL(register_string_a),
	[NVTX_DOMAIN_REGISTER_STRING_W] = CALL(register_string_w),
	[NVTX_DOMAIN_CREATE_A] = CALL(domain_create_a),
	[NVTX_DOMAIN_CREATE_W] = CALL(domain_create_w),
};
#undef CALL

// Sets the calls that fit the program's table: an older one has fewer. False: the program has no such module.
static bool fill(const struct nvtx_callbacks *callbacks, enum nvtx_module module, const nvtx_function *calls,
	unsigned n_calls)
{
	nvtx_function **table = NULL;
	unsigned size = 0;
	if (callbacks->get_module_table(module, &table, &size) == 0 || table == NULL)
		return false;
	for (unsigned i = 1; i < n_calls && i < size; i++)
		if (calls[i] != NULL && table[i] != NULL)
			*table[i] = calls[i];
	return true;
}

// Called once for each binary of the process that contains NVTX.
EXPORT int InitializeInjectionNvtx2(nvtx_get_table *get_table)
{
	span_writer_init();
	if (get_table == NULL || !span_writer_is_on())
		return 0;
	const struct nvtx_callbacks *callbacks = get_table(NVTX_TABLE_CALLBACKS);
	if (callbacks == NULL || callbacks->struct_size < sizeof(*callbacks) || callbacks->get_module_table == NULL)
		return 0;
	const struct nvtx_version *version = get_table(NVTX_TABLE_VERSION);
	if (version != NULL && version->struct_size >= sizeof(*version) && version->set_injection_version != NULL)
		version->set_injection_version(NVTX_INTERFACE_VERSION);
	if (!fill(callbacks, NVTX_MODULE_CORE, core, NVTX_CORE_CALLS))
		return 0;
	fill(callbacks, NVTX_MODULE_CORE2, core2, NVTX_CORE2_CALLS);
	return 1;
}
