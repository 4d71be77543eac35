#include "lib/cap_trace.h"

#include "base/util.h"

void cap_trace_init(struct cap_trace *trace, const struct domain *domain)
{
	*trace = (struct cap_trace){.domain = domain, .power_w = (double)NAN};
	counter_init(&trace->counter, domain->energy_range_uj, domain->max_power_w);
}

// From the update before (the trace's last one) to this one.
static void resolve(const struct cap_trace *trace, struct cap_mark *mark, int64_t t_ns, int64_t off_ns, double energy_j)
{
	double power_w = (energy_j - trace->last_j) / seconds_between(trace->last_t_ns, t_ns);
	double part = seconds_between(trace->last_t_ns, mark->t_ns) / seconds_between(trace->last_t_ns, t_ns);
	part = fmin(fmax(part, 0), 1);
	double off_s = hypot((1 - part) * (double)trace->last_off_ns, part * (double)off_ns) / 1e9;
	double step_j = domain_gain(trace->domain) * (double)trace->domain->resolution_uj / 1e6;
	mark->energy_j = trace->last_j + part * (energy_j - trace->last_j);
	// The instants of updates lie evenly in their intervals, as values do in a counter's steps.
	mark->error_j = 1.96 / sqrt(3) * hypot(power_w * off_s, step_j / 2);
	mark->is_known = true;
}

static void update(struct cap_trace *trace, int64_t t_ns, int64_t off_ns, double energy_j)
{
	for (size_t i = 0; i < CAP_MARKS; i++) {
		struct cap_mark *mark = &trace->marks[i];
		if (mark->t_ns == 0 || mark->is_known || t_ns < mark->t_ns)
			continue;
		if (trace->is_primed && t_ns > trace->last_t_ns)
			resolve(trace, mark, t_ns, off_ns, energy_j);
		else
			mark->t_ns = 0; // before the first update: never to be known
	}
	trace->is_primed = true;
	trace->last_t_ns = t_ns;
	trace->last_off_ns = off_ns;
	trace->last_j = energy_j;
	trace->n_updates++;
}

static void feed_counter(struct cap_trace *trace, int64_t t_ns, const int64_t row[DEVICE_COUNT])
{
	uint64_t before = trace->counter.total;
	enum counter_event event = counter_feed(&trace->counter, t_ns, row[DEVICE_ENERGY_RAW], false);
	if (event == COUNTER_GAP)
		return;
	trace->is_lost |= trace->counter.resets > 0 || trace->counter.ambiguous > 0;
	// The first value is of some update before; nothing can be told up to the next one.
	int64_t look_ns = trace->last_look_ns;
	trace->last_look_ns = t_ns;
	if (event == COUNTER_FIRST || trace->counter.total == before)
		return;
	int64_t told_ns = row[DEVICE_ENERGY_TIME];
	bool is_told = value_ok(told_ns) && told_ns > look_ns - NS_PER_S && told_ns <= t_ns;
	int64_t at_ns = is_told ? told_ns : look_ns + (t_ns - look_ns) / 2;
	double energy_j = domain_gain(trace->domain) * (double)trace->counter.total / 1e6;
	update(trace, at_ns, is_told ? 0 : (t_ns - look_ns) / 2, energy_j);
}

// A mean of power from one reading to the next: each stands for the time around it.
static void feed_power(struct cap_trace *trace, int64_t t_ns, int64_t power_mw)
{
	double power_w = domain_gain(trace->domain) * value_to_double(power_mw, 1e-3);
	if (isnan(power_w))
		return;
	double before_w = trace->is_primed ? trace->power_w : power_w;
	double seconds = trace->is_primed ? seconds_between(trace->last_t_ns, t_ns) : 0;
	trace->power_w = power_w;
	update(trace, t_ns, 0, trace->last_j + (before_w + power_w) / 2 * seconds);
}

void cap_trace_feed(struct cap_trace *trace, int64_t t_ns, const int64_t row[DEVICE_COUNT])
{
	if (trace->domain->has_energy)
		feed_counter(trace, t_ns, row);
	else
		feed_power(trace, t_ns, row[DEVICE_POWER]);
}

void cap_trace_mark(struct cap_trace *trace, size_t mark, int64_t t_ns)
{
	trace->marks[mark] = (struct cap_mark){.t_ns = t_ns, .energy_j = (double)NAN, .error_j = (double)NAN};
}
