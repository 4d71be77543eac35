/* Charts on a canvas. Measured values are plain; estimated ones are hatched. Each bucket is a step: its mean over
 * its time. */
const SERIES_COLOURS = 16; // as src/report/palette.h has it

/* First visible bucket, and one after the last. */
function bucketRange(axis, shown) {
	const first = Math.max(0, lastNotAbove(axis.from, shown[0]));
	const last = Math.min(axis.from.length, lastNotAbove(axis.from, shown[1]) + 1);
	return [first, Math.max(first, last)];
}

const BIN_PIXELS = 2;
const DENSE_PIXELS = 3; // narrower dark steps that alternate would merge into an area

/* The visible buckets, merged where several share a pixel: `first` has the index of each bin's first bucket. */
function binAxis(axis, shown, width) {
	const [first, last] = bucketRange(axis, shown), least = (shown[1] - shown[0]) / width * BIN_PIXELS;
	const firsts = [], breaks = new Set();
	let end = -Infinity;
	for (let i = first; i < last; i++) {
		if (axis.from[i] < end && !axis.breaks.has(i))
			continue;
		if (axis.breaks.has(i))
			breaks.add(firsts.length);
		firsts.push(i);
		end = axis.from[i] + least * 0.999;
	}
	const from = Float64Array.from(firsts, (i) => axis.from[i]);
	const to = Float64Array.from(firsts, (_, k) => axis.to[(k + 1 < firsts.length ? firsts[k + 1] : last) - 1]);
	return { n: firsts.length, firsts, last, from, to, breaks };
}

/* Mean over the time of a bin; lowest and highest in it, so that no peak is lost. */
function binSeries(series, axis, bins) {
	const n = bins.n, mean = new Float64Array(n), low = new Float64Array(n), high = new Float64Array(n);
	for (let k = 0; k < n; k++) {
		const end = k + 1 < n ? bins.firsts[k + 1] : bins.last;
		let sum = 0, time = 0, least = Infinity, most = -Infinity;
		for (let i = bins.firsts[k]; i < end; i++) {
			if (series.mean[i] !== series.mean[i])
				continue;
			const length = axis.to[i] - axis.from[i];
			sum += series.mean[i] * length;
			time += length;
			least = Math.min(least, series.low[i]);
			most = Math.max(most, series.high[i]);
		}
		mean[k] = time > 0 ? sum / time : NaN;
		low[k] = time > 0 ? least : NaN;
		high[k] = time > 0 ? most : NaN;
	}
	return { series, mean, low, high };
}

/* The drawn data of a chart: its visible series in bins, and the areas of a stack. */
function drawnOf(chart, axis, shown, width) {
	const bins = binAxis(axis, shown, Math.max(width, 50));
	const series = chart.series.filter((one) => !one.hidden).map((one) => binSeries(one, axis, bins));
	const drawn = { bins, range: [0, bins.n], series, stack: null, coarse: null };
	if (bins.n > width / DENSE_PIXELS)
		drawn.coarse = binAxis(axis, shown, width / 4);
	if (chart.style === "stacked")
		drawn.stack = stackOf(series, bins.n);
	for (const one of drawn.coarse && drawn.stack ? series.filter((one) => one.series.line === "target") : [])
		one.coarse = binSeries(one.series, axis, drawn.coarse);
	return drawn;
}

/* Ranges of buckets without a gap: unknown values and pauses between segments end one. */
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

/* The steps of a range, forwards or backwards. */
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

/* Stacked parts: an unknown part adds nothing if others are known. Those with a limit come first, so that the limit
 * of a single one is a level line. */
function stackOf(drawn, n) {
	const limited = new Set(drawn.filter((one) => one.series.line === "limit").map((one) => one.series.device));
	const parts = drawn.filter((one) => one.series.line === "part");
	const stack = [];
	let below = null;
	for (const part of [...parts.filter((one) => limited.has(one.series.device)), ...parts.filter((one) => !limited.has(one.series.device))]) {
		const top = new Float64Array(n), floor = below && new Float64Array(n);
		for (let i = 0; i < n; i++) {
			const under = below && below[i] === below[i] ? below[i] : 0, value = part.mean[i];
			top[i] = value === value ? under + value : below ? below[i] : NaN;
			if (floor)
				floor[i] = under;
		}
		stack.push({ series: part.series, low: floor, high: top });
		below = top;
	}
	return stack;
}

function paintStack(place, drawn) {
	const { bins, range } = drawn;
	for (const { series, low, high } of drawn.stack) {
		const colour = colourOf(series.colour), estimated = series.provenance === "estimated";
		place.pen.globalAlpha = estimated ? 0.16 : 0.42;
		place.pen.fillStyle = colour;
		fillBetween(place, bins, low, high, range);
		if (estimated) {
			place.pen.globalAlpha = 0.55;
			place.pen.fillStyle = hatchOf(place.pen, colour);
			fillBetween(place, bins, low, high, range);
		}
		setLine(place.pen, colour, 1.2);
		strokeSteps(place, bins, high, range);
	}
}

const FILLED_MOST = 4; // lines in a chart: more filled areas would be indistinguishable

/* The style of a line shows its kind; its colour shows the owner. */
const LINE_LOOKS = {
	part: { width: 1.5, band: 0.2 },
	whole: { width: 0.8, peak: true },
	target: { width: 1.8, band: 0.14, fill: true },
	mean: { width: 2, band: 0.16 },
	many: { width: 0.8, alpha: 0.65 }, // the single ones beside a mean
	beside: { width: 1.1, dash: [5, 3], band: 0.08 },
	limit: { width: 1.4, dash: [9, 4] },
};

function paintLine(place, chart, drawn, one) {
	const { bins, range } = drawn, series = one.series;
	const look = LINE_LOOKS[chart.hasMean && series.line !== "mean" ? "many" : series.line], colour = colourOf(series.colour), pen = place.pen;
	if (chart.dotted) {
		paintDots(place, bins, one.mean, range, colour);
		return;
	}
	if (look.band && !(drawn.stack && series.line === "target")) {
		pen.globalAlpha = look.band;
		pen.fillStyle = series.provenance === "estimated" ? hatchOf(pen, colour) : colour;
		fillBetween(place, bins, one.low, one.high, range);
	}
	if (look.fill && !drawn.stack && chart.series.length <= FILLED_MOST || chart.series.length === 1) {
		pen.globalAlpha = 0.13;
		pen.fillStyle = colour;
		fillBetween(place, bins, null, one.mean, range);
	}
	setLine(pen, colour, look.width, look.dash);
	pen.globalAlpha = look.alpha ?? 1;
	if (!one.coarse) {
		strokeSteps(place, bins, drawnValues(drawn, one), range);
		return;
	}
	pen.globalAlpha = 0.09;
	pen.fillStyle = colour;
	fillBetween(place, drawn.coarse, one.coarse.low, one.coarse.high, [0, drawn.coarse.n]);
	pen.globalAlpha = 1;
	strokeSteps(place, drawn.coarse, one.coarse.mean, [0, drawn.coarse.n]);
}

/* The peaks of a sum get a line: its mean is the edge of the uppermost area. In a stack a device's limit has the
 * same base as its area, so that the space below it is what the device may still use. */
function drawnValues(drawn, one) {
	if (!drawn.stack)
		return one.mean;
	if (one.series.line !== "limit")
		return LINE_LOOKS[one.series.line].peak ? one.high : one.mean;
	const area = drawn.stack.find((part) => part.series.device === one.series.device);
	return area && area.low ? one.mean.map((value, i) => value + area.low[i]) : one.mean;
}

/* Occasionally reported metrics: points, and a thin line to the next one. */
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

const NOT_HELD_BACK = new Set(["temperature", "gpu_memory"]); // whatever the clocks are

/* Events of a device only in charts that show it. */
function bandsOf(chart, model, throttles) {
	if (throttles && NOT_HELD_BACK.has(chart.id))
		return [];
	return model.bands.filter((band) => (band.kind === "throttle") === throttles && chartShows(chart, band));
}

/* Gaps, behind the lines. */
function paintGaps(place, chart, model, area) {
	place.pen.globalAlpha = 0.5;
	place.pen.fillStyle = hatchOf(place.pen, colourOf("idle"));
	for (const band of bandsOf(chart, model, false)) {
		const from = Math.max(area.x, place.x(band.from)), to = Math.min(area.x + area.w, place.x(band.to));
		if (to >= area.x && from <= area.x + area.w)
			place.pen.fillRect(from, area.y, Math.max(1, to - from), area.h);
	}
}

const STRIP = 9, STRIP_ROOM = 12; // pixels of the strip for throttling above the values

/* Throttling as a strip of its own above the values; its height is the fraction of the time. */
function paintThrottling(place, chart, model, area) {
	if (!chart.throttles)
		return;
	const pen = place.pen;
	pen.globalAlpha = 1;
	pen.fillStyle = colourOf("panel");
	pen.fillRect(area.x, area.y, area.w, STRIP);
	pen.fillStyle = colourOf("throttle");
	for (const band of bandsOf(chart, model, true)) {
		const from = Math.max(area.x, place.x(band.from)), to = Math.min(area.x + area.w, place.x(band.to));
		if (to < area.x || from > area.x + area.w)
			continue;
		const share = band.to > band.from ? Math.min(1, band.covered_s / (band.to - band.from)) : 1;
		const height = Math.max(2, STRIP * share);
		pen.fillRect(from, area.y + STRIP - height, Math.max(1, to - from), height);
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
		setLine(place.pen, colourOf("faint"), 1.2, [2, 3]);
		place.pen.beginPath();
		place.pen.moveTo(x, area.y);
		place.pen.lineTo(x, area.y + area.h);
		place.pen.stroke();
	}
}

function paintChart(pen, area, place, chart, drawn, model) {
	pen.save();
	pen.beginPath();
	pen.rect(area.x, area.y, area.w, area.h);
	pen.clip();
	pen.lineJoin = "round";
	paintGaps(place, chart, model, area);
	paintPauses(place, model, area);
	if (drawn.stack)
		paintStack(place, drawn);
	for (const one of drawn.series)
		if (!drawn.stack || one.series.line !== "part")
			paintLine(place, chart, drawn, one);
	paintCeiling(place, chart, area);
	paintThrottling(place, chart, model, area);
	pen.restore();
}

/* ---- the range of values ---- */

function widened(range, values) {
	for (let i = 0; i < values.length; i++) {
		if (values[i] < range[0])
			range[0] = values[i];
		if (values[i] > range[1])
			range[1] = values[i];
	}
	return range;
}

/* A limit is included in the range when the values come near it. */
function withLimit(high, limit) {
	return high > limit * 0.6 ? Math.max(high, limit) : high;
}

/* Lowest and highest visible value; charts of quantities that cannot be negative begin at zero. */
function valueRange(chart, drawn, height) {
	const range = [Infinity, -Infinity];
	for (const one of drawn.series)
		if (one.series.line !== "limit" && !(drawn.stack && one.series.line === "part"))
			widened(widened(range, one.high), one.low);
	for (const part of drawn.stack || [])
		widened(range, part.high);
	let [low, high] = range;
	if (!(low <= high))
		return [0, 1];
	if (low >= 0 && chart.unit !== "c")
		low = 0;
	for (const one of drawn.series)
		if (one.series.line === "limit")
			high = withLimit(high, widened([0, 0], drawnValues(drawn, one))[1]);
	if (chart.ceiling !== null)
		high = withLimit(high, chart.ceiling);
	const margin = (high - low) * 0.07 || Math.abs(high) * 0.1 || 1;
	const bottom = low === 0 || low > 0 && low < margin ? 0 : low - margin, top = high + margin;
	return [bottom, chart.throttles ? top + (top - bottom) * STRIP_ROOM / (height - STRIP_ROOM) : top];
}
