#include "span/capture/capture.h"

#include <stddef.h>

enum { RUNS_MAX = 16, SILENT = DOMAIN_STACK_OWNERS };

struct run {
	uint16_t owner; // may include SILENT
	uint16_t count;
};

// initial-exec: no allocation at the first use in a thread, not even in a signal handler.
static __thread struct {
	uint32_t n;
	struct run runs[RUNS_MAX];
} nest __attribute__((tls_model("initial-exec")));

static int level_of(uint16_t owner)
{
	int level = 0;
	for (uint32_t i = 0; i < nest.n; i++)
		if ((nest.runs[i].owner & ~SILENT) == owner)
			level += nest.runs[i].count;
	return level;
}

int domain_stack_push(uint16_t owner, bool silent)
{
	owner &= DOMAIN_STACK_OWNERS - 1;
	uint16_t key = (uint16_t)(owner | (silent ? SILENT : 0));
	int level = level_of(owner);
	struct run *top = nest.n > 0 ? &nest.runs[nest.n - 1] : NULL;
	if (top != NULL && (top->owner == key || nest.n == RUNS_MAX))
		top->count = (uint16_t)(top->count + (top->count < UINT16_MAX));
	else
		nest.runs[nest.n++] = (struct run){key, 1};
	return level;
}

// Merges neighbours of the removed run that have the same owner, so that runs do not become ever shorter.
static void remove_run(uint32_t at)
{
	nest.n--;
	for (uint32_t i = at; i < nest.n; i++)
		nest.runs[i] = nest.runs[i + 1];
	if (at == 0 || at >= nest.n || nest.runs[at - 1].owner != nest.runs[at].owner ||
		nest.runs[at - 1].count + nest.runs[at].count > UINT16_MAX)
		return;
	nest.runs[at - 1].count = (uint16_t)(nest.runs[at - 1].count + nest.runs[at].count);
	remove_run(at);
}

bool domain_stack_pop(uint16_t owner, struct domain_stack_end *ret_end)
{
	owner &= DOMAIN_STACK_OWNERS - 1;
	struct domain_stack_end end = {.level = level_of(owner) - 1};
	for (uint32_t at = nest.n; at-- > 0;) {
		struct run *run = &nest.runs[at];
		if ((run->owner & ~SILENT) != owner && nest.n < RUNS_MAX) {
			end.n_inner += run->owner & SILENT ? 0 : run->count;
			continue;
		}
		end.silent = (run->owner & SILENT) != 0;
		if (--run->count == 0)
			remove_run(at);
		*ret_end = end;
		return true;
	}
	return false;
}
