/* What `wattle cap tune` found, as text, JSON, the seed's CSV and a page of HTML. Pure. */
#pragma once

#include "base/buf.h"
#include "cap/device.h"
#include "cap/tune/tune.h"

struct object_type; // base/fields.h
struct style;       // report/table.h

enum { CAP_TUNE_NOTES = 12, CAP_TUNE_NOTE_SIZE = 400 };

struct cap_tune_report {
	const char *device;  // "gpu-0"; of several "gpu-0,gpu-1"
	const char *label;   // "NVIDIA H100 80GB HBM3"
	const char *command; // as a shell would take it; NULL: a running process
	const char *step;    // what a step is: the name of a block or of a metric; NULL: a run of the command
	bool is_metric;      // that is a metric, and a step is a unit of what it reports
	enum cap_what what;
	double previous; // W or MHz: the limit before the search; NaN unknown (clocks)
	double min, max; // the device's range
	double chosen;   // the one to be set: result.chosen in units that the device takes
	bool is_applied; // and it was
	bool is_whole;   // the search came to its end; else these are the windows until then
	const char *end; // why not, in words; NULL: it did
	struct tune_result result;
	bool has_result; // false: nothing could be told from what there was; the rest of it is not to be read
	double elapsed_s, measured_s;
	size_t n_windows;
	uint64_t seed;
	const char *source; // of the energy: "nvml, a counter"
	double scale_error; // of that meter, the same under all limits: 0.05 is 5 %; 0: none stated
	char notes[CAP_TUNE_NOTES][CAP_TUNE_NOTE_SIZE];
	size_t n_notes;
};

bool cap_tune_is_chosen(const struct cap_tune_report *report, double limit);
void cap_tune_note(struct cap_tune_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

// style: of a terminal; NULL: a page.
void cap_tune_table(const struct cap_tune_report *report, struct buf *out, const struct style *style);
// A figure with how sure it is.
void cap_tune_interval(struct buf *out, const struct tune_interval *interval, void (*print)(struct buf *, double),
	bool is_page);
void cap_tune_text(const struct cap_tune_report *report, struct buf *out, bool colour); // at most 80 columns wide
extern const struct object_type cap_tune_type;                                          // struct cap_tune_report
extern const struct object_type cap_tune_list_type;                                     // of several
extern const struct object_type tune_limit_type; // struct tune_limit_result, inside one
// An object for each; one of them is no array.
void cap_tune_json(const struct cap_tune_report *reports, size_t n, struct buf *out);
// One report on one line, as the run file keeps it.
void cap_tune_json_line(const struct cap_tune_report *reports, size_t n, struct buf *out);
// De Feo's layout: cap W,steps,kWh,objective a row, then "Modeled Optimal Cap:,W".
void cap_tune_csv(const struct cap_tune_report *reports, size_t n, struct buf *out);
void cap_tune_html(const struct cap_tune_report *reports, size_t n, struct buf *out);
// One report as a part of a page; `number` makes its ids differ from those of others, `heading` is "h1" or another element.
void cap_tune_part(const struct cap_tune_report *report, struct buf *out, size_t number, const char *heading);
/* What cap_tune_json wrote, of one or of several, read back as far as a page shows it; texts and arrays are in the arena. It may come
 * from anywhere: -EINVAL for what is no such document, figures that can't be drawn are left out. -ENOMEM. */
int cap_tune_read(const char *json, struct arena *arena, struct cap_tune_report **ret_reports, size_t *ret_n);

/* What can be limited, for people and as JSON. */

// One name of a device with all that can be limited of it.
struct cap_row {
	const struct cap_device *power, *clocks; // one of them may be NULL
};

// absent: cap_devices::absent.
void cap_list_text(const struct cap_row *rows, size_t n, const char *absent, bool colour, struct buf *out);
extern const struct object_type cap_list_type, cap_row_type; // cap_row_type: struct cap_row
void cap_list_json(const struct cap_row *rows, size_t n, struct buf *out);
// One of them, in full.
void cap_get_text(const struct cap_row *row, struct buf *out);
void cap_get_json(const struct cap_row *row, struct buf *out);

/* The picture of a search: what was measured under each limit, with its interval, the model's curve and the chosen limit. */

// An <svg> with a title and a description in words. `number` makes its ids differ from those of others on the page.
void cap_tune_picture(const struct cap_tune_report *report, struct buf *out, size_t number);
