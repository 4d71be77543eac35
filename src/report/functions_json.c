#include "report/documents.h"

#include "base/fields.h"
#include "base/util.h"

// clang-format off

#define F struct function_finding
static const struct field function_fields[] = {
	FIELD(F, name, NULL, "name of the function, demangled; [module+0xoffset]: unknown; [not sampled]: of the target, without a sample; [domain]: of a domain that is not divided by CPU time", .title = "function", .known = true),
	FIELD(F, module, NULL, "file that contains it; null: not code", .title = "module"),
	FIELD(F, file, NULL, "source file; null: unknown"),
	FIELD(F, line, NULL, "line in the source file; null: unknown"),
	FIELD(F, self_samples, NULL, "samples in the function itself"),
	FIELD(F, total_samples, NULL, "samples in the function and the functions that it called", .title = "samples"),
	FIELD(F, self_cpu_s, "s", "CPU time in the function itself", .title = "own CPU"),
	FIELD(F, total_cpu_s, "s", "CPU time in the function and the functions that it called", .title = "CPU time"),
	FIELD(F, self_j, "J", "energy of the function itself; null: energy is unknown", .title = "own"),
	FIELD(F, self_error_j, "J", "half of its 95 % interval: sampling, attribution and meter"),
	FIELD(F, total_j, "J", "energy of the function and the functions that it called", .title = "energy"),
	FIELD(F, total_error_j, "J", "half of its 95 % interval"),
	FIELD(F, resolved, NULL, "whether total_j is larger than its error"),
};
#undef F
static const struct object_type function_type = OBJECT_TYPE("function", "A function of the profiled program.", function_fields);

#define D struct functions_finding
static const struct field energy_fields[] = {
	FIELD(D, total_j, "J", "energy of the machine"),
	FIELD(D, target_j, "J", "energy attributed to the program: the sum of self_j over all functions"),
	FIELD(D, others_j, "J", "energy attributed to other programs and to wattle"),
	FIELD(D, idle_j, "J", "idle energy; null: unknown, and then in the other figures"),
	FIELD(D, unattributed_j, "J", "energy that could not be attributed"),
};
static const struct object_type energy_type = OBJECT_TYPE("functions-energy", "The energy that the functions are part of.", energy_fields);

static const struct field functions_fields[] = {
	FIELD_SCHEMA("wattle-functions/1"),
	FIELD(D, event, NULL, "sampled event: cycles or cpu-clock; with :u, user code only"),
	FIELD(D, hz, NULL, "samples per second of CPU time"),
	FIELD(D, samples, NULL, "samples stored"),
	FIELD(D, lost, NULL, "records lost, of samples and of mappings"),
	FIELD_SELF("energy", &energy_type, "energy of the run"),
	FIELD_ITEMS(D, "functions", functions, n_functions, &function_type, "functions by descending self_j", .one_line = true),
};
#undef D
const struct object_type functions_type = OBJECT_TYPE("functions", "Energy and CPU time by function.", functions_fields);

// clang-format on

void functions_json(const struct functions_finding *functions, size_t top, struct buf *out)
{
	struct functions_finding shown = *functions;
	shown.n_functions = top < shown.n_functions ? top : shown.n_functions;
	document_json(out, &functions_type, &shown, true);
	buf_char(out, '\n');
}
