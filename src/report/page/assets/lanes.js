/* Lanes below the charts: spans by process and thread, nested; and events. One canvas, of which only the visible
 * part is drawn. */
const LANE_HEIGHT = 18, LANE_HEAD = 19, LANES_MOST = 460;

/* Rows from top to bottom: a heading for each thread, then its lanes. */
function laneRows(lanes) {
	const rows = [];
	let before = null, y = 0;
	for (const lane of lanes) {
		const heading = laneHeading(lane);
		if (heading !== before) {
			rows.push({ heading, y, height: LANE_HEAD });
			y += LANE_HEAD;
			before = heading;
		}
		rows.push({ lane, y, height: LANE_HEIGHT });
		y += LANE_HEIGHT;
	}
	return { rows, height: y + 2 };
}

function laneHeading(lane) {
	if (lane.heading !== undefined)
		return lane.heading;
	const process = `${lane.process || "process"} ${lane.pid || ""}`.trim();
	if (lane.is_range)
		return process + " · ranges";
	if (lane.tid === null)
		return process;
	return lane.tid === lane.pid ? process + " · main thread" : `${process} · thread ${lane.tid}`;
}

class LanesView {
	/* `source` provides an item's name, colour and tooltip. */
	constructor(parent, lanes, source, time, label) {
		this.source = source;
		this.time = time;
		this.chosen = null;
		this.marked = null; // row and item selected by keys
		Object.assign(this, laneRows(lanes));
		this.box = element("div", "lanes");
		this.canvas = element("canvas");
		this.canvas.setAttribute("role", "img");
		this.canvas.setAttribute("aria-label", label);
		this.space = element("div", "lanes-space");
		this.space.style.height = this.height + "px";
		this.space.append(this.canvas);
		this.box.style.height = Math.min(this.height, LANES_MOST) + 2 + "px";
		this.box.append(this.space);
		parent.append(this.box);
		this.box.addEventListener("scroll", () => this.draw());
		this.canvas.addEventListener("pointermove", (event) => this.hover(event));
		this.canvas.addEventListener("pointerleave", hideTip);
	}

	resize() {
		const ratio = devicePixelRatio || 1;
		this.width = this.space.clientWidth;
		this.shownHeight = Math.min(this.height, LANES_MOST);
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.shownHeight * ratio);
		this.canvas.style.width = this.width + "px";
		this.canvas.style.height = this.shownHeight + "px";
		this.pen = this.canvas.getContext("2d");
		this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.draw();
	}

	x(seconds) {
		const [from, to] = this.time.shown;
		return AXIS_WIDTH + (seconds - from) / (to - from) * (this.width - AXIS_WIDTH - 8);
	}

	get area() {
		return { x: AXIS_WIDTH, w: this.width - AXIS_WIDTH - 8 };
	}

	draw() {
		if (!this.pen)
			return;
		const top = this.box.scrollTop, pen = this.pen;
		this.colours = { ink: colourOf("ink"), faint: colourOf("faint"), line: colourOf("line"), back: colourOf("back"), warn: colourOf("warn") };
		pen.clearRect(0, 0, this.width, this.shownHeight);
		pen.font = "11px system-ui, sans-serif";
		pen.textBaseline = "middle";
		for (const row of this.rows) {
			if (row.y + row.height < top || row.y > top + this.shownHeight)
				continue;
			if (row.heading !== undefined)
				this.drawHeading(row, row.y - top);
			else
				this.drawLane(row.lane, row.y - top);
		}
		if (this.marked)
			this.drawMark(this.marked.row, this.marked.item, this.marked.row.y - top);
	}

	drawMark(row, item, y) {
		const left = Math.max(this.area.x, this.x(row.lane.from[item])), end = Math.min(this.area.x + this.area.w, this.x(row.lane.to[item]));
		this.pen.globalAlpha = 1;
		this.pen.strokeStyle = this.colours.ink;
		this.pen.lineWidth = 2;
		this.pen.strokeRect(left - 1, y + 1, Math.max(4, end - left + 1), LANE_HEIGHT - 2);
	}

	drawHeading(row, y) {
		this.pen.globalAlpha = 1;
		this.pen.fillStyle = this.colours.line;
		this.pen.fillRect(0, y, this.width, 1);
		this.pen.fillStyle = this.colours.faint;
		this.pen.fillText(row.heading.slice(0, 200), 4, y + LANE_HEAD / 2 + 1, this.width - 8);
	}

	drawLane(lane, y) {
		const pen = this.pen, [from, to] = this.time.shown;
		if (lane.label) {
			pen.globalAlpha = 1;
			pen.fillStyle = this.colours.faint;
			pen.fillText(lane.label, 4, y + LANE_HEIGHT / 2, AXIS_WIDTH - 8);
		}
		pen.save();
		pen.beginPath();
		pen.rect(this.area.x, y, this.area.w, LANE_HEIGHT);
		pen.clip();
		const scale = this.area.w / (to - from);
		let filled = -1; // up to where tiny items have been drawn already
		for (let i = Math.max(0, lastNotAbove(lane.from, from)); i < lane.n && lane.from[i] <= to; i++) {
			const left = this.area.x + (lane.from[i] - from) * scale, right = this.area.x + (lane.to[i] - from) * scale;
			if (right < this.area.x || right <= filled)
				continue;
			if (this.source.least) {
				this.drawItem(lane, i, left, Math.max(right, left + this.source.least), y);
			} else if (right - left < 1.5) {
				filled = left + 0.75;
				this.drawTiny(lane, i, left, y);
			} else {
				this.drawItem(lane, i, Math.max(left, this.area.x - 3), Math.min(right, this.area.x + this.area.w + 3), y);
			}
		}
		pen.restore();
	}

	fade(lane, i) {
		return this.chosen !== null && lane.block[i] !== this.chosen ? 0.18 : 1;
	}

	drawTiny(lane, i, left, y) {
		this.pen.globalAlpha = 0.85 * this.fade(lane, i);
		this.pen.fillStyle = this.source.colour(lane, i);
		this.pen.fillRect(left, y + 1, 1, LANE_HEIGHT - 2);
	}

	drawItem(lane, i, left, right, y) {
		const pen = this.pen, fade = this.fade(lane, i), colour = this.source.colour(lane, i);
		const width = Math.max(1, right - left - (right - left > 4 ? 1 : 0));
		pen.globalAlpha = (width < 4 ? 0.75 : 0.4) * fade;
		pen.fillStyle = colour;
		pen.fillRect(left, y + 1, width, LANE_HEIGHT - 2);
		pen.globalAlpha = fade;
		pen.fillRect(left, y + 1, Math.min(2, width), LANE_HEIGHT - 2);
		if (lane.open && lane.open[i])
			this.drawOpenEnd(left + width, y);
		if (width > 26)
			this.drawText(this.source.text(lane, i), left + 5, width - 8, y, fade);
	}

	/* Whether the span did not end, or its end was not recorded. */
	drawOpenEnd(x, y) {
		this.pen.fillStyle = this.colours.warn;
		for (let i = 0; i < 3; i++)
			this.pen.fillRect(x - 2, y + 2 + i * 5, 2, 3);
	}

	drawText(text, x, room, y, fade) {
		const pen = this.pen, most = Math.floor(room / 5.6);
		if (most < 2)
			return;
		pen.globalAlpha = fade;
		pen.fillStyle = this.colours.ink;
		let shown = text.length > most ? text.slice(0, most - 1) + "…" : text;
		if (pen.measureText(shown).width > room)
			shown = shown.slice(0, Math.max(1, Math.floor(shown.length * room / pen.measureText(shown).width) - 1)) + "…";
		pen.fillText(shown, x, y + LANE_HEIGHT / 2 + 0.5);
	}

	/* The item at a position: one that is too thin to hit extends a few pixels to both sides. */
	find(event) {
		const box = this.canvas.getBoundingClientRect();
		const x = event.clientX - box.left, y = event.clientY - box.top + this.box.scrollTop;
		const row = this.rows.find((one) => y >= one.y && y < one.y + one.height);
		if (!row || !row.lane || x < AXIS_WIDTH)
			return null;
		const [from, to] = this.time.shown, slack = 3 * (to - from) / this.area.w;
		const at = from + (x - AXIS_WIDTH) / this.area.w * (to - from);
		const i = lastNotAbove(row.lane.from, at + slack);
		for (let k = i; k >= Math.max(0, i - 1); k--)
			if (row.lane.from[k] - slack <= at && at <= row.lane.to[k] + slack)
				return { lane: row.lane, item: k };
		return null;
	}

	hover(event) {
		const found = event.buttons ? null : this.find(event);
		if (!found) {
			hideTip();
			return;
		}
		const { title, lines } = this.source.tip(found.lane, found.item);
		showTip(event.clientX, event.clientY, title, lines);
	}

	choose(block) {
		this.chosen = block;
		this.draw();
	}
}

/* ---- texts of spans ---- */

function spanSource(model) {
	const name = (lane, i) => (lane.block[i] < 0 ? "several blocks" : model.blocks[lane.block[i]]);
	const text = (lane, i) => (lane.count[i] > 1 ? `${lane.count[i]} × ${name(lane, i)}` : name(lane, i));
	return {
		text,
		colour: (lane, i) => colourOf(lane.block[i] < 0 ? "idle" : model.blockColours[lane.block[i]]),
		tip(lane, i) {
			const length = lane.to[i] - lane.from[i], several = lane.count[i] > 1;
			const lines = [`${duration(length)}${lane.open[i] ? ", no end recorded" : ""}, from ${clockText(lane.from[i], Math.min(1, length / 100) || 1e-6)}`];
			if (!Number.isNaN(lane.energy[i]))
				lines.push(`${quantity(lane.energy[i], "j")} of this program during it` + (length > 0 ? `, ${quantity(lane.energy[i] / length, "w")}` : ""));
			if (several)
				lines.push(`${lane.count[i]} calls, too short to be drawn apart`);
			lines.push(laneHeading(lane));
			return { title: text(lane, i), lines };
		},
	};
}

/* ---- throttling, gaps, events ---- */

const BAND_WORDS = { throttle: "clocks throttled", gap: "could not be read", suspend: "the machine was suspended" };

function bandLane(heading, label, bands) {
	const lane = { heading, label, n: bands.length, bands, from: new Float64Array(bands.length), to: new Float64Array(bands.length) };
	bands.forEach((band, i) => {
		lane.from[i] = band.from;
		lane.to[i] = band.to;
	});
	return lane;
}

function eventLanes(model) {
	const groups = new Map();
	for (const band of [...model.bands].sort((a, b) => a.from - b.from)) {
		const key = JSON.stringify([band.kind, band.device]);
		groups.set(key, [...(groups.get(key) || []), band]);
	}
	const lanes = Array.from(groups.values(), (bands) => bandLane(BAND_WORDS[bands[0].kind] || bands[0].kind, bands[0].device || "run", bands));
	lanes.sort((a, b) => (a.heading > b.heading) - (a.heading < b.heading));
	const pauses = model.axis.segments.slice(1).map((segment) => ({
		kind: "pause", from: segment.from, to: segment.from,
		text: segment.pause === null ? "a pause" : `a pause of ${duration(segment.pause)}, not shown to scale`,
	}));
	if (pauses.length > 0)
		lanes.push(bandLane("pauses between segments", "", pauses));
	if (model.marks.length > 0)
		lanes.push(bandLane("events", "", model.marks.map((mark) => ({ ...mark, from: mark.at, to: mark.at }))));
	return lanes;
}

function eventSource() {
	const text = (lane, i) => lane.bands[i].text || BAND_WORDS[lane.bands[i].kind] || lane.bands[i].kind;
	return {
		least: 3, // pixels
		text,
		colour: (lane, i) => colourOf(lane.bands[i].kind === "throttle" ? "throttle" : lane.bands[i].kind === "mark" ? "target" : "faint"),
		tip(lane, i) {
			const band = lane.bands[i], length = band.to - band.from;
			const at = `at ${clockText(band.from, Math.min(1, length / 100) || 1e-3)}`;
			const covered = band.covered_s < length * 0.99 ? `${duration(band.covered_s)} of ` : "";
			return { title: text(lane, i), lines: [band.kind, length > 0 ? `${covered}${duration(length)}, ${at}` : at] };
		},
	};
}
