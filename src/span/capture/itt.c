/* libwattle-itt.so, the library named by INTEL_LIBITTNOTIFY64 under `wattle run --itt`. It converts the program's ITT
 * calls to spans, ranges, marks and metrics; see itt_abi.h. Names are "domain/name". */
#include "span/capture/itt.h"

#include "span/writer/writer.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct text_table itt_texts;
static atomic_bool is_paused;

/* ---- names ---- */

const char *itt_or_unnamed(const char *name)
{
	return name != NULL && name[0] != '\0' ? name : "(no name)";
}

const char *itt_name_of(struct itt_name *name, const struct itt_domain *domain, const struct itt_string *string)
{
	const char *prefix = domain != NULL && domain->name != NULL ? domain->name : "";
	text_join(name->text, prefix, strlen(prefix), itt_or_unnamed(string != NULL ? string->text : NULL));
	return name->text;
}

static void prepare_domain(struct text *text)
{
	struct itt_domain *domain = (struct itt_domain *)(void *)text->buffer;
	static_assert(sizeof(*domain) <= sizeof(text->buffer), "a domain fits into the buffer of its text");
	*domain = (struct itt_domain){.flags = 1, .name = text->bytes};
}

static void prepare_string(struct text *text)
{
	struct itt_string *string = (struct itt_string *)(void *)text->buffer;
	static_assert(sizeof(*string) <= sizeof(text->buffer), "a string fits into the buffer of its text");
	*string = (struct itt_string){.text = text->bytes};
}

static void *domain_create(const char *name)
{
	return string_table_add(&itt_texts, ITT_DOMAIN, itt_or_unnamed(name), prepare_domain)->buffer;
}

static void *string_create(const char *text)
{
	return string_table_add(&itt_texts, ITT_STRING, itt_or_unnamed(text), prepare_string)->buffer;
}

static void *domain_create_w(const wchar_t *name)
{
	char utf8[SPAN_NAME_BYTES_MAX + 1];
	text_from_wide(utf8, name != NULL ? name : L"");
	return domain_create(utf8);
}

static void *string_create_w(const wchar_t *text)
{
	char utf8[SPAN_NAME_BYTES_MAX + 1];
	text_from_wide(utf8, text != NULL ? text : L"");
	return string_create(utf8);
}

/* ---- control ---- */

static void pause_recording(void)
{
	atomic_store_explicit(&is_paused, true, memory_order_relaxed);
}

static void resume_recording(void)
{
	atomic_store_explicit(&is_paused, false, memory_order_relaxed);
}

bool itt_is_recording(void)
{
	return span_writer_is_on() && !atomic_load_explicit(&is_paused, memory_order_relaxed);
}

const struct itt_call itt_control_calls[] = {
	{"__itt_domain_create", ITT_CALL(domain_create)},
	{"__itt_domain_createA", ITT_CALL(domain_create)},
	{"__itt_domain_createW", ITT_CALL(domain_create_w)},
	{"__itt_string_handle_create", ITT_CALL(string_create)},
	{"__itt_string_handle_createA", ITT_CALL(string_create)},
	{"__itt_string_handle_createW", ITT_CALL(string_create_w)},
	{"__itt_pause", ITT_CALL(pause_recording)},
	{"__itt_resume", ITT_CALL(resume_recording)},
	{"__itt_detach", ITT_CALL(span_writer_disconnect)},
	{NULL, NULL},
};

/* ---- entry point ---- */

static itt_function find(const char *name)
{
	static const struct itt_call *const tables[] = {itt_control_calls, itt_task_calls, itt_range_calls,
		itt_number_calls};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct itt_call *call = tables[i]; call->name != NULL; call++)
			if (strcmp(call->name, name) == 0)
				return call->function;
	return NULL;
}

// Sets every entry: an unset one would search for this library at each call.
EXPORT void __itt_api_init(struct itt_global *global, int groups)
{
	span_writer_init();
	if (global == NULL || global->apis == NULL)
		return;
	for (struct itt_api *api = global->apis; api->name != NULL; api++) {
		itt_function function = span_writer_is_on() ? find(api->name) : NULL;
		if (api->function_at != NULL)
			*api->function_at = function != NULL ? function : api->null;
	}
}
