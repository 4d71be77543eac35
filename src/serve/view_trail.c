/* The charts' columns. Times are Unix seconds of the look's own clock, so that two looks never lie further apart than
 * they did. */
#include "serve/view.h"

#include "base/util.h"

static const char *const columns[TRAIL_COLUMNS] = {
	[TRAIL_TOTAL_W] = "total_w",
	[TRAIL_TARGET_W] = "target_w",
	[TRAIL_OTHERS_W] = "others_w",
	[TRAIL_OWN_W] = "wattle_w",
	[TRAIL_IDLE_W] = "idle_w",
	[TRAIL_UNATTRIBUTED_W] = "unattributed_w",
	[TRAIL_BUSY_CORES] = "busy_cores",
	[TRAIL_MEMORY_BYTES] = "memory_used_bytes",
};
static const char *const domain_columns[TRAIL_DOMAIN_COLUMNS] = {
	[TRAIL_POWER_W] = "power_w",
	[TRAIL_UTILIZATION_PERCENT] = "utilization_percent",
	[TRAIL_MEMORY_USED_BYTES] = "memory_used_bytes",
	[TRAIL_TEMPERATURE_C] = "temperature_c",
};

enum { DIGITS = 5 }; // as in the charts of a report

static void column(const struct trail *trail, const float *values, size_t first, struct jsonw *j)
{
	jsonw_begin_array(j);
	for (size_t i = first; i < trail->n; i++)
		jsonw_rounded(j, (double)values[trail_place(trail, i)], DIGITS);
	jsonw_end_array(j);
}

static void times(const struct view *view, size_t first, struct jsonw *j)
{
	const struct trail *trail = view->trail;
	jsonw_begin_array(j);
	for (size_t i = first; i < trail->n; i++) {
		int64_t ago_ns = view->now->t_ns - trail->t_ns[trail_place(trail, i)];
		jsonw_double(j, (double)((view->now->wall_ns - ago_ns) / NS_PER_MS) / 1e3);
	}
	jsonw_end_array(j);
}

static bool has_any(const struct trail *trail, const float *values)
{
	for (size_t i = 0; i < trail->n; i++)
		if (!isnan(values[i]))
			return true;
	return false;
}

// What a domain never had is left out: most have no memory and no temperature.
static void domain(const struct view *view, size_t d, size_t first, struct jsonw *j)
{
	const struct now_domain *domain = &view->now->domains[d];
	const struct trail *trail = view->trail;
	jsonw_begin_object(j);
	jsonw_key_string(j, "domain", domain->domain->name);
	jsonw_key_string(j, "device", domain->domain->device);
	jsonw_key_string(j, "kind", domain_kind_name(domain->domain->kind));
	jsonw_key_string(j, "provenance", provenance_name(domain->domain->provenance));
	jsonw_key_bool(j, "in_total", domain->in_total);
	for (size_t c = 0; c < TRAIL_DOMAIN_COLUMNS; c++) {
		if (!has_any(trail, trail->domains[d][c]))
			continue;
		jsonw_key(j, domain_columns[c]);
		column(trail, trail->domains[d][c], first, j);
	}
	jsonw_end_object(j);
}

void view_trail(const struct view *view, size_t first, struct jsonw *j)
{
	const struct trail *trail = view->trail;
	jsonw_key(j, "unix_s");
	times(view, first, j);
	for (size_t c = 0; c < TRAIL_COLUMNS; c++) {
		if (c == TRAIL_TARGET_W && !view->has_target)
			continue;
		jsonw_key(j, columns[c]);
		column(trail, trail->columns[c], first, j);
	}
	jsonw_key(j, "domains");
	jsonw_begin_array(j);
	for (size_t d = 0; d < trail->n_domains; d++)
		domain(view, d, first, j);
	jsonw_end_array(j);
}
