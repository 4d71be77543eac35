#include "store/run.h"

#include "base/arena.h"
#include "base/num.h"
#include "base/util.h"

#include <string.h>

void run_finish(struct run *run)
{
	arena_free(run->arena);
	*run = (struct run){0};
}

const char *run_fact(const struct run *run, const char *key)
{
	for (size_t i = 0; i < run->n_facts; i++)
		if (strcmp(run->facts[i].key, key) == 0)
			return run->facts[i].value;
	return NULL;
}

double run_fact_double(const struct run *run, const char *key)
{
	const char *text = run_fact(run, key);
	double value = (double)NAN;
	if (text != NULL && num_parse_double(text, &value) < 0)
		return (double)NAN;
	return value;
}

int64_t run_fact_i64(const struct run *run, const char *key)
{
	const char *text = run_fact(run, key);
	int64_t value = VALUE_MISSING;
	if (text != NULL && num_parse_i64(text, &value) < 0)
		return VALUE_MISSING;
	return value;
}
