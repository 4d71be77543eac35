#include "report/bench.h"

#include "base/fields.h"
#include "base/util.h"

// clang-format off

static const struct bench_result *result_of(const struct object_at *at)
{
	return object_document(at);
}

/* ---- commands ---- */

#define E struct bench_estimate
static const struct field estimate_fields[] = {
	FIELD(E, median, NULL, "median over the runs", .title = "median"),
	FIELD(E, low, NULL, "lower end of its interval"),
	FIELD(E, high, NULL, "upper end of its interval"),
	FIELD(E, confidence, NULL, "confidence level of the interval: below 0.95 for fewer than 6 runs"),
	FIELD(E, n, NULL, "runs in which the value is known"),
};
#undef E
static const struct object_type estimate_type = OBJECT_TYPE("estimate", "A median with its interval.", estimate_fields);

static const void *estimate(const struct object_at *at, size_t i)
{
	return &result_of(at)->findings.estimates[at->index][at->field->offset];
}

static const char *word(const struct object_at *at, struct buf *scratch)
{
	return ((const struct bench_command *)at->data)->shown[at->index];
}

static size_t word_count(const struct object_at *at)
{
	size_t n = 0;
	while (((const struct bench_command *)at->data)->shown[n] != NULL)
		n++;
	return n;
}

static int64_t runs(const struct object_at *at)
{
	return (int64_t)result_of(at)->series[at->index].n;
}

static int64_t warmup(const struct object_at *at)
{
	return (int64_t)result_of(at)->warmup;
}

static size_t quantity_count(const struct object_at *at)
{
	return BENCH_QUANTITIES;
}

static const char *quantity_name(const struct object_at *at, size_t i)
{
	return bench_quantity_names[i];
}

// Lists nested in a map in a command: indices are the run, the quantity and the command.
static size_t value_count(const struct object_at *at)
{
	return result_of(at)->series[at->outer->index].n;
}

static double value(const struct object_at *at)
{
	const struct object_at *quantity = at->outer, *command = quantity->outer;
	return result_of(at)->series[command->index].values[quantity->index][at->index];
}

static const struct field word_field = FIELD_TEXT("word", word, NULL, "an argument of the command");
static const struct field value_field = FIELD_NUMBER("value", value, NULL, "value of one run");
static const struct field values_field = FIELD_VALUES("values", &value_field, value_count, "a value for each run");

#define C struct bench_command
#define ESTIMATE(quantity, key, unit_, meaning, title_)                                                                \
	FIELD_FOUND(key, &estimate_type, estimate, meaning, .offset = (quantity), .known = true, .unit = (unit_), .title = (title_))
static const struct field command_fields[] = {
	FIELD_AS(C, "command", text, NULL, "command as shell input"),
	FIELD_VALUES("argv", &word_field, word_count, "arguments of the command"),
	FIELD_INTEGER("runs", runs, NULL, "measured runs"),
	FIELD_INTEGER("warmup", warmup, NULL, "warm-up runs"),
	FIELD(C, failures, NULL, "runs that failed"),
	ESTIMATE(BENCH_TIME, "time_s", "s", "time", "time"),
	ESTIMATE(BENCH_ENERGY, "energy_j", "J", "energy of the machine", "energy"),
	ESTIMATE(BENCH_POWER, "power_w", "W", "power of the machine", "power"),
	ESTIMATE(BENCH_TARGET_ENERGY, "target_energy_j", "J", "energy attributed to the command", "its share"),
	FIELD_AS(C, "energy_error_j", error_j, "J", "measurement error of the energy, without scatter: median over the runs"),
	FIELD_MAP("values", &values_field, quantity_count, quantity_name, "values of the runs"),
};
#undef ESTIMATE
#undef C
const struct object_type bench_command_type = OBJECT_TYPE("command", "A measured command.", command_fields);

/* ---- comparisons ---- */

static const struct bench_comparison *comparison_of(const struct object_at *at)
{
	return at->data;
}

static const char *a(const struct object_at *at, struct buf *scratch)
{
	return result_of(at)->commands[comparison_of(at)->a].text;
}

static const char *b(const struct object_at *at, struct buf *scratch)
{
	return result_of(at)->commands[comparison_of(at)->b].text;
}

#define C struct bench_comparison
static const struct field comparison_fields[] = {
	FIELD_TEXT("a", a, NULL, "first command"),
	FIELD_TEXT("b", b, NULL, "second command"),
	FIELD_AS(C, "a_index", a, NULL, "index of a in the list of commands"),
	FIELD_AS(C, "b_index", b, NULL, "index of b in the list of commands"),
	FIELD(C, quantity, NULL, "compared quantity", .one_of = bench_quantity_names),
	FIELD(C, ratio, NULL, "b / a"),
	FIELD(C, low, NULL, "lower end of its interval"),
	FIELD(C, high, NULL, "upper end of its interval"),
	FIELD(C, p, NULL, "p-value of the Mann-Whitney test"),
	FIELD(C, p_adjusted, NULL, "p with Holm's correction over the comparisons of the quantity"),
	FIELD(C, different, NULL, "p_adjusted is below 0.05 and the interval excludes 1"),
	FIELD(C, smallest_effect_percent, "%", "smallest difference detectable with this number of runs"),
};
#undef C
static const struct object_type comparison_type = OBJECT_TYPE("comparison", "Two commands compared.", comparison_fields);

/* ---- document ---- */

#define S struct bench_stability
static const struct field stability_fields[] = {
	FIELD(S, possible, NULL, "whether a temperature or a power could be read"),
	FIELD(S, limit_s, "s", "longest wait before a run; null: duration of the previous run, at most 10 s"),
	FIELD(S, reference_w, "W", "power before the first run"),
	FIELD(S, reference_c, "°C", "temperature before the first run"),
	FIELD(S, waited_s, "s", "sum of the waits"),
	FIELD(S, unsettled, NULL, "runs that started while the machine was warmer or busier than at first"),
};
#undef S
static const struct object_type stability_type = OBJECT_TYPE("settling", "Waits for the machine to cool down.", stability_fields);

static const char *const ends[] = {
	[BENCH_ALL_RUNS] = "all runs",
	[BENCH_NARROW_ENOUGH] = "narrow enough",
	[BENCH_MAX_RUNS] = "most runs",
	[BENCH_INTERRUPTED] = "interrupted",
	[BENCH_FAILED] = "failed",
	NULL,
};

#define R struct bench_result
static const struct field result_fields[] = {
	FIELD_SCHEMA("wattle-bench/1"),
	FIELD(R, seed, NULL, "seed of the order and of the intervals"),
	FIELD(R, rounds, NULL, "runs of each command"),
	FIELD(R, end, NULL, "why the measurement ended", .one_of = ends),
	FIELD(R, until_percent, "%", "requested half width of the interval"),
	FIELD(R, width_percent, "%", "half width of the widest interval"),
	FIELD(R, elapsed_s, "s", "duration of the whole measurement"),
	FIELD(R, provenance, NULL, "provenance: measured, derived or estimated"),
	FIELD(R, meter, NULL, "the sensors"),
	FIELD_OBJECT(R, "settling", stability, &stability_type, "waits for the machine to cool down"),
	FIELD_ITEMS(R, "commands", commands, findings.n_commands, &bench_command_type, "the commands, in the order given"),
	FIELD_ITEMS(R, "comparisons", findings.comparisons, findings.n_comparisons, &comparison_type, "pairs of commands by quantity"),
};
#undef R
const struct object_type bench_type = OBJECT_TYPE("bench", "Result of wattle bench.", result_fields);

void bench_json(const struct bench_result *result, struct buf *out)
{
	document_json(out, &bench_type, result, true);
}
