#include "analysis/energy/domains.h"

#include "analysis/metadata_keys.h"
#include "analysis/stats.h"
#include "base/util.h"

#include <errno.h>

static bool describes(const struct event *event, enum event_kind kind, const char *domain)
{
	return event->kind == kind && event_is_of(event, domain);
}

static int64_t count_events(const struct run *run, enum event_kind kind, const char *domain)
{
	int64_t n = 0;
	for (size_t i = 0; i < run->n_events; i++)
		n += describes(&run->events[i], kind, domain);
	return n;
}

// Square of the time between the last update before an instant and the first one after it, as an upper bound.
static double around_s2(const struct run_device *device, const struct curve *curve, int64_t t_ns)
{
	size_t after = slice_lower_bound(device->t_ns, device->n, t_ns), before = after;
	while (after < device->n && !value_ok(device_value(device, DEVICE_ENERGY, after)))
		after++;
	while (before > 0 && !value_ok(device_value(device, DEVICE_ENERGY, before - 1)))
		before--;
	if (before == 0 || after == device->n)
		return 0;
	double s = (double)(device->t_ns[after] - device->t_ns[before - 1]) / 1e9 + curve->updates.longest_s;
	return s * s;
}

static double lost_at_resets_s2(const struct run *run, const struct run_device *device, const struct curve *curve)
{
	double sum_s2 = 0;
	for (size_t i = 0; i < run->n_events; i++)
		if (describes(&run->events[i], EVENT_KIND_RESET, device->name))
			sum_s2 += around_s2(device, curve, run->events[i].t_ns);
	return sum_s2;
}

// Events of the recorder at which the counter may have wrapped more often than the values show.
static int64_t hidden_rounds(const struct run *run, const struct run_device *device)
{
	int64_t n = 0;
	for (size_t i = 0; i < run->n_events; i++)
		n += (run->events[i].type == EVENT_WRAP_SEVERAL || run->events[i].type == EVENT_WRAP_UNREAD) &&
			event_is_of(&run->events[i], device->name);
	return n;
}

/* A gap shows as a series of samples without a value and, usually, as an event for the same gap; the larger of the two
 * counts is used. A reset is a gap of its own: it loses energy between two good values. */
static int64_t count_gaps(const struct run *run, const struct run_device *device, const struct curve *curve)
{
	int64_t seen = (int64_t)(curve->missing_runs + curve->long_holes);
	seen += curve->stalled_s > 0 && !curve->from_power;
	int64_t n_recorded = count_events(run, EVENT_KIND_GAP, device->name);
	return (n_recorded > seen ? n_recorded : seen) + count_events(run, EVENT_KIND_RESET, device->name);
}

static double largest_window_power_w(const struct curve *curve, const struct windows *windows)
{
	double max_w = (double)NAN;
	struct curve_walk walk = {.curve = curve};
	for (size_t i = 0; i < windows->n; i++) {
		struct window w = windows_times_at(windows, i);
		double power_w = curve_walk_power_w(&walk, w.segment, w.begin_ns, w.end_ns);
		if (power_w > max_w || isnan(max_w))
			max_w = power_w;
	}
	return max_w;
}

static enum provenance weakest(enum provenance a, enum provenance b)
{
	return a > b ? a : b;
}

static bool find_location(const void *data, const char *name, struct domain_location *ret_location)
{
	const struct run *run = data;
	for (size_t i = 0; name[0] != '\0' && i < run->n_devices; i++) {
		const struct run_device *device = &run->devices[i];
		if (strcmp(device->name, name) != 0)
			continue;
		*ret_location = (struct domain_location){device->kind, device->inside};
		return true;
	}
	return false;
}

// The energy of a domain inside another counted domain would be counted twice.
static bool enters_total(const struct run *run, const struct run_device *device)
{
	return domain_adds_up((struct domain_location){device->kind, device->inside}, find_location, run);
}

static enum provenance provenance_of(const struct run_device *device, const struct curve *curve)
{
	return curve->from_power ? weakest(device->provenance, PROVENANCE_DERIVED) : device->provenance;
}

static struct domain_finding describe(const struct run *run, const struct run_device *device, const struct curve *curve)
{
	const double none = (double)NAN;
	return (struct domain_finding){
		.device = device,
		.provenance = provenance_of(device, curve),
		.energy_j = none,
		.error_j = none,
		.calibration_error_j = none,
		.mean_w = none,
		.max_w = none,
		.ledger = ledger_unknown(),
		.attribution = "none",
		.target_error_j = none,
		.update_period_s = curve->updates.period_s,
		.update_jitter_s = device->update_jitter_s > 0 ? device->update_jitter_s : none,
		.integrated_j = none,
		.integrated_error_j = none,
		.stalled_s = curve->stalled_s,
		.unseen = curve->unseen_s > 0 && !curve->from_power,
#define DEVICE_MAX(id, member, ...) .member = stats_max(device_column(device, DEVICE_##id), device->n),
#include "metric/metrics.def"
		.idle_w = device->idle_w > 0 ? device->idle_w : none,
		.wraps = count_events(run, EVENT_KIND_WRAP, device->name),
		.gaps = count_gaps(run, device, curve),
		.in_total = enters_total(run, device),
	};
}

static double mean_power_w(const struct findings *findings, const struct curve *curve, double energy_j)
{
	double metered_s = findings->duration_s - curve->hole_s - curve->outside_s;
	return metered_s > 1e-9 * findings->duration_s ? energy_j / metered_s : (double)NAN;
}

static int measure(struct findings *findings, struct domain_finding *domain, struct metering_domain *metering,
	struct arena *arena)
{
	struct attribution *attribution = &metering->attribution;
	const struct curve *curve = attribution->curve;
	struct kept_share *keep =
		findings->keeps_shares ? arena_alloc(arena, attribution->windows->n, sizeof(*keep)) : NULL;
	enum method method;
	if (findings->keeps_shares && keep == NULL)
		return -ENOMEM;
	attribute(attribution, keep, &domain->ledger, &method);
	domain->attribution = attribution_text(attribution, method, findings->arena);
	domain->energy_j = curve_total_j(curve);
	domain->mean_w = mean_power_w(findings, curve, domain->energy_j);
	domain->max_w = curve->from_power ? curve->max_power_w : largest_window_power_w(curve, attribution->windows);
	if (domain->mean_w > domain->max_w) // by rounding, or by power readings that rise only at the ends
		domain->max_w = domain->mean_w;
	domain->error_j = domain_error_j(findings->run, domain, curve,
		lost_at_resets_s2(findings->run, domain->device, curve), hidden_rounds(findings->run, domain->device));
	domain->target_error_j = target_error_j(domain, attribution->uncertainty_j);
	domain->calibration_error_j = calibration_error_j(domain->device, domain->energy_j);
	if (!isnan(attribution->idle_w))
		domain->idle_w = attribution->idle_w;
	return domain->attribution != NULL ? crosscheck(findings, domain, curve) : -ENOMEM;
}

static void add_up(struct findings *findings, const struct metering *metering)
{
	struct error_sum error = {0}, target_error = {0};
	findings->total_j = findings->error_j = findings->target_error_j = (double)NAN;
	findings->calibration_error_j = findings->target_calibration_error_j = (double)NAN;
	findings->ledger = ledger_unknown();
	for (size_t i = 0; i < findings->n_domains; i++) {
		const struct domain_finding *domain = &findings->domains[i];
		if (!domain->in_total || isnan(domain->energy_j))
			continue;
		if (isnan(findings->total_j)) {
			findings->total_j = 0;
			findings->ledger = ledger_empty();
		}
		findings->total_j += domain->energy_j;
		calibration_add(findings, domain);
		findings->provenance = weakest(findings->provenance, domain->provenance);
		ledger_add(&findings->ledger, &domain->ledger);
		error_sum_add(&error, domain, domain->error_j, 0);
		error_sum_add(&target_error, domain, target_error_j(domain, 0),
			metering->domains[i].attribution.uncertainty_j);
	}
	if (isnan(findings->total_j))
		return;
	findings->error_j = error_sum_j(&error);
	findings->target_error_j = error_sum_j(&target_error);
}

/* Sort order: by socket, each package before the domains in it or beside it; then the rest by kind. The order of the
 * samples is the kernel's order of registration, which is meaningless to a reader. */
static int compare_devices(const void *a, const void *b)
{
	const struct run_device *x = *(const struct run_device *const *)a, *y = *(const struct run_device *const *)b;
	bool x_socket = x->kind <= DOMAIN_DRAM, y_socket = y->kind <= DOMAIN_DRAM;
	if (x_socket != y_socket)
		return x_socket ? -1 : 1;
	int by_index = (x->index > y->index) - (x->index < y->index);
	int by_kind = (x->kind > y->kind) - (x->kind < y->kind);
	if (x_socket && by_index != 0)
		return by_index;
	if (by_kind != 0 || by_index != 0)
		return by_kind != 0 ? by_kind : by_index;
	return strcmp(x->name, y->name);
}

static const struct run_device **devices_for_readers(const struct run *run, struct arena *scratch)
{
	const struct run_device **devices = arena_alloc(scratch, run->n_devices, sizeof(*devices));
	for (size_t i = 0; devices != NULL && i < run->n_devices; i++)
		devices[i] = &run->devices[i];
	if (devices != NULL)
		qsort(devices, run->n_devices, sizeof(*devices), compare_devices);
	return devices;
}

// In a job several containers can use one name for different GPUs; UUIDs differ. GPU memory has the GPU's UUID plus
// "/memory".
static bool is_memory_of(const struct run_device *memory, const struct run_device *gpu)
{
	size_t length = strlen(gpu->uuid);
	if (gpu->kind != DOMAIN_GPU)
		return false;
	return memory->uuid[0] != '\0' && length > 0
		? strncmp(memory->uuid, gpu->uuid, length) == 0 && memory->uuid[length] == '/'
		: strcmp(memory->inside, gpu->name) == 0;
}

// The driver reports the processes on a GPU, not those that use the power of its memory.
static const struct run_device *user_of(const struct run *run, const struct run_device *device)
{
	for (size_t i = 0; device->kind == DOMAIN_GPU_MEMORY && i < run->n_devices; i++)
		if (is_memory_of(device, &run->devices[i]))
			return &run->devices[i];
	return device;
}

static int make_domain(struct findings *findings, const struct run_device *device, struct metering_domain *metering,
	struct domain_finding *domain, struct arena *arena)
{
	const struct run *run = findings->run;
	if (curve_make(run, device, run_metadata_i64(run, META_KEY_INTERVAL), arena, &metering->curve) < 0)
		return -ENOMEM;
	metering->attribution.device = device;
	metering->attribution.user = user_of(run, device);
	metering->attribution.curve = &metering->curve;
	*domain = describe(run, device, &metering->curve);
	return metering->curve.known ? measure(findings, domain, metering, arena) : 0;
}

static int make_all(struct findings *findings, const struct attribution *like, struct metering *metering,
	struct arena *arena, struct arena *scratch)
{
	const struct run_device **devices = devices_for_readers(findings->run, scratch);
	if (devices == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < findings->n_domains; i++) {
		struct metering_domain *domain = &metering->domains[i];
		domain->attribution = *like;
		if (make_domain(findings, devices[i], domain, &findings->domains[i], arena) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int divide_all(struct findings *findings, const struct windows *windows, struct metering *metering,
	struct arena *arena, struct arena *scratch)
{
	const struct run *run = findings->run;
	const char *attribution = run_metadata(run, META_KEY_ATTRIBUTION);
	const struct attribution like = {.run = run,
		.windows = windows,
		.active = attribution != NULL && strcmp(attribution, "active") == 0};
	return make_all(findings, &like, metering, arena, scratch);
}

int domains_make(struct findings *findings, const struct windows *windows, struct arena *arena,
	struct metering *ret_metering)
{
	size_t n = findings->run->n_devices;
	struct metering metering = {.domains = arena_alloc(arena, n, sizeof(*metering.domains))};
	struct arena *scratch = arena_new();
	findings->domains = arena_alloc(findings->arena, n, sizeof(*findings->domains));
	findings->n_domains = n;
	bool ready = metering.domains != NULL && findings->domains != NULL && scratch != NULL;
	int r = ready ? divide_all(findings, windows, &metering, arena, scratch) : -ENOMEM;
	arena_free(scratch);
	if (r < 0)
		return r;
	add_up(findings, &metering);
	*ret_metering = metering;
	return 0;
}
