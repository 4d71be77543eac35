/* The time axis of all charts: the visible part, its ticks, and the wall clock. Seconds of measured time; pauses
 * take no space. */
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

function niceStep(rough) {
	if (rough >= 1) {
		const step = TIME_STEPS.find((one) => one >= rough);
		return step || Math.ceil(rough / 86400) * 86400;
	}
	const ten = 10 ** Math.floor(Math.log10(rough));
	return ten * [1, 2, 5, 10].find((part) => part * ten >= rough * 0.999);
}

/* 5 min, 2 h, 1 h 30 min: if whole minutes distinguish the ticks. */
function minutesText(seconds) {
	const minutes = Math.round(seconds / 60), hours = Math.floor(minutes / 60), rest = minutes % 60;
	if (hours === 0)
		return minutes + " min";
	return rest === 0 ? hours + " h" : `${hours} h ${String(rest).padStart(2, "0")} min`;
}

/* 0 s, 12.5 s, 3:20, 1:02:03: as many digits as the step needs to distinguish ticks. */
function clockText(seconds, step) {
	if (step >= 60)
		return seconds < 30 ? "0" : minutesText(seconds);
	const decimals = step >= 1 ? 0 : Math.min(9, Math.ceil(-Math.log10(step) - 1e-9));
	if (seconds < 1 && step < 0.1)
		return (seconds * 1e3).toFixed(Math.max(0, decimals - 3)) + " ms";
	if (seconds < 60 - step / 2)
		return seconds.toFixed(decimals) + " s";
	const scale = 10 ** decimals, whole = Math.round(seconds * scale);
	const rest = whole % (60 * scale), minutes = Math.floor(whole / (60 * scale));
	const text = (rest / scale).toFixed(decimals).padStart(decimals ? decimals + 3 : 2, "0");
	const two = String(minutes % 60).padStart(2, "0");
	return minutes < 60 ? `${minutes}:${text}` : `${Math.floor(minutes / 60)}:${two}:${text}`;
}

function timeTicks(from, to, width) {
	const step = niceStep((to - from) / Math.max(2, Math.floor(width / 95)));
	const ticks = [];
	for (let i = Math.ceil(from / step - 1e-6); i * step <= to + step * 1e-6; i++)
		ticks.push({ v: i * step, label: clockText(i * step, step) });
	return ticks;
}

/* 50 GB, not 50.0 GB: ticks are exact. */
function tickText(value, unit) {
	return quantity(value, unit).replace(/\.0+(?= |$)/, "").replace(/(\.\d*?)0+(?= |$)/, "$1");
}

/* Ticks of values: 1, 2 or 5 times a power of ten. */
function valueTicks(low, high, height, unit) {
	const rough = (high - low) / Math.max(2, Math.floor(height / 26));
	if (!(rough > 0))
		return [];
	const ten = 10 ** Math.floor(Math.log10(rough));
	const step = ten * [1, 2, 5, 10].find((part) => part * ten >= rough * 0.999);
	const ticks = [];
	for (let i = Math.ceil(low / step - 1e-6); i * step <= high + step * 1e-6; i++)
		ticks.push({ v: i * step, label: tickText(Number((i * step).toPrecision(6)), unit) });
	return ticks;
}

/* The index of the last of ascending numbers that is not above the value; -1: none. */
function lastNotAbove(numbers, value) {
	let low = 0, high = numbers.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (numbers[middle] <= value)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

function segmentAt(axis, seconds) {
	let found = axis.segments[0] || null;
	for (const segment of axis.segments)
		if (segment.from <= seconds)
			found = segment;
	return found;
}

/* Local time of the viewer: "Fri 14:03:22.123". */
function wallText(axis, seconds) {
	const segment = segmentAt(axis, seconds);
	if (!segment || segment.wall === null)
		return "";
	const slept = axis.sleeps.filter((one) => one.at_s > segment.from && one.at_s <= seconds)
		.reduce((sum, one) => sum + one.slept_s, 0);
	const date = new Date((segment.wall + seconds - segment.from + slept) * 1e3);
	const text = date.toLocaleTimeString("en-GB") + "." + String(date.getMilliseconds()).padStart(3, "0");
	return axis.length > 43200 ? date.toLocaleDateString("en-GB", { weekday: "short" }) + " " + text : text;
}

/* The visible part of the time, and the position of the cursor; drawing code is notified of changes, once in each
 * frame. */
class TimeWindow {
	constructor(axis) {
		this.axis = axis;
		this.all = [0, axis.length];
		this.smallest = Math.min(axis.length, 1e-7); // seconds; clocks have nanoseconds
		this.shown = this.all;
		this.cursor = null;
		this.watchers = [];
		this.pending = 0;
	}

	watch(call) {
		this.watchers.push(call);
	}

	changed(what) {
		this.pending |= what;
		if (this.frame)
			return;
		this.frame = requestAnimationFrame(() => {
			const pending = this.pending;
			this.frame = this.pending = 0;
			for (const call of this.watchers)
				call((pending & TimeWindow.SHOWN) !== 0);
		});
	}

	show(from, to) {
		const length = Math.min(Math.max(to - from, this.smallest), this.all[1]);
		const start = Math.min(Math.max(from, 0), this.all[1] - length);
		this.shown = [start, start + length];
		this.changed(TimeWindow.SHOWN);
	}

	zoom(factor, around) {
		const [from, to] = this.shown;
		const at = around ?? this.cursor ?? (from + to) / 2;
		const by = Math.max(factor, this.smallest / (to - from)); // at the smallest it stays where it is
		this.show(at - (at - from) * by, at + (to - at) * by);
	}

	pan(part) {
		const [from, to] = this.shown;
		this.show(from + part * (to - from), to + part * (to - from));
	}

	reset() {
		this.show(...this.all);
	}

	get isWhole() {
		return this.shown[0] <= 0 && this.shown[1] >= this.all[1];
	}

	point(seconds) {
		this.cursor = seconds === null ? null : Math.min(Math.max(seconds, 0), this.all[1]);
		this.changed(TimeWindow.CURSOR);
	}
}
TimeWindow.SHOWN = 1;
TimeWindow.CURSOR = 2;
