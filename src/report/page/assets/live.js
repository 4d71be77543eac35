/* The live page: fetches new versions of itself repeatedly, and replaces the old contents node by node, so that
 * selection, focus and sorting are kept. */

/* ---- updating the contents ---- */

function syncAttributes(old, fresh) {
	for (const { name, value } of fresh.attributes)
		if (old.getAttribute(name) !== value)
			old.setAttribute(name, value);
	for (const { name } of Array.from(old.attributes))
		if (!fresh.hasAttribute(name))
			old.removeAttribute(name);
}

/* Children with an id are matched by it in any position, the others by their position. */
function replaceChildren(old, fresh) {
	const known = new Map();
	for (const child of old.children)
		if (child.id)
			known.set(child.id, child);
	let at = old.firstChild;
	for (const child of Array.from(fresh.childNodes)) {
		const place = at && !at.id && at.nodeName === child.nodeName ? at : null;
		const match = child.id ? known.get(child.id) : place;
		if (match === at && match)
			at = at.nextSibling;
		else
			old.insertBefore(match || child, at);
		if (match)
			replaceNode(match, child);
	}
	while (at) {
		const next = at.nextSibling;
		at.remove();
		at = next;
	}
}

function replaceNode(old, fresh) {
	if (old.nodeType === Node.TEXT_NODE) {
		if (old.data !== fresh.data)
			old.data = fresh.data;
		return;
	}
	if (old.nodeName === "THEAD") { // has the buttons that sort
		if (old.textContent !== fresh.textContent)
			old.replaceWith(fresh);
		return;
	}
	syncAttributes(old, fresh);
	replaceChildren(old, fresh);
}

function keepOrder(table, fresh) {
	const heads = Array.from(table.tHead.rows[0].cells);
	const column = heads.findIndex((head) => /cending/.test(head.getAttribute("aria-sort")));
	if (column < 0)
		return;
	const order = heads[column].getAttribute("aria-sort");
	const freshHeads = Array.from(fresh.tHead.rows[0].cells);
	const same = freshHeads.findIndex((head) => head.textContent === heads[column].textContent);
	if (same < 0 || (order === "descending" && freshHeads[same].getAttribute("aria-sort") === order))
		return; // as it comes
	sortTable(fresh, same, order);
}

function showFigures(page) {
	for (const fresh of page.querySelectorAll("table.sortable")) {
		const table = document.getElementById(fresh.id);
		if (table)
			keepOrder(table, fresh);
	}
	for (const id of ["first", "rest"])
		replaceNode(document.getElementById(id), page.getElementById(id));
	for (const table of document.querySelectorAll("table.sortable"))
		if (!table.tHead.querySelector("button"))
			makeSortable(table);
}

/* ---- requests ---- */

const PATIENCE_MS = 10000;

/* The timeout is cancelled when the response has arrived; AbortSignal.timeout() would keep each response in memory
 * until then. */
async function fetchText(path) {
	const stop = new AbortController();
	const limit = setTimeout(() => stop.abort(), PATIENCE_MS);
	try {
		const answer = await fetch(path, { cache: "no-store", signal: stop.signal });
		if (!answer.ok)
			throw new Error(`the server responds ${answer.status}`);
		return await answer.text();
	} finally {
		clearTimeout(limit);
	}
}

/* ---- history for the charts ---- */

const LOOKS = 600; // samples, as many as the server keeps
let recent = null;

function readBlock(page, id) {
	const block = page.getElementById(id);
	return block ? JSON.parse(block.textContent) : null;
}

function appendColumns(old, fresh) {
	for (const [key, values] of Object.entries(fresh)) {
		if (key === "domains" || !Array.isArray(values))
			continue;
		if (!old[key]) // first such reading of this domain
			old[key] = new Array(recent.unix_s.length - 1).fill(null);
		old[key].push(...values);
		if (old[key].length > LOOKS)
			old[key].splice(0, old[key].length - LOOKS);
	}
}

function appendLook(fresh) {
	appendColumns(recent, fresh);
	fresh.domains.forEach((domain, i) => appendColumns(recent.domains[i], domain));
	recent.sample = fresh.sample;
}

/* After a pause (hidden page, suspended computer), or when another server answers, the whole history is fetched
 * again. */
async function fetchTrail() {
	const now = JSON.parse(await fetchText("now.json?history=1"));
	recent = { ...now.history, sample: now.sample, interval_s: now.interval_s, cores: now.cores,
		memory_total_bytes: now.memory_total_bytes };
	drawCharts(true);
}

async function follow(newest) {
	if (newest.sample === recent.sample)
		return;
	if (newest.sample !== recent.sample + 1 || newest.domains.length !== recent.domains.length) {
		await fetchTrail();
		return;
	}
	appendLook(newest);
	drawCharts(false);
}

/* ---- polling ---- */

let failedSince = null;
let timer = 0;

function showState(text, className) {
	const state = document.getElementById("state");
	state.textContent = text;
	state.className = "beat" + (className ? " " + className : "");
}

async function fetchFigures() {
	const page = new DOMParser().parseFromString(await fetchText("figures"), "text/html");
	const newest = readBlock(page, "newest");
	const isNew = newest.sample !== recent.sample;
	if (isNew)
		showFigures(page);
	await follow(newest);
	return isNew;
}

function again(delay_ms) {
	clearTimeout(timer);
	timer = setTimeout(turn, delay_ms);
}

/* After a request that was too early, requests are slightly more frequent than the server's polls, until one comes
 * right after a poll. */
async function turn() {
	if (document.hidden)
		return; // the page is hidden; visibilitychange restarts polling
	const interval_ms = recent.interval_s * 1000;
	try {
		const isNew = await fetchFigures();
		failedSince = null;
		showState("Live", "");
		again(isNew ? interval_ms : Math.max(50, interval_ms / 8));
	} catch (error) {
		failedSince = failedSince || new Date();
		const since = failedSince.toLocaleTimeString();
		showState(`No response since ${since} (${error.message}), trying again`, "is-lost");
		again(Math.max(2000, interval_ms));
	}
}

whenReady(() => {
	recent = readBlock(document, "history");
	if (!recent)
		return;
	drawCharts(true);
	onColours.push(() => drawCharts(true));
	document.addEventListener("visibilitychange", () => again(0));
	again(recent.interval_s * 1000);
});
