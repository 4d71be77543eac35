/* Charts below each other on one axis, by dygraphs: it draws axes, ticks and grids, the painter above draws their
 * contents. */
/* dygraphs' own legend uses style attributes, which the policy forbids. */
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);

const RANGES_MOST = 6, RANGES_WIDTH = 560; // lines, and pixels, of a chart whose legend has room for lowest and highest
const NAMED_COLOURS = { machine: "idle", wattle: "wattle", target_pss: "target" }; // as src/report/picture/chart_series.c has them
const AXIS_WIDTH = 62; // of the numbers at the left, the same for all, so that the charts are aligned

function seriesColour(chart, series, index) {
	if (series.line === "limit")
		return "warn";
	if (series.line === "mean")
		return "ink";
	if (series.line === "whole")
		return "faint";
	if (series.line === "target" && series.device === null)
		return chart.style === "stacked" ? "ink" : "target";
	return series.colour ?? NAMED_COLOURS[series.name] ?? "series-" + index % SERIES_COLOURS;
}

/* A device has its colour in all charts; other lines have a colour for each chart. */
function giveColours(charts) {
	for (const chart of charts)
		chart.series.forEach((series, i) => {
			series.colour = seriesColour(chart, series, i);
		});
}

function describe(chart) {
	const known = chart.series.filter((series) => series.line !== "limit" && series.highest !== null);
	const words = known.map((series) => `${series.text} from ${quantity(series.lowest, chart.unit)} to ${quantity(series.highest, chart.unit)}`);
	return `${chart.title} over time: ${words.join("; ") || "nothing is known"}`;
}

class ChartView {
	constructor(parent, chart, model, time) {
		this.chart = chart;
		this.model = model;
		this.time = time;
		this.box = element("section", "chart chart-" + chart.id.replace(/\W.*/, ""));
		const head = this.head = element("div", "chart-head");
		const title = element("h3", "");
		title.append(nameElement(chart.title));
		this.legend = element("div", "legend");
		head.append(title, this.legend);
		this.plot = element("div", "plot");
		this.plot.setAttribute("role", "img");
		this.plot.setAttribute("aria-label", describe(chart));
		this.box.append(head, this.plot);
		parent.append(this.box);
		this.makeLegend();
	}

	/* Label of the strip above the values. */
	makeStripKey() {
		const bands = bandsOf(this.chart, this.model, true);
		this.chart.throttles = bands.length > 0;
		if (!this.chart.throttles)
			return;
		const entry = element("span", "key strip"), devices = new Set(bands.map((band) => band.device));
		entry.append(element("span", "swatch c-throttle"), "clocks throttled");
		if (devices.size === 1)
			entry.append(" " + duration(bands.reduce((sum, band) => sum + band.covered_s, 0)));
		entry.title = "Strip above the values: its height is the fraction of time in which clocks were throttled";
		this.legend.append(entry);
	}

	/* Series with their own legend entries. */
	get named() {
		return this.chart.series.filter((series) => series.value);
	}

	makeLegend() {
		this.limits = this.chart.series.filter((series) => series.line === "limit");
		this.besides = this.chart.hasMean ? this.chart.series.filter((series) => series.line === "target" || series.line === "beside") : [];
		this.makeStripKey();
		for (const series of this.chart.series) {
			if (this.chart.series.length === 1 && series.text === this.chart.title) { // the title already names the only series
				series.value = element("span", "key value");
				this.legend.append(series.value);
				continue;
			}
			if (series.line === "limit" && this.limits.length > 2 || this.besides.includes(series))
				continue; // one switch for all
			const entry = element("button", `key line-${series.line}` + (series.provenance === "estimated" ? " estimated" : ""));
			entry.type = "button";
			entry.setAttribute("aria-pressed", String(!series.hidden));
			entry.title = series.label + ": show or hide";
			series.swatch = element("span", "swatch c-" + series.colour);
			series.value = element("span", "value");
			entry.append(series.swatch, nameElement(series.text, 60));
			if (series.provenance !== "measured" && this.chart.unit === "w")
				entry.append(element("span", "tag tag-" + series.provenance, series.provenance));
			entry.append(series.value);
			entry.addEventListener("click", () => this.toggle(series, entry));
			this.legend.append(entry);
		}
		this.makeSwitch(`${this.limits.length} power limits`, "warn", "limit", this.limits);
		const line = this.besides.length > 0 ? this.besides[0].line : "";
		this.makeSwitch(line === "target" ? "this program's part of each" : "memory of each", "faint", line, this.besides);
	}

	toggle(series, entry) {
		series.hidden = !series.hidden;
		entry.setAttribute("aria-pressed", String(!series.hidden));
		this.update();
	}

	/* Lines that would hide the others if there are many: one switch for all of a kind. */
	makeSwitch(words, colour, line, many) {
		if (many.length <= 2)
			return;
		const entry = element("button", "key line-" + line);
		entry.type = "button";
		entry.title = words + ": show or hide";
		entry.setAttribute("aria-pressed", String(!many[0].hidden));
		entry.append(element("span", "swatch c-" + colour), words);
		entry.addEventListener("click", () => {
			const hidden = !many[0].hidden;
			for (const one of many)
				one.hidden = hidden;
			entry.setAttribute("aria-pressed", String(!hidden));
			this.update();
		});
		this.legend.append(entry);
	}

	makeGraph() {
		const length = this.model.axis.length;
		this.graph = new Dygraph(this.plot, [[0, 0], [length, 0]], {
			labels: ["s", this.chart.id],
			plotter: (event) => this.paint(event),
			interactionModel: {},
			xRangePad: 0,
			rightGap: 8,
			highlightCircleSize: 0,
			animatedZooms: false,
			axisLineWidth: 1,
			gridLineWidth: 1,
			...this.colours(),
			...this.ranges(),
			axes: {
				x: { axisLabelHeight: 16, axisLabelWidth: 92, ticker: (from, to) => timeTicks(from, to, this.time.width) },
				y: { axisLabelWidth: AXIS_WIDTH - 6, ticker: (low, high, height) => valueTicks(low, high, height, this.chart.unit) },
			},
		});
	}

	colours() {
		return { axisLineColor: colourOf("faint"), gridLineColor: colourOf("line") };
	}

	ranges() {
		this.drawn = drawnOf(this.chart, this.model.axis, this.time.shown, this.time.width);
		return { dateWindow: this.time.shown, valueRange: valueRange(this.chart, this.drawn, Math.max(40, this.plot.clientHeight - 20)) };
	}

	paint(event) {
		const area = event.plotArea, [low, high] = event.dygraph.yAxisRange(0), [from, to] = this.time.shown;
		const perSecond = area.w / (to - from), perUnit = area.h / (high - low);
		paintChart(event.drawingContext, area, {
			pen: event.drawingContext,
			shown: this.time.shown,
			x: (seconds) => area.x + (seconds - from) * perSecond,
			y: (value) => area.y + (high - value) * perUnit,
			isInside: (value) => value >= low && value <= high,
		}, this.chart, this.drawn, this.model);
	}

	update() {
		this.graph.updateOptions({ ...this.colours(), ...this.ranges() });
	}

	get tellsRanges() {
		return this.chart.series.length <= RANGES_MOST && this.head.clientWidth >= RANGES_WIDTH;
	}

	/* The values under the cursor: mean, and the range if there is room. */
	read(seconds) {
		const axis = this.model.axis, bucket = seconds === null ? -1 : lastNotAbove(axis.from, seconds);
		for (const series of this.named) {
			const at = this.chart.dotted ? lastKnown(series.mean, bucket) : bucket;
			const text = at < 0 ? "" : valueText(series, at, this.chart.unit, this.tellsRanges);
			// Its line is the highest of each bucket; the sum itself is the mean.
			series.value.textContent = series.showsHighest && at >= 0 ? `${quantity(series.high[at], this.chart.unit)}, total ${text}` : text;
		}
	}

	/* The legend's width with the widest values under the cursor; null: without values. */
	fillLegend(text) {
		for (const series of this.named)
			series.value.textContent = text === null ? "" : `${quantity(series.highest, this.chart.unit)} ${text}`;
	}

	resize() {
		this.graph.resize();
		this.update();
	}
}

/* Values change under the cursor; the contents below must not move. All at once, so that the page is laid out once. */
function reserveLegends(charts) {
	const few = charts.filter((view) => view.chart.series.length <= RANGES_MOST);
	for (const view of few) {
		view.head.style.minHeight = "";
		view.fillLegend(view.tellsRanges ? "[88.8…88.8]" : "");
	}
	const heights = few.map((view) => view.head.offsetHeight);
	few.forEach((view, i) => {
		view.fillLegend(null);
		view.head.style.minHeight = heights[i] + "px";
	});
}

function lastKnown(values, index) {
	while (index >= 0 && values[index] !== values[index])
		index--;
	return index;
}

/* "576 W [567…581]" */
function valueText(series, bucket, unit, withRange) {
	const mean = quantity(series.mean[bucket], unit), low = quantity(series.low[bucket], unit), high = quantity(series.high[bucket], unit);
	if (!withRange || low === high || series.low[bucket] !== series.low[bucket])
		return mean;
	const same = low.split(" ")[1] === high.split(" ")[1] && high.split(" ")[1] === mean.split(" ")[1];
	return same ? `${mean} [${low.split(" ")[0]}…${high.split(" ")[0]}]` : `${mean} [${low}…${high}]`;
}
