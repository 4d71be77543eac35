/* Results of `wattle cap tune` as text, JSON, CSV and HTML. Pure. */
#pragma once

#include "base/buf.h"
#include "cap/device.h"
#include "cap/tune/tune.h"

struct object_type; // base/fields.h
struct style;       // report/table.h

enum { CAP_TUNE_NOTES = 12, CAP_TUNE_NOTE_SIZE = 400 };

struct cap_tune_report {
	const char *device;  // "gpu-0"; several: "gpu-0,gpu-1"
	const char *label;   // "NVIDIA H100 80GB HBM3"
	const char *command; // quoted for a shell; NULL: a running process
	const char *step;    // step definition: name of a code block or of a metric; NULL: one run of the command
	bool is_metric;      // step names a metric; one step is one unit of its value
	enum cap_kind what;
	double previous; // W or MHz: the limit before the search; NaN: unknown (clocks)
	double min, max; // allowed range of the device
	double chosen;   // result.chosen in units that the device accepts
	bool is_applied; // chosen has been set
	bool is_whole;   // the search is complete; else the result covers the windows so far
	const char *end; // why the search is incomplete; NULL: it is complete
	struct tune_result result;
	bool has_result; // false: too little data, and `result` is invalid
	double elapsed_s, measured_s;
	size_t n_windows;
	uint64_t seed;
	const char *source; // energy source: "nvml, a counter"
	double scale_error; // relative scale error of the meter, common to all limits: 0.05 is 5 %; 0: not specified
	char notes[CAP_TUNE_NOTES][CAP_TUNE_NOTE_SIZE];
	size_t n_notes;
};

bool cap_tune_is_chosen(const struct cap_tune_report *report, double limit);
void cap_tune_note(struct cap_tune_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

// style: for a terminal; NULL: HTML.
void cap_tune_table(const struct cap_tune_report *report, struct buf *out, const struct style *style);
// Writes a value with its interval.
void cap_tune_interval(struct buf *out, const struct tune_interval *interval, void (*print)(struct buf *, double),
	bool is_page);
void cap_tune_text(const struct cap_tune_report *report, struct buf *out, bool colour); // at most 80 columns
extern const struct object_type cap_tune_type;                                          // struct cap_tune_report
extern const struct object_type cap_tune_list_type;                                     // a list of reports
extern const struct object_type tune_limit_type; // struct tune_limit_result, a member
// Writes an object for one report, an array for several.
void cap_tune_json(const struct cap_tune_report *reports, size_t n, struct buf *out);
// Writes one report on one line, as stored in the run file.
void cap_tune_json_line(const struct cap_tune_report *reports, size_t n, struct buf *out);
// De Feo's layout: rows of cap W,steps,kWh,objective, then "Modeled Optimal Cap:,W".
void cap_tune_csv(const struct cap_tune_report *reports, size_t n, struct buf *out);
void cap_tune_html(const struct cap_tune_report *reports, size_t n, struct buf *out);
// Writes one report as a section of a page. `number` makes its ids unique; `heading` is "h1" or another element.
void cap_tune_part(const struct cap_tune_report *report, struct buf *out, size_t number, const char *heading);
/* Reads the output of cap_tune_json, one report or several, as far as the HTML page needs it; texts and arrays are
 * allocated in the arena. The input is untrusted: -EINVAL if it is not such a document; values that cannot be drawn are
 * dropped. -ENOMEM. */
int cap_tune_read(const char *json, struct arena *arena, struct cap_tune_report **ret_reports, size_t *ret_n);

/* List of available limits, as text and as JSON. */

// A device with its power limit and its clock limit.
struct cap_row {
	const struct cap_device *power, *clocks; // either may be NULL
};

struct cap_list {
	const struct cap_row *rows;
	size_t n;
};

// absent: cap_devices::absent.
void cap_list_text(const struct cap_row *rows, size_t n, const char *absent, bool colour, struct buf *out);
extern const struct object_type cap_list_type, cap_row_type; // struct cap_list, struct cap_row
void cap_list_json(const struct cap_row *rows, size_t n, struct buf *out);
// All details of one device.
void cap_get_text(const struct cap_row *row, struct buf *out);
void cap_get_json(const struct cap_row *row, struct buf *out);

/* Chart of a search: the measurement at each limit with its interval, the model curve and the chosen limit. */

// Writes an <svg> with a title and a text description. `number` makes its ids unique on the page.
void cap_tune_picture(const struct cap_tune_report *report, struct buf *out, size_t number);
