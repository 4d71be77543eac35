#include "energy/track.h"

#include "base/util.h"
#include "energy/curve.h"
#include "energy/internal.h"

// A counter that updates every 100 ms and is read once a second is off by up to a tenth, so power is computed over this many
// updates.
enum { PERIODS_WANTED = 10, POWER_READINGS = 24 };
// A counter without a change for this many periods measures no power; if the period is unknown, for this long …
static const int64_t STILL_PERIODS = 10, STILL_NS = 3 * NS_PER_S;
// … unless that is less than this multiple of its last rest: a slow counter of whole joules changes every 200 ms at 5 W.
static const int64_t STILL_RESTS = 3;
static const int64_t JOIN_MAX_NS = 60 * NS_PER_S;
// Between two marks, a counter without a change for this long and this many periods is stuck: idle hardware uses energy too.
static const double STUCK_S = 1, STUCK_PERIODS = 5;
static const double PERIOD_UNKNOWN_S = 0.1; // no counter except wall meters is known to be slower
static const double MODEL_ERROR = 0.5;
// The curve starts this long before the first reading, so that no instant is a start of a program, where the line would be
// bent.
static const int64_t BEFORE_NS = NS_PER_S;

static const struct energy_amount unknown = {(double)NAN, (double)NAN, (double)NAN};

static bool is_model(const struct domain *domain)
{
	return !domain->has_energy && domain->provenance == PROVENANCE_ESTIMATED;
}

void energy_track_init(struct energy_track *track, const struct domain *domain, const char *source, bool is_extended)
{
	*track = (struct energy_track){.domain = domain,
		.source = source,
		.period = {domain->update_period_ns, domain->update_jitter_ns},
		.is_extended = is_extended,
		.join_max_ns = JOIN_MAX_NS,
		.last_power_mw = VALUE_MISSING,
		.power_w = (double)NAN};
	counter_init(&track->counter, is_extended ? 0 : domain->energy_range_uj, is_extended ? 0 : domain->max_power_w);
}

void energy_track_set_join(struct energy_track *track, int64_t join_max_ns)
{
	track->join_max_ns = join_max_ns > JOIN_MAX_NS ? join_max_ns : JOIN_MAX_NS;
}

/* ---- the curve through the readings ---- */

struct view {
	struct run run;
	struct run_segment segment;
	struct run_device device;
	int64_t missing[TRACK_READINGS], stamps[TRACK_READINGS];
	struct curve curve;
	struct arena *arena;
	double base_j; // energy of the first point
	bool by_readings; // see date_by_readings
};

static double known(double value, double scale)
{
	return value > 0 ? value * scale : (double)NAN;
}

static struct run_device describe(struct energy_track *track, size_t first, int64_t *missing)
{
	const struct domain *domain = track->domain;
	struct run_device device = {
		.kind = domain->kind,
		.provenance = domain->provenance,
		.has_energy = domain->has_energy || is_model(domain),
		.resolution_j = known((double)domain->resolution_uj, 1e-6 * domain_gain(domain)),
		.update_period_s = known((double)track->period.period_ns, 1e-9),
		.update_jitter_s = known((double)track->period.jitter_ns, 1e-9),
		.relative_error = known(domain->relative_error, 1),
		.gain_error = domain_is_calibrated(domain) ? domain->calibration->error : (double)NAN,
		.n = track->n - first,
		.t_ns = track->t_ns + first,
		.values = {[DEVICE_ENERGY] = track->uj + first,
			[DEVICE_ENERGY_TIME] = track->stamp_ns + first,
			[DEVICE_POWER] = is_model(domain) ? missing : track->power_mw + first,
			[DEVICE_POWER_AVERAGE] = missing},
	};
	text_copy(device.source, sizeof(device.source), track->source);
	return device;
}

static double first_j(const struct view *view)
{
	const int64_t *values = view->device.values[view->curve.from_power ? DEVICE_POWER : DEVICE_ENERGY];
	for (size_t i = 0; i < view->device.n; i++)
		if (value_ok(values[i]))
			return (double)view->device.values[DEVICE_ENERGY][i] * 1e-6;
	return 0;
}

/* The age of an update at its reading is unknown, and readings give little information about it. Each reading therefore
 * stands for its own time, so that the age is the same at both ends of a measurement. The uncertainty is the whole age. */
static int date_by_readings(struct view *view, int64_t interval_ns)
{
	double longest_s = view->curve.updates.longest_s;
	view->by_readings = true;
	for (size_t i = 0; i < view->device.n; i++) {
		int64_t stamp_ns = view->device.values[DEVICE_ENERGY_TIME][i];
		view->stamps[i] = value_ok(stamp_ns) ? stamp_ns : view->device.t_ns[i];
	}
	view->device.values[DEVICE_ENERGY_TIME] = view->stamps;
	int r = curve_make(&view->run, &view->device, interval_ns, view->arena, &view->curve);
	for (size_t i = 0; r == 0 && i < view->curve.n; i++)
		view->curve.within_s[i] = longest_s;
	return r;
}

// Builds the curve of the readings from `first` on; extended to from_ns … to_ns if that is longer. Returns false if there are
// too few readings.
static bool view_open(struct energy_track *track, size_t first, int64_t from_ns, int64_t to_ns, struct view *view)
{
	*view = (struct view){.arena = track->n > 1 ? arena_new() : NULL};
	if (view->arena == NULL)
		return false;
	for (size_t i = 0; i < track->n - first; i++)
		view->missing[i] = VALUE_MISSING;
	const int64_t first_ns = track->t_ns[first], last_ns = track->t_ns[track->n - 1];
	view->segment.start_ns = (from_ns < first_ns ? from_ns : first_ns) - BEFORE_NS;
	view->segment.end_ns = to_ns > last_ns ? to_ns : last_ns;
	view->device = describe(track, first, view->missing);
	view->run = (struct run){.segments = &view->segment,
		.n_segments = 1,
		.t_ns = view->device.t_ns,
		.n = view->device.n};
	const int64_t interval_ns = track->join_max_ns / 5;
	int r = curve_make(&view->run, &view->device, interval_ns, view->arena, &view->curve);
	bool is_stamped = value_ok(track->stamp_ns[track->n - 1]) || view->curve.from_power;
	if (r == 0 && isnan(view->curve.updates.period_s) && !is_stamped)
		r = date_by_readings(view, interval_ns);
	if (r == 0 && view->curve.n > 1) {
		view->base_j = first_j(view);
		return true;
	}
	arena_free(view->arena);
	return false;
}

static struct edge_point point_at(const struct view *view, struct edge_walk *edge, struct curve_walk *at, int64_t t_ns)
{
	curve_walk_to(at, 0, t_ns);
	struct edge_point point = edge_walk_to(edge, at);
	point.line_j += view->base_j;
	// Readings are not shifted together: two marks in one stretch have the errors of both of its ends.
	point.inside = point.inside && !view->by_readings;
	return point;
}

/* ---- readings ---- */

// Stores the results of marks before `to_ns`, because their readings will be discarded.
static void keep_marks(struct energy_track *track, int64_t to_ns)
{
	for (size_t i = 0; i < TRACK_MARKS; i++) {
		struct energy_mark *mark = &track->marks[i];
		struct view view;
		if (!mark->is_set || mark->is_kept || mark->t_ns > to_ns)
			continue;
		mark->is_kept = true;
		mark->point = (struct edge_point){.t_ns = mark->t_ns, .line_j = (double)mark->energy_uj * 1e-6};
		if (!view_open(track, 0, mark->t_ns, mark->t_ns, &view))
			continue;
		struct curve_walk at = {.curve = &view.curve};
		struct edge_walk edge = {.curve = &view.curve};
		mark->point = point_at(&view, &edge, &at, mark->t_ns);
		mark->point.inside = false; // the stretch around the mark is discarded
		arena_free(view.arena);
	}
}

static void drop_half(struct energy_track *track)
{
	enum { HALF = TRACK_READINGS / 2, BESIDE = 8 }; // a mark needs the readings on both sides
	int64_t *columns[] = {track->t_ns, track->uj, track->stamp_ns, track->power_mw};
	keep_marks(track, track->t_ns[HALF + BESIDE]);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		memmove(columns[i], columns[i] + HALF, HALF * sizeof(*columns[i]));
	track->n = HALF;
}

// Of consecutive readings without an update, the last one has all the information.
static bool is_repeated(const struct energy_track *track, int64_t uj, int64_t power_mw)
{
	size_t n = track->n;
	return n > 1 && track->uj[n - 1] == uj && track->uj[n - 2] == uj && !value_ok(power_mw) &&
		!value_ok(track->power_mw[n - 1]);
}

static void keep(struct energy_track *track, int64_t t_ns, int64_t uj, int64_t stamp_ns, int64_t power_mw)
{
	// A hardware time stamp after t_ns means that the reading was made then.
	if (value_ok(stamp_ns) && stamp_ns > t_ns && stamp_ns - t_ns < NS_PER_S)
		t_ns = stamp_ns;
	if (track->n > 0 && t_ns <= track->t_ns[track->n - 1])
		return;
	if (is_repeated(track, uj, power_mw))
		track->n--;
	else if (track->n == TRACK_READINGS)
		drop_half(track);
	size_t at = track->n++;
	track->t_ns[at] = t_ns;
	track->uj[at] = uj;
	track->stamp_ns[at] = stamp_ns;
	track->power_mw[at] = value_ok(power_mw) ? llround(domain_gain(track->domain) * (double)power_mw)
						 : VALUE_MISSING;
}

static void note_update(struct energy_track *track, int64_t t_ns, int64_t stamp_ns)
{
	bool is_stamped = value_ok(stamp_ns) && stamp_ns > track->last_ns - NS_PER_S && stamp_ns <= t_ns;
	int64_t moved_ns = is_stamped ? stamp_ns : track->last_ns + (t_ns - track->last_ns) / 2;
	track->rest_ns = t_ns - track->seen_ns;
	track->moved_ns = moved_ns;
	track->seen_ns = t_ns;
	track->n_updates++;
}

// Restarts counting at a value that is unrelated to earlier ones.
static void restart(struct energy_track *track, int64_t t_ns)
{
	keep_marks(track, t_ns);
	track->n = 0;
	track->n_updates = 0;
	track->rest_ns = 0;
}

static void feed_counter(struct energy_track *track, int64_t t_ns, const int64_t *row, bool suspended)
{
	uint64_t before_uj = track->counter.total;
	int64_t read_uj = row[track->is_extended ? DEVICE_ENERGY : DEVICE_ENERGY_RAW];
	enum counter_event event = counter_feed(&track->counter, t_ns, read_uj, suspended);
	if (event == COUNTER_RESET)
		restart(track, t_ns);
	if (event == COUNTER_GAP) {
		keep(track, t_ns, VALUE_MISSING, VALUE_MISSING, row[DEVICE_POWER]);
		return;
	}
	track->added_uj = llround(domain_gain(track->domain) * (double)(track->counter.total - before_uj));
	track->energy_uj += track->added_uj;
	if (track->n == 0)
		track->moved_ns = track->seen_ns = t_ns;
	else if (track->added_uj > 0)
		note_update(track, t_ns, row[DEVICE_ENERGY_TIME]);
	keep(track, t_ns, track->energy_uj, row[DEVICE_ENERGY_TIME], row[DEVICE_POWER]);
	track->last_ns = t_ns;
}

// The first power reading covers the time since the start of the track, as does that of a model.
static void feed_power(struct energy_track *track, int64_t t_ns, int64_t power_mw)
{
	const struct domain *domain = track->domain;
	double power_w = domain_gain(domain) * value_to_double(power_mw, 1e-3);
	bool had_power = track->power_ns != 0, is_mean = is_model(domain) || !had_power;
	int64_t since_ns = had_power ? track->power_ns : track->last_ns;
	bool joined = since_ns > 0 && (is_model(domain) || t_ns - since_ns <= track->join_max_ns);
	double mean_w = is_mean ? power_w : (power_w + track->power_w) / 2;
	track->n_unread += had_power && isnan(power_w);
	track->last_ns = t_ns;
	if (isnan(power_w)) {
		if (!had_power && is_model(domain))
			keep(track, t_ns, track->energy_uj, t_ns, VALUE_MISSING);
		return;
	}
	if (joined)
		track->integrated_uj += mean_w * (double)(t_ns - since_ns) / 1e3; // W·ns = 10^-3 µJ
	int64_t energy_uj = (int64_t)track->integrated_uj;
	track->added_uj = energy_uj > track->energy_uj ? energy_uj - track->energy_uj : 0;
	track->energy_uj += track->added_uj;
	track->power_w = power_w;
	track->power_ns = t_ns;
	track->moved_ns = track->seen_ns = t_ns;
	track->n_updates++;
	keep(track, t_ns, track->energy_uj, t_ns, power_mw);
}

void energy_track_feed(struct energy_track *track, int64_t t_ns, const int64_t row[DEVICE_COUNT], bool suspended)
{
	track->added_uj = 0;
	if (track->domain->has_energy)
		feed_counter(track, t_ns, row, suspended);
	else
		feed_power(track, t_ns, row[DEVICE_POWER]);
	track->last_power_mw = row[DEVICE_POWER];
}

/* ---- marks ---- */

void energy_track_mark(struct energy_track *track, size_t mark, int64_t t_ns)
{
	track->marks[mark] = (struct energy_mark){.t_ns = t_ns,
		.energy_uj = track->energy_uj,
		.n_lost = energy_track_losses(track),
		.is_set = true,
		.was_readable = track->counter.has_value || track->power_ns != 0};
}

uint32_t energy_track_losses(const struct energy_track *track)
{
	return track->counter.resets + track->counter.ambiguous + (is_model(track->domain) ? track->n_unread : 0);
}

bool energy_track_is_lost(const struct energy_track *track, size_t from)
{
	const struct energy_mark *mark = &track->marks[from];
	return energy_track_losses(track) != mark->n_lost || track->counter.in_gap || !mark->was_readable;
}

bool energy_track_has_passed(const struct energy_track *track, size_t mark)
{
	return track->marks[mark].is_set && track->n_updates > 0 && track->moved_ns >= track->marks[mark].t_ns;
}

static double longest_s(const struct update_period *period)
{
	return period->period_ns > 0 ? (double)(period->period_ns + period->jitter_ns) * 1e-9 : PERIOD_UNKNOWN_S;
}

// Same rule as for a run (relative_error in uncertainty.c); for GPUs it is part of the calibration.
static double relative_error(const struct run_device *device)
{
	if (!isnan(calibration_error(device)))
		return 0;
	if (device->relative_error > 0)
		return device->relative_error;
	return device->provenance == PROVENANCE_ESTIMATED ? MODEL_ERROR : 0;
}

// No update since the mark: the energy is less than the domain's maximum during one update.
static struct energy_amount unseen(struct energy_track *track, double seconds)
{
	const struct domain *domain = track->domain;
	bool is_stuck = seconds >= fmax(STUCK_S, STUCK_PERIODS * longest_s(&track->period)) &&
		domain->kind != DOMAIN_UNCORE;
	struct run_device device = describe(track, 0, NULL);
	return is_stuck ? unknown
			: (struct energy_amount){0, domain->max_power_w * longest_s(&track->period),
				  0 * calibration_error(&device)};
}

static struct energy_amount amount_of(const struct view *view, const struct edge_point *from,
	const struct edge_point *to, struct edge_uncertainty uncertainty)
{
	const struct curve *curve = &view->curve;
	double j = fmax(to->line_j - from->line_j, 0), quantum_j = curve->from_power ? 0 : curve->updates.quantum_j;
	double error_j = between_error_j(curve, uncertainty, seconds_between(from->t_ns, to->t_ns));
	return (struct energy_amount){.j = j,
		.error_j = fmax(hypot(relative_error(&view->device) * j, error_j), quantum_j),
		.calibration_error_j = calibration_error(&view->device) * j};
}

struct energy_amount energy_track_between(struct energy_track *track, size_t from, size_t to)
{
	const struct energy_mark *a = &track->marks[from], *b = &track->marks[to];
	const bool is_still = track->domain->has_energy && track->energy_uj == a->energy_uj;
	const double seconds = seconds_between(a->t_ns, b->t_ns);
	struct energy_amount silent = unseen(track, seconds);
	struct view view;
	if (!a->is_set || !b->is_set || energy_track_losses(track) != a->n_lost || track->counter.in_gap)
		return unknown;
	if (is_still && (isnan(silent.j) || track->n_updates == 0))
		return silent;
	if (!view_open(track, 0, a->t_ns, b->t_ns, &view))
		return unknown;
	struct curve_walk at = {.curve = &view.curve};
	struct edge_walk edge = {.curve = &view.curve};
	struct edge_point first = a->is_kept ? a->point : point_at(&view, &edge, &at, a->t_ns);
	struct edge_point last = b->is_kept ? b->point : point_at(&view, &edge, &at, b->t_ns);
	struct edge_uncertainty uncertainty = edge_walked(&edge, &first, &last);
	struct energy_amount amount = amount_of(&view, &first, &last, uncertainty);
	arena_free(view.arena);
	return amount;
}

/* ---- power ---- */

static int64_t longest_rest_ns(const struct energy_track *track)
{
	int64_t period_ns = track->period.period_ns;
	int64_t rest_ns = period_ns > 0 ? STILL_PERIODS * period_ns : STILL_NS;
	return STILL_RESTS * track->rest_ns > rest_ns ? STILL_RESTS * track->rest_ns : rest_ns;
}

// Uses the newest point and the nearest one far enough back; for a counter with its own update times, the previous one.
static double power_of_points(struct energy_track *track)
{
	struct view view;
	if (!view_open(track, track->n > POWER_READINGS ? track->n - POWER_READINGS : 0, INT64_MAX, 0, &view))
		return (double)NAN;
	const struct curve *curve = &view.curve;
	int64_t wanted_ns = value_ok(track->stamp_ns[track->n - 1]) ? 0 : PERIODS_WANTED * track->period.period_ns;
	size_t newest = curve->n - 1, from = newest - 1;
	while (from > 0 && curve->t_ns[newest] - curve->t_ns[from] < wanted_ns)
		from--;
	double power_w = (curve->j[newest] - curve->j[from]) / seconds_between(curve->t_ns[from], curve->t_ns[newest]);
	arena_free(view.arena);
	return power_w;
}

double energy_track_power_w(struct energy_track *track)
{
	if (!track->domain->has_energy || track->counter.in_gap)
		return domain_gain(track->domain) * value_to_double(track->last_power_mw, 1e-3);
	if (track->n > 0 && track->last_ns - track->seen_ns >= longest_rest_ns(track))
		return 0;
	return track->n_updates > 0 ? power_of_points(track) : (double)NAN;
}
