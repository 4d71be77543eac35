/* For all pages: light or dark, one tooltip. Everything below runs in one function of its own
 * (tools/embed-assets.py). */
const root = document.documentElement;
root.classList.add("js");

/* Called for each part of a page when its body exists. An error must not hide the figures: without the class the
 * static pictures are shown, as in a browser without scripts. */
function whenReady(start) {
	document.addEventListener("DOMContentLoaded", () => {
		try {
			start();
		} catch (error) {
			root.classList.remove("js");
			console.error(error);
		}
	});
}

/* Called when colours change: pictures on canvas must be drawn again. */
const onColours = [];

const colours = new Map();
onColours.push(() => colours.clear());

function colourOf(name) {
	if (!colours.has(name))
		colours.set(name, getComputedStyle(root).getPropertyValue("--" + name).trim());
	return colours.get(name);
}

/* The fill of estimated areas in charts of all pages. */
const hatches = new Map();
onColours.push(() => hatches.clear());

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

function isDark() {
	const chosen = root.dataset.theme;
	return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/* Some browsers deny storage to pages opened from a file: then the choice lasts until the page is closed. */
function keepTheme(theme) {
	try {
		localStorage.setItem("wattle-theme", theme);
	} catch {
		return;
	}
}

function keptTheme() {
	try {
		return localStorage.getItem("wattle-theme");
	} catch {
		return null;
	}
}

function showTheme(button) {
	button.textContent = isDark() ? "Light" : "Dark";
	for (const call of onColours)
		call();
}

const theme = keptTheme();
if (theme === "dark" || theme === "light")
	root.dataset.theme = theme;

whenReady(() => {
	const button = document.getElementById("theme");
	button.hidden = false;
	button.addEventListener("click", () => {
		root.dataset.theme = isDark() ? "light" : "dark";
		keepTheme(root.dataset.theme);
		showTheme(button);
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => showTheme(button));
	showTheme(button);
});

/* An element with text in it. Names of programs are inserted here as text and never as markup. */
function element(tag, className, text) {
	const made = document.createElement(tag);
	if (className)
		made.className = className;
	if (text !== undefined)
		made.textContent = text;
	return made;
}

/* The code points of an invisible name, as words_unseen in report/phrases.c. */
function seenName(text) {
	if (/[^\p{Cc}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text))
		return text;
	const codes = Array.from(text, (one) => "U+" + one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0"));
	return codes.length === 0 ? "(unnamed)" : `(${codes.slice(0, 4).join(" ")}${codes.length > 4 ? " …" : ""})`;
}

/* A name given by a program: its direction of writing must not affect its surroundings. */
function nameElement(name, limit = 300) {
	const text = seenName(name);
	return element("bdi", "", text.length > limit ? text.slice(0, limit) + "…" : text);
}

/* ---- one tooltip ---- */

let tipBox = null;

function showTip(x, y, title, lines) {
	if (!tipBox) {
		tipBox = element("div");
		tipBox.id = "tip";
		document.body.append(tipBox);
	}
	const heading = element("strong");
	heading.append(nameElement(title));
	tipBox.replaceChildren(heading, ...lines.map((line) => element("div", "", line)));
	tipBox.hidden = false;
	const width = tipBox.offsetWidth, height = tipBox.offsetHeight;
	const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
	const top = y + 18 + height > innerHeight ? y - 12 - height : y + 18;
	tipBox.style.left = Math.max(4, left) + "px";
	tipBox.style.top = Math.max(4, top) + "px";
}

function hideTip() {
	if (tipBox)
		tipBox.hidden = true;
}
