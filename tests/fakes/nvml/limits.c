#include "fake.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void limits_path(const char *config_path, char *out, size_t size)
{
	snprintf(out, size, "%s.limits", config_path);
}

void fake_limits_read(const char *config_path, struct fake_limits *limits)
{
	char path[600];
	limits->n = 0;
	limits_path(config_path, path, sizeof(path));
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return;
	struct fake_limit limit;
	while (limits->n < LIMITS_MAX &&
		fscanf(file, "%" SCNd64 " %u %u %*d", &limit.t_ns, &limit.index, &limit.limit_mw) == 3)
		limits->limits[limits->n++] = limit;
	fclose(file);
}

bool fake_limits_add(const char *config_path, int64_t t_ns, unsigned int index, unsigned int limit_mw)
{
	char path[600], line[96];
	limits_path(config_path, path, sizeof(path));
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return false;
	int length = snprintf(line, sizeof(line), "%" PRId64 " %u %u %d\n", t_ns, index, limit_mw, (int)getpid());
	bool written = write(fd, line, (size_t)length) == length;
	close(fd);
	return written;
}

unsigned int fake_limit_mw(const struct fake_view *view)
{
	const struct fake_limits *limits = view->limits;
	unsigned int limit_mw = view->gpu->limit_mw;
	for (size_t i = 0; i < limits->n; i++) {
		const struct fake_limit *limit = &limits->limits[i];
		if (limit->index == view->index && limit->t_ns <= view->config->epoch_ns + view->t_ns)
			limit_mw = limit->limit_mw;
	}
	return limit_mw;
}

static double between_mj(const struct fake_gpu *gpu, double limit_mw, double from_s, double until_s)
{
	return fake_energy_mj(&gpu->power, limit_mw, until_s) - fake_energy_mj(&gpu->power, limit_mw, from_s);
}

double fake_limited_energy_mj(const struct fake_view *view, double t_s)
{
	const struct fake_limits *limits = view->limits;
	const struct fake_gpu *gpu = view->gpu;
	double sum_mj = 0, from_s = 0, limit_mw = gpu->limit_mw;
	for (size_t i = 0; i < limits->n; i++) {
		const struct fake_limit *limit = &limits->limits[i];
		double change_s = (double)(limit->t_ns - view->config->epoch_ns) * 1e-9;
		if (limit->index != view->index || change_s > t_s)
			continue;
		if (change_s > from_s) {
			sum_mj += between_mj(gpu, limit_mw, from_s, change_s);
			from_s = change_s;
		}
		limit_mw = limit->limit_mw;
	}
	return sum_mj + between_mj(gpu, limit_mw, from_s, t_s);
}
