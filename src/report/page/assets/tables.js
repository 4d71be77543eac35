/* Sortable tables. Cells have their value in data-value if it differs from their text; unknown ones have none and
 * come last. */
function cellValue(row, column) {
	const cell = row.cells[column];
	if (cell.dataset.value === undefined)
		return cell.classList.contains("name") ? cell.textContent : null;
	return cell.dataset.value === "" ? null : Number(cell.dataset.value);
}

function compareValues(a, b, sign) {
	if (a === null || b === null)
		return (a === null) - (b === null);
	return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
}

function sortTable(table, column, order) {
	const sign = order === "ascending" ? 1 : -1;
	const keyed = Array.from(table.tBodies[0].rows, (row) => [cellValue(row, column), row]);
	keyed.sort((a, b) => compareValues(a[0], b[0], sign));
	const rows = document.createDocumentFragment();
	rows.append(...keyed.map((pair) => pair[1]));
	table.tBodies[0].append(rows);
	const heads = table.tHead.rows[0].cells;
	for (let i = 0; i < heads.length; i++)
		if (heads[i].classList.contains("sorts"))
			heads[i].setAttribute("aria-sort", i === column ? order : "none");
}

/* Figures begin with the largest, names with the first. */
function nextOrder(head) {
	const now = head.getAttribute("aria-sort");
	if (now === "ascending" || now === "descending")
		return now === "ascending" ? "descending" : "ascending";
	return head.classList.contains("name") ? "ascending" : "descending";
}

function makeSortable(table) {
	Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
		const button = element("button");
		button.type = "button";
		button.append(...head.childNodes);
		head.append(button);
		head.classList.add("sorts");
		if (!head.hasAttribute("aria-sort"))
			head.setAttribute("aria-sort", "none");
		head.addEventListener("click", () => sortTable(table, column, nextOrder(head)));
	});
}

/* Regions that scroll sideways are reached by Tab, because arrow keys scroll them then; others are no tab stops. */
function watchScroller(box) {
	const table = box.querySelector("table");
	const heading = document.getElementById(table && table.getAttribute("aria-labelledby"));
	const title = heading ? heading.textContent : "Table";
	const attributes = { tabindex: "0", role: "region", "aria-label": `${title}, scrolls sideways` };
	new ResizeObserver(() => {
		const scrolls = box.scrollWidth > box.clientWidth + 1;
		for (const name of Object.keys(attributes))
			if (scrolls)
				box.setAttribute(name, attributes[name]);
			else
				box.removeAttribute(name);
	}).observe(box);
}

whenReady(() => {
	document.querySelectorAll("table.sortable").forEach(makeSortable);
	document.querySelectorAll(".wide").forEach(watchScroller);
});
