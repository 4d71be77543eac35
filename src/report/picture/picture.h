/* Static pictures as SVG: of the charts of a run, its spans, its ledger, its flame graph. For papers and slides, for the page when it
 * is printed, and for people whose browser runs no script. Pure. Each is a complete <svg> element with a <title> and a <desc> that says
 * in words what is to be seen (its peak, its mean, what is missing). */
#pragma once

#include "analysis/chart/chart.h"
#include "base/buf.h"
#include "report/palette.h"

enum picture_kind {
	PICTURE_POWER,
	PICTURE_CPU,
	PICTURE_MEMORY,
	PICTURE_GPU_UTILIZATION,
	PICTURE_GPU_MEMORY,
	PICTURE_TEMPERATURE,
	PICTURE_CLOCK,
	PICTURE_SPANS,  // lanes
	PICTURE_LEDGER, // a bar
	PICTURE_FLAME,  // joules
	PICTURE_BLOCKS, // joules of each block, with error bars
	PICTURE_KINDS
};

struct picture_look {
	double width, height; // in CSS pixels; 0: that of the kind
	bool is_file;         // a file of its own: XML header, fonts, colours of the light palette written out
		// false: part of a page, colours by CSS classes ("c-series-0" …) so that dark mode works
	const char *id_prefix; // makes ids differ from those of other pictures of a page
};

const char *picture_name(enum picture_kind kind);  // "power", "cpu" …: the file is called NAME.svg
const char *picture_title(enum picture_kind kind); // "Power"
// Whether there is anything to see.
bool picture_has(const struct charts *charts, enum picture_kind kind);
void picture_svg(const struct charts *charts, enum picture_kind kind, const struct picture_look *look, struct buf *out);

// In all pictures a domain has the same colour: GPUs that of their place among GPUs, others that of theirs among the others.
enum colour colour_of_device(const struct findings *findings, const struct run_device *device);
// And a block: one by which it differs from those around and inside it (chart.h, tints). UINT32_MAX: several of them.
enum colour colour_of_block(const struct charts *charts, uint32_t block);
