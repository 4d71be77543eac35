#include "report/bench.h"

#include "base/jsonw.h"
#include "base/util.h"

static void estimate(struct jsonw *j, const struct bench_estimate *e)
{
	jsonw_begin_object(j);
	jsonw_key_double(j, "median", e->median);
	jsonw_key_double(j, "low", e->low);
	jsonw_key_double(j, "high", e->high);
	jsonw_key_double(j, "confidence", e->confidence);
	jsonw_key_i64(j, "n", (int64_t)e->n);
	jsonw_end_object(j);
}

static void values(struct jsonw *j, const struct bench_series *series)
{
	jsonw_key(j, "values");
	jsonw_begin_object(j);
	for (size_t q = 0; q < BENCH_QUANTITIES; q++) {
		jsonw_key(j, bench_quantity_name((enum bench_quantity)q));
		jsonw_begin_array(j);
		for (size_t i = 0; i < series->n; i++)
			jsonw_double(j, series->values[q][i]);
		jsonw_end_array(j);
	}
	jsonw_end_object(j);
}

static void command(struct jsonw *j, const struct bench_result *result, size_t c)
{
	const struct bench_command *command = &result->commands[c];
	jsonw_begin_object(j);
	jsonw_key_string(j, "command", command->text);
	jsonw_key(j, "argv");
	jsonw_begin_array(j);
	for (char *const *word = command->shown; *word != NULL; word++)
		jsonw_string(j, *word);
	jsonw_end_array(j);
	jsonw_key_i64(j, "runs", (int64_t)result->series[c].n);
	jsonw_key_i64(j, "warmup", (int64_t)result->warmup);
	jsonw_key_i64(j, "failures", (int64_t)command->failures);
	for (size_t q = 0; q < BENCH_QUANTITIES; q++) {
		jsonw_key(j, bench_quantity_name((enum bench_quantity)q));
		estimate(j, &result->findings.estimates[c][q]);
	}
	jsonw_key_double(j, "energy_error_j", command->error_j);
	values(j, &result->series[c]);
	jsonw_end_object(j);
}

static void comparison(struct jsonw *j, const struct bench_result *result, const struct bench_comparison *c)
{
	jsonw_begin_object(j);
	jsonw_key_string(j, "a", result->commands[c->a].text);
	jsonw_key_string(j, "b", result->commands[c->b].text);
	jsonw_key_i64(j, "a_index", (int64_t)c->a);
	jsonw_key_i64(j, "b_index", (int64_t)c->b);
	jsonw_key_string(j, "quantity", bench_quantity_name(c->quantity));
	jsonw_key_double(j, "ratio", c->ratio);
	jsonw_key_double(j, "low", c->low);
	jsonw_key_double(j, "high", c->high);
	jsonw_key_double(j, "p", c->p);
	jsonw_key_double(j, "p_adjusted", c->p_adjusted);
	jsonw_key_bool(j, "different", c->different);
	jsonw_key_double(j, "smallest_effect_percent", c->smallest_effect_percent);
	jsonw_end_object(j);
}

static void settling(struct jsonw *j, const struct bench_settling *s)
{
	jsonw_key(j, "settling");
	jsonw_begin_object(j);
	jsonw_key_bool(j, "possible", s->possible);
	jsonw_key_double(j, "limit_s", s->limit_s);
	jsonw_key_double(j, "reference_w", s->reference_w);
	jsonw_key_double(j, "reference_c", s->reference_c);
	jsonw_key_double(j, "waited_s", s->waited_s);
	jsonw_key_i64(j, "unsettled", (int64_t)s->unsettled);
	jsonw_end_object(j);
}

static void course(struct jsonw *j, const struct bench_result *result)
{
	static const char *const ends[] = {
		[BENCH_ALL_RUNS] = "all runs",
		[BENCH_NARROW_ENOUGH] = "narrow enough",
		[BENCH_MOST_RUNS] = "most runs",
		[BENCH_INTERRUPTED] = "interrupted",
		[BENCH_FAILED] = "failed",
	};
	jsonw_key_i64(j, "seed", (int64_t)result->seed);
	jsonw_key_i64(j, "rounds", (int64_t)result->rounds);
	jsonw_key_string(j, "end", ends[result->end]);
	jsonw_key_double(j, "until_percent", result->until_percent);
	jsonw_key_double(j, "width_percent", result->width_percent);
	jsonw_key_double(j, "elapsed_s", result->elapsed_s);
	jsonw_key_string(j, "provenance", result->provenance);
	jsonw_key_string(j, "meter", result->meter);
	settling(j, &result->settling);
}

void bench_json(const struct bench_result *result, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, true);
	jsonw_begin_object(&j);
	jsonw_key_string(&j, "schema", "wattle-bench/1");
	course(&j, result);
	jsonw_key(&j, "commands");
	jsonw_begin_array(&j);
	for (size_t c = 0; c < result->findings.n_commands; c++)
		command(&j, result, c);
	jsonw_end_array(&j);
	jsonw_key(&j, "comparisons");
	jsonw_begin_array(&j);
	for (size_t i = 0; i < result->findings.n_comparisons; i++)
		comparison(&j, result, &result->findings.comparisons[i]);
	jsonw_end_array(&j);
	jsonw_end_object(&j);
}
