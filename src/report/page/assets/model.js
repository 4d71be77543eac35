/* The contents of the page's JSON block (docs/charts.md), as arrays for fast drawing, without computations. */

/* Converts numbers, with null for unknown, to NaN: faster to draw. */
function numbersOf(list) {
	return Float64Array.from(list, (value) => (value === null ? NaN : value));
}

/* Buckets that do not begin at the end of the previous one: at the start of a segment. */
function breaksOf(from, to) {
	const breaks = new Set();
	for (let i = 1; i < from.length; i++)
		if (from[i] > to[i - 1] * (1 + 1e-9) + 1e-9)
			breaks.add(i);
	return breaks;
}

function readAxis(json) {
	const from = numbersOf(json.from_s), to = numbersOf(json.to_s);
	const segments = json.segments.map((one) => ({
		from: one.from_s,
		to: one.to_s,
		wall: one.wall_start_ns === null ? null : one.wall_start_ns / 1e9,
		pause: one.pause_s,
	}));
	const breaks = breaksOf(from, to);
	for (const segment of segments.slice(1))
		breaks.add(lastNotAbove(from, segment.from));
	return { n: from.length, from, to, segments, sleeps: json.sleeps || [], breaks, length: json.length_s };
}

function readSeries(json) {
	const mean = numbersOf(json.mean);
	return {
		...json,
		mean,
		low: json.low ? numbersOf(json.low) : mean,
		high: json.high ? numbersOf(json.high) : mean,
		hidden: false,
	};
}

/* Full names of devices are in the tables. */
function shortLabel(series) {
	return series.device === null ? series.label : series.name.replace(/ target$/, ", this program");
}

function readChart(json) {
	const series = json.series.map(readSeries), limits = series.filter((one) => one.line === "limit");
	for (const one of series) {
		one.showsHighest = json.style === "stacked" && one.line === "whole" && one.high !== one.mean;
		one.text = one.showsHighest ? "highest of total" : shortLabel(one);
	}
	for (const one of limits)
		one.hidden = limits.length > 2; // a line each for eight GPUs would hide what they limit
	const hasMean = series.some((one) => one.line === "mean");
	for (const one of series)
		one.hidden ||= hasMean && (one.line === "target" || one.line === "beside");
	return { ...json, series, hasMean, dotted: json.id.startsWith("metric:") };
}

/* Items by column: [from_s, to_s, block, count, energy_j, span id, is open] each. */
function readLane(json) {
	const items = json.items, n = items.length;
	const lane = { ...json, process: json.process && seenName(json.process), items: null, n, from: new Float64Array(n), to: new Float64Array(n), block: new Int32Array(n),
		count: new Uint32Array(n), energy: new Float64Array(n), open: new Uint8Array(n) };
	for (let i = 0; i < n; i++) {
		const item = items[i];
		lane.from[i] = item[0];
		lane.to[i] = item[1];
		lane.block[i] = item[2] === null ? -1 : item[2];
		lane.count[i] = item[3];
		lane.energy[i] = item[4] === null ? NaN : item[4];
		lane.open[i] = item[6];
	}
	return lane;
}

function readModel(json) {
	return {
		axis: readAxis(json.axis),
		charts: json.charts.map(readChart),
		bands: json.bands.map((band) => ({ ...band, from: band.from_s, to: band.to_s })),
		marks: json.marks.map((mark) => ({ ...mark, at: mark.at_s })),
		blocks: json.blocks.map(seenName),
		blockColours: json.block_colours,
		lanes: json.lanes.map(readLane),
		spans: json.n_spans,
	};
}
