/* A profile for `go tool pprof` and speedscope: github.com/google/pprof/blob/main/proto/profile.proto, without its compression. */
#include "report/documents.h"
#include "report/trace/internal.h"

#include "base/intern.h"
#include "base/util.h"

#include <errno.h>

enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_DEFAULT_TYPE = 14
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4, LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_FILE = 4 };

struct work {
	const struct functions_finding *functions;
	const struct function_names *names;
	struct intern strings;
	struct buf *out;
	bool has_failed;
};

static uint64_t string(struct work *work, const char *text)
{
	int64_t number = intern_number(&work->strings, text, strlen(text));
	work->has_failed |= number < 0;
	return number > 0 ? (uint64_t)number : 0;
}

static void sample_type(struct work *work, const char *type, const char *unit)
{
	size_t begun = proto_begin(work->out, PROFILE_SAMPLE_TYPE);
	proto_uint(work->out, VALUE_TYPE_TYPE, string(work, type));
	proto_uint(work->out, VALUE_TYPE_UNIT, string(work, unit));
	proto_end(work->out, begun);
}

static uint64_t billionths(double value)
{
	return value > 0 && value < 9e9 ? (uint64_t)(value * 1e9 + 0.5) : 0;
}

static void values(struct work *work, int64_t samples, double cpu_s, double energy_j)
{
	proto_uint(work->out, SAMPLE_VALUE, (uint64_t)samples);
	proto_uint(work->out, SAMPLE_VALUE, billionths(cpu_s));
	if (!isnan(work->functions->target_j))
		proto_uint(work->out, SAMPLE_VALUE, billionths(energy_j));
}

// Location i + 1 is function i; the rows without code follow those of the names.
static void samples(struct work *work)
{
	const struct functions_finding *f = work->functions;
	uint64_t location = work->names->n;
	for (size_t i = 0; i < f->n_calls; i++) {
		if (f->calls[i].self_samples == 0)
			continue;
		size_t begun = proto_begin(work->out, PROFILE_SAMPLE);
		for (uint32_t k = (uint32_t)i; k != STACK_NONE; k = f->calls[k].parent)
			proto_uint(work->out, SAMPLE_LOCATION, f->calls[k].function + UINT64_C(1));
		values(work, f->calls[i].self_samples, f->calls[i].self_cpu_s, f->calls[i].self_j);
		proto_end(work->out, begun);
	}
	for (size_t i = 0; i < f->n_functions; i++) {
		const struct function_finding *function = &f->functions[i];
		if (function->module != NULL)
			continue;
		size_t begun = proto_begin(work->out, PROFILE_SAMPLE);
		proto_uint(work->out, SAMPLE_LOCATION, ++location);
		values(work, 0, function->self_cpu_s, function->self_j);
		proto_end(work->out, begun);
	}
}

static void location(struct work *work, uint64_t id, const char *name, const char *file)
{
	size_t begun = proto_begin(work->out, PROFILE_LOCATION);
	proto_uint(work->out, LOCATION_ID, id);
	size_t line = proto_begin(work->out, LOCATION_LINE);
	proto_uint(work->out, LINE_FUNCTION, id);
	proto_end(work->out, line);
	proto_end(work->out, begun);
	begun = proto_begin(work->out, PROFILE_FUNCTION);
	proto_uint(work->out, FUNCTION_ID, id);
	proto_uint(work->out, FUNCTION_NAME, string(work, name));
	proto_uint(work->out, FUNCTION_FILE, string(work, file));
	proto_end(work->out, begun);
}

static void locations(struct work *work)
{
	const struct functions_finding *f = work->functions;
	uint64_t id = 0;
	for (size_t i = 0; i < work->names->n; i++)
		location(work, ++id, work->names->names[i], work->names->modules[i]);
	for (size_t i = 0; i < f->n_functions; i++)
		if (f->functions[i].module == NULL)
			location(work, ++id, f->functions[i].name, "");
}

int functions_pprof(const struct functions_finding *functions, const struct function_names *names, struct arena *arena,
	struct buf *out)
{
	struct work work = {.functions = functions, .names = names, .out = out};
	intern_init(&work.strings, arena);
	(void)string(&work, ""); // number 0
	sample_type(&work, "samples", "count");
	sample_type(&work, "cpu", "nanoseconds");
	if (!isnan(functions->target_j))
		sample_type(&work, "joules", "nanojoules");
	samples(&work);
	locations(&work);
	proto_uint(out, PROFILE_DEFAULT_TYPE, string(&work, isnan(functions->target_j) ? "cpu" : "joules"));
	for (size_t i = 0; i < work.strings.n; i++)
		proto_text(out, PROFILE_STRING, work.strings.keys[i].bytes);
	intern_finish(&work.strings);
	return work.has_failed ? -ENOMEM : 0;
}
