/* Small files of a device in /sys that hold one number each, as tables: which file fills which metric, in what unit. */
#pragma once

#include "base/file.h"
#include "metric/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gauge {
	enum device_metric metric;
	bool in_hwmon;        // in the device's hwmon folder, not in its own
	int64_t divisor;      // from the file's unit to the metric's
	const char *names[3]; // the first of them that gives a number is read ever after
};

struct gauge_file {
	struct file_kept file; // .path "": there is no such file
	const struct gauge *gauge;
};

// Opens the files of a table; `hwmon` may be "". Reads nothing if `asleep`: the first file that exists is taken then.
void gauges_open(struct gauge_file *files, const struct gauge *gauges, size_t n, int root_fd, const char *device,
	const char *hwmon, bool asleep);
void gauges_close(struct gauge_file *files, size_t n);
// Fills the row; what can't be read stays as it is. Returns the last failure: 0 if there was none.
int gauges_read(struct gauge_file *files, size_t n, int64_t *row);
// The file of a metric; NULL: there is none.
struct gauge_file *gauges_find(struct gauge_file *files, size_t n, enum device_metric metric);
// One number in such a file, read once; VALUE_MISSING if it can't be.
int64_t gauge_read_once(int root_fd, const char *folder, const char *name);
