/* Metadata of several merged runs: that of one run, with some values changed. */
#include "analysis/job/internal.h"

#include "base/util.h"

#include <errno.h>

int metadata_change(const struct run *run, const struct metadata_edit *changes, size_t n, struct arena *arena,
	struct run_metadata **ret_metadata, size_t *ret_n)
{
	struct run_metadata *facts = arena_alloc(arena, run->n_metadata + n, sizeof(*facts));
	size_t count = 0;
	if (facts == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < run->n_metadata; i++) {
		bool changed = false;
		for (size_t k = 0; k < n; k++)
			changed |= strcmp(run->facts[i].key, changes[k].key) == 0;
		if (!changed)
			facts[count++] = run->facts[i];
	}
	for (size_t k = 0; k < n; k++)
		if (changes[k].value != NULL)
			facts[count++] = (struct run_metadata){changes[k].key, changes[k].value};
	*ret_metadata = facts;
	*ret_n = count;
	return 0;
}

const char *metadata_number(struct arena *arena, int64_t value)
{
	return value_ok(value) ? arena_printf(arena, "%lld", (long long)value) : NULL;
}
