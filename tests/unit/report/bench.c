#include "report/bench.h"

#include "rows.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { RUNS = 5, COMMANDS = 2 };

/* Two commands; a row's `change` modifies the default results. */
struct told {
	double time_s[COMMANDS][RUNS], energy_j[COMMANDS][RUNS], unknown[RUNS];
	char *words[COMMANDS][3];
	struct bench_series series[COMMANDS];
	struct bench_command commands[COMMANDS];
	struct bench_result result;
};

static void prepare(struct told *told)
{
	static const double scatter[RUNS] = {0.99, 1, 1.01, 0.995, 1.005};
	*told = (struct told){
		.words = {{(char *)(uintptr_t) "sort", (char *)(uintptr_t) "a b", NULL},
			{(char *)(uintptr_t) "sort", (char *)(uintptr_t) "-u", NULL}},
		.commands = {{.text = "sort 'a b'", .error_j = 0.1}, {.text = "sort -u", .error_j = 0.1}},
	};
	for (size_t i = 0; i < RUNS; i++) {
		told->time_s[0][i] = scatter[i];
		told->time_s[1][i] = scatter[i] * 0.75;
		told->energy_j[0][i] = scatter[i] * 50;
		told->energy_j[1][i] = scatter[i] * 50;
		told->unknown[i] = (double)NAN;
	}
	for (size_t c = 0; c < COMMANDS; c++) {
		told->commands[c].argv = told->commands[c].shown = told->words[c];
		told->series[c] = (struct bench_series){{told->time_s[c], told->energy_j[c], told->unknown,
								told->unknown},
			RUNS};
	}
	told->result = (struct bench_result){
		.findings.n_commands = COMMANDS,
		.series = told->series,
		.commands = told->commands,
		.rounds = RUNS,
		.warmup = 1,
		.seed = 42,
		.until_percent = (double)NAN,
		.width_percent = (double)NAN,
		.elapsed_s = 12,
		.provenance = "measured",
		.meter = "package-0 (powercap)",
		.stability = {.possible = true, .limit_s = (double)NAN},
	};
}

static void nothing(struct told *told)
{
}

static void much_longer(struct told *told)
{
	for (size_t i = 0; i < RUNS; i++)
		told->time_s[1][i] *= 4;
}

static void few(struct told *told)
{
	told->series[0].n = told->series[1].n = told->result.rounds = 3;
}

static void no_energy(struct told *told)
{
	for (size_t c = 0; c < COMMANDS; c++)
		told->series[c].values[BENCH_ENERGY] = told->unknown;
	told->result.provenance = NULL;
}

static void estimated(struct told *told)
{
	told->result.provenance = "estimated";
	told->result.meter = "package-0 (model)";
}

static void unsure(struct told *told)
{
	told->commands[1].error_j = 20;
}

static void interrupted(struct told *told)
{
	told->result.end = BENCH_INTERRUPTED;
}

static void too_wide(struct told *told)
{
	told->result.end = BENCH_MAX_RUNS;
	told->result.until_percent = 1;
	told->result.width_percent = 3.21;
}

static void warm(struct told *told)
{
	told->result.stability.unsettled = 4;
	told->result.stability.waited_s = 30;
}

static void blind(struct told *told)
{
	told->result.stability.possible = false;
}

static void failures(struct told *told)
{
	told->commands[1].failures = 2;
}

static void long_command(struct told *told)
{
	told->commands[0].text =
		"python3 -m train --model resnet --dataset /data/imagenet/train --batch-size 256 --epochs 1 --fast";
}

static void hostile(struct told *told)
{
	told->commands[0].text = "sort \033[2J'a b'";
}

static const struct text_row {
	const char *teaches;
	void (*change)(struct told *told);
	const char *expected; // expected in the text, with line breaks and indentation as one blank
} texts[] = {
	{"heading states how it was measured", nothing,
		"5 runs each in random order, seed 42, after 1 to warm up; 12.0 s in all 1 sort 'a b' 2 sort -u "},
	{"median, its interval with the unit once, and a difference with its interval", nothing,
		" 2 750 ms 742 … 758 ms 25.0 % less ("},
	{"no significant difference, with the detectable one", nothing, " 50.0 J 49.5 … 50.5 J no difference seen ("},
	{"factor of two and more: shown as a factor", much_longer, "3.00 times (2.9"},
	{"three runs: no test possible, the interval has less than 95 %", few, "median interval against 1 "},
	{"three runs: a note explains the interval", few, "too few runs"},
	{"confidence level is stated", few, "these intervals contain the true median with 75 % probability"},
	{"no energy: n/a and where to look", no_energy, " n/a n/a "},
	{"measured quantities and their sources", nothing,
		"measured by package-0 (powercap); a run's error, ± 100 mJ,"},
	{"estimated energy: marked as estimated", estimated, "ESTIMATED from the load by package-0 (model)"},
	{"meter error large compared with the energy: a note", unsure, "use longer runs"},
	{"interrupted bench: a note", interrupted, "Interrupted: the result contains the 5 complete rounds."},
	{"--until not reached: a note", too_wide,
		"the half-width of the widest interval is 3.2 %, not below 1.0 % of its median."},
	{"machine that did not reach a steady state: a note", warm,
		"Before 4 of 10 runs the machine was still warmer or busier"},
	{"machine state unknown: a note", blind, "Neither temperature nor power could be read"},
	{"failed runs: a note", failures, "Command 2 failed in 2 of 5 runs."},
	{"long command: both ends are shown", long_command,
		"python3 -m train --model resnet --dat…n "
		"--batch-size 256 --epochs 1 --fast "},
	{"control characters in a command: replaced", hostile, "sort ?[2J'a b'"},
};

// Blanks and line breaks are reduced to one blank.
static char *squeeze(const char *text)
{
	struct buf out;
	buf_init(&out, 1 << 20);
	for (const char *c = text; *c != '\0'; c++) {
		bool blank = *c == ' ' || *c == '\n';
		if (!blank || (out.size > 0 && out.data[out.size - 1] != ' '))
			buf_char(&out, blank ? ' ' : *c);
	}
	char *squeezed = buf_take(&out);
	buf_finish(&out);
	return squeezed;
}

static void tell(struct told *told, void (*change)(struct told *told), struct buf *out,
	void (*print)(const struct told *told, struct buf *out))
{
	prepare(told);
	change(told);
	assert_int_equal(bench_analyse(told->series, COMMANDS, false, 42, &told->result.findings), 0);
	buf_init(out, 1 << 20);
	print(told, out);
	bench_findings_finish(&told->result.findings);
	assert_int_equal(out->failed, 0);
}

static void print_text(const struct told *told, struct buf *out)
{
	bench_text(&told->result, out, false);
}

static void print_json(const struct told *told, struct buf *out)
{
	bench_json(&told->result, out);
}

static size_t columns(const char *line, size_t size)
{
	size_t n = 0;
	for (size_t i = 0; i < size; i++)
		n += ((unsigned char)line[i] & 0xc0) != 0x80;
	return n;
}

static void check_text(void **state)
{
	const struct text_row *row = *state;
	struct told told;
	struct buf out;
	tell(&told, row->change, &out, print_text);
	for (const char *line = out.data; *line != '\0'; line += strcspn(line, "\n") + 1)
		assert_true(columns(line, strcspn(line, "\n")) <= 80);
	char *squeezed = squeeze(out.data);
	if (strstr(squeezed, row->expected) == NULL)
		fail_msg("'%s' does not stand in:\n%s", row->expected, out.data);
	free(squeezed);
	buf_finish(&out);
}

static void check_json(void **state)
{
	struct told told;
	struct buf out;
	tell(&told, no_energy, &out, print_json);
	json_t *report = json_loads(out.data, 0, NULL), *first, *comparison;
	assert_non_null(report);
	assert_string_equal(json_string_value(json_object_get(report, "schema")), "wattle-bench/1");
	assert_int_equal(json_array_size(json_object_get(report, "commands")), COMMANDS);
	first = json_array_get(json_object_get(report, "commands"), 0);
	assert_string_equal(json_string_value(json_object_get(first, "command")), "sort 'a b'");
	assert_int_equal(json_integer_value(json_object_get(first, "runs")), RUNS);
	assert_int_equal(json_integer_value(json_object_get(first, "warmup")), 1);
	static const char *const ends[] = {"median", "low", "high"};
	for (size_t i = 0; i < 3; i++) {
		assert_true(json_is_number(json_object_get(json_object_get(first, "time_s"), ends[i])));
		assert_true(json_is_null(json_object_get(json_object_get(first, "energy_j"), ends[i])));
		assert_true(json_is_null(json_object_get(json_object_get(first, "power_w"), ends[i])));
	}
	assert_int_equal(json_array_size(json_object_get(report, "comparisons")), 1);
	comparison = json_array_get(json_object_get(report, "comparisons"), 0);
	assert_string_equal(json_string_value(json_object_get(comparison, "a")), "sort 'a b'");
	assert_string_equal(json_string_value(json_object_get(comparison, "b")), "sort -u");
	assert_string_equal(json_string_value(json_object_get(comparison, "quantity")), "time_s");
	assert_true(json_is_true(json_object_get(comparison, "different")));
	static const char *const figures[] = {"ratio", "low", "high", "p", "smallest_effect_percent"};
	for (size_t i = 0; i < 5; i++)
		assert_true(json_is_number(json_object_get(comparison, figures[i])));
	json_decref(report);
	buf_finish(&out);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, texts, check_text);
	ROWS_ADD_ONE(&tests, "JSON has the documented keys; unknown values are null and not compared",
		check_json);
	return rows_run(&tests, "bench");
}
