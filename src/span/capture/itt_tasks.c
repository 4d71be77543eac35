/* Tasks: spans of the thread in which they begin. */
#include "span/capture/itt.h"

#include "span/capture/capture.h"
#include "span/writer/writer.h"

// A static part may have created a domain before this library was loaded, so only the domain's address is reliable.
static uint16_t owner_of(const struct itt_domain *domain)
{
	return (uint16_t)(((uintptr_t)domain >> 4) * 0x9e3779b97f4a7c15u >> 49);
}

static void begin(const struct itt_domain *domain, const char *name)
{
	bool silent = !itt_is_recording();
	domain_stack_push(owner_of(domain), silent);
	if (!silent)
		span_begin(name, NULL, NULL);
}

static void task_begin(const struct itt_domain *domain, struct itt_id id, struct itt_id parent,
	const struct itt_string *string)
{
	struct itt_name name;
	begin(domain, itt_name_of(&name, domain, string));
}

static void task_begin_ex(const struct itt_domain *domain, void *clock, unsigned long long timestamp, struct itt_id id,
	struct itt_id parent, const struct itt_string *string)
{
	task_begin(domain, id, parent, string);
}

// The name of a function is unknown at run time without symbols; its address identifies it within the process.
static void task_begin_fn(const struct itt_domain *domain, struct itt_id id, struct itt_id parent, void *function)
{
	char text[] = "function 0x0000000000000000";
	uintptr_t address = (uintptr_t)function;
	for (size_t at = sizeof(text) - 2; address != 0; at--, address >>= 4)
		text[at] = "0123456789abcdef"[address & 15];
	task_begin(domain, id, parent, &(struct itt_string){.text = text});
}

static void task_begin_fn_ex(const struct itt_domain *domain, void *clock, unsigned long long timestamp,
	struct itt_id id, struct itt_id parent, void *function)
{
	task_begin_fn(domain, id, parent, function);
}

static void task_end(const struct itt_domain *domain)
{
	struct domain_stack_end end;
	if (!domain_stack_pop(owner_of(domain), &end) || end.silent)
		return;
	if (end.n_inner == 0)
		span_end();
	else
		span_end_below(end.n_inner);
}

static void task_end_ex(const struct itt_domain *domain, void *clock, unsigned long long timestamp)
{
	task_end(domain);
}

const struct itt_call itt_task_calls[] = {
	{"__itt_task_begin", ITT_CALL(task_begin)},
	{"__itt_task_begin_ex", ITT_CALL(task_begin_ex)},
	{"__itt_task_begin_fn", ITT_CALL(task_begin_fn)},
	{"__itt_task_begin_fn_ex", ITT_CALL(task_begin_fn_ex)},
	{"__itt_task_end", ITT_CALL(task_end)},
	{"__itt_task_end_ex", ITT_CALL(task_end_ex)},
	{NULL, NULL},
};
