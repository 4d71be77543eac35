/* The charts of the live page, drawn by dygraphs. The axis is the time until now, so it does not move while the
 * lines do. */
/* dygraphs' own legend uses style attributes, which the policy forbids. */
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);

const WHOSE = [
	{ key: "target_w", name: "the target", colour: "target" },
	{ key: "others_w", name: "programs", colour: "others" },
	{ key: "wattle_w", name: "wattle itself", colour: "wattle" },
	{ key: "idle_w", name: "idle", colour: "idle" },
	{ key: "unattributed_w", name: "unattributed", colour: "unattributed" },
];
const WINDOWS = [60, 180, 600]; // samples
let windowLooks = 600;
const drawn = new Map(); // chart id to its elements on the page
let pointedAgo = null; // samples between the cursor and the newest; null: no cursor

/* ---- available charts ---- */

const COLOURS = { series: 16, host: 8 }; // as src/report/palette.h has them

/* As in reports: GPUs have colours by their position among GPUs, others by theirs among the others; those in the sum
 * come first. */
function domainColour(domain) {
	const isGpu = (one) => one.kind === "gpu", kin = recent.domains.filter((one) => isGpu(one) === isGpu(domain));
	const order = [...kin.filter((one) => one.in_total), ...kin.filter((one) => !one.in_total)];
	const name = isGpu(domain) ? "series" : "host";
	return `${name}-${order.indexOf(domain) % COLOURS[name]}`;
}

function domainSeries(column, wanted) {
	return recent.domains
		.filter((domain) => domain[column] && wanted(domain))
		.map((domain) => ({
			name: domain.domain,
			colour: domainColour(domain),
			isEstimated: domain.provenance === "estimated",
			values: domain[column],
		}));
}

/* For every column in this unit: memory_temperature_c of gpu-0 is "gpu-0 memory". */
function unitSeries(base) {
	const columns = new Set(recent.domains.flatMap(Object.keys).filter((key) => key.endsWith(base)));
	return [...columns].flatMap((column) => domainSeries(column, () => true).map((series) =>
		({ ...series, name: `${series.name} ${column.slice(0, -base.length)}`.replaceAll("_", " ").trim() })));
}

function wholeSeries(key, name, colour) {
	return recent[key] ? [{ name, colour, isEstimated: false, values: recent[key] }] : [];
}

function whoseName(key, name) {
	return key === "others_w" && recent.target_w ? "other programs" : name;
}

/* The provenance of a sum is that of its weakest part. */
function whoseSeries() {
	const isEstimated = recent.domains.some((domain) => domain.in_total && domain.provenance === "estimated");
	return WHOSE.filter(({ key }) => recent[key] && recent[key].some((value) => value !== null))
		.map(({ key, name, colour }) =>
			({ name: whoseName(key, name), colour, isEstimated, values: recent[key] }));
}

function charts() {
	const isGpu = (domain) => domain.kind === "gpu";
	const all = [
		{ id: "power", title: "Power by domain", unit: "w", isStacked: true,
			series: domainSeries("power_w", (domain) => domain.in_total) },
		{ id: "whose", title: "Power by owner (attributed)", unit: "w", isStacked: true,
			series: whoseSeries() },
		{ id: "gpu", title: "GPU utilisation", unit: "percent", ceiling: 100,
			series: domainSeries("utilization_percent", isGpu) },
		{ id: "gpu-memory", title: "GPU memory", unit: "bytes",
			series: domainSeries("memory_used_bytes", isGpu) },
		{ id: "cpu", title: "CPU", unit: "cores", ceiling: recent.cores,
			series: wholeSeries("busy_cores", "busy cores", "series-0") },
		{ id: "memory", title: "Memory", unit: "bytes", ceiling: recent.memory_total_bytes,
			series: wholeSeries("memory_used_bytes", "in use", "series-2") },
		{ id: "temperature", title: "Temperature", unit: "c",
			series: unitSeries("temperature_c") },
		{ id: "beside", title: "Power not included in the total (overlapping domains)", unit: "w",
			series: domainSeries("power_w", (domain) => !domain.in_total) },
	];
	return all.filter((chart) => chart.series.some((series) => series.values.some((value) => value !== null)));
}

/* ---- drawing ---- */

function rowsOf(chart) {
	const newest = recent.unix_s[recent.unix_s.length - 1];
	return recent.unix_s.map((t, i) => [t - newest, ...chart.series.map((series) => series.values[i] ?? null)]);
}

function agoTicks(from, to, pixels) {
	const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200];
	const step = steps.find((size) => (to - from) / size <= pixels / 64) || 14400;
	const ticks = [];
	for (let at = Math.ceil(from / step) * step; at <= to + 1e-9; at += step)
		ticks.push({ v: at, label: agoText(at) });
	return ticks;
}

function agoText(at) {
	if (Math.abs(at) < 1e-9)
		return "now";
	return at % 60 === 0 ? `−${-at / 60} min` : `−${-at} s`;
}

/* "5.00 W" is a reading, "5 W" a tick of an axis. */
function plain(text) {
	return text.replace(/\.0+(?= |$)/, "").replace(/(\.\d*?)0+(?= |$)/, "$1");
}

/* Round numbers: 1, 2 or 5 times a power of ten, for bytes too, as they are decimal here. */
function roundTicks(low, high, pixels, unit) {
	const most = Math.max(2, Math.floor(pixels / 34));
	const power = Math.pow(10, Math.floor(Math.log10((high - low || 1) / most)));
	const step = [1, 2, 5, 10].map((size) => size * power).find((size) => (high - low) / size <= most);
	const ticks = [];
	for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-9); i++)
		ticks.push({ v: i * step, label: plain(quantity(Number((i * step).toPrecision(12)), unit)) });
	return ticks;
}

function topOf(chart, rows) {
	const from = -windowLooks * recent.interval_s;
	let top = 0;
	for (const row of rows) {
		if (row[0] < from)
			continue;
		const values = row.slice(1).filter((value) => value !== null);
		const here = chart.isStacked ? values.reduce((sum, value) => sum + value, 0) : Math.max(0, ...values);
		top = Math.max(top, here);
	}
	return chart.ceiling ? Math.max(chart.ceiling, top) * 1.02 : (top || 1) * 1.12;
}

function windowOf() {
	const held_s = recent.unix_s[recent.unix_s.length - 1] - recent.unix_s[0];
	const asked_s = windowLooks * recent.interval_s;
	return [-Math.min(asked_s, Math.max(held_s, 60 * recent.interval_s)), 0];
}

function changingOptions(chart) {
	const rows = rowsOf(chart);
	return { file: rows, dateWindow: windowOf(), valueRange: [0, topOf(chart, rows)] };
}

function drawCeiling(chart) {
	return (canvas, area, graph) => {
		if (!chart.ceiling)
			return;
		const y = graph.toDomYCoord(chart.ceiling);
		canvas.strokeStyle = colourOf("faint");
		canvas.setLineDash([2, 3]);
		canvas.beginPath();
		canvas.moveTo(area.x, y);
		canvas.lineTo(area.x + area.w, y);
		canvas.stroke();
		canvas.setLineDash([]);
	};
}

/* More areas on top of each other would be indistinguishable. */
function isFilled(chart) {
	return Boolean(chart.isStacked) || chart.series.length === 1;
}

/* Ranges of known values, from index to index: unknown ones end one. */
function stretchesOf(points) {
	const stretches = [];
	for (let from = 0; from < points.length; from++) {
		let to = from;
		while (to < points.length && isFinite(points[to].canvasy))
			to++;
		if (to > from)
			stretches.push([from, to - 1]);
		from = to;
	}
	return stretches;
}

/* A value covers the time since the previous poll, as a bucket in a report: so lines are steps. */
function sinceX(points, i) {
	return points[Math.max(0, i - 1)].canvasx;
}

function traceSteps(pen, points, [from, to]) {
	pen.moveTo(sinceX(points, from), points[from].canvasy);
	for (let i = from; i <= to; i++) {
		pen.lineTo(sinceX(points, i), points[i].canvasy);
		pen.lineTo(points[i].canvasx, points[i].canvasy);
	}
}

/* Between a series and the one below it in the stack. */
function traceArea(pen, points, below, floor) {
	const bottom = (i) => below && isFinite(below[i].canvasy) ? below[i].canvasy : floor;
	for (const [from, to] of stretchesOf(points)) {
		traceSteps(pen, points, [from, to]);
		for (let i = to; i >= from; i--) {
			pen.lineTo(points[i].canvasx, bottom(i));
			pen.lineTo(sinceX(points, i), bottom(i));
		}
		pen.closePath();
	}
}

function strokeSteps({ drawingContext: pen, points, color, strokeWidth }, pattern) {
	pen.save();
	pen.strokeStyle = color;
	pen.lineWidth = strokeWidth;
	pen.lineJoin = "round";
	pen.setLineDash(pattern || []);
	pen.beginPath();
	for (const stretch of stretchesOf(points))
		traceSteps(pen, points, stretch);
	pen.stroke();
	pen.restore();
}

/* Estimated values are hatched, as in reports. dygraphs draws the last series lowest. */
function fillSteps({ drawingContext: pen, seriesIndex, points, allSeriesPoints, dygraph }, chart, look) {
	const series = chart.series[seriesIndex];
	pen.save();
	pen.beginPath();
	traceArea(pen, points, chart.isStacked && allSeriesPoints[seriesIndex + 1], dygraph.toDomYCoord(0));
	pen.fillStyle = look.color;
	pen.globalAlpha = look.fillAlpha;
	pen.fill();
	if (series.isEstimated) {
		pen.globalAlpha = 0.55;
		pen.fillStyle = hatchOf(pen, colourOf(series.colour));
		pen.fill();
	}
	pen.restore();
}

/* A hatched area is fainter, so that the hatching is visible; a line without an area is dashed. */
function lookOf(chart, series) {
	const filled = isFilled(chart);
	return {
		color: colourOf(series.colour),
		strokePattern: series.isEstimated && !filled ? [5, 3] : null,
		fillAlpha: chart.isStacked ? (series.isEstimated ? 0.16 : 0.42) : 0.1,
	};
}

function lasting(chart) {
	const labels = chart.series.map((_, i) => `s${i}`);
	const look = Object.fromEntries(chart.series.map((series, i) => [labels[i], lookOf(chart, series)]));
	const lookAt = ({ seriesIndex }) => look[labels[seriesIndex]];
	const line = (event) => strokeSteps(event, lookAt(event).strokePattern);
	const area = (event) => fillSteps(event, chart, lookAt(event));
	return {
		labels: ["t", ...labels],
		series: Object.fromEntries(labels.map((label) => [label, { color: look[label].color }])),
		stackedGraph: Boolean(chart.isStacked),
		plotter: isFilled(chart) ? [area, line] : line,
		strokeWidth: 1.4,
		legend: "never",
		highlightCircleSize: 2.5,
		interactionModel: {}, // a chart that moves can't be dragged
		axisLineColor: colourOf("line"),
		gridLineColor: colourOf("line"),
		underlayCallback: drawCeiling(chart),
		highlightCallback: (event, x, points, row) => pointAt(chart.id, row),
		unhighlightCallback: () => pointAt(chart.id, -1),
		axes: {
			x: { ticker: agoTicks, axisLabelWidth: 60, drawGrid: false },
			y: {
				ticker: (low, high, pixels) => roundTicks(low, high, pixels, chart.unit),
				axisLabelWidth: 62,
			},
		},
	};
}

/* ---- text alternatives of charts ---- */

function entry(series, value, unit) {
	const line = element("span", "nowrap");
	const swatch = element("span", `swatch c-${series.colour}${series.isEstimated ? " is-estimated" : ""}`);
	line.append(swatch, nameElement(series.name), ` ${quantity(value, unit)}`);
	return line;
}

function showLegend(held, row) {
	const { chart, caption } = held;
	const last = recent.unix_s.length - 1;
	const at = row >= 0 && row <= last ? row : last;
	const title = element("strong", "", chart.title);
	const parts = chart.series.map((series) => entry(series, series.values[at], chart.unit));
	if (row >= 0)
		parts.push(element("span", "faint", new Date(recent.unix_s[at] * 1000).toLocaleTimeString()));
	const look = isFilled(chart) ? "hatched" : "dashed";
	if (chart.series.some((series) => series.isEstimated))
		parts.push(element("span", "tag tag-estimated", `${look}: estimated`));
	caption.replaceChildren(title, ...parts);
}

function describe(held) {
	const { chart, canvas } = held;
	const last = recent.unix_s.length - 1;
	const words = chart.series.map((series) => `${series.name} ${quantity(series.values[last], chart.unit)}`);
	canvas.setAttribute("aria-label", `${chart.title}, now: ${words.join(", ")}`);
}

/* One cursor for all charts. It does not move while the lines do, so its position is the time until now. */
function pointAt(from, row) {
	pointedAgo = row >= 0 ? recent.unix_s.length - 1 - row : null;
	for (const [id, held] of drawn) {
		if (id !== from && row >= 0)
			held.graph.setSelection(row);
		else if (id !== from)
			held.graph.clearSelection();
		showLegend(held, row);
	}
}

/* ---- page elements ---- */

function windowButtons() {
	const line = element("div", "spans-of-time");
	line.append(element("h2", "", "The last minutes"));
	for (const looks of WINDOWS) {
		const text = duration(looks * recent.interval_s).replace(/ 00(\.0)? s$/, "");
		const button = element("button", "tool", text);
		button.type = "button";
		button.setAttribute("aria-pressed", String(looks === windowLooks));
		button.addEventListener("click", () => {
			windowLooks = looks;
			for (const other of line.querySelectorAll("button"))
				other.setAttribute("aria-pressed", String(other === button));
			drawCharts(false);
		});
		line.append(button);
	}
	return line;
}

function makeFrame(chart) {
	const figure = element("figure", "live-chart");
	const caption = element("figcaption"), canvas = element("div", "canvas");
	const held = { chart, figure, caption, canvas, graph: null };
	held.canvas.setAttribute("role", "img");
	figure.id = "chart-" + chart.id;
	figure.append(held.caption, held.canvas);
	return held;
}

/* All frames are created before the first chart is drawn; otherwise that one would take the whole width. */
function makeCharts(wanted) {
	for (const held of drawn.values())
		held.graph.destroy();
	drawn.clear();
	for (const chart of wanted)
		drawn.set(chart.id, makeFrame(chart));
	const grid = element("div", "grid-of-charts");
	grid.append(...Array.from(drawn.values(), (held) => held.figure));
	document.getElementById("charts").replaceChildren(windowButtons(), grid);
	for (const held of drawn.values()) {
		const { file, ...changing } = changingOptions(held.chart);
		held.graph = new Dygraph(held.canvas, file, { ...lasting(held.chart), ...changing });
	}
}

function isSame(wanted) {
	const key = (chart) => chart.id + ":" + chart.series.map((series) => series.name).join();
	return wanted.length === drawn.size &&
		wanted.every(({ id }, i) => drawn.has(id) && key(wanted[i]) === key(drawn.get(id).chart));
}

function drawCharts(anew) {
	const wanted = charts(), row = pointedAgo === null ? -1 : Math.max(0, recent.unix_s.length - 1 - pointedAgo);
	if (anew || !isSame(wanted))
		makeCharts(wanted);
	for (const chart of wanted) {
		const held = drawn.get(chart.id);
		held.chart = chart;
		held.graph.updateOptions(changingOptions(chart));
		if (row >= 0)
			held.graph.setSelection(row);
		showLegend(held, row);
		describe(held);
	}
}
