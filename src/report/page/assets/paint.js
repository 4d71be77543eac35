/* Charts on a canvas. What is measured is plain; what is estimated is hatched. Each bucket is a step: its mean over its time. */
const SERIES_COLOURS = 8;

function colourOf(name) {
	return getComputedStyle(root).getPropertyValue("--" + name).trim();
}

const hatches = new Map();
onColours.unshift(() => hatches.clear());

function hatchOf(context, colour) {
	if (hatches.has(colour))
		return hatches.get(colour);
	const tile = document.createElement("canvas");
	tile.width = tile.height = 8;
	const pen = tile.getContext("2d");
	pen.strokeStyle = colour;
	pen.lineWidth = 1.6;
	pen.beginPath();
	for (const shift of [-8, 0, 8]) {
		pen.moveTo(shift, 8);
		pen.lineTo(shift + 8, 0);
	}
	pen.stroke();
	const pattern = context.createPattern(tile, "repeat");
	hatches.set(colour, pattern);
	return pattern;
}

/* First and one after the last bucket of what is shown. */
function bucketRange(axis, shown) {
	const first = Math.max(0, lastNotAbove(axis.from, shown[0]));
	const last = Math.min(axis.from.length, lastNotAbove(axis.from, shown[1]) + 1);
	return [first, Math.max(first, last)];
}

/* Stretches of buckets without a hole: unknown values and pauses between segments end one. */
function* stretches(values, axis, first, last) {
	let start = -1;
	for (let i = first; i <= last; i++) {
		const known = i < last && values[i] === values[i];
		if (known && start < 0)
			start = i;
		else if (start >= 0 && (!known || axis.breaks.has(i))) {
			yield [start, i];
			start = known ? i : -1;
		}
	}
}

/* The steps of a stretch, there or back. */
function traceSteps(place, axis, values, from, to, back) {
	if (!back) {
		for (let i = from; i < to; i++) {
			const y = place.y(values[i]);
			place.pen.lineTo(place.x(axis.from[i]), y);
			place.pen.lineTo(place.x(axis.to[i]), y);
		}
		return;
	}
	for (let i = to - 1; i >= from; i--) {
		const y = place.y(values[i]);
		place.pen.lineTo(place.x(axis.to[i]), y);
		place.pen.lineTo(place.x(axis.from[i]), y);
	}
}

function fillBetween(place, axis, low, high, range) {
	const pen = place.pen;
	pen.beginPath();
	for (const [from, to] of stretches(high, axis, ...range)) {
		pen.moveTo(place.x(axis.from[from]), place.y(high[from]));
		traceSteps(place, axis, high, from, to, false);
		if (low) {
			traceSteps(place, axis, low, from, to, true);
		} else {
			pen.lineTo(place.x(axis.to[to - 1]), place.y(0));
			pen.lineTo(place.x(axis.from[from]), place.y(0));
		}
		pen.closePath();
	}
	pen.fill();
}

function strokeSteps(place, axis, values, range) {
	const pen = place.pen;
	pen.beginPath();
	for (const [from, to] of stretches(values, axis, ...range)) {
		pen.moveTo(place.x(axis.from[from]), place.y(values[from]));
		traceSteps(place, axis, values, from, to, false);
	}
	pen.stroke();
}

function setLine(pen, colour, width, dash) {
	pen.strokeStyle = colour;
	pen.lineWidth = width;
	pen.setLineDash(dash || []);
	pen.globalAlpha = 1;
}

/* Parts on top of each other: where one is unknown and others are not, it adds nothing. */
function stackOf(chart, n) {
	const tops = [];
	let below = null;
	for (const series of chart.series) {
		if (series.line !== "part" || series.hidden)
			continue;
		const top = new Float64Array(n);
		for (let i = 0; i < n; i++) {
			const under = below ? below[i] : NaN, value = series.mean[i];
			top[i] = value !== value ? under : under !== under ? value : under + value;
		}
		tops.push({ series, low: below, high: top });
		below = top;
	}
	return tops;
}

function paintStack(place, chart, axis, range) {
	for (const { series, low, high } of chart.stack) {
		const colour = colourOf(series.colour), estimated = series.provenance === "estimated";
		place.pen.globalAlpha = estimated ? 0.16 : 0.42;
		place.pen.fillStyle = colour;
		const floor = low && high.map((value, i) => (value === value && low[i] !== low[i] ? 0 : low[i]));
		fillBetween(place, axis, floor, high, range);
		if (estimated) {
			place.pen.globalAlpha = 0.55;
			place.pen.fillStyle = hatchOf(place.pen, colour);
			fillBetween(place, axis, floor, high, range);
		}
		setLine(place.pen, colour, 1.2);
		strokeSteps(place, axis, high, range);
	}
}

/* How a line is drawn tells what it is; colour tells whose. */
const LINE_LOOKS = {
	part: { width: 1.5, band: 0.2 },
	whole: { width: 0.8, peak: true },
	target: { width: 1.8, band: 0.14 },
	beside: { width: 1.1, dash: [5, 3], band: 0.08 },
	limit: { width: 1.4, dash: [9, 4] },
};

function paintLine(place, chart, series, axis, range) {
	const look = LINE_LOOKS[series.line], colour = colourOf(series.colour);
	const stacked = chart.look === "stacked";
	if (look.band && !stacked) {
		place.pen.globalAlpha = look.band;
		place.pen.fillStyle = series.provenance === "estimated" ? hatchOf(place.pen, colour) : colour;
		fillBetween(place, axis, series.low, series.high, range);
	}
	if (chart.series.length === 1 || (series.line === "target" && !stacked)) {
		place.pen.globalAlpha = 0.13;
		place.pen.fillStyle = colour;
		fillBetween(place, axis, null, series.mean, range);
	}
	if (chart.dotted) {
		paintDots(place, axis, series.mean, range, colour);
		return;
	}
	setLine(place.pen, colour, look.width, look.dash);
	// Of a sum the peaks are worth a line: its mean is the edge of the uppermost area.
	strokeSteps(place, axis, look.peak && stacked ? series.high : series.mean, range);
}

/* What a program reports now and then: points, and a thin line to the next one. */
function paintDots(place, axis, values, range, colour) {
	const pen = place.pen, radius = range[1] - range[0] > 400 ? 1.3 : 2;
	setLine(pen, colour, 0.8);
	pen.fillStyle = colour;
	pen.beginPath();
	let begun = false;
	for (let i = Math.max(0, range[0] - 1); i < axis.n && (i < range[1] || !begun); i++) {
		if (values[i] !== values[i])
			continue;
		pen[begun ? "lineTo" : "moveTo"](place.x((axis.from[i] + axis.to[i]) / 2), place.y(values[i]));
		begun = true;
	}
	pen.stroke();
	for (let i = range[0]; i < range[1]; i++)
		if (values[i] === values[i])
			pen.fillRect(place.x((axis.from[i] + axis.to[i]) / 2) - radius, place.y(values[i]) - radius, 2 * radius, 2 * radius);
}

function paintCeiling(place, chart, area) {
	if (chart.ceiling === null || !place.isInside(chart.ceiling))
		return;
	setLine(place.pen, colourOf("faint"), 1, [2, 3]);
	place.pen.beginPath();
	place.pen.moveTo(area.x, place.y(chart.ceiling));
	place.pen.lineTo(area.x + area.w, place.y(chart.ceiling));
	place.pen.stroke();
}

/* Throttling and gaps, behind the lines; of a device only in charts that show it. */
function paintBands(place, chart, model, area) {
	for (const band of model.bands) {
		if (band.to < place.shown[0] || band.from > place.shown[1] || !chartShows(chart, band))
			continue;
		const from = Math.max(area.x, place.x(band.from)), to = Math.min(area.x + area.w, place.x(band.to));
		place.pen.globalAlpha = band.kind === "throttle" ? 0.13 : 0.35;
		place.pen.fillStyle = band.kind === "throttle" ? colourOf("warn") : hatchOf(place.pen, colourOf("line"));
		place.pen.fillRect(from, area.y, Math.max(1, to - from), area.h);
	}
}

function chartShows(chart, band) {
	return band.device === null || chart.series.some((series) => series.device === band.device);
}

function paintPauses(place, model, area) {
	for (const segment of model.axis.segments.slice(1)) {
		const x = Math.round(place.x(segment.from)) + 0.5;
		if (x < area.x || x > area.x + area.w)
			continue;
		setLine(place.pen, colourOf("faint"), 1, [1, 3]);
		place.pen.beginPath();
		place.pen.moveTo(x, area.y);
		place.pen.lineTo(x, area.y + area.h);
		place.pen.stroke();
	}
}

function paintChart(pen, area, place, chart, model) {
	const range = bucketRange(model.axis, place.shown);
	pen.save();
	pen.beginPath();
	pen.rect(area.x, area.y, area.w, area.h);
	pen.clip();
	pen.lineJoin = "round";
	paintBands(place, chart, model, area);
	paintPauses(place, model, area);
	if (chart.stack)
		paintStack(place, chart, model.axis, range);
	for (const series of chart.series)
		if (!series.hidden && !(chart.stack && series.line === "part"))
			paintLine(place, chart, series, model.axis, range);
	paintCeiling(place, chart, area);
	pen.restore();
}

/* Lowest and highest of what is shown; charts of what can't be negative begin at zero. */
function valueRange(chart, axis, shown) {
	const [first, last] = bucketRange(axis, shown);
	let low = Infinity, high = -Infinity;
	const take = (values) => {
		for (let i = first; i < last; i++) {
			if (values[i] < low)
				low = values[i];
			if (values[i] > high)
				high = values[i];
		}
	};
	for (const series of chart.series)
		if (!series.hidden && !(chart.stack && series.line === "part")) {
			take(series.high);
			take(chart.stack && series.line === "whole" ? series.high : series.low);
		}
	for (const { high: top } of chart.stack || [])
		take(top);
	if (!(low <= high))
		return [0, 1];
	if (low >= 0 && chart.unit !== "c")
		low = 0;
	if (chart.ceiling !== null && high > chart.ceiling * 0.6)
		high = Math.max(high, chart.ceiling);
	const margin = (high - low) * 0.07 || Math.abs(high) * 0.1 || 1;
	return [low === 0 || low >= 0 && low < margin ? 0 : low - margin, high + margin];
}
