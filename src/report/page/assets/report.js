/* The page of a run. */
whenReady(() => {
	const block = document.getElementById("charts"), box = document.getElementById("view");
	if (!block || !box)
		return;
	const view = new View(box, readModel(JSON.parse(block.textContent)));
	document.querySelectorAll("tr[data-block]").forEach((row) => row.addEventListener("click", () => {
		const number = Number(row.dataset.block);
		view.chooseBlock(view.chosen === number ? null : number);
	}));
});
