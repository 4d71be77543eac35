#include "sensor/gpu_roster.h"

#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXPLAIN_CEILING = 1024 };

int gpu_roster_open(struct gpu_roster *roster, const char *list, struct wattle_error *reterr)
{
	*roster = (struct gpu_roster){.list = list, .arena = arena_new()};
	buf_init(&roster->absent, EXPLAIN_CEILING);
	if (roster->arena == NULL)
		return error_set(reterr, -ENOMEM, "out of memory for the list of GPUs");
	return list != NULL ? gpu_select_check_form(list, reterr) : 0;
}

void gpu_roster_close(struct gpu_roster *roster)
{
	arena_free(roster->arena);
	free(roster->all);
	buf_finish(&roster->absent);
	*roster = (struct gpu_roster){0};
}

int gpu_roster_next(const struct gpu_roster *roster)
{
	return (int)roster->n;
}

static int make_room(struct gpu_roster *roster, size_t n)
{
	if (roster->capacity - roster->n >= n)
		return 0;
	size_t capacity = roster->n + n;
	struct gpu_candidate *larger = realloc_array(roster->all, capacity, sizeof(*larger));
	if (larger == NULL)
		return -ENOMEM;
	roster->all = larger;
	roster->capacity = capacity;
	return 0;
}

// A candidate's strings belong to its sensor, which may free them after its open.
static int copy(struct arena *arena, const struct gpu_candidate *from, struct gpu_candidate *ret_candidate)
{
	const char **mig_uuids = arena_alloc(arena, from->n_mig_uuids, sizeof(*mig_uuids));
	if (mig_uuids == NULL)
		return -ENOMEM;
	*ret_candidate = *from;
	ret_candidate->uuid = arena_text(arena, from->uuid);
	ret_candidate->name = NULL; // not shown in any message
	ret_candidate->mig_uuids = mig_uuids;
	for (size_t i = 0; i < from->n_mig_uuids; i++) {
		mig_uuids[i] = arena_text(arena, from->mig_uuids[i]);
		if (mig_uuids[i] == NULL)
			return -ENOMEM;
	}
	return ret_candidate->uuid != NULL ? 0 : -ENOMEM;
}

int gpu_roster_add(struct gpu_roster *roster, const struct gpu_candidate *candidates, size_t n, bool *ret_selected)
{
	int r = make_room(roster, n);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = copy(roster->arena, &candidates[i], &roster->all[roster->n + i]);
	if (r < 0)
		return r;
	roster->n += n;
	if (roster->list != NULL) // errors in the list are checked in gpu_roster_check, when all sensors have registered
		gpu_select_claimed(roster->list, candidates, n, ret_selected);
	return 0;
}

void gpu_roster_explain(struct gpu_roster *roster, const char *brand, const char *why)
{
	const char *gap = roster->absent.size > 0 ? "; " : "";
	buf_printf(&roster->absent, "%sno %s GPU can be used: %s", gap, brand, why);
}

int gpu_roster_check(const struct gpu_roster *roster, struct wattle_error *reterr)
{
	const struct gpu_list list = {
		.text = roster->list,
		.candidates = roster->all,
		.n = roster->n,
		.absent = roster->absent.data != NULL ? roster->absent.data : "",
	};
	return roster->list != NULL ? gpu_select_check(&list, reterr) : 0;
}

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

int gpu_choice_resolve(struct domain *domains, const struct gpu_candidate *candidates, size_t n,
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
	int r = gpu_roster_add(options->roster, candidates, n, wanted); // --gpus overrides the environment
	if (r == 0)
		mark(domains, n, wanted, options->gpus != NULL ? "not in --gpus" : why);
	free(wanted);
	return r;
}

void gpu_environment(struct sensor_options *options)
{
	options->cuda_visible_devices = secure_getenv("CUDA_VISIBLE_DEVICES");
	options->cuda_device_order = secure_getenv("CUDA_DEVICE_ORDER");
	options->hip_visible_devices = secure_getenv("HIP_VISIBLE_DEVICES");
	options->rocr_visible_devices = secure_getenv("ROCR_VISIBLE_DEVICES");
}
