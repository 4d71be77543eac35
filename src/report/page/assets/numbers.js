/* Formatted numbers, as in report/human.c. Unknown is "n/a". */
const PREFIXES = {
	w: [[1e6, "MW"], [1e3, "kW"], [1, "W"], [1e-3, "mW"], [1e-6, "µW"]],
	j: [[1e9, "GJ"], [1e6, "MJ"], [1e3, "kJ"], [1, "J"], [1e-3, "mJ"], [1e-6, "µJ"]],
	bytes: [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
	s: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
};
const PLAIN = { c: "°C", mhz: "MHz", cores: "cores", processes: "" };

function significant(value, digits) {
	const size = Math.abs(value);
	if (!(size > 0))
		return "0";
	const whole = Math.floor(Math.log10(Number(size.toPrecision(digits)))) + 1;
	return value.toFixed(Math.min(12, Math.max(0, digits - whole)));
}

function prefixed(value, prefixes) {
	if (value === 0)
		return "0 " + prefixes.find((prefix) => prefix[0] === 1)[1];
	const size = Math.abs(Number(value.toPrecision(3)));
	const found = prefixes.find((prefix) => size >= prefix[0]) || prefixes[prefixes.length - 1];
	return significant(value / found[0], 3) + " " + found[1];
}

function quantity(value, unit) {
	if (value === null || value === undefined || Number.isNaN(value))
		return "n/a";
	if (unit === "percent")
		return value.toFixed(Math.abs(value) < 99.95 ? 1 : 0) + " %";
	if (unit === "bytes" && Math.abs(value) < 999.5) // there are no parts of a byte
		return Math.round(value) + " B";
	if (PREFIXES[unit])
		return prefixed(value, PREFIXES[unit]);
	return (significant(value, 3) + " " + (PLAIN[unit] ?? unit)).trim();
}

/* A duration: 1.23 ms, 12.3 s, 3 min 12.4 s, 5 h 03 min. */
function duration(seconds) {
	if (seconds === null || Number.isNaN(seconds) || Math.abs(seconds) < 59.95)
		return quantity(seconds, "s");
	const two = (value) => String(value).padStart(2, "0");
	const tenths = Math.round(seconds * 10), minutes = Math.round(seconds / 60), hours = Math.round(seconds / 3600);
	if (tenths < 36000)
		return `${Math.floor(tenths / 600)} min ${two(Math.floor(tenths % 600 / 10))}.${tenths % 10} s`;
	if (minutes < 24 * 60)
		return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
	return `${Math.floor(hours / 24)} d ${two(hours % 24)} h`;
}
