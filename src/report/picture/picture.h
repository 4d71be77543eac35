/* Static SVG pictures of a run: charts, spans, ledger, flame graph, blocks. Used in papers and slides, on printed pages
 * and in browsers without scripts. Pure.
 *
 * Each is a complete <svg> element with a <title> and a <desc> that describes the content in words (peak, mean, missing
 * data). */
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
	PICTURE_FLAME,  // flame graph of energy
	PICTURE_BLOCKS, // energy of each block, with error bars
	PICTURE_KINDS
};

struct picture_style {
	double width, height; // CSS pixels; 0: default of the kind
	bool is_file;         // true: a stand-alone file with XML header, fonts and the light palette
		// false: part of a page; colours by CSS classes ("c-series-0" …), which supports dark mode
	const char *id_prefix; // makes ids unique within a page
};

const char *picture_name(enum picture_kind kind);  // "power", "cpu" …: the file name is NAME.svg
// True if the picture has content.
bool picture_has(const struct charts *charts, enum picture_kind kind);
void picture_svg(const struct charts *charts, enum picture_kind kind, const struct picture_style *look,
	struct buf *out);

// A domain has the same colour in all pictures: GPUs by their index among GPUs, others by their index among the others.
enum colour colour_of_device(const struct findings *findings, const struct run_device *device);
// A block's colour differs from those of enclosing and inner blocks (tints in chart.h). UINT32_MAX: several blocks.
enum colour colour_of_block(const struct charts *charts, uint32_t block);
