#include "sensor/gpu/gpu_choice.h"

#include "base/util.h"
#include "sensor/gpu/gpu_roster.h"

#include <errno.h>
#include <stdio.h>

void gpu_choice_name(struct domain *domains, size_t n, const struct sensor_options *options)
{
	int first = gpu_roster_next(options->roster);
	for (size_t i = 0; i < n; i++) {
		domains[i].kind = DOMAIN_GPU;
		domains[i].index = first + (int)i;
		snprintf(domains[i].name, sizeof(domains[i].name), "gpu-%d", domains[i].index);
	}
}

static void mark(struct domain *domains, size_t n, const bool *wanted, const char *why)
{
	for (size_t i = 0; i < n; i++) {
		struct domain *domain = &domains[i];
		domain->unwanted = !wanted[i];
		domain->used = domain->used && wanted[i] && domain->readable;
		if (domain->unwanted && domain->readable && domain->why[0] == '\0')
			text_copy(domain->why, sizeof(domain->why), why);
	}
}

struct gpu_candidate *gpu_choice_candidates(const struct domain *domains, size_t n)
{
	struct gpu_candidate *candidates = calloc_array(n, sizeof(*candidates));
	for (size_t i = 0; candidates != NULL && i < n; i++)
		candidates[i] = (struct gpu_candidate){
			.index = domains[i].index,
			.uuid = domains[i].uuid,
			.name = domains[i].device,
			.usable = true,
		};
	return candidates;
}

int gpu_choice_settle(struct domain *domains, const struct gpu_candidate *candidates, size_t n,
	gpu_visibility *visibility, const struct sensor_options *options)
{
	const char *why = "";
	bool *wanted = calloc_array(n, sizeof(*wanted));
	if (candidates == NULL || wanted == NULL) {
		free(wanted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		wanted[i] = true;
	if (visibility != NULL)
		why = visibility(options, candidates, n, wanted);
	int r = gpu_roster_add(options->roster, candidates, n, wanted); // --gpus beats the environment
	if (r == 0)
		mark(domains, n, wanted, options->gpus != NULL ? "not in --gpus" : why);
	free(wanted);
	return r;
}
