#include "energy/curve.h"

#include "energy/internal.h"
#include "base/util.h"
#include "sensor/gpu_gain.h"

#include <errno.h>

double calibration_error(const struct run_device *device)
{
	if (device->kind != DOMAIN_GPU || device->provenance == PROVENANCE_ESTIMATED)
		return (double)NAN;
	return device->gain_error > 0 ? device->gain_error : GPU_GAIN_ASSUMED_ERROR;
}

static const struct curve_segment *segment_of(const struct curve *curve, int64_t from_ns, int64_t to_ns,
	size_t *ret_index)
{
	for (size_t i = 0; i < curve->n_segments; i++)
		if (curve->segments[i].start_ns <= from_ns && to_ns <= curve->segments[i].end_ns) {
			*ret_index = i;
			return &curve->segments[i];
		}
	return NULL;
}

// Whether the time contains a hole (power unknown). The line is flat there.
static bool has_hole(const struct curve *curve, const struct curve_segment *segment, int64_t from_ns, int64_t to_ns)
{
	if (segment->points.end - segment->points.begin < 2 || from_ns < segment->first_ns || to_ns > segment->last_ns)
		return true;
	if (!curve->from_power || curve->long_holes + curve->missing_runs == 0) // else flat means no power
		return false;
	for (size_t k = segment->points.begin; k + 1 < segment->points.end; k++)
		if (curve->t_ns[k] < to_ns && curve->t_ns[k + 1] > from_ns && curve->j[k] == curve->j[k + 1])
			return true;
	return false;
}

double between_error_j(const struct curve *curve, struct edge_uncertainty uncertainty, double seconds)
{
	double quantum_j = curve->from_power ? 0 : curve->updates.quantum_j;
	double variance_j2 = uncertainty.variance_j2 + 2 * quantum_j * quantum_j / 12;
	// The error of the trapezoid rule is known for the whole curve; it is scaled by duration.
	double curve_s = (double)(curve->t_ns[curve->n - 1] - curve->t_ns[0]) / 1e9;
	if (curve->from_power && curve_s > 0)
		variance_j2 += curve->rounding_j2 * seconds / curve_s;
	return sqrt(4 * variance_j2 + uncertainty.linear_j * uncertainty.linear_j);
}

int energy_between(const struct run *run, const struct run_device *device, int64_t interval_ns, int64_t from_ns,
	int64_t to_ns, struct energy_between *ret)
{
	struct curve curve;
	struct arena *scratch = arena_new();
	*ret = (struct energy_between){.j = (double)NAN, .error_j = (double)NAN};
	ret->scale_error = device->relative_error > 0 ? device->relative_error : 0;
	if (!isnan(calibration_error(device)))
		ret->scale_error = calibration_error(device);
	if (scratch == NULL || curve_make(run, device, interval_ns, scratch, &curve) < 0) {
		arena_free(scratch);
		return -ENOMEM;
	}
	size_t index;
	const struct curve_segment *segment = segment_of(&curve, from_ns, to_ns, &index);
	ret->from_power = curve.from_power;
	if (curve.known && segment != NULL && !has_hole(&curve, segment, from_ns, to_ns)) {
		ret->j = curve_at(&curve, index, to_ns) - curve_at(&curve, index, from_ns);
		struct edge_uncertainty uncertainty = edge_between(&curve, index, from_ns, to_ns);
		ret->error_j = between_error_j(&curve, uncertainty, (double)(to_ns - from_ns) / 1e9);
	}
	arena_free(scratch);
	return 0;
}
