#include "cap/tune/meter.h"

#include "base/util.h"

#include <errno.h>

int tune_meter_open(struct tune_meter *meter, const struct wattle_env *env, const struct sensor_set *sensors, size_t n)
{
	size_t most = 1;
	for (size_t s = 0; s < sensors->n_slots; s++)
		if (sensors->slots[s].n_domains > most)
			most = sensors->slots[s].n_domains;
	*meter = (struct tune_meter){.env = env};
	meter->rows = calloc_array(most, sizeof(*meter->rows));
	meter->parts = calloc_array(n, sizeof(*meter->parts));
	return meter->rows != NULL && meter->parts != NULL ? 0 : -ENOMEM;
}

void tune_meter_add(struct tune_meter *meter, const struct sensor_slot *slot, size_t domain)
{
	struct tune_part *part = &meter->parts[meter->n_parts++];
	part->slot = slot;
	part->domain = domain;
	energy_track_init(&part->track, &slot->domains[domain], slot->ops->name, false);
}

void tune_meter_close(struct tune_meter *meter)
{
	free(meter->rows);
	free(meter->parts);
	*meter = (struct tune_meter){0};
}

/* ---- readings ---- */

bool tune_meter_read(struct tune_meter *meter, size_t p, int64_t *ret_t_ns)
{
	const struct sensor_slot *slot = meter->parts[p].slot;
	bool energy_only = true;
	for (size_t i = 0; i < p; i++)
		if (meter->parts[i].slot == slot)
			return false;
	for (size_t i = p; i < meter->n_parts; i++)
		energy_only &= meter->parts[i].slot != slot || meter->parts[i].track.domain->has_energy;
	int64_t before_ns = env_now_ns(meter->env);
	const struct sensor_context context = {.t_ns = before_ns,
		.system_busy_ns = VALUE_MISSING,
		.system_idle_ns = VALUE_MISSING,
		.energy_only = energy_only};
	for (size_t i = 0; i < slot->n_domains; i++)
		for (size_t k = 0; k < DEVICE_COUNT; k++)
			meter->rows[i][k] = VALUE_MISSING;
	slot->ops->read(slot->state, &context, meter->rows);
	*ret_t_ns = before_ns + (env_now_ns(meter->env) - before_ns) / 2;
	return true;
}

void tune_meter_feed(struct tune_meter *meter, size_t p, int64_t t_ns)
{
	for (size_t i = p; i < meter->n_parts; i++)
		if (meter->parts[i].slot == meter->parts[p].slot)
			energy_track_feed(&meter->parts[i].track, t_ns, meter->rows[meter->parts[i].domain], false);
}

void tune_meter_poll(struct tune_meter *meter)
{
	int64_t t_ns;
	for (size_t p = 0; p < meter->n_parts; p++)
		if (tune_meter_read(meter, p, &t_ns))
			tune_meter_feed(meter, p, t_ns);
}

/* ---- marks ---- */

void tune_meter_mark(struct tune_meter *meter, size_t mark, int64_t t_ns)
{
	for (size_t i = 0; i < meter->n_parts; i++)
		energy_track_mark(&meter->parts[i].track, mark, t_ns);
}

bool tune_meter_between(struct tune_meter *meter, size_t from, size_t to, bool at_once, struct tune_span *ret_span)
{
	struct tune_span span = {0};
	double error_j2 = 0;
	for (size_t i = 0; i < meter->n_parts; i++) {
		struct energy_track *track = &meter->parts[i].track;
		if (!at_once && !energy_track_has_passed(track, to))
			return false;
		struct energy_amount amount = energy_track_between(track, from, to);
		if (isnan(amount.j))
			return false;
		span.energy_j += amount.j;
		span.max_j = fmax(span.max_j, amount.j);
		error_j2 += amount.error_j * amount.error_j;
		span.seconds = seconds_between(track->marks[from].t_ns, track->marks[to].t_ns);
	}
	span.error_j = sqrt(error_j2);
	*ret_span = span;
	return true;
}

uint64_t tune_meter_updates(const struct tune_meter *meter)
{
	uint64_t fewest = UINT64_MAX;
	for (size_t i = 0; i < meter->n_parts; i++)
		if (meter->parts[i].track.n_updates < fewest)
			fewest = meter->parts[i].track.n_updates;
	return fewest;
}

bool tune_meter_is_lost(const struct tune_meter *meter)
{
	for (size_t i = 0; i < meter->n_parts; i++)
		if (energy_track_losses(&meter->parts[i].track) > 0)
			return true;
	return false;
}
